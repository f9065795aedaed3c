"""``odeco report``: a page to look at, in one HTML file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from odeco.cli.console import Stages
from odeco.cli.options import COLUMN, DEBUG, FORMAT, MODEL_FILE, QUIET, check_output

if TYPE_CHECKING:
    from odeco.cli.data import Data
    from odeco.cli.model_file import Saved


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
    if (format or column) and not inputs:
        raise typer.BadParameter("'--format' and '--column' are about INPUT, and none is given.")
    saved, stages, data = open_model(model), Stages(quiet=quiet), None
    if inputs:
        with stages.stage(f"reading {', '.join(inputs)}") as stage:
            data = saved.read(inputs, stage, format=format, column=column)
            stage.done = f"read {', '.join(inputs)}: {data.format}"
    write_page(saved, data, out, stages)


def write_page(saved: Saved, data: Data | None, out: Path, stages: Stages) -> None:
    """Write the report of a model, on data if there are any."""
    from odeco.report import write_report

    shown = {} if data is None else {"data": data.whole, "documents": data.documents}
    with stages.stage(f"writing {out}") as stage:
        write_report(saved.estimator, out, fitted=saved.metadata.get("fitted"), **shown, **saved.names)
        stage.done = "" if str(out) == "-" else f"wrote {out}; open it in a browser"
