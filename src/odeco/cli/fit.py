"""``odeco fit MODEL INPUT``: a fitted model in a file. One subcommand per model, with its own options alone."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import odeco
from odeco.cli.as_json import as_plain
from odeco.cli.console import Stages, say
from odeco.cli.data import Data
from odeco.cli.help import new_app
from odeco.cli.inputs import READERS, Reader, read
from odeco.cli.model_commands import model_group, split
from odeco.fitting.card import Card


def fit(card: Card, values: dict[str, Any]) -> None:
    """Read, fit, save: what ``odeco fit MODEL`` does with its options."""
    paths, settings, reading, out = split(card, values)
    fit_file(
        card,
        paths,
        out,
        n_parts=values["k"],
        seed=values["seed"],
        settings=settings,
        reading=reading,
        stages=Stages(quiet=values["quiet"]),
        command=shlex.join(["odeco", *sys.argv[1:]]),
    )


def fit_file(
    card: Card,
    paths: Sequence[str],
    out: Path,
    *,
    n_parts: int | str | range | None,
    seed: int,
    settings: dict[str, Any],
    reading: dict[str, Any],
    stages: Stages,
    command: str,
) -> Data:
    """Fit a model to files and save it, with everything that is needed to read other files in the same way."""
    number = "auto" if isinstance(n_parts, range) else n_parts
    estimator, named = card.make(number, seed, settings), ", ".join(paths)
    with stages.stage(f"reading {named}") as stage:
        data = read(card.rows, paths, reading, stage)
        stage.done = f"read {named}: {described(data, READERS[card.rows])}"
    _check_enough(n_parts, data, f"{READERS[card.rows].rows} of {named}")
    with stages.stage(f"fitting {_counted(n_parts, card)}") as fitting:
        estimator.set_params(**data.settings)
        if isinstance(n_parts, range):
            first, *others = data.watched(fitting)
            estimator._fit_chosen(first, dict(zip(("lengths",), others, strict=False)), n_parts)
        else:
            estimator.fit(*data.watched(fitting))
        fitting.done = f"fitted {_counted(int(estimator.diagnostics_.n_components), card)}"
    stages.doubts(estimator.diagnostics_)
    if (choice := estimator.diagnostics_.details.get("choice")) is not None and not stages.quiet:
        say(f"chosen: {choice.best} {card.noun(choice.best)}. {choice.reason}")
    how = {
        "command": command,
        "odeco": odeco.__version__,
        "options": as_plain({**reading, **estimator.get_params()}),
        "seconds": round(fitting.seconds, 3),
        "rows": data.rows if data.rows is not None else fitting.rows,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    with stages.stage(f"writing {out}") as stage:
        odeco.save(estimator, out, metadata=metadata(card, data, reading, how))
        stage.done = f"wrote {out}; look at it with: odeco show {shlex.quote(str(out))}"
    return data


def metadata(card: Card, data: Data, reading: dict[str, Any], how: dict[str, Any]) -> dict[str, Any]:
    """What a model file says beside the parameters: how to read other data, what things are called, how it was made."""
    return {
        "model": card.name,
        "input": {"kind": card.rows, "format": data.format, "options": {**reading, **data.settings}},
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


def _check_enough(n_parts: int | str | range | None, data: Data, rows: str) -> None:
    """Raise where there are fewer rows than parts: known before anything is fitted."""
    most = n_parts if isinstance(n_parts, int) else n_parts[-1] if isinstance(n_parts, range) else 0
    if data.rows is not None and most > data.rows:
        raise ValueError(f"-k {most} is more than the {data.rows:,} {rows}: lower it.")


def _counted(n_parts: int | str | range | None, card: Card) -> str:
    return f"{n_parts} {card.noun(n_parts)}" if isinstance(n_parts, int) else card.plural


def _help(card: Card) -> str:
    examples = "".join(f"\n\n  {example}" for example in card.examples)
    return f"{card.summary}\n\n[bold]Examples[/bold]:{examples}" if examples else card.summary


app = new_app(
    cls=model_group(fit, _help),
    help="""Fit a model to a file and keep it in another.

    [bold]Examples[/bold], a document per line and a table with a header:

      odeco fit lda articles.txt -k 20 --out topics.odeco

      odeco fit gaussian-mixture penguins.csv -k 3 --out penguins.odeco

      odeco fit hmm --help
    """,
)
