"""Gaussian emissions of hidden Markov models: spherical, diagonal, full and tied covariances; entries may be missing.

Everything is computed about a common centre (the mean of the data), so that an offset of the data costs no digits.
Densities and sums are one compiled loop a slice, or of full ones a loop for each pattern of entries that are missing.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from odeco.families.averages import averages
from odeco.families.gaussian import COVARIANCES, CovarianceType, natural, scatter_about, standardizing
from odeco.refinement.emissions import LEAST_LOG, Emission, Statistics

Floats = NDArray[np.float64]

_LARGEST_LOG = 14.0  # of a variance in units of the column's: with the floor, Cholesky's factor exists
_SPIKE = 1e-5  # of a variance in units of the column's: below, a state sits on a few equal values


@dataclass(frozen=True, eq=False)
class GaussianEmission(Emission):
    """What the four families share.

    Attributes
    ----------
    means : (k, d)
    covars : array
        In the shape that the family has in hmmlearn: (k,), (k, d), (k, d, d) or (d, d).
    center : (d,)
        Subtracted from observations and means before anything is squared.
    scale : (d,)
        A deviation of each column that is typical of a state: the unit of `pack`, of the floor and of the prior.
    min_covar : float
        Least variance that `maximize` gives, in units of ``scale**2``, in every direction of a full covariance. A
        constraint, not a prior: the likelihood still never falls.
    prior : float
        Sum of squares, in units of ``scale**2``, that `maximize` adds to those of each state, as hmmlearn's
        `covars_prior`: a state of one observation does not collapse on it, and others do not notice.
    """

    kind: ClassVar[CovarianceType]
    means: Floats = field(repr=False)
    covars: Floats = field(repr=False)
    center: Floats = field(repr=False)
    scale: Floats = field(repr=False)
    min_covar: float = 1e-6
    prior: float = 0.0

    @property
    def floor(self) -> Floats:
        """Least variance of each column (d,)."""
        return self.min_covar * self.scale**2

    @property
    def n_components(self) -> int:
        return int(self.means.shape[0])

    @property
    def n_parameters(self) -> int:
        return self.means.size + self.kind.n_free(*self.means.shape)

    @property
    def _added(self) -> Floats:
        """Sums of squares of the prior, (d,)."""
        return self.prior * self.scale**2

    def maximize(self, statistics: Statistics) -> Self:
        totals, first, second = statistics
        means = averages(first, totals.reshape(len(totals), -1), self.means - self.center)
        scatter = scatter_about(means, totals, second)
        covars = self.kind.estimate(scatter, totals, self.covars, self.floor, added=self._added)
        return replace(self, means=means + self.center, covars=covars)

    def on_floor(self, margin: float) -> NDArray[np.bool_]:
        """Which states have a variance of at most `margin` times the least, (k,)."""
        return np.broadcast_to(self.kind.least(self.covars, self.floor) <= margin, (self.n_components,))

    def features(self, observations: NDArray[Any]) -> Floats:
        """Columns in their units."""
        return np.nan_to_num((observations - self.center) / self.scale)

    def degenerate(self) -> bool:
        return bool(self.on_floor(_SPIKE / self.min_covar).any())

    def permute(self, order: NDArray[np.intp]) -> Self:
        return replace(self, means=self.means[order], covars=self.kind.pick(self.covars, order))

    def draw(self, states: NDArray[np.intp], rng: np.random.Generator) -> Floats:
        return self.kind.draw(self.means, self.covars, states, rng)


@dataclass(frozen=True, eq=False)
class DiagonalGaussian(GaussianEmission):
    """Covariances diag(covars[j]), covars (k, d). A missing entry takes its column out of that step, no more."""

    kind = COVARIANCES["diag"]

    @property
    def _variances(self) -> Floats:
        """(k, d)."""
        return np.broadcast_to(self.covars if self.kind.order else self.covars[:, None], self.means.shape)

    @cached_property
    def _coefficients(self) -> tuple[Floats, Floats, Floats]:
        """Of values and of their squares, and constants, (d, k) each: once for all slices of a pass."""
        variances, means = np.ascontiguousarray(self._variances.T), np.ascontiguousarray((self.means - self.center).T)
        linear, square, constants = natural(means, variances)
        return linear, -square, constants

    def likelihood(self, observations: NDArray[Any]) -> tuple[Floats, Floats]:
        from odeco.kernels.gaussian import diagonal_rows

        rows, scales = np.empty((len(observations), self.n_components)), np.empty(len(observations))
        diagonal_rows(observations, self.center, *self._coefficients, LEAST_LOG, rows, scales)
        return rows, scales

    def statistics(self, observations: NDArray[Any], weights: Floats) -> Statistics:
        """Weights (k, d), first and second sums (k, d) about the centre, over what is there."""
        from odeco.kernels.gaussian import diagonal_sums

        totals, first, second = np.zeros((3, *self.means.shape))
        diagonal_sums(observations, self.center, weights, totals, first, second)
        return totals, first, second

    def expected(self, statistics: Statistics) -> Floats:
        totals, first, second = statistics
        linear, square, constants = natural(self.means - self.center, self._variances)
        return np.asarray((linear * first + square * second + constants * totals).sum(axis=1))

    def log_prior(self) -> float:
        return -0.5 * float((self._added / self._variances).sum())

    def pack(self) -> Floats:
        return np.concatenate([((self.means - self.center) / self.scale).ravel(), np.log(self.covars).ravel()])

    def unpack(self, vector: Floats) -> Self:
        n = self.means.size
        means = vector[:n].reshape(self.means.shape) * self.scale + self.center
        covars = np.exp(np.minimum(vector[n:], 600.0)).reshape(self.covars.shape)
        return replace(self, means=means, covars=self.kind.bounded(covars, self.floor))


@dataclass(frozen=True, eq=False)
class SphericalGaussian(DiagonalGaussian):
    """Covariances covars[j] I, covars (k,)."""

    kind = COVARIANCES["spherical"]


@dataclass(frozen=True, eq=False)
class FullGaussian(GaussianEmission):
    """Covariances covars[j], covars (k, d, d).

    A step in which some entries are missing counts with the marginal of those that are there, and the M step with the
    conditional mean and covariance of those that are not (exact EM); steps are grouped by what is missing.
    """

    kind = COVARIANCES["full"]

    def _matrices(self) -> Floats:
        """Covariances (k, d, d)."""
        return np.broadcast_to(self.covars, (self.n_components, *self.covars.shape[-2:]))

    @cached_property
    def _standard(self) -> tuple[Floats, Floats, Floats]:
        """What `_standardizing` says of all columns: once for all slices of a pass."""
        return self._standardizing(np.arange(self.means.shape[1]))

    def _standardizing(self, columns: NDArray[np.intp]) -> tuple[Floats, Floats, Floats]:
        """Triangles, shifts and constants of the log densities of some columns, about the centre."""
        means, matrices = (self.means - self.center)[:, columns], self._matrices()[:, columns[:, None], columns]
        turns, shifts, constants = standardizing(means, matrices)
        return np.ascontiguousarray(np.swapaxes(turns, 1, 2)), np.ascontiguousarray(shifts), constants

    def likelihood(self, observations: NDArray[Any]) -> tuple[Floats, Floats]:
        missing = np.isnan(observations)
        if not missing.any():
            return self._complete(observations, self.center, self._standard)
        rows, scales = np.empty((len(observations), self.n_components)), np.empty(len(observations))
        for where, columns in _patterns(missing):
            part = np.ascontiguousarray(observations[where][:, columns])
            rows[where], scales[where] = self._complete(part, self.center[columns], self._standardizing(columns))
        return rows, scales

    def _complete(
        self, observations: Floats, center: Floats, coefficients: tuple[Floats, Floats, Floats]
    ) -> tuple[Floats, Floats]:
        """Likelihood rows and scales of observations of which nothing is missing."""
        from odeco.kernels.gaussian import full_rows

        rows, scales = np.empty((len(observations), self.n_components)), np.empty(len(observations))
        full_rows(observations, center, *coefficients, LEAST_LOG, rows, scales)
        return rows, scales

    def statistics(self, observations: NDArray[Any], weights: Floats) -> Statistics:
        """Weights (k,), first (k, d) and second sums (k, d, d) about the centre; what is missing at its expectation."""
        from odeco.kernels.gaussian import full_sums

        k, d = self.means.shape
        totals, first, second = np.zeros(k), np.zeros((k, d)), np.zeros((k, d, d))
        missing = np.isnan(observations)
        if not missing.any():
            full_sums(observations, self.center, weights, totals, first, second)
            return totals, first, second
        for where, columns in _patterns(missing):
            if columns.size == 0:
                continue
            centred = observations[where] - self.center
            for j in range(k):
                here, shares = slice(j, j + 1), np.ascontiguousarray(weights[where, j : j + 1])
                filled, spread = self._fill(centred, columns, j) if columns.size < d else (centred, 0.0)
                full_sums(filled, np.zeros(d), shares, totals[here], first[here], second[here])
                second[j] += shares.sum() * spread
        return totals, first, second

    def _fill(self, part: Floats, columns: NDArray[np.intp], state: int) -> tuple[Floats, Floats]:
        """Conditional means in place of the missing entries, and their conditional covariance, zero elsewhere."""
        mean, covariance = (self.means - self.center)[state], self._matrices()[state]
        others = np.setdiff1d(np.arange(mean.size), columns)
        gain = np.linalg.solve(covariance[np.ix_(columns, columns)], covariance[np.ix_(columns, others)])
        filled = part.copy()
        filled[:, others] = mean[others] + (part[:, columns] - mean[columns]) @ gain
        spread = np.zeros_like(covariance)
        spread[np.ix_(others, others)] = covariance[np.ix_(others, others)] - covariance[np.ix_(others, columns)] @ gain
        return filled, spread

    def expected(self, statistics: Statistics) -> Floats:
        totals, first, second = statistics
        means, matrices = self.means - self.center, self._matrices()
        crossed = means[:, :, None] * (2 * first - totals[:, None] * means)[:, None, :]  # its transpose counts as much
        distances = np.einsum("jab,jba->j", np.linalg.inv(matrices), second - crossed)
        return np.asarray(-0.5 * (totals * np.linalg.slogdet(matrices)[1] + distances))

    def log_prior(self) -> float:
        if self.prior == 0:
            return 0.0
        inverse = np.linalg.inv(self.covars)
        return -0.5 * float((np.diagonal(inverse, axis1=-2, axis2=-1) * self._added).sum())

    def pack(self) -> Floats:
        """Means and logarithms of the covariances in units of the columns: all symmetric matrices have exponentials."""
        unit = self.scale
        values, vectors = np.linalg.eigh(self.covars / (unit[:, None] * unit))
        logs = (vectors * np.log(np.maximum(values, 1e-300))[..., None, :]) @ np.swapaxes(vectors, -1, -2)
        return np.concatenate([((self.means - self.center) / unit).ravel(), logs.ravel()])

    def unpack(self, vector: Floats) -> Self:
        n, unit = self.means.size, self.scale
        logs = vector[n:].reshape(self.covars.shape)
        values, vectors = np.linalg.eigh((logs + np.swapaxes(logs, -1, -2)) / 2)
        values = np.exp(np.clip(values, np.log(self.min_covar), _LARGEST_LOG))
        covars = (vectors * values[..., None, :]) @ np.swapaxes(vectors, -1, -2) * (unit[:, None] * unit)
        return replace(self, means=vector[:n].reshape(self.means.shape) * unit + self.center, covars=covars)


@dataclass(frozen=True, eq=False)
class TiedGaussian(FullGaussian):
    """One covariance for all states, covars (d, d)."""

    kind = COVARIANCES["tied"]

    def largest_expected(self, statistics: Statistics) -> Floats:
        """With the covariance as it is: all states share it."""
        alike = self.permute(np.zeros(len(statistics[0]), dtype=np.intp))
        return replace(alike.maximize(statistics), covars=self.covars).expected(statistics)


FAMILIES: dict[str, type[DiagonalGaussian] | type[FullGaussian]] = {
    "spherical": SphericalGaussian,
    "diag": DiagonalGaussian,
    "full": FullGaussian,
    "tied": TiedGaussian,
}


def _patterns(missing: NDArray[np.bool_]) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Rows that miss the same entries, and the columns that they have."""
    kinds, membership = np.unique(missing, axis=0, return_inverse=True)
    membership = membership.ravel()
    return [(np.flatnonzero(membership == i), np.flatnonzero(~kind)) for i, kind in enumerate(kinds)]
