"""``odeco moments``: sums of separate machines or days on one basis, merged, and fitted without the data."""

from __future__ import annotations

import shlex
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from odeco.cli.as_json import as_plain
from odeco.cli.console import Stages, interruptible
from odeco.cli.fit import metadata
from odeco.cli.help import Command, new_app
from odeco.cli.inputs import read
from odeco.cli.model_commands import model_group, split
from odeco.cli.options import COLUMN, DEBUG, FORMAT, QUIET, check_output
from odeco.fitting.card import Card

app = new_app(
    help="""Take moments of parts of the data apart, merge them, and fit without the data.

    [bold]Example[/bold]: topics of two days, on two machines

      odeco moments basis lda sample.txt -k 20 --out shared.odeco-basis

      odeco moments compute shared.odeco-basis monday.txt --out monday.odeco-moments

      odeco moments compute shared.odeco-basis tuesday.txt --out tuesday.odeco-moments

      odeco moments merge monday.odeco-moments tuesday.odeco-moments --out both.odeco-moments

      odeco moments fit both.odeco-moments --out topics.odeco
    """,
)

_OUT = typer.Option("--out", "-o", metavar="FILE", show_default=False, help="The file to write.")
_SUMS = typer.Argument(metavar="MOMENTS...", show_default=False, help="Files of [bold]odeco moments compute[/bold].")
_BASIS = typer.Argument(metavar="BASIS", show_default=False, help="A file of [bold]odeco moments basis[/bold].")
_INPUT = typer.Argument(metavar="INPUT...", show_default=False, help="Data, read as the sample was; - is stdin.")


_Given = Annotated[list[Path], _SUMS]
_Written = Annotated[Path, _OUT]


def make_basis(card: Card, values: dict[str, Any]) -> None:
    """Read a sample and keep the basis that it gives."""
    from odeco import shared_moments

    inputs, settings, reading, out = split(card, values)
    if isinstance(values["k"], (str, range)):
        raise ValueError("-k must be a number here: sums are made for one. Find it with odeco choose.")
    stages, estimator = Stages(quiet=values["quiet"]), card.make(values["k"], values["seed"], settings)
    named = ", ".join(inputs)
    with stages.stage(f"reading {named}") as stage:
        data = read(card.rows, inputs, reading, stage)
        stage.done = f"read {named}: {data.format}"
    with stages.stage("learning a basis") as stage:
        basis = shared_moments.make_basis(estimator.set_params(**data.settings), data.whole)
        shared_moments.write_moments(basis, out, metadata(card, data, reading, {}))
        stage.done = f"wrote {out}: sums on it are made with odeco moments compute"


def compute(
    basis: Annotated[Path, _BASIS],
    given: Annotated[list[str], _INPUT],
    out: _Written,
    format: FORMAT = None,
    column: COLUMN = None,
    quiet: QUIET = False,
    debug: DEBUG = False,
) -> None:
    """Add up the moments of a part of the data on a basis, in one pass."""
    from odeco.cli.model_file import open_model
    from odeco.shared_moments import add_moments, n_rows, read_moments, write_moments

    out = check_output(out, [basis, *given], stdout=False)
    empty, said = read_moments(basis)
    if n_rows(empty):
        raise typer.BadParameter(f"{basis} has rows in it already: give the basis itself, and merge afterwards.")
    stages, named = Stages(quiet=quiet), ", ".join(given)
    with stages.stage(f"reading {named}") as stage:
        data = open_model(basis).read(given, stage, format=format, column=column)
        stage.done = f"read {named}: {data.format}"
    with stages.stage("adding up moments") as stage:
        part = add_moments(empty, data.watched(stage)[0])
        write_moments(part, out, said)
        stage.done = f"wrote {out}: the moments of {n_rows(part):,} rows"


def merge(given: _Given, out: _Written, quiet: QUIET = False, debug: DEBUG = False) -> None:
    """Add up the moments of several files; all must be on the same basis."""
    from odeco.shared_moments import n_rows, write_moments

    out = check_output(out, given, stdout=False)
    with Stages(quiet=quiet).stage("merging") as stage:
        total, said = _merged(given)
        write_moments(total, out, said)
        stage.done = f"wrote {out}: the moments of {n_rows(total):,} rows"


def fit(given: _Given, out: _Written, quiet: QUIET = False, debug: DEBUG = False) -> None:
    """Fit a model to moments alone: the pure estimate of the paper, without refinement, and the model says so."""
    import odeco
    from odeco.shared_moments import fit_moments, n_rows

    out = check_output(out, given, stdout=False)
    stages = Stages(quiet=quiet)
    with stages.stage("fitting") as stage:
        total, said = _merged(given)
        model = fit_moments(total)
        said.pop("moments")
        said["fitted"] = {
            "command": shlex.join(["odeco", *sys.argv[1:]]),
            "odeco": odeco.__version__,
            "options": as_plain(model.get_params()),
            "seconds": round(stage.seconds, 3),
            "rows": n_rows(total),
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        odeco.save(model, out, metadata=said)
        stage.done = f"wrote {out}: {model.diagnostics_.method}, {n_rows(total):,} rows"
    stages.doubts(model.diagnostics_)


def _merged(paths: list[Path]) -> tuple[Any, dict[str, Any]]:
    """The sums of all files, and what the first says beside them."""
    from odeco.shared_moments import merge_moments, read_moments

    total, said = read_moments(paths[0])
    for path in paths[1:]:
        try:
            total = merge_moments([total, read_moments(path)[0]])
        except ValueError as error:
            raise ValueError(f"{path} does not go with {paths[0]}: {error}") from error
    return total, said


basis_app = new_app(
    cls=model_group(make_basis, lambda card: f"A basis for: {card.summary}"),
    help="Learn a basis from a sample: what all parts share.",
)
app.add_typer(basis_app, name="basis")
app.command("compute", cls=Command)(interruptible(compute))
app.command("merge", cls=Command)(interruptible(merge))
app.command("fit", cls=Command)(interruptible(fit))
