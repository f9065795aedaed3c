"""From evidence to a choice: which number is best by a criterion, which others it does not tell from that, and why."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from odeco.fitting.choice.judging import standard_error
from odeco.fitting.choice.record import Choice, Evidence

# Differences of BIC that are no more than positive evidence (Kass and Raftery 1995 call 2 to 6 that, and less nothing).
_CLEAR_BIC = 6.0
# Standard errors of a difference of held-out likelihoods below which it may be chance: of the choice, and of doubt.
_ONE_ERROR, _TWO_ERRORS = 1.0, 2.0
# Cosine below which two halves do not agree on a component.
REPLICATED = 0.8

CRITERIA = ("auto", "bic", "icl", "marginal", "held_out", "replication", "spectrum")


@dataclass(frozen=True)
class _Verdict:
    best: int
    plausible: tuple[int, ...]
    why: str


def decide(rows: Sequence[Evidence], criterion: str, most: int | None = None) -> Choice | None:
    """The choice by one criterion, of `most` that there can be; None where no row has any evidence of its kind."""
    known = [row for row in sorted(rows, key=lambda row: row.n_components) if _KNOWN[criterion](row)]
    if not known:
        return None
    found = _RULES[criterion](known)
    reason = found.why
    if len(found.plausible) > 1:
        low, high = found.plausible[0], found.plausible[-1]
        reason += f"; the evidence does not tell {low} to {high} apart"
    largest = max(row.n_components for row in rows)
    open_ended = largest in found.plausible and len(rows) > 1 and largest != most
    if open_ended:
        reason += f"; {largest} is the largest number that was tried, so there may be more"
    table = tuple(sorted(rows, key=lambda row: row.n_components))
    return Choice(found.best, f"{reason}.", found.plausible, criterion, table, open_ended)


def _counted(k: int) -> str:
    return f"{k} component{'' if k == 1 else 's'}"


def _least(name: str, label: str) -> Callable[[Sequence[Evidence]], _Verdict]:
    def rule(rows: Sequence[Evidence]) -> _Verdict:
        values = {row.n_components: float(getattr(row, name)) for row in rows}
        best = min(values, key=lambda k: values[k])
        plausible = tuple(k for k in values if values[k] - values[best] < _CLEAR_BIC)
        why = f"{label} is least at {_counted(best)}"
        if len(values) > 1:
            second = min((k for k in values if k != best), key=lambda k: values[k])
            why += f", {values[second] - values[best]:.3g} below {second}"
        return _Verdict(best, plausible, why)

    return rule


def _held_out(rows: Sequence[Evidence]) -> _Verdict:
    """The fewest components that predict as well as the best number, within a standard error of the difference."""
    top = max(rows, key=lambda row: row.held_out)
    behind = {row.n_components: _behind(row, top) for row in rows}
    best = min(k for k, errors in behind.items() if errors < _ONE_ERROR)
    plausible = tuple(k for k, errors in behind.items() if errors < _TWO_ERRORS and k >= best)
    if best == top.n_components:
        why = f"rows kept apart are likeliest under {_counted(best)}"
    else:
        why = (
            f"{_counted(best)} predict rows kept apart as well as the best number, {top.n_components}, within an error"
        )
    return _Verdict(best, plausible, why)


def _behind(row: Evidence, top: Evidence) -> float:
    """How far a number is behind the best, in standard errors of the difference on the same blocks of rows."""
    if row is top:
        return 0.0
    error = standard_error(top.blocks[:, 0] - row.blocks[:, 0], top.blocks[:, 1])
    return float((top.held_out - row.held_out) / max(error, np.finfo(float).tiny))


def _replication(rows: Sequence[Evidence]) -> _Verdict:
    """The most components that two halves agree on, each of them."""
    agreed = [row.n_components for row in rows if row.replication >= REPLICATED]
    if not agreed:
        best = max(rows, key=lambda row: row.replication).n_components
        return _Verdict(best, tuple(row.n_components for row in rows), "two halves agree on no number of components")
    return _Verdict(max(agreed), (max(agreed),), f"two halves agree on each of {_counted(max(agreed))}, not on more")


def _spectrum(rows: Sequence[Evidence]) -> _Verdict:
    shown = [row.n_components for row in rows if row.above_noise]
    best = max(shown, default=min(row.n_components for row in rows))
    return _Verdict(best, (best,), f"the moments show {_counted(best)} above sampling noise")


_RULES: dict[str, Callable[[Sequence[Evidence]], _Verdict]] = {
    "bic": _least("bic", "BIC"),
    "icl": _least("icl", "ICL"),
    "marginal": _least("marginal", "-2 log marginal likelihood"),
    "held_out": _held_out,
    "replication": _replication,
    "spectrum": _spectrum,
}
_KNOWN: dict[str, Callable[[Evidence], bool]] = {
    "bic": lambda row: bool(np.isfinite(row.bic)),
    "icl": lambda row: bool(np.isfinite(row.icl)),
    "marginal": lambda row: bool(np.isfinite(row.marginal)),
    "held_out": lambda row: bool(np.isfinite(row.held_out)),
    "replication": lambda row: bool(np.isfinite(row.replication)),
    "spectrum": lambda row: row.above_noise is not None,
}
