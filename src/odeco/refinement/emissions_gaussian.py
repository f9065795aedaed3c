"""Gaussian emissions of hidden Markov models: spherical, diagonal, full and tied covariances; entries may be missing.

Everything is computed about a common centre (the mean of the data), so that an offset of the data costs no digits.
Diagonal families are one compiled loop a slice; full ones a triangular product for each state.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from odeco.refinement.emissions import Emission, Statistics, exponentials

Floats = NDArray[np.float64]

LOG_2PI = float(np.log(2 * np.pi))
_LARGEST_LOG = 14.0  # of a variance in units of the column's: with the floor, Cholesky's factor exists
_LEAST_RATIO = 1e-13  # of eigenvalues of a covariance: below, rounding makes it indefinite
_SPIKE = 1e-5  # of a variance in units of the column's: below, a state sits on a few equal values
_LEAST_WEIGHT = 1e-8  # of posterior mass: a state with less keeps what it has


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
        return self.means.size + self._n_free_covars()

    @abstractmethod
    def _n_free_covars(self) -> int:
        """Free parameters of the covariances."""

    @property
    def _added(self) -> Floats:
        """Sums of squares of the prior, (d,)."""
        return self.prior * self.scale**2

    @abstractmethod
    def on_floor(self, margin: float) -> NDArray[np.bool_]:
        """Which states have a variance of at most `margin` times the least, (k,)."""

    def features(self, observations: NDArray[Any]) -> Floats:
        """Columns in their units."""
        return np.nan_to_num((observations - self.center) / self.scale)

    def degenerate(self) -> bool:
        return bool(self.on_floor(_SPIKE / self.min_covar).any())

    def permute(self, order: NDArray[np.intp]) -> Self:
        return replace(self, means=self.means[order], covars=self.covars[order])


@dataclass(frozen=True, eq=False)
class DiagonalGaussian(GaussianEmission):
    """Covariances diag(covars[j]), covars (k, d). A missing entry takes its column out of that step, no more."""

    def _n_free_covars(self) -> int:
        return self.means.size

    @property
    def _variances(self) -> Floats:
        """(k, d)."""
        return self.covars

    def likelihood(self, observations: NDArray[Any]) -> tuple[Floats, Floats]:
        from odeco.kernels.gaussian import diagonal_log_rows

        variances, means = np.ascontiguousarray(self._variances.T), np.ascontiguousarray((self.means - self.center).T)
        constants = -0.5 * (means**2 / variances + np.log(variances) + LOG_2PI)
        rows, scales = np.empty((len(observations), self.n_components)), np.empty(len(observations))
        diagonal_log_rows(observations, self.center, means / variances, 0.5 / variances, constants, rows, scales)
        return exponentials(rows), scales

    def statistics(self, observations: NDArray[Any], weights: Floats) -> Statistics:
        """Weights (k, d), first and second sums (k, d) about the centre, over what is there."""
        from odeco.kernels.gaussian import diagonal_sums

        totals, first, second = np.zeros((3, *self.means.shape))
        diagonal_sums(observations, self.center, weights, totals, first, second)
        return totals, first, second

    def maximize(self, statistics: Statistics) -> Self:
        totals, first, second = statistics
        seen = totals > _LEAST_WEIGHT
        safe = np.where(seen, totals, 1.0)
        means = np.where(seen, first / safe, self.means - self.center)
        squares = np.maximum(second - totals * means**2, 0.0)
        return replace(self, means=means + self.center, covars=self._covars_of(squares, totals))

    def expected(self, statistics: Statistics) -> Floats:
        totals, first, second = statistics
        means, variances = self.means - self.center, self._variances
        squares = second - 2 * means * first + totals * means**2
        return np.asarray(-0.5 * (totals * np.log(variances) + squares / variances).sum(axis=1))

    def _covars_of(self, squares: Floats, totals: Floats) -> Floats:
        """Variances that maximize the likelihood, from the sums of squares about the means."""
        seen = totals > _LEAST_WEIGHT
        variances = (squares + self._added) / np.where(seen, totals, 1.0)
        return np.maximum(np.where(seen, variances, self.covars), self.floor)

    def log_prior(self) -> float:
        return -0.5 * float((self._added / self._variances).sum())

    def on_floor(self, margin: float) -> NDArray[np.bool_]:
        return np.asarray((self._variances <= margin * self.floor).any(axis=1))

    def pack(self) -> Floats:
        return np.concatenate([((self.means - self.center) / self.scale).ravel(), np.log(self.covars).ravel()])

    def unpack(self, vector: Floats) -> Self:
        n = self.means.size
        means = vector[:n].reshape(self.means.shape) * self.scale + self.center
        covars = np.exp(np.minimum(vector[n:], 600.0)).reshape(self.covars.shape)
        return replace(self, means=means, covars=self._above_floor(covars))

    def _above_floor(self, covars: Floats) -> Floats:
        return np.maximum(covars, self.floor)

    def draw(self, states: NDArray[np.intp], rng: np.random.Generator) -> Floats:
        noise = rng.standard_normal((len(states), self.means.shape[1]))
        return np.asarray(self.means[states] + np.sqrt(self._variances)[states] * noise)


@dataclass(frozen=True, eq=False)
class SphericalGaussian(DiagonalGaussian):
    """Covariances covars[j] I, covars (k,)."""

    def _n_free_covars(self) -> int:
        return self.covars.size

    @property
    def _variances(self) -> Floats:
        return np.repeat(self.covars[:, None], self.means.shape[1], axis=1)

    def _covars_of(self, squares: Floats, totals: Floats) -> Floats:
        mass = totals.sum(axis=1)
        seen = mass > _LEAST_WEIGHT
        variances = (squares + self._added).sum(axis=1) / np.where(seen, mass, 1.0)
        variances = np.where(seen, variances, self.covars)
        return self._above_floor(variances)

    def _above_floor(self, covars: Floats) -> Floats:
        return np.asarray(np.maximum(covars, self.floor.min()))


@dataclass(frozen=True, eq=False)
class FullGaussian(GaussianEmission):
    """Covariances covars[j], covars (k, d, d).

    A step in which some entries are missing counts with the marginal of those that are there, and the M step with the
    conditional mean and covariance of those that are not (exact EM); steps are grouped by what is missing.
    """

    def _n_free_covars(self) -> int:
        k, d = self.means.shape
        return int(k * d * (d + 1) // 2)

    def _matrices(self) -> Floats:
        """Covariances (k, d, d)."""
        return self.covars

    def likelihood(self, observations: NDArray[Any]) -> tuple[Floats, Floats]:
        rows = self._log_density(observations - self.center)
        scales = rows.max(axis=1)
        rows -= scales[:, None]
        return exponentials(rows), scales

    def _log_density(self, centred: Floats) -> Floats:
        """Log densities (m, k) of what is there of centred observations."""
        out = np.zeros((len(centred), self.n_components))
        means, matrices = self.means - self.center, self._matrices()
        for rows, columns in _patterns(centred):
            part = centred[rows][:, columns] if columns.size < centred.shape[1] else centred[rows]
            for j in range(self.n_components):
                out[rows, j] = _log_normal(part, means[j, columns], matrices[j][np.ix_(columns, columns)])
        return out

    def statistics(self, observations: NDArray[Any], weights: Floats) -> Statistics:
        """Weights (k,), first (k, d) and second sums (k, d, d) about the centre; what is missing at its expectation."""
        centred = observations - self.center
        k, d = self.means.shape
        totals, first, second = np.zeros(k), np.zeros((k, d)), np.zeros((k, d, d))
        for rows, columns in _patterns(centred):
            if columns.size == 0:
                continue
            part, weight = centred[rows], weights[rows]
            totals += weight.sum(axis=0)
            for j in range(k):
                filled, spread = (part, None) if columns.size == d else self._fill(part, columns, j)
                first[j] += weight[:, j] @ filled
                second[j] += (filled * weight[:, j, None]).T @ filled
                if spread is not None:
                    second[j] += weight[:, j].sum() * spread
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

    def maximize(self, statistics: Statistics) -> Self:
        totals, first, second = statistics
        seen = totals > _LEAST_WEIGHT
        safe = np.where(seen, totals, 1.0)[:, None]
        means = np.where(seen[:, None], first / safe, self.means - self.center)
        scatter = second - totals[:, None, None] * means[:, :, None] * means[:, None, :]
        return replace(self, means=means + self.center, covars=self._covars_of(scatter, totals))

    def expected(self, statistics: Statistics) -> Floats:
        totals, first, second = statistics
        means, matrices = self.means - self.center, self._matrices()
        crossed = means[:, :, None] * (2 * first - totals[:, None] * means)[:, None, :]  # its transpose counts as much
        distances = np.einsum("jab,jba->j", np.linalg.inv(matrices), second - crossed)
        return np.asarray(-0.5 * (totals * np.linalg.slogdet(matrices)[1] + distances))

    def _covars_of(self, scatter: Floats, totals: Floats) -> Floats:
        seen = totals > _LEAST_WEIGHT
        covars = (scatter + np.diag(self._added)) / np.where(seen, totals, 1.0)[:, None, None]
        return floored(np.where(seen[:, None, None], covars, self.covars), self.floor)

    def log_prior(self) -> float:
        if self.prior == 0:
            return 0.0
        inverse = np.linalg.inv(self.covars)
        return -0.5 * float((np.diagonal(inverse, axis1=-2, axis2=-1) * self._added).sum())

    def on_floor(self, margin: float) -> NDArray[np.bool_]:
        scaled = self._matrices() / (self.scale[:, None] * self.scale)
        return np.asarray(np.linalg.eigvalsh(scaled)[:, 0] <= margin * self.min_covar)

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

    def draw(self, states: NDArray[np.intp], rng: np.random.Generator) -> Floats:
        factors = np.linalg.cholesky(self._matrices())
        noise = rng.standard_normal((len(states), self.means.shape[1]))
        out = self.means[states]
        for j in range(self.n_components):
            rows = np.flatnonzero(states == j)
            out[rows] += noise[rows] @ factors[j].T
        return out


@dataclass(frozen=True, eq=False)
class TiedGaussian(FullGaussian):
    """One covariance for all states, covars (d, d)."""

    def _n_free_covars(self) -> int:
        d = self.means.shape[1]
        return int(d * (d + 1) // 2)

    def _matrices(self) -> Floats:
        return np.broadcast_to(self.covars, (self.n_components, *self.covars.shape))

    def _covars_of(self, scatter: Floats, totals: Floats) -> Floats:
        total = totals.sum()
        if total <= _LEAST_WEIGHT:
            return self.covars
        return floored((scatter.sum(axis=0) + np.diag(self._added)) / total, self.floor)

    def largest_expected(self, statistics: Statistics) -> Floats:
        """With the covariance as it is: all states share it."""
        alike = self.permute(np.zeros(len(statistics[0]), dtype=np.intp))
        return replace(alike.maximize(statistics), covars=self.covars).expected(statistics)

    def permute(self, order: NDArray[np.intp]) -> Self:
        return replace(self, means=self.means[order])


FAMILIES: dict[str, type[DiagonalGaussian] | type[FullGaussian]] = {
    "spherical": SphericalGaussian,
    "diag": DiagonalGaussian,
    "full": FullGaussian,
    "tied": TiedGaussian,
}


def floored(covariances: Floats, floor: Floats) -> Floats:
    """The nearest covariances (..., d, d), in likelihood, of which no direction has less than the floor.

    Maximizes ``-log|C| - tr(C^-1 S)`` subject to ``C >= diag(floor)``: eigenvalues in units of the floor, not below 1.
    """
    unit = np.sqrt(floor)
    scaled = covariances / (unit[:, None] * unit)
    values, vectors = np.linalg.eigh((scaled + np.swapaxes(scaled, -1, -2)) / 2)
    values = np.maximum(values, np.maximum(1.0, _LEAST_RATIO * values[..., -1:]))
    return np.asarray((vectors * values[..., None, :]) @ np.swapaxes(vectors, -1, -2) * (unit[:, None] * unit))


def _log_normal(centred: Floats, mean: Floats, covariance: Floats) -> Floats:
    if mean.size == 0:
        return np.zeros(len(centred))
    inverse = np.linalg.inv(np.linalg.cholesky(covariance))
    standard = centred @ inverse.T
    standard -= mean @ inverse.T
    constant = np.log(np.diagonal(inverse)).sum() - 0.5 * mean.size * LOG_2PI
    return np.asarray(constant - 0.5 * np.einsum("ij,ij->i", standard, standard))


def _patterns(centred: Floats) -> list[tuple[Any, NDArray[np.intp]]]:
    """Rows that miss the same entries, and the columns that they have: one pattern where nothing is missing."""
    missing = np.isnan(centred)
    if not missing.any():
        return [(slice(None), np.arange(centred.shape[1]))]
    kinds, membership = np.unique(missing, axis=0, return_inverse=True)
    membership = membership.ravel()
    return [(np.flatnonzero(membership == i), np.flatnonzero(~kind)) for i, kind in enumerate(kinds)]
