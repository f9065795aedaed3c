"""Which start EM goes on from: the theorem's alone where the data follow it, the best of a search elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from odeco.exceptions import MomentError
from odeco.families.gaussian import scatter_about
from odeco.families.responsibilities import shares_of
from odeco.fitting.candidates import EFFORTS, TIE, Candidate, Found, Origin, search
from odeco.fitting.clusters import cluster_shares
from odeco.models.gaussian_mixture.landscape import GaussianLandscape
from odeco.models.gaussian_mixture.moments import noise_edge
from odeco.models.gaussian_mixture.passes import SPHERICAL, Description, Options
from odeco.models.gaussian_mixture.policy import POLICY
from odeco.models.gaussian_mixture.theorem import Start, lifted
from odeco.moments.vectors import ProjectedRows, leading_directions
from odeco.refinement.gaussian_mixture import GaussianParameters, Kept, Points, log_joint, n_parameters, posterior_sums
from odeco.sources.base import evenly
from odeco.sources.dense import DenseBatch, as_dense_source, batches_of

Floats = NDArray[np.float64]


def sample_size(options: Options, dimension: int) -> int:
    """Rows that candidates are compared on: more where a step on them is cheap."""
    k = options.n_components
    per_row = k * dimension * (dimension if options.covariance_type == "full" else 1)
    return max(POLICY.sample_rows, POLICY.sample_rows_each * k, POLICY.sample_numbers // per_row)


def trial_size(options: Options, dimension: int) -> int:
    """Rows of a short look at what the theorem's start is worth, where components are seen in so many dimensions."""
    k = options.n_components
    needed = POLICY.trial_rows_each * n_parameters(options.covariance_type, k, dimension)
    return min(max(POLICY.trial_rows, needed), sample_size(options, dimension))


def is_trusted(
    start: Start,
    options: Options,
    fitted: Callable[[], bool],
    samples: Callable[[], list[Sample]],
    *,
    small: bool,
) -> bool:
    """Whether the theorem's start needs no rival: the data show just k components, and it is of the model itself.

    One in ten components may be too light to stand out, or to be read off; then, and as a start of other shapes,
    the start must be `fitted` to the data, or must not fall behind clusters in a short look. On small data a search
    costs next to nothing.
    """
    k = options.n_components
    light = k // POLICY.light
    if small or options.effort == "thorough" or start.shown is None or not k - light <= start.shown <= k:
        return False
    if start.doubtful and (start.weak > light or light == 0):
        return False
    sure = start.shown == k and not start.doubtful and start.is_of_the_model
    return sure or fitted() or _beats_clusters(start, k, *samples())


def are_round(rows: ProjectedRows, spheres: GaussianParameters, dimension: int) -> bool:
    """Whether the rows of each sphere are spread alike in all directions of the projected ones, d in all.

    Where the data are spheres, an optimum that is not the best covers several of them by one, and the rows of that are
    spread towards the means of these. Not where there are too few rows to tell.
    """
    rows = rows.take(evenly(len(rows.z), POLICY.round_rows))
    points = Points([DenseBatch(rows.z)], None, rows.z.dtype, dimension, rows.rest)
    shares, p = shares_of(log_joint(points, spheres), rows.weights)[0], rows.z.shape[1]
    counts = np.maximum(shares.sum(axis=1), 1.0)
    columns = np.ascontiguousarray(rows.z.T)
    second = np.stack([(columns * share) @ columns.T for share in shares.astype(columns.dtype)])
    scatter = scatter_about(shares @ rows.z / counts[:, None], counts, second.astype(np.float64))
    widest = np.linalg.eigvalsh(scatter / counts[:, None, None])[:, -1] / spheres.covariances
    edges = noise_edge(counts, p)
    return bool((widest < edges).all() and np.median(edges) < POLICY.telling_edge)


def _beats_clusters(start: Start, k: int, sample: Sample, others: Sample) -> bool:
    """Whether other rows are no likelier under clusters that EM has fitted to a sample than under this start."""
    rng = np.random.default_rng(0)  # a look at chance that leaves the fit's own alone
    clusters = [Candidate("", lambda n=n: sample.clusters(n, 0)) for n in (2 * k, k)]  # type: ignore[misc]
    own = Candidate("", lambda: sample.lower(start.parameters))
    found = search(sample.landscape, [own, *clusters], k, POLICY.trial, rng)
    mine = next(outcome for outcome in found.outcomes if outcome.candidate is own)
    if mine is found.best:
        return True
    own_value, best_value = (others.value(sample.lift(each.state)) for each in (mine, found.best))
    return own_value > best_value - TIE


@dataclass(frozen=True, eq=False)
class Sample:
    """Rows to compare candidates on; spheres are seen on ``directions`` (d, r), orthonormal, where there are any."""

    landscape: GaussianLandscape
    directions: Floats | None = field(repr=False)

    @classmethod
    def of(
        cls,
        batch: DenseBatch,
        description: Description,
        options: Options,
        rng: np.random.Generator,
        dtype: Any = np.float64,
        directions: Floats | None = None,
    ) -> Sample:
        """Of some rows. Spheres in many columns are seen on the directions given, or on principal ones of the rows."""
        rows = np.asarray(batch.rows, dtype=np.float64) - description.mean
        d, kind = description.dimension, options.covariance_type
        scales, rest = description.column_variances, None
        if kind in SPHERICAL:
            scales = np.full(1, scales.mean())
            width = max(POLICY.principal_columns, POLICY.principal_columns_each * options.n_components)
            if directions is None and d > max(POLICY.many_columns, width) and len(rows) > width:
                directions = leading_directions(as_dense_source([batch]), description.mean, width, rng)[1]
            if directions is not None:
                projected = rows @ directions
                rest = np.maximum(np.einsum("ij,ij->i", rows, rows) - np.einsum("ij,ij->i", projected, projected), 0)
                rows = projected
        total = None
        if kind == "tied":  # of the sample: EM needs the second moments of the rows that it runs on
            weighed = rows if batch.weights is None else rows * batch.weights[:, None]
            total = weighed.T @ rows / (len(rows) if batch.weights is None else batch.weights.sum())
        size = POLICY.batch
        if kind == "full":
            size = int(np.clip(POLICY.worth_a_thread // (options.n_components * rows.shape[1] ** 2), 252, size))
        batches = list(batches_of(rows, batch.weights, size))
        points = Points(batches, None, np.dtype(dtype), d, rest, Kept(len(rows)))
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

    def value(self, parameters: GaussianParameters) -> float:
        """The mean log-likelihood of the rows, under parameters of all columns."""
        sums = posterior_sums(self.landscape.points, self.lower(parameters))
        return sums.value / sums.weight

    def clusters(self, n_clusters: int, seed: int) -> GaussianParameters:
        """The clusters of k-means, begun by k-means++."""
        land = self.landscape
        return land.of_shares(cluster_shares(land.features, land.weights, n_clusters, seed))


def search_start(
    sample: Sample,
    theorem: Start | None,
    larger: Callable[[int], GaussianParameters],
    options: Options,
    rng: np.random.Generator,
) -> Found[GaussianParameters]:
    """The best of the theorem's start, of the theorem's at 2k merged, and of clusters.

    ``larger(K)`` is the theorem's estimate of K components of the sample.
    """
    effort = EFFORTS[options.effort]
    k, seeds = options.n_components, rng.integers(2**31 - 1, size=effort.n_field + 1)
    candidates: list[Candidate[GaussianParameters]] = []
    if theorem is not None:
        origin: Origin = "theorem" if theorem.is_of_the_model else "field"
        candidates.append(Candidate(theorem.name, lambda: sample.lower(theorem.parameters), origin=origin))
    candidates.append(
        Candidate("k-means++ of 2k clusters, merged", lambda: sample.clusters(2 * k, int(seeds[0])), True, "larger")
    )

    def moments() -> GaussianParameters | None:
        try:
            return sample.lower(larger(2 * k))
        except (MomentError, ValueError, np.linalg.LinAlgError):
            return None

    candidates.append(Candidate("moments of 2k components, merged", moments, origin="larger"))
    candidates += [Candidate("k-means++", partial(sample.clusters, k, int(seed)), True, "field") for seed in seeds[1:]]
    return search(sample.landscape, candidates, k, effort, rng, counted=True)
