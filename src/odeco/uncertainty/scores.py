"""Scores and information of a maximised likelihood, by differences of log densities.

The covariance of a maximum of the likelihood is I^-1 J I^-1: I is the observed information, J the sum of products of
the scores of independent units. Where the model is right the two are equal; the sandwich stays right where it is not.
Of a mixture I is what complete data would tell, less what the hidden component takes away (Louis, 1982): the
derivatives of one component's log density are all that is needed, and those of all components come at once.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from odeco.families.responsibilities import posterior
from odeco.fitting.free import Entry, Free, entries_of
from odeco.moments.base import Additive

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

    def joint(self, batch: Any, *steps: tuple[Entry, float]) -> Floats:
        """Log weights plus log densities (m, k) after some steps."""
        values: dict[str, Floats] = {}
        for entry, step in steps:
            free = entry.free
            if free.name in values:
                free = replace(free, values=values[free.name])
            values[free.name] = free.moved(entry.place, step)
        return np.asarray(self.model._moved(values)._batch_joint(batch), dtype=np.float64)


class Told(Additive):
    """What rows tell of a likelihood about its maximum, as sums over batches of them, wherever they are.

    `totals` (k,) are the rows that each component has, `trials` the observations that shares of some attributes were
    counted in.
    """

    totals: Floats
    trials: dict[str, Floats]

    def _add_shares(self, model: Any, batch: Any, shares: Floats, counts: Floats) -> None:
        self.totals = self.totals + counts @ shares
        for name, value in model._batch_trials(batch, shares * counts[:, None]).items():
            self.trials[name] = self.trials[name] + value

    @abstractmethod
    def information(self) -> Information:
        """The information of all rows."""


class MixtureTold(Told):
    """Of independent rows: J, products of complete scores, second derivatives by pair and component."""

    _sums: ClassVar[tuple[str, ...]] = ("outer", "complete", "second", "n", "weight", "totals", "trials")
    _on: ClassVar[tuple[str, ...]] = ("model",)

    def __init__(self, model: Any) -> None:
        self.model = model
        frees = model._free_parameters()
        self._about = _Mixture(model, frees)
        self.coordinates = _coordinates(self._about, frees)
        pairs = _pairs(self._about.entries)
        self._pairs = [] if len(pairs) > MOST_PAIRS else pairs
        p, k = len(self.coordinates), self._about.k
        self.outer, self.complete = np.zeros((p, p)), np.zeros((p, p))
        self.second = {pair: np.zeros(k) for pair in self._pairs}
        self.n, self.weight, self.totals = 0, 0.0, np.zeros(k)
        self.trials = {name: np.zeros(shape) for name, shape in model._trial_shapes().items()}

    def update(self, batch: Any) -> Self:
        """Add the rows of a batch, as many at a time as leave temporaries small."""
        size = max(_CELLS // (max(len(self._about.entries), 1) * self._about.k), 1)
        for low in range(0, len(batch), size):
            self._add(batch if len(batch) <= size else batch.take(slice(low, low + size)))
        return self

    def _add(self, batch: Any) -> None:
        about = self._about
        base = about.joint(batch)
        shares = posterior(base)[0]
        counts = np.ones(len(base)) if batch.weights is None else batch.weights
        first = [
            (about.joint(batch, (entry, FIRST)) - about.joint(batch, (entry, -FIRST))) / (2 * FIRST)
            for entry in about.entries
        ]
        scores = np.zeros((len(base), len(self.outer)))
        order = sorted(range(len(first)), key=lambda e: about.entries[e].shared)
        for j in range(about.k):
            places = _places(about, j)
            of_weights = np.broadcast_to((np.arange(about.k) == j) - about.weights, (len(base), about.k))
            each = np.column_stack([of_weights, *(first[e][:, j] for e in order)])
            scores[:, places] += shares[:, [j]] * each
            self.complete[np.ix_(places, places)] += each.T @ (each * (counts * shares[:, j])[:, None])
        self.outer += scores.T @ (scores * counts[:, None])
        self.n, self.weight = self.n + len(base), self.weight + float(counts.sum())
        self._add_shares(self.model, batch, shares, counts)
        self._add_second(batch, base, shares * counts[:, None])

    def _add_second(self, batch: Any, base: Floats, shares: Floats) -> None:
        """Weighted second differences of every pair, for all components at once."""
        about = self._about
        entries, used = about.entries, sorted({e for pair in self._pairs for e in pair})
        once = {e: np.einsum("mk,mk->k", shares, about.joint(batch, (entries[e], SECOND)) - base) for e in used}
        for a, b in self._pairs:
            both = np.einsum("mk,mk->k", shares, about.joint(batch, (entries[a], SECOND), (entries[b], SECOND)) - base)
            self.second[a, b] += (both - once[a] - once[b]) / SECOND**2

    def information(self) -> Information:
        found = None
        if self._pairs or not self._about.entries:
            found = -self._complete_hessian() - self.complete + self.outer
        return Information(self.coordinates, self.outer, found, self.n)

    def _complete_hessian(self) -> Floats:
        """Second derivatives of the expected complete log-likelihood."""
        about, p = self._about, len(self.outer)
        total, weights, k = np.zeros((p, p)), about.weights, about.k
        total[:k, :k] = -self.weight * (np.diag(weights) - np.outer(weights, weights))
        order = sorted(range(len(about.entries)), key=lambda e: about.entries[e].shared)
        rank = {e: r for r, e in enumerate(order)}
        for j in range(k):
            places = _places(about, j)[k:]
            for (a, b), values in self.second.items():
                row, column = places[rank[a]], places[rank[b]]
                total[row, column] += values[j]
                if row != column:
                    total[column, row] += values[j]
        return total


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


class ChainTold(Told):
    """Of sequences: the scores of each step given those before it, in blocks of `length` steps, so that what neighbours
    have in common counts.
    """

    _sums: ClassVar[tuple[str, ...]] = ("outer", "curvature", "score", "n", "totals", "trials")
    _on: ClassVar[tuple[str, ...]] = ("model", "length")

    def __init__(self, model: Any, length: int) -> None:
        self.model, self.length = model, length
        self._frees = model._free_parameters()
        self.coordinates = _each(self._frees)
        p, k = len(self.coordinates), len(model.startprob_)
        self.outer, self.score, self.n = np.zeros((p, p)), np.zeros(p), 0
        self.curvature = np.zeros((p, p)) if _affordable(p) else None
        self.totals = np.zeros(k)
        self.trials = {name: np.zeros(shape) for name, shape in model._trial_shapes().items()}

    def update(self, batch: Any) -> Self:
        """Add the sequences of a batch."""
        starts = np.concatenate([np.arange(low, high, self.length) for low, high in pairwise(batch.offsets)])
        weights = None if batch.weights is None else batch.weights[np.searchsorted(batch.offsets, starts, "right") - 1]

        def contributions(moved: Any) -> Floats:
            return np.asarray(np.add.reduceat(moved._step_log_likelihoods(batch), starts))

        found = unit_information(self.model._moved, self._frees, contributions, weights)
        self.outer += found.outer
        self.score += 0 if found.score is None else found.score
        self.n += found.n_units
        if self.curvature is not None and found.observed is not None:
            self.curvature += found.observed
        steps = np.ones(len(batch)) if batch.weights is None else batch.step_weights(0, len(batch))
        self._add_shares(self.model, batch, self.model._step_shares(batch), steps)
        return self

    def information(self) -> Information:
        return Information(self.coordinates, self.outer, self.curvature, self.n, self.score)


def _affordable(p: int) -> bool:
    """Whether every pair of so many coordinates may be looked at."""
    return p * (p + 1) // 2 <= MOST_PAIRS


def unit_information(
    moved: Moved,
    frees: Sequence[Free],
    contributions: Callable[[Any], Floats],
    weights: Floats | None = None,
) -> Information:
    """Of units whose contributions to the log-likelihood are known, whatever made them: one coordinate at a time.

    A unit of weight 2 is the same as two.
    """
    coordinates = _each(frees)
    base = contributions(moved({}))
    counts = np.ones(len(base)) if weights is None else weights

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
    outer, score = scores.T @ (scores * counts[:, None]), counts @ scores
    if not _affordable(p):
        return Information(coordinates, outer, None, len(base), score)
    once = [float(counts @ (after((c, SECOND)) - base)) for c in range(p)]
    found = np.empty((p, p))
    for a in range(p):
        for b in range(a + 1):
            both = float(counts @ (after((a, SECOND), (b, SECOND)) - base))
            found[a, b] = found[b, a] = -(both - once[a] - once[b]) / SECOND**2
    return Information(coordinates, outer, found, len(base), score)


def _each(frees: Sequence[Free]) -> list[tuple[Entry, int | None]]:
    """Coordinates one by one."""
    return [
        (entry, j)
        for entry in entries_of(frees)
        for j in ([None] if entry.shared else range(entry.free.values.shape[entry.free.axis or 0]))
    ]
