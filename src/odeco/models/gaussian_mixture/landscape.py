"""The likelihood of a Gaussian mixture on some rows, as the search for a start sees it: climbed, merged, split."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from odeco.families.gaussian import COVARIANCES, standardizing
from odeco.families.responsibilities import shares_of
from odeco.fitting.landscape import RowLandscape, Sums
from odeco.kernels.gaussian import full_sums
from odeco.models.gaussian_mixture.policy import POLICY
from odeco.refinement.gaussian_mixture import (
    GaussianParameters,
    Points,
    log_joint,
    maximize,
    n_parameters,
    refine_gaussian_mixture,
)
from odeco.refinement.gaussian_mixture import Sums as Expectation
from odeco.refinement.loop import StoppingRule

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class GaussianLandscape(RowLandscape[GaussianParameters]):
    """Rows (n, p) about their mean, all in memory: whole, or projected, with what was left out in ``points.rest``.

    Attributes
    ----------
    scales : (d,) or (1,)
        Variances of the columns (for spheres, of all together): components keep above ``floor`` of them.
    total : (d, d) or None
        Covariance of all rows, for one that is shared.
    """

    rows: Floats = field(repr=False)
    weights: Floats | None = field(repr=False)
    points: Points = field(repr=False)
    covariance_type: str
    scales: Floats
    floor: float
    total: Floats | None = field(repr=False)

    @cached_property
    def features(self) -> Floats:
        return self.rows / np.sqrt(self.scales)

    @property
    def weight(self) -> float:
        return float(len(self.rows) if self.weights is None else self.weights.sum())

    def n_parameters(self, state: GaussianParameters) -> int:
        return n_parameters(self.covariance_type, state.weights.size, self.points.dimension)

    def size(self, state: GaussianParameters) -> int:
        return state.weights.size

    def climb(self, state: GaussianParameters, n_steps: int, tol: float) -> tuple[GaussianParameters, float]:
        done = refine_gaussian_mixture(
            self.points, state, StoppingRule(n_steps, tol), scales=self.scales, floor=self.floor, total=self.total
        )
        return done.parameters, float(done.trace.best)

    def takes(self, state: GaussianParameters) -> bool:
        """Not where rows are projected: every search has directions of its own. Nor what sits on equal values: with
        many components one is found sooner or later, and merged down it would win at every smaller number.
        """
        return self.points.rest is None and not bool((self._least(state) < POLICY.thin).any())

    def _least(self, state: GaussianParameters) -> Floats:
        """The least variance of each component in any direction, as a share of the columns' own."""
        return COVARIANCES[self.covariance_type].least(state.covariances, self.scales)

    def degenerate(self, state: GaussianParameters) -> bool:
        """Whether a component is thin in some direction and has fewer rows than twice what determine it."""
        kind = COVARIANCES[self.covariance_type]
        if kind.shared:
            return False
        least = self._least(state)
        rows = state.weights * len(self.rows)
        return bool(((least < POLICY.thin) & (rows < max(POLICY.few_rows, 2 * (self.rows.shape[1] + 1)))).any())

    def sums(self, shares: Floats) -> Sums:
        """Rows, features (k, p'), and for full covariances products (k, p, p), of each component."""
        totals, features = shares.sum(axis=1), shares @ np.concatenate(list(self.points.features(self.covariance_type)))
        if self.covariance_type != "full":
            return totals, features
        (k, d), about = (len(shares), self.rows.shape[1]), np.zeros(self.rows.shape[1])
        products = np.zeros((k, d, d))
        full_sums(self.rows, about, np.ascontiguousarray(shares.T), np.zeros(k), np.zeros((k, d)), products)
        return totals, features, products

    def posterior(self, state: GaussianParameters) -> tuple[Floats, Floats]:
        return shares_of(log_joint(self.points, state), self.weights)

    def maximized(self, sums: Sums) -> GaussianParameters:
        k, p = len(sums[0]), self.rows.shape[1]
        nothing = COVARIANCES[self.covariance_type].units(k, p)
        old = GaussianParameters(np.full(k, 1 / k), np.zeros((k, p)), nothing, self.covariance_type)
        return maximize(_expectation(sums), old, self.points.dimension, self.floor * self.scales, self.total)

    def expected(self, sums: Sums, state: GaussianParameters) -> Floats:
        counts, d, kind = sums[0], self.points.dimension, COVARIANCES[self.covariance_type]
        safe = np.maximum(counts, 1e-300)
        means = sums[1][:, : self.rows.shape[1]] / safe[:, None]
        if kind.shared:
            covariance = state.covariances
            standard = standardizing(means, covariance)[1] if kind.order else means / np.sqrt(covariance)
            return np.asarray(counts / 2 * (standard * standard).sum(axis=1))
        scatter = _expectation(sums).scatter(kind, means, None)
        within, floor = scatter / (d * safe, safe[:, None], safe[:, None, None])[kind.order], self.floor * self.scales
        # Of matrices a little more than the largest, without the eigenvalues of all pairs.
        within = within + np.diag(floor) if kind.order == 2 else kind.bounded(within, floor)
        return np.asarray(-counts / 2 * kind.log_determinants(within, d))


def _expectation(sums: Sums) -> Expectation:
    return Expectation(0.0, float(sums[0].sum()), sums[1], sums[2] if len(sums) == 3 else None)
