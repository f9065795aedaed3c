"""``odeco decompose``: a symmetric tensor from a file, its components on stdout."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.lib import format as npy

import odeco
from odeco.cli.options import DEBUG
from odeco.cli.printing import print_json, print_lines
from odeco.decomposition import METHODS


def known_method(method: str) -> str:
    """A method that does not exist is a misspelt command, known before the tensor is read."""
    if method not in METHODS:
        raise typer.BadParameter(f"{method!r} is not one of {', '.join(METHODS)}.")
    return method


def decompose(
    tensor: Annotated[
        Path,
        typer.Argument(
            metavar="TENSOR.npy",
            exists=True,
            dir_okay=False,
            readable=True,
            show_default=False,
            help="A symmetric array of order 3 or 4, written by numpy.save.",
        ),
    ],
    rank: Annotated[
        int | None,
        typer.Option(
            "--rank",
            "-r",
            min=1,
            show_default=False,
            help="Number of components; decided from the noise if left out.",
        ),
    ] = None,
    method: Annotated[str, typer.Option(callback=known_method, help=f"One of {', '.join(METHODS)}.")] = "auto",
    seed: Annotated[int | None, typer.Option(min=0, show_default=False, help="Same seed, same result.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything, eigenvectors included, as JSON.")] = False,
    debug: DEBUG = False,
) -> None:
    """Decompose a symmetric tensor into orthogonal components.

    [bold]Example[/bold], for an array written with numpy.save("tensor.npy", tensor):

      odeco decompose tensor.npy --rank 3 --seed 0

      odeco decompose tensor.npy --json > components.json
    """
    result = odeco.decompose(read_array(tensor), rank, method=method, random_state=seed)
    if as_json:
        print_json(result)
    else:
        print_lines(*str(result).split("\n"))


def read_array(path: Path) -> np.ndarray[Any, Any]:
    """Read a ``.npy`` file of numbers; nothing in the file is ever run."""
    with path.open("rb") as file:
        try:
            array: np.ndarray[Any, Any] = npy.read_array(file, allow_pickle=False)
        except ValueError as error:
            raise ValueError(f"{path} is not a .npy file of numbers ({error})") from error
    return array
