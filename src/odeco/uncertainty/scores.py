"""Scores and information of a maximised likelihood, by differences of log densities.

The covariance of a maximum of the likelihood is I^-1 J I^-1: I is the observed information, J the sum of products of
the scores of independent units. Where the model is right the two are equal; the sandwich stays right where it is not.
Of a mixture I is what complete data would tell, less what the hidden component takes away (Louis, 1982): the
derivatives of one component's log density are all that is needed, and those of all components come at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from odeco.families.responsibilities import posterior
from odeco.fitting.free import Entry, Free, entries_of

Floats = NDArray[np.float64]

# Steps of differences in coordinates without a unit. Log densities of size 100 are known to 1e-14: first derivatives
# then to 1e-9, second ones to 1e-6 and to the step itself.
FIRST, SECOND = 1e-5, 1e-4
# Numbers held for a block of rows: k times the coordinates of a component for each row.
_CELLS = 4_000_000
# Second differences of mixtures and of chains at most: beyond, J stands for I.
MOST_PAIRS = 3000


@dataclass(frozen=True, eq=False)
class Information:
    """What a likelihood knows of its coordinates.

    Attributes
    ----------
    coordinates : list of (entry, component or None)
        In the order of the matrices.
    outer : (p, p)
        J, of scores of independent units.
    observed : (p, p) or None
        I; None where it would have cost too much, and J stands for it.
    n_units : int
    score : (p,) or None
        What is left of the slope of the log-likelihood at the fit, where that may have ended early.
    """

    coordinates: list[tuple[Entry, int | None]] = field(repr=False)
    outer: Floats = field(repr=False)
    observed: Floats | None = field(repr=False)
    n_units: int
    score: Floats | None = field(default=None, repr=False)


Moved = Callable[[dict[str, Floats]], Any]


class _Mixture:
    """A mixture about its fit: log joint densities of rows with some coordinates moved."""

    def __init__(self, model: Any, frees: Sequence[Free]) -> None:
        self.model, self.entries = model, list(entries_of([free for free in frees if free.name != "weights_"]))
        self.weights = np.asarray(model.weights_, dtype=np.float64)
        self.k = self.weights.size

    def joint(self, clean: Any, *steps: tuple[Entry, float]) -> Floats:
        """Log weights plus log densities (m, k) after some steps."""
        values: dict[str, Floats] = {}
        for entry, step in steps:
            free = entry.free
            if free.name in values:
                free = replace(free, values=values[free.name])
            values[free.name] = free.moved(entry.place, step)
        return np.asarray(self.model._moved(values)._log_joint(clean), dtype=np.float64)


@dataclass(eq=False)
class _Sums:
    """Sums over rows: J, products of complete scores, second derivatives by pair and component."""

    outer: Floats
    complete: Floats
    second: dict[tuple[int, int], Floats]
    n: int = 0
    weight: float = 0.0


def mixture_information(
    model: Any, frees: Sequence[Free], blocks: Sequence[tuple[Any, Floats | None]], *, observed: bool = True
) -> Information:
    """Of independent rows; `blocks` are clean rows with their weights."""
    about = _Mixture(model, frees)
    coordinates = _coordinates(about, frees)
    pairs = _pairs(about.entries) if observed else []
    pairs = [] if len(pairs) > MOST_PAIRS else pairs
    p = len(coordinates)
    sums = _Sums(np.zeros((p, p)), np.zeros((p, p)), {pair: np.zeros(about.k) for pair in pairs})
    for clean, weights in blocks:
        _add_rows(sums, about, clean, weights, pairs)
    found = None
    if observed and (pairs or not about.entries):
        found = -_complete_hessian(sums, about, p) - sums.complete + sums.outer
    return Information(coordinates, sums.outer, found, sums.n)


def _coordinates(about: _Mixture, frees: Sequence[Free]) -> list[tuple[Entry, int | None]]:
    """Weights first, then each component's own, then what all share."""
    weights = next(free for free in frees if free.name == "weights_")
    found: list[tuple[Entry, int | None]] = [(Entry(weights, (), None), j) for j in range(about.k)]
    own = [entry for entry in about.entries if not entry.shared]
    found += [(entry, j) for j in range(about.k) for entry in own]
    return found + [(entry, None) for entry in about.entries if entry.shared]


def _places(about: _Mixture, j: int) -> NDArray[np.intp]:
    """Where the coordinates that component j's density depends on stand: weights, its own, shared."""
    own = sum(not entry.shared for entry in about.entries)
    shared = len(about.entries) - own
    first = about.k + about.k * own
    return np.concatenate([np.arange(about.k), about.k + j * own + np.arange(own), first + np.arange(shared)]).astype(
        np.intp
    )


def _pairs(entries: Sequence[Entry]) -> list[tuple[int, int]]:
    return [(a, b) for a in range(len(entries)) for b in range(a + 1) if entries[a].coupled(entries[b])]


def _add_rows(
    sums: _Sums, about: _Mixture, clean: Any, weights: Floats | None, pairs: Sequence[tuple[int, int]]
) -> None:
    base = about.joint(clean)
    shares = posterior(base)[0]
    counts = np.ones(len(base)) if weights is None else weights
    first = [
        (about.joint(clean, (entry, FIRST)) - about.joint(clean, (entry, -FIRST))) / (2 * FIRST)
        for entry in about.entries
    ]
    scores = np.zeros((len(base), len(sums.outer)))
    order = sorted(range(len(first)), key=lambda e: about.entries[e].shared)
    for j in range(about.k):
        places = _places(about, j)
        of_weights = np.broadcast_to((np.arange(about.k) == j) - about.weights, (len(base), about.k))
        each = np.column_stack([of_weights, *(first[e][:, j] for e in order)])
        scores[:, places] += shares[:, [j]] * each
        sums.complete[np.ix_(places, places)] += each.T @ (each * (counts * shares[:, j])[:, None])
    sums.outer += scores.T @ (scores * counts[:, None])
    sums.n, sums.weight = sums.n + len(base), sums.weight + float(counts.sum())
    _add_second(sums, about, clean, base, shares * counts[:, None], pairs)


def _add_second(
    sums: _Sums, about: _Mixture, clean: Any, base: Floats, shares: Floats, pairs: Sequence[tuple[int, int]]
) -> None:
    """Weighted second differences of every pair, for all components at once."""
    entries, used = about.entries, sorted({e for pair in pairs for e in pair})
    once = {e: np.einsum("mk,mk->k", shares, about.joint(clean, (entries[e], SECOND)) - base) for e in used}
    for a, b in pairs:
        both = np.einsum("mk,mk->k", shares, about.joint(clean, (entries[a], SECOND), (entries[b], SECOND)) - base)
        sums.second[a, b] += (both - once[a] - once[b]) / SECOND**2


def _complete_hessian(sums: _Sums, about: _Mixture, p: int) -> Floats:
    """Second derivatives of the expected complete log-likelihood."""
    total, weights, k = np.zeros((p, p)), about.weights, about.k
    total[:k, :k] = -sums.weight * (np.diag(weights) - np.outer(weights, weights))
    order = sorted(range(len(about.entries)), key=lambda e: about.entries[e].shared)
    rank = {e: r for r, e in enumerate(order)}
    for j in range(k):
        places = _places(about, j)[k:]
        for (a, b), values in sums.second.items():
            row, column = places[rank[a]], places[rank[b]]
            total[row, column] += values[j]
            if row != column:
                total[column, row] += values[j]
    return total


def unit_information(
    moved: Moved, frees: Sequence[Free], contributions: Callable[[Any], Floats], *, observed: bool = True
) -> Information:
    """Of units whose contributions to the log-likelihood are known, whatever made them: one coordinate at a time."""
    coordinates = _each(frees)
    base = contributions(moved({}))

    def after(*steps: tuple[int, float]) -> Floats:
        values: dict[str, Floats] = {}
        for place, step in steps:
            entry, j = coordinates[place]
            free = entry.free
            if free.name in values:
                free = replace(free, values=values[free.name])
            alone = step if j is None else step * (np.arange(free.values.shape[free.axis or 0]) == j)
            values[free.name] = free.moved(entry.place, alone)
        return contributions(moved(values))

    p = len(coordinates)
    scores = np.column_stack([(after((c, FIRST)) - after((c, -FIRST))) / (2 * FIRST) for c in range(p)])
    outer = scores.T @ scores
    if not observed or p * (p + 1) // 2 > MOST_PAIRS:
        return Information(coordinates, outer, None, len(base), scores.sum(axis=0))
    once = [float((after((c, SECOND)) - base).sum()) for c in range(p)]
    found = np.empty((p, p))
    for a in range(p):
        for b in range(a + 1):
            both = float((after((a, SECOND), (b, SECOND)) - base).sum())
            found[a, b] = found[b, a] = -(both - once[a] - once[b]) / SECOND**2
    return Information(coordinates, outer, found, len(base), scores.sum(axis=0))


def _each(frees: Sequence[Free]) -> list[tuple[Entry, int | None]]:
    """Coordinates one by one."""
    return [
        (entry, j)
        for entry in entries_of(frees)
        for j in ([None] if entry.shared else range(entry.free.values.shape[entry.free.axis or 0]))
    ]
