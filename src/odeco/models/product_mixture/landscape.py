"""The likelihood of a product mixture on some rows, as the search for a start sees it: climbed, merged, split."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from odeco.families.responsibilities import shares_of
from odeco.fitting.landscape import RowLandscape, Sums, spike_limits
from odeco.refinement.product_mixture import (
    PRIOR,
    Data,
    Expectation,
    Parameters,
    log_joint,
    maximize,
    refine_products,
)

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ProductLandscape(RowLandscape[Parameters]):
    """Statistics of rows in memory, in one batch; `base` is the part of the likelihood that no parameter enters."""

    data: Data
    base: float

    @property
    def weight(self) -> float:
        return self.data.weight

    def n_parameters(self, state: Parameters) -> int:
        k = self.size(state)
        return k - 1 + k * self.data.families.free_parameters()

    def size(self, state: Parameters) -> int:
        return int(state.weights.shape[1])

    def climb(self, state: Parameters, n_steps: int, tol: float) -> tuple[Parameters, float]:
        done = refine_products(self.data, state, max_iter=n_steps, tol=tol)
        return done.parameters, float(done.log_likelihood[0]) + self.base

    def degenerate(self, state: Parameters) -> bool:
        """Whether the values of a column of numbers are nearly equal in a component of few rows."""
        limits = spike_limits(state.weights[0] * self.data.weight, self.data.weight)
        return bool((state.table[:, self.data.families.spans[4]] < limits[:, None]).any())

    def sums(self, shares: Floats) -> Sums:
        """Rows, and their statistics (k, P), of each component."""
        return shares.sum(axis=1), shares @ self.rows[0]

    @cached_property
    def features(self) -> Floats:
        """What rows differ in, (n, p): indicators and numbers about their means, of unit variance, 0 where missing."""
        families, (statistics, weights) = self.data.families, self.rows
        places = slice(families.spans[3].stop)
        seen = families.seen_statistics(statistics, np.ones(len(statistics)))[:, places]
        share = families.seen_statistics(self.data.overall[None], np.ones(1))[0, places]
        mean = self.data.overall[places] / np.maximum(share, np.finfo(float).tiny)
        centred = statistics[:, places] - seen * mean
        deviations = np.sqrt(np.average(centred**2, axis=0, weights=weights))
        return np.asarray(centred / np.where(deviations > 0, deviations, 1.0))

    @property
    def rows(self) -> tuple[Floats, Floats | None]:
        """Statistics and weights."""
        ((statistics, weights),) = self.data.batches
        return statistics, weights

    def posterior(self, state: Parameters) -> tuple[Floats, Floats]:
        statistics, weights = self.rows
        return shares_of(log_joint(self.data.families, statistics, state.weights, state.table), weights)

    def maximized(self, sums: Sums) -> Parameters:
        return maximize(self.data, Expectation(sums[1], sums[0], np.zeros(1)), (1, len(sums[0])))

    def expected(self, sums: Sums, state: Parameters) -> Floats:
        families, (totals, statistics) = self.data.families, sums
        slopes, constants = families.natural(families.estimate(statistics, totals, self.data.overall, PRIOR))
        return np.asarray(np.einsum("ip,ip->i", slopes, statistics) + constants * totals)
