"""``odeco intervals``: how sure a model is of everything it has learned, as a table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from odeco.cli.console import Stages
from odeco.cli.options import COLUMN, DEBUG, FORMAT, MODEL_FILE, QUIET, check_output, one_of

_METHODS = ("auto", "sandwich", "information", "replicates")


def intervals(
    model: MODEL_FILE,
    inputs: Annotated[
        list[str],
        typer.Argument(
            metavar="INPUT...",
            show_default=False,
            help="The data of the fit, read as they were; or ten or more files of moments.",
        ),
    ],
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FILE", show_default=False, help="A .csv or .json; - is stdout.")
    ],
    level: Annotated[
        float, typer.Option("--level", metavar="NUMBER", min=0.01, max=0.9999, help="Share that holds the truth.")
    ] = 0.95,
    method: Annotated[
        str, typer.Option("--method", metavar="NAME", callback=one_of(_METHODS), help=f"How: {', '.join(_METHODS)}.")
    ] = "auto",
    replicates: Annotated[
        int | None,
        typer.Option("--replicates", metavar="NUMBER", min=10, show_default=False, help="Replicates; 100 if left out."),
    ] = None,
    seed: Annotated[
        int | None, typer.Option("--seed", metavar="NUMBER", show_default=False, help="Of replicates and halves.")
    ] = None,
    classes: Annotated[
        Path | None,
        typer.Option(
            "--classes",
            metavar="FILE",
            show_default=False,
            help="Also a .csv of latent classes (product-mixture): shares and answers with standard errors.",
        ),
    ] = None,
    format: FORMAT = None,
    column: COLUMN = None,
    quiet: QUIET = False,
    debug: DEBUG = False,
) -> None:
    """Write intervals of everything that a model has learned, and which of its parts replicate.

    [bold]Examples[/bold]:

      odeco intervals penguins.odeco penguins.csv --out intervals.csv

      odeco show penguins.odeco --intervals intervals.csv

      odeco intervals answers.odeco answers.csv --out intervals.csv --classes classes.csv

      odeco intervals total.odeco monday.moments tuesday.moments ... --out intervals.json
    """
    import odeco
    from odeco.cli.model_file import open_model
    from odeco.uncertainty.classes import write_class_table
    from odeco.uncertainty.stored import check_name, write_intervals

    out = check_output(out, [model, *inputs])
    check_name(out)
    saved, stages = open_model(model), Stages(quiet=quiet)
    if classes is not None:
        classes = check_output(classes, [model, *inputs, out])
        if not hasattr(saved.estimator, "class_tables"):
            raise typer.BadParameter(f"'--classes' is for product-mixture, and {model} holds {saved.card.name}.")
    X, lengths = _moments(inputs), None
    if X is None:
        with stages.stage(f"reading {', '.join(inputs)}") as stage:
            data = saved.read(inputs, stage, format=format, column=column)
            stage.done = f"read {', '.join(inputs)}: {data.format}"
        X, lengths = data.arguments[0], data.arguments[1] if len(data.arguments) > 1 else None
    with stages.stage("replicates") as stage:

        def progress(done: int, total: int) -> None:
            if stage.update is not None:
                stage.update(2, done, total)

        found = odeco.intervals(
            saved.estimator, X, level=level, method=method, n_replicates=replicates, lengths=lengths,
            random_state=seed, progress=progress,
        )  # fmt: skip
        stage.done = str(found)
    with stages.stage(f"writing {out}") as stage:
        write_intervals(found, out)
        stage.done = "" if str(out) == "-" else f"wrote {out}"
    if classes is not None:
        with stages.stage(f"writing {classes}") as stage:
            write_class_table(saved.estimator, found, classes, saved.names.get("feature_names"))
            stage.done = "" if str(classes) == "-" else f"wrote {classes}"


def _moments(inputs: list[str]) -> Any:
    """The inputs themselves where they are files of moments, None where they are data."""
    from odeco.exceptions import ModelFileError
    from odeco.shared_moments import read_moments

    try:
        read_moments(inputs[0])
    except (ModelFileError, ValueError, OSError):
        return None
    return list(inputs)
