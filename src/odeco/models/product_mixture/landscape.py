"""The likelihood of a product mixture on some rows, as the search for a start sees it: climbed, merged, split."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from odeco.fitting.candidates import RowLandscape, cheapest_pairs, merging, pair_costs, spike_limits
from odeco.refinement.product_mixture import (
    PRIOR,
    Data,
    Expectation,
    Parameters,
    expect,
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

    def merge(self, state: Parameters, n_pairs: int) -> Parameters:
        found = expect(self.data, state)

        def joined(i: NDArray[np.intp], j: NDArray[np.intp]) -> Floats:
            return self._expected(found.sums[i] + found.sums[j], found.totals[i] + found.totals[j])

        costs = pair_costs(self._expected(found.sums, found.totals), joined)
        adding = merging(len(costs), cheapest_pairs(costs, n_pairs))
        return self._maximize(adding @ found.sums, adding @ found.totals)

    def degenerate(self, state: Parameters) -> bool:
        """Whether the values of a column of numbers are nearly equal in a component of few rows."""
        limits = spike_limits(state.weights[0] * self.data.weight, self.data.weight)
        return bool((state.table[:, self.data.families.spans[4]] < limits[:, None]).any())

    def of_shares(self, shares: Floats) -> Parameters:
        """The parameters of responsibilities times weights, (k, n)."""
        return self._maximize(shares @ self.rows[0], shares.sum(axis=1))

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
        joint = log_joint(self.data.families, statistics, state.weights, state.table).T
        highest = joint.max(axis=0)
        joint -= highest
        shares = np.exp(joint, out=joint)
        totals = shares.sum(axis=0)
        shares *= (1.0 if weights is None else weights) / totals
        return np.ascontiguousarray(shares), highest + np.log(totals)

    def _maximize(self, sums: Floats, totals: Floats) -> Parameters:
        return maximize(self.data, Expectation(sums, totals, np.zeros(1)), (1, len(totals)))

    def _expected(self, sums: Floats, totals: Floats) -> Floats:
        """Largest expected log-likelihood of components with these sums, up to what mergers leave as it is, (m,)."""
        families = self.data.families
        slopes, constants = families.natural(families.estimate(sums, totals, self.data.overall, PRIOR))
        entropy = totals * np.log(np.maximum(totals, np.finfo(float).tiny))
        return np.asarray(entropy + np.einsum("ip,ip->i", slopes, sums) + constants * totals)
