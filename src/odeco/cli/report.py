"""``odeco report``: a page to look at, in one HTML file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from odeco.cli.console import Stages
from odeco.cli.options import COLUMN, DEBUG, FORMAT, INTERVALS, MODEL_FILE, QUIET, check_output

if TYPE_CHECKING:
    from odeco.cli.data import Data
    from odeco.cli.model_file import Saved


# What columns with titles and dates are called.
TITLES = ("title", "headline", "subject", "name")
DATES = ("date", "year", "datetime", "time", "timestamp", "published", "created_at")


def report(
    model: MODEL_FILE,
    inputs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[INPUT]...",
            show_default=False,
            help="Data to show the model on, read as those of the fit; - is stdin.",
        ),
    ] = None,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FILE", show_default=False, help="The page; - is stdout.")
    ] = Path("report.html"),
    format: FORMAT = None,
    column: COLUMN = None,
    title: Annotated[
        str | None,
        typer.Option(
            "--title",
            metavar="NAME",
            show_default=False,
            help="Column with the titles of documents; found by its name.",
        ),
    ] = None,
    date: Annotated[
        str | None,
        typer.Option(
            "--date",
            metavar="NAME",
            show_default=False,
            help="Column with years or dates of documents; found by its name.",
        ),
    ] = None,
    intervals: INTERVALS = None,
    quiet: QUIET = False,
    debug: DEBUG = False,
) -> None:
    """Write a page about a model: one HTML file that needs no network.

    [bold]Examples[/bold]:

      odeco report topics.odeco articles.txt --out topics.html

      odeco report states.odeco --out states.html
    """
    from odeco.cli.model_file import open_model

    out = check_output(out, [model, *(inputs or [])])
    if (format or column or title or date) and not inputs:
        raise typer.BadParameter("'--format', '--column', '--title' and '--date' are about INPUT, and none is given.")
    saved, stages, data = open_model(model), Stages(quiet=quiet), None
    found = None if intervals is None else saved.intervals(intervals)
    if inputs:
        with stages.stage(f"reading {', '.join(inputs)}") as stage:
            data = saved.read(inputs, stage, format=format, column=column)
            stage.done = f"read {', '.join(inputs)}: {data.format}"
    named = {} if data is None else described_rows(data, title, date)
    write_page(saved, data, out, stages, intervals=found, **named)


def described_rows(data: Data, title: str | None, date: str | None) -> dict[str, list[Any]]:
    """Titles and dates of documents: of the columns that are named, or of those whose names say so."""
    if data.table is None:
        if title or date:
            raise ValueError("--title and --date are columns of a table with texts, and INPUT is none: leave them out.")
        return {}
    found: dict[str, list[Any]] = {}
    if name := title or _column_called(data, TITLES):
        found["titles"] = data.table.values(name)
    if name := date or _column_called(data, DATES):
        values = data.table.values(name)
        if date or _are_dates(values):
            found["dates"] = values
    return found


def _column_called(data: Data, names: tuple[str, ...]) -> str | None:
    """A column of one of these names, the first of them that there is."""
    known = {name.lower(): name for name in reversed(data.table.names)}
    return next((known[name] for name in names if name in known), None)


def _are_dates(values: list[Any]) -> bool:
    """Whether a column whose name promises dates holds them."""
    from odeco.report.dates import timeline

    try:
        timeline(values)
    except ValueError:
        return False
    return True


def write_page(saved: Saved, data: Data | None, out: Path, stages: Stages, **named: Any) -> None:
    """Write the report of a model, on data if there are any; `named`: titles and dates of its rows, intervals."""
    from odeco.report import write_report

    shown: dict[str, Any] = {} if data is None else {"data": data.whole, "documents": data.documents}
    with stages.stage(f"writing {out}") as stage:
        about = saved.metadata.get("fitted")
        write_report(saved.estimator, out, fitted=about, **shown, **named, **saved.names)
        stage.done = "" if str(out) == "-" else f"wrote {out}; open it in a browser"
