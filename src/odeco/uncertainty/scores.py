"""Scores and information of a maximised likelihood, by differences of log densities.

The covariance of a maximum of the likelihood is I^-1 J I^-1: I is the observed information, J the sum of products of
the scores of independent units. Where the model is right the two are equal; the sandwich stays right where it is not.
Of a mixture I is what complete data would tell, less what the hidden component takes away (Louis, 1982): the
derivatives of one component's log density are all that is needed, and those of all components come at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from odeco.families.responsibilities import posterior
from odeco.fitting.free import Entry, Free, entries_of
from odeco.uncertainty.stacks import Stack

Floats = NDArray[np.float64]

# Steps of differences in coordinates without a unit. Log densities of size 100 are known to 1e-14: first derivatives
# then to 1e-9, second ones to 1e-6 and to the step itself.
FIRST, SECOND = 1e-5, 1e-4
# Versions of a mixture that stand side by side at most: enough that rows are not read for each.
VERSIONS = 64
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
Step = tuple[Entry, float]


class _Mixture:
    """A mixture about its fit: log joint densities of rows with some coordinates moved."""

    def __init__(self, model: Any, frees: Sequence[Free], pairs: Sequence[tuple[int, int]]) -> None:
        self.model, self.frees, self.entries = model, frees, own_entries(frees)
        self.weights = np.asarray(model.weights_, dtype=np.float64)
        self.k, self.pairs = self.weights.size, pairs
        self.used = sorted({e for pair in pairs for e in pair})
        first: list[list[Step]] = [[(entry, step)] for entry in self.entries for step in (FIRST, -FIRST)]
        self._first = self._stack([[], *first])
        single = [[(self.entries[e], SECOND)] for e in self.used]
        double = [[(self.entries[a], SECOND), (self.entries[b], SECOND)] for a, b in pairs]
        self._second = [self._stack(part) for part in _parts([*single, *double], VERSIONS)]

    def _stack(self, versions: Sequence[Sequence[Step]]) -> Stack:
        return Stack(self.model, self.frees, [_moved(steps) for steps in versions])

    def first(self, clean: Any) -> tuple[Floats, Floats]:
        """Log joint densities (m, k), and their derivatives (m, entries, k)."""
        found = self._first.joint(clean)
        return found[:, 0], (found[:, 1::2] - found[:, 2::2]) / (2 * FIRST)

    def second(self, clean: Any, base: Floats, shares: Floats, starts: NDArray[np.intp]) -> Floats:
        """Weighted differences (blocks, used and pairs, k), rows of each block from its start on."""
        return np.concatenate(
            [np.add.reduceat((stack.joint(clean) - base[:, None]) * shares[:, None], starts) for stack in self._second]
            or [np.zeros((len(starts), 0, self.k))],
            axis=1,
        )


def own_entries(frees: Sequence[Free]) -> list[Entry]:
    """Coordinates of the densities; the weights are apart."""
    return list(entries_of([free for free in frees if free.name != "weights_"]))


def _moved(steps: Sequence[Step]) -> dict[str, Floats]:
    """Values of the parameters after some steps."""
    values: dict[str, Floats] = {}
    for entry, step in steps:
        free = entry.free
        if free.name in values:
            free = replace(free, values=values[free.name])
        values[free.name] = free.moved(entry.place, step)
    return values


def _parts(items: list[Any], size: int) -> list[list[Any]]:
    return [items[low : low + size] for low in range(0, len(items), size)]


@dataclass(eq=False)
class Sums:
    """Sums over the rows of some blocks: scores, J, products of complete scores, second derivatives by component.

    Attributes
    ----------
    score : (blocks, p)
    outer, complete : (blocks, p, p)
    second : (blocks, pairs, k)
    n : int
        Rows.
    weight : (blocks,)
    """

    score: Floats
    outer: Floats
    complete: Floats
    second: Floats
    weight: Floats
    n: int = 0

    @classmethod
    def empty(cls, n_blocks: int, p: int, n_pairs: int, k: int) -> Sums:
        """Of no rows."""
        outer, complete = np.zeros((2, n_blocks, p, p))
        return cls(np.zeros((n_blocks, p)), outer, complete, np.zeros((n_blocks, n_pairs, k)), np.zeros(n_blocks))


def mixture_information(
    model: Any, frees: Sequence[Free], blocks: Sequence[tuple[Any, Floats | None]], *, observed: bool = True
) -> Information:
    """Of independent rows; `blocks` are clean rows with their weights."""
    about, coordinates = _about(model, frees, observed=observed)
    sums = Sums.empty(1, len(coordinates), len(about.pairs), about.k)
    for clean, weights in blocks:
        _add_rows(sums, about, clean, weights, np.zeros(1, dtype=np.intp), slice(0, 1))
    found = observed_of(sums, about)[0] if observed and (about.pairs or not about.entries) else None
    return Information(coordinates, sums.outer[0], found, sums.n)


def block_information(
    model: Any, frees: Sequence[Free], pieces: Iterable[tuple[Any, Floats | None]], n_rows: int, n_blocks: int
) -> BlockInformation:
    """The same for each of so many blocks of rows that stand beside each other."""
    about, coordinates = _about(model, frees, observed=True)
    sums = Sums.empty(n_blocks, len(coordinates), len(about.pairs), about.k)
    edges, first = np.linspace(0, n_rows, n_blocks + 1).astype(np.intp), 0
    for clean, weights in pieces:
        last = first + row_count(clean)
        low = int(np.searchsorted(edges, first, side="right")) - 1
        high = int(np.searchsorted(edges, last, side="left"))
        _add_rows(sums, about, clean, weights, np.maximum(edges[low:high] - first, 0), slice(low, high))
        first = last
    return BlockInformation(coordinates, sums.score, sums.outer, observed_of(sums, about))


@dataclass(frozen=True, eq=False)
class BlockInformation:
    """What each block of rows knows: coordinates, scores (blocks, p), J and I (blocks, p, p)."""

    coordinates: list[tuple[Entry, int | None]] = field(repr=False)
    score: Floats = field(repr=False)
    outer: Floats = field(repr=False)
    observed: Floats = field(repr=False)


def row_count(clean: Any) -> int:
    """Rows of what `_clean` gave, or of batches of views."""
    return int(clean.shape[0]) if hasattr(clean, "shape") else sum(len(batch) for batch in clean)


def _about(model: Any, frees: Sequence[Free], *, observed: bool) -> tuple[_Mixture, list[tuple[Entry, int | None]]]:
    pairs = coupled_pairs(own_entries(frees)) if observed else []
    about = _Mixture(model, frees, pairs if len(pairs) <= MOST_PAIRS else [])
    return about, _coordinates(about, frees)


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


def coupled_pairs(entries: Sequence[Entry]) -> list[tuple[int, int]]:
    """Pairs of coordinates that may have a second derivative in common."""
    return [(a, b) for a in range(len(entries)) for b in range(a + 1) if entries[a].coupled(entries[b])]


def _add_rows(
    sums: Sums, about: _Mixture, clean: Any, weights: Floats | None, starts: NDArray[np.intp], into: slice
) -> None:
    """Rows of some blocks, each from its start on."""
    base, first = about.first(clean)
    shares = posterior(base)[0]
    counts = np.ones(len(base)) if weights is None else weights
    scores = np.zeros((len(base), sums.score.shape[1]))
    first = first[:, sorted(range(len(about.entries)), key=lambda e: about.entries[e].shared)]
    edges = [*starts.tolist(), len(base)]
    for j in range(about.k):
        places = _places(about, j)
        of_weights = np.broadcast_to((np.arange(about.k) == j) - about.weights, (len(base), about.k))
        each = np.hstack([of_weights, first[:, :, j]])
        scores[:, places] += shares[:, [j]] * each
        _add_products(sums.complete[into], each, counts * shares[:, j], edges, places)
    _add_products(sums.outer[into], scores, counts, edges, np.arange(scores.shape[1]))
    sums.score[into] += np.add.reduceat(scores * counts[:, None], starts)
    sums.n, sums.weight[into] = sums.n + len(base), sums.weight[into] + np.add.reduceat(counts, starts)
    _add_second(sums.second[into], about, about.second(clean, base, shares * counts[:, None], starts))


def _add_products(total: Floats, rows: Floats, counts: Floats, edges: Sequence[int], places: NDArray[np.intp]) -> None:
    """Weighted products of the rows of each block, at some places of its matrix."""
    weighted = rows * counts[:, None]
    for block, (low, high) in enumerate(pairwise(edges)):
        total[block][np.ix_(places, places)] += rows[low:high].T @ weighted[low:high]


def _add_second(total: Floats, about: _Mixture, differences: Floats) -> None:
    """Second differences of every pair, for all components at once."""
    once = {e: differences[:, place] for place, e in enumerate(about.used)}
    for place, (a, b) in enumerate(about.pairs):
        both = differences[:, len(about.used) + place]
        total[:, place] += (both - once[a] - once[b]) / SECOND**2


def observed_of(sums: Sums, about: _Mixture) -> Floats:
    """I of every block (blocks, p, p)."""
    return -_complete_hessian(sums, about) - sums.complete + sums.outer


def _complete_hessian(sums: Sums, about: _Mixture) -> Floats:
    """Second derivatives of the expected complete log-likelihood of every block."""
    total, weights, k = np.zeros_like(sums.outer), about.weights, about.k
    total[:, :k, :k] = -sums.weight[:, None, None] * (np.diag(weights) - np.outer(weights, weights))
    order = sorted(range(len(about.entries)), key=lambda e: about.entries[e].shared)
    rank = {e: r for r, e in enumerate(order)}
    for j in range(k):
        places = _places(about, j)[k:]
        for place, (a, b) in enumerate(about.pairs):
            row, column = places[rank[a]], places[rank[b]]
            total[:, row, column] += sums.second[:, place, j]
            if row != column:
                total[:, column, row] += sums.second[:, place, j]
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
