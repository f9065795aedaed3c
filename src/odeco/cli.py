"""The command line. What is heavy is imported by the command that needs it: ``odeco --help`` stays quick.

Exit codes: 0 done, 1 the data or the fit is at fault, 2 the command was misspelt.
"""

from __future__ import annotations

import dataclasses
import json
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, NoReturn

import numpy as np
import typer
from numpy.lib import format as npy

import odeco
from odeco.decomposition import METHODS

app = typer.Typer(
    name="odeco",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)

Debug = Annotated[bool, typer.Option("--debug", help="Show the whole traceback of an error.")]


def main(args: Sequence[str] | None = None) -> None:
    """Run the command line and exit; a misspelt command costs one line on stderr and exit code 2."""
    try:
        code = app(args, prog_name="odeco", standalone_mode=False)
    except Exception as error:
        # typer's own errors are known by what they can do: their classes are not public in every version.
        if not hasattr(error, "format_message"):
            raise
        message, code = " ".join(error.format_message().split()), getattr(error, "exit_code", 2)
        if message:  # `odeco` alone has printed its help and has nothing to add
            fail(f"{message} (see 'odeco --help')", code)
    sys.exit(code if isinstance(code, int) else 0)


def fail(message: str, code: int = 1) -> NoReturn:
    """Say in one line on stderr what went wrong, and exit."""
    typer.echo(f"odeco: error: {message}", err=True)
    sys.exit(code)


@contextmanager
def readable_errors(debug: bool) -> Iterator[None]:
    """Turn exceptions and warnings of the library into one line each on stderr."""

    def show(message: Warning | str, *_: object, **__: object) -> None:
        typer.echo(f"odeco: warning: {message}", err=True)

    with warnings.catch_warnings():
        warnings.simplefilter("default")
        warnings.showwarning = show
        try:
            yield
        except Exception as error:
            if debug:
                raise
            message = " ".join(str(error).split())
            if not isinstance(error, (ValueError, OSError, MemoryError)):
                message = f"unexpected {type(error).__name__}: {message} (run again with --debug and report it)"
            fail(message or type(error).__name__)


def show_version(asked: bool) -> None:
    """Print the version and stop."""
    if asked:
        typer.echo(f"odeco {odeco.__version__}")
        raise typer.Exit


def known_method(method: str) -> str:
    """A method that does not exist is a misspelt command, known before the tensor is read."""
    if method not in METHODS:
        raise typer.BadParameter(f"{method!r} is not one of {', '.join(METHODS)}.")
    return method


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=show_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Latent variable models by the method of moments.

    [bold]Example[/bold]: odeco decompose tensor.npy --rank 5
    """


@app.command()
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
    debug: Debug = False,
) -> None:
    """Decompose a symmetric tensor into orthogonal components.

    [bold]Example[/bold], for an array written with numpy.save("tensor.npy", tensor):

      odeco decompose tensor.npy --rank 3 --seed 0

      odeco decompose tensor.npy --json > components.json
    """
    with readable_errors(debug):
        result = odeco.decompose(read_array(tensor), rank, method=method, random_state=seed)
        typer.echo(json.dumps(as_plain(result), allow_nan=False) if as_json else str(result))


def read_array(path: Path) -> np.ndarray[Any, Any]:
    """Read a ``.npy`` file of numbers; nothing in the file is ever run."""
    with path.open("rb") as file:
        try:
            array: np.ndarray[Any, Any] = npy.read_array(file, allow_pickle=False)
        except ValueError as error:
            raise ValueError(f"{path} is not a .npy file of numbers ({error})") from error
    return array


def as_plain(value: Any) -> Any:
    """Turn a result into what JSON knows: lists, numbers, strings; what is not a number becomes null."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: as_plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Enum):
        return as_plain(value.value)
    if hasattr(value, "tolist"):  # NumPy arrays and scalars
        return as_plain(value.tolist())
    if isinstance(value, dict):
        return {str(key): as_plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [as_plain(item) for item in value]
    if isinstance(value, float):
        return value if abs(value) < float("inf") else None
    return value if value is None or isinstance(value, (str, int)) else str(value)
