"""``odeco fit MODEL INPUT``: a fitted model in a file. One subcommand per model, with its own options alone."""

from __future__ import annotations

import inspect
import shlex
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

import odeco
from odeco.cli.as_json import as_plain
from odeco.cli.console import Stages, interruptible
from odeco.cli.data import Data
from odeco.cli.inputs import READERS, Reader, files_read, read
from odeco.cli.models import MODELS, Model
from odeco.cli.options import DEBUG, QUIET, check_output, option, with_parameters

app = typer.Typer(
    no_args_is_help=True,
    help="""Fit a model to a file and keep it in another.

    [bold]Examples[/bold], a document per line and a table with a header:

      odeco fit lda articles.txt -k 20 --out topics.odeco

      odeco fit gaussian-mixture penguins.csv -k 3 --out penguins.odeco

      odeco fit hmm --help
    """,
)


def fit(model: Model, values: dict[str, Any]) -> None:
    """Read, fit, save: what ``odeco fit MODEL`` does with its options."""
    reader = READERS[model.reads]
    paths = [str(path) for path in (values["input"] if reader.several else [values["input"]])]
    reading = {each.name: values[each.name] for each in reader.settings if values[each.name] is not None}
    out = check_output(values["out"], files_read(paths, reading), stdout=False)
    fit_file(
        model,
        paths,
        out,
        n_parts=values["k"],
        seed=values["seed"],
        settings={each.name: values[each.name] for each in model.settings if values[each.name] is not None},
        reading=reading,
        stages=Stages(quiet=values["quiet"]),
        command=shlex.join(["odeco", *sys.argv[1:]]),
    )


def fit_file(
    model: Model,
    paths: Sequence[str],
    out: Path,
    *,
    n_parts: int | None,
    seed: int,
    settings: dict[str, Any],
    reading: dict[str, Any],
    stages: Stages,
    command: str,
) -> Data:
    """Fit a model to files and save it, with everything that is needed to read other files in the same way."""
    estimator, named = model.make(n_parts, seed, settings), ", ".join(paths)
    with stages.stage(f"reading {named}") as stage:
        data = read(model.reads, paths, reading, stage)
        stage.done = f"read {named}: {described(data, READERS[model.reads])}"
    if n_parts is not None and data.rows is not None and n_parts > data.rows:
        raise ValueError(
            f"-k {n_parts} is more than the {data.rows:,} {READERS[model.reads].rows} of {named}: lower it."
        )
    with stages.stage(f"fitting {_counted(n_parts, model)}") as fitting:
        estimator.set_params(**data.settings).fit(*data.watched(fitting))
        fitting.done = f"fitted {_counted(int(estimator.diagnostics_.n_components), model)}"
    stages.doubts(estimator.diagnostics_)
    how = {
        "command": command,
        "odeco": odeco.__version__,
        "options": as_plain({**reading, **estimator.get_params()}),
        "seconds": round(fitting.seconds, 3),
        "rows": data.rows if data.rows is not None else fitting.rows,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    with stages.stage(f"writing {out}") as stage:
        odeco.save(estimator, out, metadata=metadata(model, data, reading, how))
        stage.done = f"wrote {out}; look at it with: odeco show {shlex.quote(str(out))}"
    return data


def metadata(model: Model, data: Data, reading: dict[str, Any], how: dict[str, Any]) -> dict[str, Any]:
    """What a model file says beside the parameters: how to read other data, what things are called, how it was made."""
    return {
        "model": model.name,
        "input": {"kind": model.reads, "format": data.format, "options": {**reading, **data.settings}},
        "text": data.text,
        **data.names,
        "fitted": how,
    }


def described(data: Data, reader: Reader) -> str:
    """What was read, in a few words."""
    parts = [f"{data.rows:,} {reader.rows}"] if data.rows is not None else []
    if words := data.names.get("vocabulary"):
        parts.append(f"{len(words):,} words")
    elif symbols := data.names.get("symbols"):
        parts.append(f"{len(symbols):,} symbols")
    return f"{data.format}, {', '.join(parts)}" if parts else data.format


def _counted(n_parts: int | None, model: Model) -> str:
    return model.parts if n_parts is None else f"{n_parts} {model.part if n_parts == 1 else model.parts}"


def parameters(model: Model, reader: Reader) -> list[inspect.Parameter]:
    """All options of one subcommand: the input, the number of parts, then what the model and the reader add."""
    given = inspect.Parameter.POSITIONAL_OR_KEYWORD
    what = typer.Argument(metavar="INPUT..." if reader.several else "INPUT", show_default=False, help=reader.what)
    number = f"Number of {model.parts}" + ("." if model.count_required else "; found by the model if left out.")
    return [
        inspect.Parameter("input", given, annotation=Annotated[list[str] if reader.several else str, what]),
        option("k", int, number, "-k", required=model.count_required, min=1, metavar="NUMBER"),
        option("out", Path, "The model file to write.", "--out", "-o", required=True, metavar="FILE"),
        option("seed", int, "Same seed, same result.", default=0, min=0),
        *(_in_panel(each, "Options of the model") for each in model.settings),
        *(_in_panel(each, "Options of the input") for each in reader.settings),
        inspect.Parameter("quiet", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=QUIET),
        inspect.Parameter("debug", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=DEBUG),
    ]


def _in_panel(parameter: inspect.Parameter, panel: str) -> inspect.Parameter:
    parameter.annotation.__metadata__[0].rich_help_panel = panel
    return parameter


def _register(model: Model) -> None:
    def run(values: dict[str, Any]) -> None:
        fit(model, values)

    command = interruptible(with_parameters(run, parameters(model, READERS[model.reads])))
    examples = "".join(f"\n\n  {example}" for example in model.examples)
    help = f"{model.summary}\n\n[bold]Examples[/bold]:{examples}"
    app.command(model.name, help=help, short_help=model.summary)(command)


for _model in MODELS.values():
    _register(_model)
