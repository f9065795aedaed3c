"""Poisson emissions of hidden Markov models: independent counts in each column; entries may be missing."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from odeco.families.averages import averages
from odeco.families.counts import POISSON
from odeco.refinement.emissions import Emission, Statistics, exponentials

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class PoissonEmission(Emission):
    """Rates of each state and column.

    Attributes
    ----------
    rates : (k, d)
    floor : float
        Least rate: a state that never saw a count in a column must not exclude one forever.
    """

    rates: Floats = field(repr=False)
    floor: float = 1e-10

    @property
    def n_components(self) -> int:
        return int(self.rates.shape[0])

    @property
    def n_parameters(self) -> int:
        return self.n_components * POISSON.n_free(self.rates.shape[1])

    def likelihood(self, observations: NDArray[Any]) -> tuple[Floats, Floats]:
        counts, present = _present(observations)
        slopes, constants = POISSON.natural(self.rates)
        logs = slopes @ counts.T
        logs += constants.sum(axis=1, keepdims=True) if present is None else constants @ present.T
        top = logs.max(axis=0)
        logs -= top
        return np.ascontiguousarray(exponentials(logs).T), top + POISSON.base(counts)

    def statistics(self, observations: NDArray[Any], weights: Floats) -> Statistics:
        """Weights (k, d) and weighted counts (k, d), over what is there."""
        counts, present = _present(observations)
        if present is None:
            totals = np.repeat(weights.sum(axis=0)[:, None], counts.shape[1], axis=1)
        else:
            totals = weights.T @ present
        return totals, weights.T @ counts

    def maximize(self, statistics: Statistics) -> Self:
        totals, sums = statistics
        return replace(self, rates=POISSON.inside(averages(sums, totals, self.rates), self.floor))

    def expected(self, statistics: Statistics) -> Floats:
        totals, sums = statistics
        slopes, constants = POISSON.natural(self.rates)
        return np.asarray((sums * slopes + totals * constants).sum(axis=1))

    def features(self, observations: NDArray[Any]) -> Floats:
        """Square roots, of which the variance within a state is about the same everywhere."""
        counts, present = _present(observations)
        roots = np.sqrt(counts) - np.sqrt(self.rates.mean(axis=0))
        return np.asarray(roots if present is None else roots * present)

    def pack(self) -> Floats:
        return np.log(self.rates).ravel()

    def unpack(self, vector: Floats) -> Self:
        rates = np.exp(np.clip(vector, np.log(self.floor), 600.0)).reshape(self.rates.shape)
        return replace(self, rates=rates)

    def permute(self, order: NDArray[np.intp]) -> Self:
        return replace(self, rates=self.rates[order])

    def draw(self, states: NDArray[np.intp], rng: np.random.Generator) -> NDArray[np.int64]:
        return POISSON.draw(self.rates, states, rng)


def _present(observations: NDArray[Any]) -> tuple[Floats, Floats | None]:
    """Counts with 0 where they are missing, and 1 where they are not (None where none is missing)."""
    counts = np.asarray(observations, dtype=np.float64)
    missing = np.isnan(counts)
    if not missing.any():
        return counts, None
    return np.where(missing, 0.0, counts), (~missing).astype(np.float64)
