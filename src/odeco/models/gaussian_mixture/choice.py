"""Which start EM goes on from: the theorem's alone where the data follow it, the best of a search elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from odeco.exceptions import MomentError
from odeco.fitting.candidates import Candidate, Effort, Found, search
from odeco.fitting.clusters import cluster_shares
from odeco.models.gaussian_mixture.data import SPHERICAL, Description, Options
from odeco.models.gaussian_mixture.landscape import GaussianLandscape
from odeco.models.gaussian_mixture.starts import Start, lifted
from odeco.moments.vectors import leading_directions
from odeco.refinement.gaussian_mixture import GaussianParameters, Points
from odeco.sources.dense import DenseBatch, as_dense_source

Floats = NDArray[np.float64]

# Rows that candidates are compared on, at least and for each component.
_ROWS, _ROWS_EACH = 5000, 100
# Columns beyond which spheres are compared on principal components, and how many of these, at least and per component.
_MANY_COLUMNS, _COLUMNS, _COLUMNS_EACH = 60, 30, 2
_BATCH = 2048  # rows that a thread works on at a time


def sample_size(n_components: int) -> int:
    """Rows that candidates are compared on."""
    return max(_ROWS, _ROWS_EACH * n_components)


def is_trusted(start: Start, options: Options, *, small: bool) -> bool:
    """Whether the theorem's start needs no rival: it is of the model itself, and the data show just k components.

    On small data a search costs next to nothing.
    """
    return not (small or start.doubtful) and start.suggested == options.n_components


@dataclass(frozen=True, eq=False)
class Sample:
    """Rows to compare candidates on; spheres in many columns are seen on ``directions`` (d, r), orthonormal."""

    landscape: GaussianLandscape
    directions: Floats | None = field(repr=False)

    @classmethod
    def of(cls, batch: DenseBatch, description: Description, options: Options, rng: np.random.Generator) -> Sample:
        rows = np.asarray(batch.rows, dtype=np.float64) - description.mean
        d, kind = description.dimension, options.covariance_type
        scales = description.column_variances
        directions, rest = None, None
        if kind in SPHERICAL:
            scales = np.full(1, scales.mean())
            width = max(_COLUMNS, _COLUMNS_EACH * options.n_components)
            if d > max(_MANY_COLUMNS, width) and len(rows) > width:
                directions = leading_directions(as_dense_source([batch]), description.mean, width, rng)[1]
                projected = rows @ directions
                rest = np.maximum(np.einsum("ij,ij->i", rows, rows) - np.einsum("ij,ij->i", projected, projected), 0)
                rows = projected
        total = None
        if kind == "tied":  # of the sample: EM needs the second moments of the rows that it runs on
            weighed = rows if batch.weights is None else rows * batch.weights[:, None]
            total = weighed.T @ rows / (len(rows) if batch.weights is None else batch.weights.sum())
        batches = [
            DenseBatch(rows[low : low + _BATCH], None if batch.weights is None else batch.weights[low : low + _BATCH])
            for low in range(0, len(rows), _BATCH)
        ]
        points = Points(batches, None, np.float64, d, rest, kept={})
        return cls(GaussianLandscape(rows, batch.weights, points, kind, scales, options.floor, total), directions)

    def lower(self, parameters: GaussianParameters) -> GaussianParameters:
        """Parameters of all columns, as the landscape has them."""
        if self.directions is None:
            return parameters
        return replace(parameters, means=parameters.means @ self.directions)

    def lift(self, parameters: GaussianParameters) -> GaussianParameters:
        """Parameters of the landscape in all columns."""
        if self.directions is None:
            return parameters
        return lifted(parameters, self.directions, parameters.covariance_type)

    def clusters(self, n_clusters: int, seed: int) -> GaussianParameters:
        """The clusters of k-means, begun by k-means++."""
        land = self.landscape
        return land.of_shares(cluster_shares(land.features, land.weights, n_clusters, seed))


def search_start(
    sample: Sample,
    theorem: Start | None,
    larger: Callable[[int], GaussianParameters],
    options: Options,
    effort: Effort,
    rng: np.random.Generator,
) -> Found[GaussianParameters]:
    """The best of the theorem's start, of the theorem's at 2k merged, and of clusters.

    ``larger(K)`` is the theorem's estimate of K components of the sample.
    """
    k, seeds = options.n_components, rng.integers(2**31 - 1, size=effort.n_field + 1)
    candidates: list[Candidate[GaussianParameters]] = []
    if theorem is not None:
        candidates.append(Candidate(theorem.name, lambda: sample.lower(theorem.parameters)))
    candidates.append(
        Candidate("k-means++ of 2k clusters, merged", lambda: sample.clusters(2 * k, int(seeds[0])), chance=True)
    )

    def moments() -> GaussianParameters | None:
        try:
            return sample.lower(larger(2 * k))
        except (MomentError, ValueError, np.linalg.LinAlgError):
            return None

    candidates.append(Candidate("moments of 2k components, merged", moments))
    candidates += [Candidate("k-means++", lambda seed=int(seed): sample.clusters(k, seed), True) for seed in seeds[1:]]  # type: ignore[misc]
    return search(sample.landscape, candidates, k, effort, rng)
