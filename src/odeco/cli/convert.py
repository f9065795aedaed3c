"""``odeco convert``: any input as counts of words or as a table, in another format."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Annotated, Any

import typer

from odeco.cli.console import Stages
from odeco.cli.inputs import COLUMN, COLUMNS, ENCODING, FORMAT, READERS, TEXT, VOCABULARY, files_read, read
from odeco.cli.options import DEBUG, QUIET, check_apart, check_output, option, with_parameters

HELP = """Write documents as counts of words, or a table, in another format.

[bold]Examples[/bold]: text as counts, its vocabulary beside; a table as Parquet; counts for another program

  odeco convert articles.txt --stop-words english --min-df 5 --out counts.parquet

  odeco convert penguins.csv --as table --out penguins.parquet

  odeco convert counts.npz --out corpus.ldac
"""


def convert(values: dict[str, Any]) -> None:
    """Read as one kind of data, write in the format that the name of the output says."""
    from odeco.files.write_counts import vocabulary_file

    named, kind = values["input"], "mixed" if values["kind"] == "table" else "counts"
    names = {each.name for each in READERS[kind].settings}
    for each in SETTINGS:
        if values[each.name] is not None and each.name not in names:
            raise typer.BadParameter(f"--{each.name.replace('_', '-')} is not for --as {values['kind']}.")
    reading = {name: values[name] for name in names if values[name] is not None}
    out = check_output(values["out"], files_read([named], reading))
    if kind == "counts" and (words := vocabulary_file(out, values["to"] or "auto")) is not None:
        check_apart(words, [named])
    stages = Stages(quiet=values["quiet"])
    with stages.stage(f"reading {named}") as stage:
        data = read(kind, [named], reading, stage)
        stage.done = f"read {named}: {data.format}"
    with stages.stage(f"writing {out}") as stage:
        write(kind, out, data.watched(stage)[0], data.names, values["to"], values["replace_vocabulary"])
        stage.done = "" if str(out) == "-" else f"wrote {out}"


def write(kind: str, out: Path, rows: Any, names: Any, to: str | None, replace_vocabulary: bool) -> None:
    """Write counts with their vocabulary, or the columns of a table."""
    from odeco.files import write_counts, write_table

    if kind == "counts":
        words = names["vocabulary"]
        write_counts(out, rows, words, format=to or "auto", replace_vocabulary=replace_vocabulary)
    else:
        blocks = rows() if callable(rows) else iter([rows])
        write_table(out, (_columns(block, names["feature_names"]) for block in blocks), format=to or "auto")


def _columns(block: Any, names: list[str]) -> dict[str, Any]:
    return dict(zip(names, getattr(block, "parts", None) or block.T, strict=True))


SETTINGS = (COLUMN, *TEXT, VOCABULARY, COLUMNS, FORMAT, ENCODING)

_INPUT = Annotated[str, typer.Argument(metavar="INPUT", show_default=False, help=READERS["counts"].what)]
_REPLACE = Annotated[
    bool, typer.Option("--replace-vocabulary", help="Replace a file of other words that lies beside the output.")
]
_KEYWORD = inspect.Parameter.KEYWORD_ONLY

command = with_parameters(
    convert,
    [
        inspect.Parameter("input", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=_INPUT),
        option("out", Path, "The file to write; - is stdout.", "--out", "-o", required=True, metavar="FILE"),
        option("kind", str, "What INPUT is.", "--as", default="counts", choices=("counts", "table")),
        option("to", str, "Format of the output, where its name does not tell."),
        *SETTINGS,
        inspect.Parameter("replace_vocabulary", _KEYWORD, default=False, annotation=_REPLACE),
        inspect.Parameter("quiet", _KEYWORD, default=False, annotation=QUIET),
        inspect.Parameter("debug", _KEYWORD, default=False, annotation=DEBUG),
    ],
)
