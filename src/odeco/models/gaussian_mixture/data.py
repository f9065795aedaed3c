"""From rows to moments: two passes over a source, or one over a stream."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from odeco.decomposition import Decomposer
from odeco.fitting.stream import StreamPlan
from odeco.models.gaussian_mixture.moments import SphericalMoments
from odeco.moments.cumulants import SecondMoments
from odeco.moments.vectors import (
    ColumnMoments,
    FastSecondMoments,
    ProjectedRows,
    VectorMoments,
    leading_directions,
    project_rows,
    sum_over,
)
from odeco.refinement.gaussian_mixture import GaussianParameters, Points, single_is_enough
from odeco.refinement.loop import StoppingRule
from odeco.sources.dense import DENSE_BATCH_SIZE, DenseBatch, DenseSource, first_rows
from odeco.sources.rows import VECTORS
from odeco.tensors import multilinear

Floats = NDArray[np.float64]
Rows = NDArray[np.floating]

SPHERICAL = ("spherical", "tied_spherical")
# Features of rows are kept from step to step up to this size.
_KEPT_BYTES = 2**28
# Columns up to which the covariance is formed: its n d^2 operations then take less than an EM step or two.
_MOST_COLUMNS = 300
# Projected rows that a thread works on at a time.
_BATCH = 8192
# From here on rows are projected in single precision and summed in double: the rounding, about 1e-6, is far below the
# sampling error n^(-1/2).
SINGLE_SAMPLES = 20_000
# Rows that `partial_fit` learns its directions from, per dimension, and their least number.
_HELD_PER_FEATURE, _LEAST_HELD = 20, 5000
# Directions of a stream's basis beyond the k - 1 that are needed: what the first rows may have missed.
_SLACK = 2


@dataclass(frozen=True, eq=False)
class Description:
    """First and second moments of all rows, and the principal directions.

    ``directions`` (d, r) are orthonormal, r = min(d, k); ``eigenvalues`` go with them, or with all d where the
    covariance was formed; it is None where columns are many and components spheres or axis-aligned.
    """

    mean: Floats = field(repr=False)
    variances: Floats = field(repr=False)
    covariance: Floats | None = field(repr=False)
    eigenvalues: Floats = field(repr=False)
    directions: Floats = field(repr=False)
    n: int
    weight: float
    dtype: Any

    @property
    def dimension(self) -> int:
        """d"""
        return self.mean.size

    @property
    def column_variances(self) -> Floats:
        """Variance of each column; where that is 0, the mean over all columns, or 1 where all are constant."""
        mean = float(self.variances.mean())
        # A constant column has rounding for a variance: squares of its size, times the precision.
        nothing = self.variances <= 1e3 * np.finfo(np.float64).eps ** 2 * self.mean**2
        return np.where(nothing, mean if mean > 0 else 1.0, self.variances)


def describe_rows(
    source: DenseSource, n_components: int, rng: np.random.Generator, *, exact: bool = True
) -> Description:
    """Pass 1: mean, covariance, principal directions.

    Unless `exact`, in single precision where rows are many, and by random products where columns are (5 passes).
    """
    d, width = source.n_features, min(source.n_features, n_components)
    batch = first_rows(source, DENSE_BATCH_SIZE)
    shift = batch.rows[:1024].mean(axis=0, dtype=np.float64)
    in_range = fits_single(float(batch.rows[:1024].var(dtype=np.float64)))
    many = not exact and in_range and len(batch) >= DENSE_BATCH_SIZE
    if not exact and in_range and d > max(_MOST_COLUMNS, 10 * n_components):
        columns = sum_over(source, lambda: ColumnMoments(d, shift))
        values, vectors = leading_directions(source, columns.mean, width, rng)
        return Description(
            columns.mean, columns.variances, None, values, vectors, columns.n, columns.weight, source.dtype
        )
    kind = FastSecondMoments if many else SecondMoments
    second = sum_over(source, lambda: kind(d, shift))
    covariance = second.covariance
    values, vectors = np.linalg.eigh(covariance)
    directions = np.ascontiguousarray(vectors[:, ::-1][:, :width])
    variances = np.maximum(np.diag(covariance), 0.0)
    return Description(
        second.mean, variances, covariance, values[::-1].copy(), directions, second.n, second.weight, source.dtype
    )


def fits_single(variance: float) -> bool:
    """Whether third powers of numbers of this variance are within the range of single precision, with room to spare."""
    return 1e-16 < variance < 1e16


def project(source: DenseSource, description: Description, width: int) -> ProjectedRows:
    """Pass 2: rows about the mean on the first `width` principal directions."""
    single = description.n >= SINGLE_SAMPLES or description.dtype == np.float32
    single = single and fits_single(float(description.variances.mean()))
    basis = description.directions[:, :width].astype(np.float32 if single else np.float64)
    return project_rows(source, description.n, np.ascontiguousarray(basis), description.mean)


def project_on(problem: Problem, directions: Floats) -> ProjectedRows:
    """Rows about the mean on other directions (d, r), orthonormal."""
    basis = np.ascontiguousarray(directions.astype(problem.rows.z.dtype))
    return project_rows(problem.source, problem.description.n, basis, problem.description.mean)


def spherical_moments(rows: ProjectedRows, description: Description) -> SphericalMoments:
    """The moments of Theorems 3.2 and 3.3 from projected rows."""
    k1 = rows.z.shape[1]
    basis = description.directions[:, :k1].astype(rows.z.dtype)
    sums = rows.moments(basis, description.mean)
    return SphericalMoments(
        description.eigenvalues,
        sums.third,
        sums.radial,
        float(description.variances.sum()),
        description.dimension,
        description.weight,
    )


@dataclass(frozen=True)
class Options:
    """What the user asked for, checked."""

    n_components: int
    covariance_type: str
    method: Decomposer
    route: str
    refine: str | None
    effort: str
    rule: StoppingRule
    floor: float


@dataclass(frozen=True, eq=False)
class Problem:
    """All that the steps of a fit share; ``directions`` (d, r) are what rows were projected on."""

    source: DenseSource
    options: Options
    description: Description
    rows: ProjectedRows
    directions: Floats
    rng: np.random.Generator
    kept: dict[str, dict[tuple[str, int], Rows]] = field(default_factory=dict)


def limits(problem: Problem, parameters: GaussianParameters) -> dict[str, Any]:
    """What keeps variances up, and the covariance that a shared one is read from."""
    scales = problem.description.column_variances
    total = problem.description.covariance if parameters.covariance_type == "tied" else None
    if parameters.covariance_type in SPHERICAL:
        scales = np.full(1, scales.mean())
    return {"scales": scales, "floor": problem.options.floor, "total": total}


def reduced_points(problem: Problem, step: int = 1) -> Points:
    """Every `step`-th projected row, for EM on spheres."""
    rows = problem.rows
    z, weights = rows.z[::step], None if rows.weights is None else rows.weights[::step]
    rest = np.maximum(rows.squares[::step] - np.einsum("ij,ij->i", z, z), 0)
    kept: dict[tuple[str, int], Rows] = {}
    batches = [
        DenseBatch(z[low : low + _BATCH], None if weights is None else weights[low : low + _BATCH])
        for low in range(0, len(z), _BATCH)
    ]
    return Points(batches, None, z.dtype, problem.description.dimension, rest, kept)


def whole_points(problem: Problem, parameters: GaussianParameters) -> Points:
    """The rows themselves about their mean, in single precision where that is enough for these parameters."""
    description = problem.description
    enough = problem.rows.z.dtype == np.float32 and single_is_enough(
        parameters, float(problem.rows.squares.max()), description.column_variances
    )
    dtype = np.dtype(np.float32 if enough else np.float64)
    fits = description.n * (description.dimension + 2) * dtype.itemsize <= _KEPT_BYTES
    kept = problem.kept.setdefault(dtype.name, {}) if fits else None
    return Points(problem.source, description.mean, dtype, description.dimension, kept=kept)


def some_rows(problem: Problem, size: int) -> DenseBatch:
    """Evenly spaced rows, `size` of them at most, in memory."""
    step = -(-problem.description.n // size)
    parts, first = [], 0
    for batch in problem.source:
        rows = slice(-first % step, None, step)
        parts.append(DenseBatch(batch.rows[rows], None if batch.weights is None else batch.weights[rows]))
        first += len(batch)
    weights = None if parts[0].weights is None else np.concatenate([part.weights for part in parts])
    return DenseBatch(np.concatenate([part.rows for part in parts]), weights)


def vector_plan(n_features: int, n_components: int) -> StreamPlan[DenseBatch, VectorMoments]:
    """How spheres are fitted to rows in chunks: an origin and leading directions with slack from the first ones."""

    def learn(first: DenseBatch, rng: np.random.Generator) -> VectorMoments:
        rows = np.asarray(first.rows, dtype=np.float64)
        shift = np.average(rows, axis=0, weights=first.weights)
        y = (rows - shift) * (1.0 if first.weights is None else np.sqrt(first.weights)[:, None])
        width = min(n_features, _SLACK * n_components)
        vectors = np.linalg.eigh(y.T @ y)[1] if len(y) > n_features else np.linalg.svd(y.T)[0][:, ::-1]
        return VectorMoments(np.ascontiguousarray(vectors[:, ::-1][:, :width]), shift)

    return StreamPlan(VECTORS, max(_LEAST_HELD, _HELD_PER_FEATURE * n_features), learn)


def stream_moments(sums: VectorMoments, n_components: int) -> tuple[SphericalMoments, Floats]:
    """The moments of a stream on its k - 1 leading directions, and the lift (d, k - 1) of these directions.

    Inside the basis R the covariance is ``R'CR = Q L Q'``; with the noise variance s a mean ``R Q q`` of the basis is
    lifted by ``(C - s) R Q (L - s)^-1 q``, which reaches what the basis missed.
    """
    r = n_components - 1
    values, vectors = np.linalg.eigh(sums.covariance)
    values, inner = values[::-1].copy(), vectors[:, ::-1][:, :r]
    third = np.asarray(multilinear(sums.third, inner, inner, inner)) if r else np.zeros((0, 0, 0))
    moments = SphericalMoments(values, third, inner.T @ sums.radial, sums.total_variance, sums.n_features, sums.weight)
    noise = moments.noise_variance
    signal = values[:r] - noise
    basis = np.asarray(sums.basis, dtype=np.float64)
    return moments, (sums.cross @ inner - noise * (basis @ inner)) / np.where(signal > 0, signal, np.inf)
