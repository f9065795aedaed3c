"""The part of a report that says why a model has as many components as it has, where the data chose."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

_HEADS = {
    "above_noise": "above noise",
    "replication": "replication",
    "held_out": "held-out log-likelihood",
    "bic": "BIC",
    "icl": "ICL",
    "marginal": "-2 log marginal",
    "note": "note",
}


@dataclass(frozen=True)
class ChoiceRow:
    """One number of components."""

    number: int
    chosen: bool
    cells: tuple[str, ...]


@dataclass(frozen=True)
class ChoiceTable:
    """The choice in words and cells; `range` is empty where one number is singled out."""

    reason: str
    range: str
    heads: tuple[str, ...]
    rows: tuple[ChoiceRow, ...]


def choice_table(model: Any) -> ChoiceTable | None:
    """What the choice that a model carries says; None where the number was given."""
    choice = model.diagnostics_.details.get("choice")
    if choice is None:
        return None
    found = [{name: _cell(getattr(row, name)) for name in _HEADS} for row in choice.table]
    shown = [name for name in _HEADS if any(row[name] for row in found)]
    rows = tuple(
        ChoiceRow(row.n_components, row.n_components == choice.best, tuple(cells[name] for name in shown))
        for row, cells in zip(choice.table, found, strict=True)
    )
    several = "" if choice.is_clear else f"{choice.plausible[0]} to {choice.plausible[-1]}"
    return ChoiceTable(choice.reason, several, ("components", *(_HEADS[name] for name in shown)), rows)


def _cell(value: Any) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, (bool, np.bool_)):
        return "yes" if value else "no"
    return f"{value:.6g}" if np.isfinite(value) else ""
