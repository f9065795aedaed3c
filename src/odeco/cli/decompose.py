"""``odeco decompose``: a symmetric tensor from a file, its components on stdout."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import odeco
from odeco.cli.help import Command
from odeco.cli.options import DEBUG
from odeco.cli.printing import print_json, print_lines

if TYPE_CHECKING:
    import numpy as np


def known_method(method: str) -> str:
    """A method that does not exist is a misspelt command, known before the tensor is read."""
    from odeco.decomposition import METHODS

    if method not in METHODS:
        raise typer.BadParameter(f"{method!r} is not one of {', '.join(METHODS)}.")
    return method


class WithMethods(Command):
    """The methods are named when the page is asked for: they stand where the computing does, and that takes NumPy."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """The page, with the methods below it."""
        from odeco.decomposition import METHODS

        self.epilog = f"[bold]Methods[/bold]: {', '.join(METHODS)}."
        super().format_help(ctx, formatter)


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
            metavar="NUMBER",
            show_default=False,
            help="Number of components; decided from the noise if left out.",
        ),
    ] = None,
    method: Annotated[str, typer.Option(callback=known_method, metavar="NAME", help="How; see below.")] = "auto",
    seed: Annotated[
        int | None, typer.Option(min=0, metavar="NUMBER", show_default=False, help="Same seed, same result.")
    ] = None,
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
    from numpy.lib import format as npy

    with path.open("rb") as file:
        try:
            array: np.ndarray[Any, Any] = npy.read_array(file, allow_pickle=False)
        except ValueError as error:
            raise ValueError(f"{path} is not a .npy file of numbers ({error})") from error
    return array
