"""``odeco choose MODEL INPUT``: how many components the data show, with the evidence for each number."""

from __future__ import annotations

import inspect
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import typer

from odeco.cli.as_json import as_plain
from odeco.cli.console import Stages
from odeco.cli.fit import described
from odeco.cli.help import new_app
from odeco.cli.inputs import READERS, Reader, files_read, read
from odeco.cli.model_commands import given_options, model_group, model_parameters
from odeco.cli.options import check_output, numbers_of_parts, option
from odeco.cli.printing import print_lines
from odeco.fitting.card import Card

_CRITERIA = ("auto", "bic", "icl", "marginal", "held_out", "replication", "spectrum")
_FORMATS = ("csv", "tsv", "parquet", "jsonl", "json")


def choose(card: Card, values: dict[str, Any]) -> None:
    """Read, compare, tell: what ``odeco choose MODEL`` does with its options."""
    from odeco.fitting.choice.choose import choose_components

    paths, settings, reading = given_options(card, values)
    out = values["out"]
    if out is not None:
        out = _checked(check_output(out, files_read(paths, reading)))
    stages, named = Stages(quiet=values["quiet"]), ", ".join(paths)
    estimator, candidates = card.make(None, values["seed"], settings), _candidates(values["k"])
    with stages.stage(f"reading {named}") as stage:
        data = read(card.rows, paths, reading, stage)
        stage.done = f"read {named}: {described(data, READERS[card.rows])}"
    estimator.set_params(**data.settings)
    first, *others = data.watched(stage)
    with stages.stage(f"comparing numbers of {card.plural}") as stage:
        choice = choose_components(
            estimator,
            first,
            candidates,
            criterion=values["criterion"],
            halves=not values["fast"],
            every=values["every"],
            watch=_watch(stage, candidates),
            **dict(zip(("lengths",), others, strict=False)),
        )
        stage.done = f"compared {len(choice.table)} numbers of {card.plural}"
    if out is None or str(out) == "-":
        print_lines(*lines(choice, card))
    else:
        _write(out, choice)


def lines(choice: Any, card: Card) -> list[str]:
    """The choice as a terminal shows it."""
    found = [{key: _number(value) for key, value in row.as_dict().items() if key != "note"} for row in choice.table]
    names = [name for name in found[0] if any(row[name] for row in found)]
    heads = [card.plural if name == "n_components" else name.replace("_", " ") for name in names]
    widths = [max(len(head), *(len(row[name]) for row in found)) for name, head in zip(names, heads, strict=True)]
    table = ["  ".join(head.rjust(width) for head, width in zip(heads, widths, strict=True))]
    for row, evidence in zip(found, choice.table, strict=True):
        mark = "  <" if evidence.n_components == choice.best else ""
        table.append("  ".join(row[name].rjust(width) for name, width in zip(names, widths, strict=True)) + mark)
    return [f"{choice.best} {card.noun(choice.best)}: {choice.reason}", "", *table]


def _number(value: Any) -> str:
    if value is None or value != value:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _candidates(given: int | str | range | None) -> Sequence[int] | None:
    return None if given is None or isinstance(given, str) else [given] if isinstance(given, int) else given


def _watch(stage: Any, candidates: Sequence[int] | None) -> Any:
    """Moves the bar of a stage with every number that was looked at."""
    n_seen, n_all = 0, None if candidates is None else len(candidates)

    def watch(row: Any) -> None:
        nonlocal n_seen
        n_seen += 1
        stage.step(f"{row.n_components} done", n_seen, n_all)

    return watch


def _checked(out: Path) -> Path:
    """A name that says no format is known before any work is done."""
    from odeco.files.write_tables import FORMATS, output_format

    if str(out) != "-" and out.suffix != ".json":
        output_format(out, "auto", [name for name in FORMATS if name in _FORMATS], "csv")
    return out


def _write(out: Path, choice: Any) -> None:
    from odeco.files.output import writing
    from odeco.files.write_tables import write_table

    rows = [row.as_dict() for row in choice.table]
    if out.suffix != ".json":
        write_table(out, {name: [_cell(row[name]) for row in rows] for name in rows[0]})
        return
    told = {"best": choice.best, "reason": choice.reason, "plausible": choice.plausible, "criterion": choice.criterion}
    with writing(out) as file:
        file.write(json.dumps(as_plain({**told, "table": rows}), allow_nan=False).encode())


def _cell(value: Any) -> Any:
    """Columns hold numbers: what is not known is none."""
    return float("nan") if value is None else float(value) if isinstance(value, bool) else value


def _parameters(card: Card, reader: Reader) -> list[inspect.Parameter]:
    number = f"Numbers of {card.plural} to choose from, such as 2..30; 1..15 if left out, and more where that is best."
    return [
        option("k", str, number, "-k", parser=numbers_of_parts, metavar="FROM..TO"),
        option(
            "out",
            Path,
            "A file for the evidence: .csv, .tsv, .parquet, .jsonl or .json.",
            "--out",
            "-o",
            metavar="FILE",
        ),
        option("criterion", str, "What decides.", default="auto", choices=_CRITERIA),
        inspect.Parameter(
            "fast",
            inspect.Parameter.KEYWORD_ONLY,
            default=False,
            annotation=_flag("--fast", "Do not fit two halves of the rows: no replication, no held-out likelihood."),
        ),
        inspect.Parameter(
            "every",
            inspect.Parameter.KEYWORD_ONLY,
            default=False,
            annotation=_flag("--every", "Look at every number, not at some and then around the best."),
        ),
    ]


def _flag(name: str, help: str) -> Any:
    from typing import Annotated

    return Annotated[bool, typer.Option(name, help=help)]


app = new_app(
    cls=model_group(
        choose,
        lambda card: f"How many {card.plural} there are. {card.summary}",
        lambda card, reader: model_parameters(card, reader, _parameters(card, reader)),
    ),
    help="""Find how many components the data show, with the evidence for each number.

    [bold]Examples[/bold]:

      odeco choose lda articles.txt -k 2..30

      odeco choose gaussian-mixture penguins.csv -k 1..8 --out evidence.csv

      odeco fit lda articles.txt -k auto --out topics.odeco
    """,
)
