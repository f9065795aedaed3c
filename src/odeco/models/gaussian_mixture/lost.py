"""Components that the tensor does not show: light ones, whose direction sampling noise hides from the covariance.

Where the other components are known, their means can be taken out. What is left of a row is noise, unless it belongs to
a lost component: then it points away from all the others, by the same vector for all its rows. Residuals spread more
along that vector than noise does (their covariance), and to one side (their third moment): a few power iterations from
leading eigenvectors find it, in all d dimensions. The third moment is only contracted, never formed.

In many dimensions the length of a residual tells the variance of its component, known or not. So the rows of a lost
component are searched for among residuals of about equal length: they stand out more than among all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from odeco.kernels.threads import map_parts, single_threaded_blas, thread_count
from odeco.models.gaussian_mixture.growth import Lost, grown
from odeco.refinement.gaussian_mixture import GaussianParameters, Points, over_batches, posteriors_of
from odeco.sources.dense import DenseBatch

Floats = NDArray[np.float64]
Rows = NDArray[np.floating]

# Directions tried per window, power iterations on each, and how far out (in deviations) rows count as the component's.
_TRIED, _ITERATIONS, _TAIL = 3, 2, 3.0
# Candidates that are tried together; those whose means have a larger cosine are the same.
_MOST_CANDIDATES, _ALIKE = 10, 0.5
# Groups of rows by variance; a window is two neighbouring ones.
_GROUPS = 6
# Columns up to which the covariance of residuals is formed.
_MOST_COLUMNS = 300
# Numbers of residuals that are held in memory.
_MOST_NUMBERS = 2**25


@dataclass(frozen=True, eq=False)
class _Group:
    """Rows about the expected mean of their component, in units of its deviation; the likeliest component; weights."""

    residuals: Rows
    labels: NDArray[np.intp]
    variance: float
    weights: Rows

    def rows(self, some: NDArray[np.intp], means: Floats) -> Floats:
        """Where some of the rows are, about."""
        return np.asarray(means[self.labels[some]] + np.sqrt(self.variance) * self.residuals[some])

    def covariance(self) -> Floats:
        return ((self.residuals.T * self.weights) @ self.residuals).astype(np.float64)


def find_lost(points: Points, known: GaussianParameters) -> list[Lost]:
    """Spheres that `known` leaves out, those that gain most first."""
    groups = _groups(points, known)
    windows: list[tuple[int, ...]] = [(g, g + 1) for g in range(len(groups) - 1)] or [(0,)]
    with single_threaded_blas():
        formed = points.dimension <= _MOST_COLUMNS
        covariances = map_parts(lambda g: groups[g].covariance() if formed else None, len(groups))
        n_parts = min(thread_count(), len(windows))
        found = map_parts(
            lambda t: [
                _search([groups[g] for g in w], [covariances[g] for g in w], known.means) for w in windows[t::n_parts]
            ],
            n_parts,
        )
    candidates = [lost for part in found for some in part for lost in some]
    return _different(grown(points, known, _different(candidates)[:_MOST_CANDIDATES]))


def _different(candidates: list[Lost]) -> list[Lost]:
    """Candidates that differ in direction, those that gain most first."""
    chosen: list[Lost] = []
    for lost in sorted(candidates, key=lambda lost: -lost.gain):
        unit = lost.mean / np.linalg.norm(lost.mean)
        if all(abs(unit @ other.mean) < _ALIKE * np.linalg.norm(other.mean) for other in chosen):
            chosen.append(lost)
    return chosen


def _search(window: list[_Group], covariances: list[Floats | None], means: Floats) -> list[Lost]:
    """Power iterations on the third moment of a window's residuals, from leading directions of their covariance."""
    total = float(sum(group.weights.sum() for group in window))
    tried = _leading(window, covariances)
    for _ in range(_ITERATIONS):
        mapped = np.zeros(tried.shape)
        for group in window:
            inner = group.residuals @ tried
            mapped += group.residuals.T @ (inner * inner * group.weights[:, None])
        tried = (mapped / np.maximum(np.linalg.norm(mapped, axis=0), 1e-300)).astype(tried.dtype)
    inners = [group.residuals @ tried for group in window]
    second, third = (
        np.sum([group.weights @ part**power for group, part in zip(window, inners, strict=True)], axis=0) / total
        for power in (2, 3)
    )
    skewness = third / np.maximum(second, 1e-100) ** 1.5 * np.sqrt(total / 15)  # 15: the variance of a cube
    found = []
    for j in range(tried.shape[1]):
        limit = _TAIL * np.sqrt(second[j])
        tails = [np.flatnonzero(part[:, j] > limit) for part in inners]
        weights = [group.weights[tail] for group, tail in zip(window, tails, strict=True)]
        count = float(sum(weight.sum() for weight in weights))
        if count > 0:
            far = list(zip(window, tails, weights, strict=True))
            mean = np.sum([weight @ group.rows(tail, means) for group, tail, weight in far], axis=0) / count
            variance = sum(weight.sum() * group.variance for group, _, weight in far) / count
            found.append(Lost(mean, float(variance), float(skewness[j])))
    return found


def _leading(window: list[_Group], covariances: list[Floats | None]) -> Rows:
    """Directions along which the residuals of a window spread most: from their covariance, or by power iterations."""
    dtype = window[0].residuals.dtype
    if covariances[0] is not None:
        whole = np.sum([part for part in covariances if part is not None], axis=0)
        return np.asarray(np.linalg.eigh(whole)[1][:, : -_TRIED - 1 : -1].astype(dtype))
    tried = np.concatenate([group.residuals for group in window])[: 2 * _TRIED].T  # some rows to begin with
    for _ in range(_ITERATIONS):
        mapped = np.sum([g.residuals.T @ (g.residuals @ tried * g.weights[:, None]) for g in window], axis=0)
        tried = np.linalg.qr(mapped)[0]
    return np.asarray(tried[:, :_TRIED].astype(dtype))


def _groups(points: Points, known: GaussianParameters) -> list[_Group]:
    """Residuals of the rows, by their length where variances differ; groups of equal size."""
    variances = np.broadcast_to(np.asarray(known.covariances, dtype=np.float64), known.weights.shape)
    inverse_roots = (1 / np.sqrt(variances)).astype(points.dtype)
    means, shares_of = known.means.astype(points.dtype), posteriors_of(points, known)
    n = sum(len(batch) for batch in points.batches)
    step = max(1, -(-n * points.dimension // _MOST_NUMBERS))

    def part(batch: DenseBatch, first: int) -> tuple[list[Any], ...]:
        residuals, labels, scales, weights = [], [], [], []
        blocks = points.blocks(known.covariance_type, batch, first)
        for (features, ones), (shares, _, _) in zip(blocks, shares_of(batch, first), strict=True):
            some, own = features[::step, : points.dimension], shares[:, ::step]
            scale = inverse_roots @ own
            residual = some - own.T @ means
            residual *= scale[:, None]
            residuals.append(residual)
            labels.append(own.argmax(axis=0))
            scales.append(scale)
            weights.append(np.ones(len(some), dtype=some.dtype) if ones is None else ones[::step].astype(some.dtype))
        return residuals, labels, scales, weights

    parts = over_batches(points, part)
    residuals, labels, scales, weights = (
        np.concatenate([block for piece in parts for block in piece[i]]) for i in range(4)
    )
    if known.covariance_type == "tied_spherical":
        return [_Group(residuals, labels, float(variances[0]), weights)]
    # Lengths are cut off evenly in all directions: nothing leans to one side for being in a group.
    lengths = np.einsum("ij,ij->i", residuals, residuals) / scales**2
    order = np.argsort(lengths, kind="stable")
    return [
        _Group(residuals[some], labels[some], float(np.mean(1 / scales[some] ** 2)), weights[some])
        for some in np.array_split(order, _GROUPS)
        if some.size
    ]
