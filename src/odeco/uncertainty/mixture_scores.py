"""Scores and information of a mixture, as sums over its rows, wherever these are.

What complete data would tell, less what the hidden component takes away (Louis, 1982): the derivatives of one
component's log density are all that is needed, and those of all components come at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from odeco.families.responsibilities import posterior
from odeco.fitting.free import Entry, Free, entries_of
from odeco.uncertainty.opened import blocks_by_lot
from odeco.uncertainty.scores import FIRST, MOST_PAIRS, SECOND, Information, Told
from odeco.uncertainty.stacks import Stack

Floats = NDArray[np.float64]
Step = tuple[Entry, float]

# Versions of a mixture that stand side by side at most: enough that rows are not read for each.
_VERSIONS = 64
# Numbers held for a block of rows: k times the versions for each row.
_CELLS = 1_000_000


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
        self._second = [self._stack(part) for part in _parts([*single, *double], _VERSIONS)]

    def _stack(self, versions: Sequence[Sequence[Step]]) -> Stack:
        return Stack(self.model, self.frees, [_moved(steps) for steps in versions])

    @property
    def n_rows(self) -> int:
        """Rows whose derivatives are held at once."""
        return max(_CELLS // (max(2 * len(self.entries), _VERSIONS) * self.k), 1)

    def first(self, batch: Any) -> tuple[Floats, Floats]:
        """Log joint densities (m, k), and their derivatives (m, entries, k)."""
        found = self._first.joint(batch)
        return found[:, 0], (found[:, 1::2] - found[:, 2::2]) / (2 * FIRST)

    def second(self, batch: Any, base: Floats, shares: Floats, starts: NDArray[np.intp]) -> Floats:
        """Weighted differences (blocks, used and pairs, k), rows of each block from its start on."""
        return np.concatenate(
            [np.add.reduceat((stack.joint(batch) - base[:, None]) * shares[:, None], starts) for stack in self._second]
            or [np.zeros((len(starts), 0, self.k))],
            axis=1,
        )


def own_entries(frees: Sequence[Free]) -> list[Entry]:
    """Coordinates of the densities; the weights are apart."""
    return list(entries_of([free for free in frees if free.name != "weights_"]))


def coupled_pairs(entries: Sequence[Entry]) -> list[tuple[int, int]]:
    """Pairs of coordinates whose second derivative may differ from 0."""
    return [(a, b) for a in range(len(entries)) for b in range(a + 1) if entries[a].coupled(entries[b])]


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


class MixtureTold(Told):
    """Of independent rows, in blocks of them: scores, J, products of complete scores, second derivatives by component.

    Parameters
    ----------
    model : the coded copy of a fitted mixture
    n_blocks, seed : int
        Rows go to blocks by lot; all of them to one by default.

    Attributes
    ----------
    score : (blocks, p)
    outer, complete : (blocks, p, p)
    second : (blocks, pairs, k)
    weight : (blocks,)
    n : int
        Rows.
    """

    _sums: ClassVar[tuple[str, ...]] = ("score", "outer", "complete", "second", "weight", "n", "totals", "trials")
    _on: ClassVar[tuple[str, ...]] = ("model", "n_blocks", "seed")

    def __init__(self, model: Any, n_blocks: int = 1, seed: int = 0) -> None:
        self.model, self.n_blocks, self.seed = model, n_blocks, seed
        frees = model._free_parameters()
        pairs = coupled_pairs(own_entries(frees))
        self._about = _Mixture(model, frees, pairs if len(pairs) <= MOST_PAIRS else [])
        self.coordinates = _coordinates(self._about, frees)
        p, k = len(self.coordinates), self._about.k
        self.score, self.weight, self.n = np.zeros((n_blocks, p)), np.zeros(n_blocks), 0
        self.outer, self.complete = np.zeros((2, n_blocks, p, p))
        self.second = np.zeros((n_blocks, len(self._about.pairs), k))
        self.totals = np.zeros(k)
        self.trials = {name: np.zeros(shape) for name, shape in model._trial_shapes().items()}

    def update(self, batch: Any) -> Self:
        """Add the rows of a batch, as many at a time as leave temporaries small."""
        if len(batch) == 0:
            return self
        blocks = np.zeros(len(batch), dtype=np.intp)
        if self.n_blocks > 1:
            blocks = blocks_by_lot(batch, len(batch), self.n_blocks, self.seed)
            order = np.argsort(blocks, kind="stable")
            batch, blocks = batch.take(order), blocks[order]
        size = self._about.n_rows
        for low in range(0, len(batch), size):
            rows = slice(low, low + size)
            self._add(batch if len(batch) <= size else batch.take(rows), blocks[rows])
        return self

    def _add(self, batch: Any, blocks: NDArray[np.intp]) -> None:
        about = self._about
        into, starts = np.unique(blocks, return_index=True)
        base, first = about.first(batch)
        shares = posterior(base)[0]
        counts = np.ones(len(base)) if batch.weights is None else batch.weights
        scores = np.zeros((len(base), self.score.shape[1]))
        first = first[:, sorted(range(len(about.entries)), key=lambda e: about.entries[e].shared)]
        edges = [*starts.tolist(), len(base)]
        for j in range(about.k):
            places = _places(about, j)
            of_weights = np.broadcast_to((np.arange(about.k) == j) - about.weights, (len(base), about.k))
            each = np.hstack([of_weights, first[:, :, j]])
            scores[:, places] += shares[:, [j]] * each
            _add_products(self.complete, into, each, counts * shares[:, j], edges, places)
        _add_products(self.outer, into, scores, counts, edges, np.arange(scores.shape[1]))
        self.score[into] += np.add.reduceat(scores * counts[:, None], starts)
        self.weight[into] += np.add.reduceat(counts, starts)
        self.n += len(base)
        self._add_shares(self.model, batch, shares, counts)
        self._add_second(into, about.second(batch, base, shares * counts[:, None], starts))

    def _add_second(self, into: NDArray[np.intp], differences: Floats) -> None:
        """Second differences of every pair, for all components at once."""
        about = self._about
        once = {e: differences[:, place] for place, e in enumerate(about.used)}
        for place, (a, b) in enumerate(about.pairs):
            both = differences[:, len(about.used) + place]
            self.second[into, place] += (both - once[a] - once[b]) / SECOND**2

    def information(self) -> Information:
        observed = self.observed()
        return Information(
            self.coordinates, self.outer.sum(axis=0), None if observed is None else observed.sum(axis=0), self.n
        )

    def observed(self) -> Floats | None:
        """I of every block (blocks, p, p); None where J stands for it."""
        if self._about.entries and not self._about.pairs:
            return None
        return -self._complete_hessian() - self.complete + self.outer

    def _complete_hessian(self) -> Floats:
        """Second derivatives of the expected complete log-likelihood of every block."""
        about, weights, k = self._about, self._about.weights, self._about.k
        total = np.zeros_like(self.outer)
        total[:, :k, :k] = -self.weight[:, None, None] * (np.diag(weights) - np.outer(weights, weights))
        order = sorted(range(len(about.entries)), key=lambda e: about.entries[e].shared)
        rank = {e: r for r, e in enumerate(order)}
        for j in range(k):
            places = _places(about, j)[k:]
            for place, (a, b) in enumerate(about.pairs):
                row, column = places[rank[a]], places[rank[b]]
                total[:, row, column] += self.second[:, place, j]
                if row != column:
                    total[:, column, row] += self.second[:, place, j]
        return total


def _add_products(
    total: Floats, into: NDArray[np.intp], rows: Floats, counts: Floats, edges: Sequence[int], places: NDArray[np.intp]
) -> None:
    """Weighted products of the rows of each block, at some places of its matrix."""
    weighted = rows * counts[:, None]
    for block, (low, high) in zip(into, pairwise(edges), strict=True):
        total[block][np.ix_(places, places)] += rows[low:high].T @ weighted[low:high]


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
