"""``odeco transform``: topics, classes, states or sources of each row of a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from odeco.cli.console import Stages
from odeco.cli.inputs import READERS
from odeco.cli.options import COLUMN, DEBUG, FORMAT, MODEL_FILE, QUIET, check_output


def transform(
    model: MODEL_FILE,
    inputs: Annotated[
        list[str],
        typer.Argument(metavar="INPUT...", show_default=False, help="Data, read as those of the fit were; - is stdin."),
    ],
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            show_default=False,
            help="The answer: .csv, .tsv, .parquet, .jsonl or .npy; - is stdout.",
        ),
    ],
    format: FORMAT = None,
    column: COLUMN = None,
    quiet: QUIET = False,
    debug: DEBUG = False,
) -> None:
    """Write what a model says of each row: topics of documents, classes, states, sources.

    [bold]Examples[/bold]:

      odeco transform topics.odeco new-articles.txt --out proportions.csv

      odeco transform penguins.odeco penguins.csv --out clusters.parquet

      head -5 articles.txt | odeco transform topics.odeco - --out -
    """
    from odeco.cli.model_file import open_model
    from odeco.cli.predictions import answers
    from odeco.files.write_tables import FORMATS, output_format, write_table

    out = check_output(out, [model, *inputs])
    stages, named = Stages(quiet=quiet), ", ".join(inputs)
    saved = open_model(model)
    output_format(out, "auto", FORMATS, "csv")  # a name that says no format is known before any work is done
    with stages.stage(f"reading {named}") as stage:
        data = saved.read(inputs, stage, format=format, column=column)
        stage.done = f"read {named}: {data.format}"
    with stages.stage(f"writing {out}") as stage:
        write_table(out, stage.watch(lambda: answers(saved.card, saved.estimator, data))())
        what = f"the {saved.card.plural} of {stage.rows:,} {READERS[saved.card.rows].rows}"
        stage.done = f"wrote {'stdout' if str(out) == '-' else out}: {what}"
