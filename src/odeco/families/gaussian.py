"""Normal densities with five types of covariances: their formulas, M steps, floors, free parameters and draws.

A type is how many numbers a covariance has (one, one for each column, a matrix) and whether all components share it;
what differs between types follows from these two. How rows are read differs for a reason, and so stays with those who
read them: mixtures take products of blocks of features, in single precision where that is enough; chains have entries
that are missing; views may be sparse. All of them read their coefficients here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from odeco.families.averages import LEAST_WEIGHT, averages

Floats = NDArray[np.float64]

_LOG_2PI = float(np.log(2 * np.pi))
_LEAST_RATIO = 1e-13  # of eigenvalues of a covariance: below, rounding makes it indefinite


def natural(means: Any, variances: Any) -> tuple[Any, Any, Any]:
    """Coefficients of y and of y^2, and constants, of the log densities of single columns; shapes broadcast."""
    linear = means / variances
    return linear, -0.5 / variances, -0.5 * (_LOG_2PI + np.log(variances) + means * linear)


def standardizing(means: Floats, covariances: Floats) -> tuple[Floats, Floats, Floats]:
    """Turns (..., d, d), shifts (..., d) and constants (...): ``log density = constant - |y turn + shift|^2 / 2``."""
    inverse = np.linalg.inv(np.linalg.cholesky(covariances))
    constants = np.log(np.diagonal(inverse, axis1=-2, axis2=-1)).sum(axis=-1) - 0.5 * means.shape[-1] * _LOG_2PI
    return np.swapaxes(inverse, -1, -2), -(inverse @ means[..., None])[..., 0], np.asarray(constants)


def scatter_about(means: Floats, totals: Floats, second: Floats) -> Floats:
    """Sums of squares about the means (k, d), of those about 0, as `second` has them.

    These are (k,) over all columns, (k, d) or (k, d, d); `totals` are (k,), or (k, d) where columns miss entries.
    """
    if second.ndim == 1:
        return np.asarray(second - totals * (means * means).sum(axis=1))
    if second.ndim == 2:
        return np.asarray(second - totals.reshape(len(means), -1) * means * means)
    return np.asarray(second - totals[:, None, None] * means[:, :, None] * means[:, None, :])


def floored(covariances: Floats, floor: Floats) -> Floats:
    """The nearest covariances (..., d, d), in likelihood, of which no direction has less than the floor (d,).

    Maximizes ``-log|C| - tr(C^-1 S)`` subject to ``C >= diag(floor)``: eigenvalues in units of the floor, not below 1.
    """
    units = np.sqrt(np.multiply.outer(floor, floor))
    scaled = (covariances + np.swapaxes(covariances, -1, -2)) / 2 / units
    if _all_above_one(scaled):
        return np.asarray(scaled * units)
    values, vectors = np.linalg.eigh(scaled)
    raised = np.maximum(values, np.maximum(1.0, _LEAST_RATIO * values[..., -1:]))
    low = (raised > values).any(axis=-1)
    if low.any():
        product = (vectors * raised[..., None, :]) @ np.swapaxes(vectors, -1, -2)
        scaled = np.where(low[..., None, None], product, scaled)
    return np.asarray(scaled * units)


def _all_above_one(matrices: Floats) -> bool:
    """Whether no eigenvalue is below 1, nor so far below the largest that it is rounding: a tenth of an `eigh`."""
    if not (_LEAST_RATIO * np.trace(matrices, axis1=-2, axis2=-1) < 1.0).all():
        return False
    try:
        np.linalg.cholesky(matrices - np.eye(matrices.shape[-1]))
    except np.linalg.LinAlgError:
        return False
    return True


@dataclass(frozen=True)
class CovarianceType:
    """What a covariance is.

    Attributes
    ----------
    order : 0, 1 or 2
        One variance of all columns, one of each column, or a matrix.
    shared : bool
        One for all components together; otherwise covariances have an axis of components, the first.
    """

    order: int
    shared: bool = False

    def n_free(self, k: int, d: int) -> int:
        """Free parameters of the covariances of k components in d dimensions."""
        each = (1, d, d * (d + 1) // 2)[self.order]
        return each if self.shared else k * each

    def units(self, k: int, d: int) -> Any:
        """Covariances of k components whose variances are all 1."""
        each = (np.ones(()), np.ones(d), np.eye(d))[self.order]
        return each if self.shared else np.repeat(each[None], k, axis=0)

    def pick(self, covariances: Any, components: NDArray[np.intp]) -> Any:
        """Those of some components, in this order."""
        return covariances if self.shared else covariances[components]

    def estimate(
        self,
        scatter: Floats,
        totals: Floats,
        otherwise: Any,
        floor: Floats,
        *,
        added: Floats | None = None,
        least: float = LEAST_WEIGHT,
    ) -> Any:
        """The M step: covariances of largest expected likelihood among those that are nowhere below `floor`.

        Parameters
        ----------
        scatter : array
            Sums of squares about the means as the type has them, or finer: by columns, by components.
        totals : array
            The weights that these were summed with.
        otherwise : array
            Covariances of components that have no more than `least` of it.
        floor, added : (d,)
            Least variances; sums of squares of a prior.
        """
        if self.order == 0 and scatter.ndim == 2:
            scatter, totals = scatter.sum(axis=1), totals.sum(axis=1)
        if self.shared:
            scatter, totals = scatter.sum(axis=0) if scatter.ndim > self.order else scatter, totals.sum(axis=0)
        if added is not None:
            scatter = scatter + (added.sum() if self.order == 0 else added if self.order == 1 else np.diag(added))
        totals = np.reshape(totals, np.shape(totals) + (1,) * (scatter.ndim - np.ndim(totals)))
        return self.bounded(averages(scatter, totals, otherwise, least), floor)

    def bounded(self, covariances: Floats, floor: Floats) -> Floats:
        """Covariances that are nowhere below the floor (d,); one variance of all columns not below its least."""
        if self.order == 2:
            return floored(covariances, floor)
        return np.maximum(covariances, floor if self.order else np.min(floor))

    def least(self, covariances: Any, units: Floats) -> Floats:
        """The least variance in any direction, columns in units (d,) of their variance: (k,), or one that is shared."""
        if self.order == 2:
            roots = np.sqrt(units)
            return np.asarray(np.linalg.eigvalsh(covariances / np.multiply.outer(roots, roots))[..., 0])
        variances = np.asarray(covariances)[..., None] if self.order == 0 else covariances
        return np.asarray((variances / units).min(axis=-1))

    def log_determinants(self, covariances: Any, d: int) -> Floats:
        """Of covariances in d dimensions: (k,), or one that is shared."""
        if self.order == 2:
            return np.asarray(np.linalg.slogdet(covariances)[1])
        logs = np.log(covariances)
        return np.asarray(logs.sum(axis=-1) if self.order else d * logs)

    def draw(self, means: Floats, covariances: Any, components: NDArray[np.intp], rng: np.random.Generator) -> Floats:
        """One row for each component that is named, (n, d)."""
        noise = rng.standard_normal((len(components), means.shape[1]))
        if self.order < 2:
            roots = np.asarray(np.sqrt(self.pick(covariances, components)))
            return np.asarray(means[components] + noise * (roots if self.order else roots[..., None]))
        factors = np.broadcast_to(np.linalg.cholesky(covariances), (len(means), *np.shape(covariances)[-2:]))
        for j, factor in enumerate(factors):
            mine = np.flatnonzero(components == j)
            noise[mine] = noise[mine] @ factor.T
        return np.asarray(means[components] + noise)


DIAGONAL = CovarianceType(1)
COVARIANCES = {
    "spherical": CovarianceType(0),
    "tied_spherical": CovarianceType(0, shared=True),
    "diag": DIAGONAL,
    "tied": CovarianceType(2, shared=True),
    "full": CovarianceType(2),
}
