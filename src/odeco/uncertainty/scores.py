"""Scores and information of a maximised likelihood, by differences of log densities.

The covariance of a maximum of the likelihood is I^-1 J I^-1: I is the observed information, J the sum of products of
the scores of independent units. Where the model is right the two are equal; the sandwich stays right where it is not.
Of mixtures both are sums with a formula of their own: `mixture_scores`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from odeco.fitting.free import Entry, Free, entries_of
from odeco.moments.base import Additive

Floats = NDArray[np.float64]

# Steps of differences in coordinates without a unit. Log densities of size 100 are known to 1e-14: first derivatives
# then to 1e-9, second ones to 1e-6 and to the step itself.
FIRST, SECOND = 1e-5, 1e-4
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
