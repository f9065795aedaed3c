"""``odeco compare``: two models of one kind on the same data, score beside score and component beside component."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from odeco.cli.console import Stages, n_rows
from odeco.cli.options import COLUMN, DEBUG, FORMAT, QUIET
from odeco.cli.printing import print_json, print_lines

if TYPE_CHECKING:
    from odeco.cli.data import Data
    from odeco.cli.model_file import Saved
    from odeco.metrics import Overlap

ITEMS = 4  # words or columns that are shown of a component
_MODEL = typer.Argument(show_default=False, help="A file written by [bold]odeco fit[/bold].")


@dataclass(frozen=True)
class Side:
    """One of the two models, and what it says of the data."""

    path: Path
    saved: Saved
    scores: dict[str, float]
    shares: Any  # of its components in each row, (n, k)


def compare(
    model: Annotated[Path, _MODEL],
    other: Annotated[Path, _MODEL],
    inputs: Annotated[
        list[str],
        typer.Argument(
            metavar="INPUT...",
            show_default=False,
            help="Data that neither was fitted to, for a fair comparison.",
        ),
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print all of it as JSON.")] = False,
    format: FORMAT = None,
    column: COLUMN = None,
    quiet: QUIET = False,
    debug: DEBUG = False,
) -> None:
    """Compare two models on the same data: scores side by side, and which components are the same.

    [bold]Examples[/bold]:

      odeco compare topics20.odeco topics30.odeco held-out.txt

      odeco compare three.odeco four.odeco penguins.csv --json
    """
    from odeco.cli.model_file import open_model
    from odeco.metrics import match_memberships

    if "-" in inputs:
        raise typer.BadParameter("INPUT is read for each of the models, and stdin can be read once: give a file.")
    found = [open_model(path) for path in (model, other)]
    _check(found)
    stages = Stages(quiet=quiet)
    sides = []
    for path, saved in zip((model, other), found, strict=True):
        with stages.stage(f"reading {', '.join(inputs)} for {path}") as stage:
            data = saved.read(inputs, stage, format=format, column=column)
        with stages.stage(f"scoring {path}"):
            sides.append(_side(path, saved, data))
    overlap = match_memberships(sides[0].shares, sides[1].shares)
    if as_json:
        print_json(_everything(sides, overlap))
    else:
        print_lines(*_lines(sides, overlap))


def _check(found: list[Saved]) -> None:
    """Scores of different kinds of models are of different things."""
    one, other = (saved.card for saved in found)
    if one.name != other.name:
        raise ValueError(f"{one.name} and {other.name} are scored differently: compare models of one kind.")
    if not hasattr(found[0].estimator, "score"):
        raise ValueError(f"models of kind {one.name} have no score on data: compare their files by odeco show.")


def _side(path: Path, saved: Saved, data: Data) -> Side:
    """Score a model, and say which rows belong to which of its components."""
    import numpy as np

    from odeco.cli.predictions import answers

    blocks = list(answers(saved.card, saved.estimator, data))
    columns = [name for name in blocks[0] if name.startswith(f"{saved.card.part}_")]
    shares = np.concatenate([np.column_stack([block[name] for name in columns]) for block in blocks])
    return Side(path, saved, _scores(saved, data), shares)


def _scores(saved: Saved, data: Data) -> dict[str, float]:
    """The model's score, per row or step or held-out word, and what follows from it."""
    import numpy as np

    from odeco.cli.predictions import row_blocks

    estimator, rest = saved.estimator, data.arguments[1:]
    blocks = [(estimator.score(rows, *rest), rows) for rows in row_blocks(data.arguments[0])]
    if rest:  # chains score all their steps together
        total, steps = blocks[0]
        return {"score": total / len(steps), "bic": float(estimator.bic(steps, *rest))}
    words = hasattr(estimator, "perplexity")
    sizes = [float(rows.sum()) if words else n_rows(rows) for _, rows in blocks]
    score = float(np.average([score for score, _ in blocks], weights=sizes))
    if words:
        return {"score": score, "perplexity": float(np.exp(-score))}
    return {"score": score, **({"bic": float(estimator.bic(blocks[0][1]))} if len(blocks) == 1 else {})}


def _lines(sides: list[Side], overlap: Overlap) -> list[str]:
    """What is printed for people."""
    from odeco.cli.summaries import item_words, parts

    one, other = sides
    card = one.saved.card
    names = [str(side.path) for side in sides]
    width = max(12, *map(len, names))
    lines = [" " * 12 + "  ".join(name.rjust(width) for name in names)]
    lines.append(card.plural.ljust(12) + "  ".join(str(side.shares.shape[1]).rjust(width) for side in sides))
    meanings = {"score": f"{card.objective}, higher is better"}
    meanings |= dict.fromkeys(("perplexity", "bic"), "lower is better")
    for name in (name for name in one.scores if name in other.scores):
        numbers = "  ".join(f"{side.scores[name]:.6g}".rjust(width) for side in sides)
        lines.append(f"{name.ljust(12)}{numbers}  ({meanings[name]})")
    if one.saved.metadata.get("vocabulary") != other.saved.metadata.get("vocabulary"):
        lines.append("their vocabularies differ: these scores are of different words, and do not say which is better")
    items = [[item_words(part.items) for part in parts(side.saved, ITEMS)] for side in sides]
    lines += ["", f"{card.plural} that share their rows (1: the same rows, 0: none)"]
    for i, j, shared in zip(overlap.first, overlap.second, overlap.shared, strict=True):
        lines.append(f"{i:>4} ~ {j:<4} {shared:.2f}  {items[0][i]}  |  {items[1][j]}")
    for side, alone, words in zip(sides, overlap.alone, items, strict=True):
        lines += [f"{i:>4} of {side.path} alone:  {words[i]}" for i in alone]
    return lines


def _everything(sides: list[Side], overlap: Overlap) -> dict[str, Any]:
    """What is printed for programs."""
    pairs = zip(overlap.first, overlap.second, overlap.shared, strict=True)
    return {
        "model": sides[0].saved.card.name,
        "files": [
            {"file": str(side.path), "components": side.shares.shape[1], **side.scores, "alone": list(alone)}
            for side, alone in zip(sides, overlap.alone, strict=True)
        ],
        "matched": [{"first": int(i), "second": int(j), "shared": float(shared)} for i, j, shared in pairs],
    }
