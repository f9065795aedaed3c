"""Options that several commands share: each is said once, with its help."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from stat import S_ISDIR
from typing import Annotated, Any

import typer

from odeco.fitting.card import Option

DEBUG = Annotated[bool, typer.Option("--debug", help="Show the whole traceback of an error.")]
QUIET = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing unless something is wrong.")]
MODEL_FILE = Annotated[
    Path, typer.Argument(metavar="MODEL", show_default=False, help="A file written by [bold]odeco fit[/bold].")
]
INTERVALS = Annotated[
    Path | None,
    typer.Option(
        "--intervals", metavar="FILE", show_default=False, help="What [bold]odeco intervals[/bold] wrote of the model."
    ),
]
FORMAT = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="NAME",
        show_default=False,
        help="Format of INPUT, where its name and content do not tell: text, folder, csv, tsv, jsonl, parquet, uci, "
        "ldac, svmlight, mtx, npz, npy, wav.",
    ),
]
COLUMN = Annotated[
    str | None, typer.Option("--column", "-c", metavar="NAME", show_default=False, help="Column that holds the text.")
]
ENCODING = Annotated[
    str | None, typer.Option("--encoding", metavar="NAME", show_default=False, help="Of text; UTF-8 if left out.")
]


def option(
    name: str,
    kind: Any,
    help: str,
    *flags: str,
    required: bool = False,
    default: Any = None,
    choices: Sequence[str] = (),
    **details: Any,
) -> inspect.Parameter:
    """One option of a command that is put together from a table: its name is that of the argument it becomes."""
    if choices:
        help, details["callback"] = f"{help} ({', '.join(choices)})", one_of(choices)
    flags = flags or (f"--{name.replace('_', '-')}",)
    details.setdefault("metavar", "NUMBER" if kind in (int, float) else "NAME")
    info = typer.Option(*flags, help=help, show_default=default is not None, **details)
    value = inspect.Parameter.empty if required else default
    known = kind if required or default is not None else kind | None
    annotation = Annotated[known, info]  # type: ignore[valid-type]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=value, annotation=annotation)


def setting(given: Option) -> inspect.Parameter:
    """The option of a card, as a command takes it."""
    details: dict[str, Any] = {} if given.least is None else {"min": given.least}
    if given.word:
        details |= {"parser": number_or(given.word), "metavar": f"NUMBER|{given.word}"}
    kind: Any = str if given.word else list[given.kind] if given.several else given.kind  # type: ignore[name-defined]
    flags = [given.flag] if given.flag else []
    return option(given.name, kind, given.help, *flags, choices=given.choices, **details)


def one_of(choices: Sequence[str]) -> Callable[[Any], Any]:
    """A value that does not exist is a misspelt command, known before anything is read."""

    def check(value: Any) -> Any:
        for each in value if isinstance(value, (list, tuple)) else [value]:
            if each is not None and each not in choices:
                raise typer.BadParameter(f"{each!r} is not one of {', '.join(choices)}.")
        return value

    return check


def with_parameters(function: Callable[[dict[str, Any]], None], parameters: Sequence[inspect.Parameter]) -> Any:
    """A command with the given options, which hands all of them to ``function`` in one dictionary."""

    def command(**values: Any) -> None:
        function(values)

    command.__signature__ = inspect.Signature(list(parameters))  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return command


def number_or(word: str) -> Callable[[str], Any]:
    """A parser of what is a number or one word, such as "auto"."""

    def parse(text: str) -> float | str:
        try:
            return word if text == word else float(text)
        except ValueError:
            raise typer.BadParameter(f"{text!r} is neither a number nor {word!r}.") from None

    return parse


def numbers_of_parts(text: str) -> int | str | range:
    """How many parts: a number, "auto", or numbers to choose from, such as "2..30"."""
    low, dots, high = text.partition("..")
    try:
        found = text if text == "auto" else range(int(low), int(high) + 1) if dots else int(text)
    except ValueError:
        raise typer.BadParameter(
            f"{text!r} is neither a number, nor 'auto', nor numbers to choose from such as 2..30."
        ) from None
    if isinstance(found, range) and not found:
        raise typer.BadParameter(f"{text!r} holds no number: write the smaller one first.")
    least = found if isinstance(found, int) else found[0] if isinstance(found, range) else 1
    if least < 1:
        raise typer.BadParameter(f"{text!r} is not in the range x>=1: a model has one part at least.")
    return found


def share_or_count(text: str) -> float | int:
    """How common a word is: a whole number of documents, or a share of them written with a decimal point."""
    try:
        return float(text) if "." in text or "e" in text.lower() else int(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is neither a number of documents (5) nor a share of them (0.01).") from None


def check_output(path: Path, inputs: Iterable[str | Path], *, stdout: bool = True) -> Path:
    """An output that cannot be written, or that would replace what is read, is known before any work is done."""
    if str(path) == "-":
        if not stdout:
            raise typer.BadParameter("'--out' must be a file: a model is not written to stdout.")
        return path
    out = expanded(path)
    if out.is_dir():
        raise ValueError(f"--out {path} is a folder: name a file in it.")
    if out.exists() and not out.is_file():
        raise ValueError(f"--out {path} is a device or a pipe, which cannot be replaced by a file: use a file.")
    if not out.parent.is_dir():
        raise ValueError(f"--out {path}: there is no folder {out.parent}. Make it first (mkdir -p {out.parent}).")
    if not os.access(out.parent, os.W_OK | os.X_OK):
        raise ValueError(f"--out {path}: you may not write into the folder {out.parent}. Name a file elsewhere.")
    check_apart(out, inputs)
    return out


def expanded(path: str | Path) -> Path:
    """A path with ~ as the home it means; one of an unknown user stays as it is, and is not found."""
    return Path(os.path.expanduser(path))


def check_apart(out: Path, inputs: Iterable[str | Path]) -> None:
    """An output that is one of the inputs, under whatever name, would replace what cannot be had again."""
    for given in inputs:
        if _is_or_holds(given, out):
            raise ValueError(
                f"{out} belongs to the input {given} and would be written over: name another file with --out."
            )


def _is_or_holds(given: str | Path, out: Path) -> bool:
    """Whether an input is the file `out` (a link, another spelling, the file behind stdin), or a folder with it."""
    try:
        written = out.stat()
        read = os.fstat(sys.stdin.fileno()) if str(given) == "-" else expanded(given).stat()
    except (OSError, ValueError):  # one of them is not there, or stdin is no file
        return False
    places = [written, *(folder.stat() for folder in out.resolve().parents)] if S_ISDIR(read.st_mode) else [written]
    return any(os.path.samestat(place, read) for place in places)
