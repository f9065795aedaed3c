"""``odeco show``: what a model has learned and how far to trust it, on stdout."""

from __future__ import annotations

from typing import Annotated

import typer

from odeco.cli.options import DEBUG, INTERVALS, MODEL_FILE
from odeco.cli.printing import print_json, print_lines


def show(
    model: MODEL_FILE,
    top: Annotated[
        int, typer.Option("--top", min=1, metavar="NUMBER", help="Words (symbols, columns) of each part.")
    ] = 10,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print everything, all parameters included, as JSON.")
    ] = False,
    intervals: INTERVALS = None,
    debug: DEBUG = False,
) -> None:
    """Print what a model has learned: top words, weights, and diagnostics in words.

    [bold]Examples[/bold]:

      odeco show topics.odeco --top 15

      odeco show topics.odeco --intervals intervals.csv

      odeco show topics.odeco --json | jq '.topics[0].words'
    """
    from odeco.cli.model_file import open_model
    from odeco.cli.summaries import everything, summary

    saved = open_model(model)
    found = None if intervals is None else saved.intervals(intervals)
    if as_json:
        print_json(everything(saved, top, found))
    else:
        print_lines(*summary(saved, top, found))
