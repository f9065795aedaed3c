"""From rows to what the theorems read: two passes over a source, or the sums of a stream."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from odeco.decomposition import Decomposer
from odeco.exceptions import MomentError
from odeco.fitting.options import check_enough
from odeco.fitting.stream import MomentStream, StreamPlan
from odeco.models.gaussian_mixture.moments import SphericalMoments
from odeco.models.gaussian_mixture.policy import POLICY
from odeco.models.multiview.likelihoods import ViewLook
from odeco.models.multiview.moments import ViewSums, view_passes
from odeco.models.product_mixture.moments import completed_passes, first_look, narrowed
from odeco.models.product_mixture.solve import CompletedMoments
from odeco.models.product_mixture.stream import StreamedTable, read_table, table_plan
from odeco.moments.cumulants import SecondMoments
from odeco.moments.passes import Mapped, Passes, mapped, run_passes
from odeco.moments.vectors import (
    ColumnMoments,
    FastSecondMoments,
    ProjectedRows,
    Projection,
    VectorMoments,
    direction_passes,
)
from odeco.refinement.loop import StoppingRule
from odeco.sources.dense import DENSE_BATCH_SIZE, DenseBatch, DenseSource, first_rows
from odeco.sources.rows import VECTORS
from odeco.sources.scale import check_columns
from odeco.sources.tables import Column, Schema
from odeco.sources.views import ViewBatch
from odeco.tensors import multilinear

Floats = NDArray[np.float64]

SPHERICAL = ("spherical", "tied_spherical")


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

    @property
    def is_product(self) -> bool:
        """Whether the moments are those of a product mixture, in all columns: axis-aligned Gaussians are one."""
        return self.covariance_type == "diag" and self.route != "views"


@dataclass(frozen=True, eq=False)
class GaussianMoments:
    """What the theorems read, from rows or from the sums of a stream.

    Attributes
    ----------
    mean : (d,)
    variance : float
        Of a column, on average.
    n : int
        Rows.
    spheres : SphericalMoments or None
        About the mean, on k - 1 directions; None where components are axis-aligned, or d < k.
    lift : (d, k - 1) or None
        From those directions to all columns.
    products : CompletedMoments, MomentError or None
        Where components are axis-aligned, the moments of a product mixture, or why there are none.
    views : RotatedViews or None
        With ``route="views"``.
    description : Description or None
        None for a stream.
    rows : ProjectedRows or None
        The rows on those directions, where the source holds its rows.
    """

    mean: Floats = field(repr=False)
    variance: float
    n: int
    spheres: SphericalMoments | None = field(default=None, repr=False)
    lift: Floats | None = field(default=None, repr=False)
    products: CompletedMoments | MomentError | None = field(default=None, repr=False)
    views: RotatedViews | None = field(default=None, repr=False)
    description: Description | None = field(default=None, repr=False)
    rows: ProjectedRows | None = field(default=None, repr=False)

    def narrowed(self, n_components: int) -> GaussianMoments | None:
        """Those of fewer components, on the first of the directions; None where they are not a part of these."""
        description, r = self.description, n_components - 1
        if description is None or self.views is not None:
            return None
        if n_components == 1:
            return GaussianMoments(self.mean, self.variance, self.n, description=description)
        if self.lift is None or self.lift.shape[1] < r:
            return None
        parts = self._spheres_of(r) if self.products is None else self._products_of(n_components)
        if parts is None:
            return None
        rows = None if self.rows is None else replace(self.rows, z=np.ascontiguousarray(self.rows.z[:, :r]))
        described = replace(description, directions=np.ascontiguousarray(description.directions[:, :n_components]))
        return replace(self, lift=self.lift[:, :r], description=described, rows=rows, **parts)

    def _spheres_of(self, r: int) -> dict[str, Any] | None:
        spheres = self.spheres
        if spheres is None:  # fewer columns than components, of one of the numbers at least
            return None
        return {"spheres": replace(spheres, third=spheres.third[:r, :r, :r], radial=spheres.radial[:r])}

    def _products_of(self, n_components: int) -> dict[str, Any] | None:
        """Why there are none for more components need not hold for fewer."""
        if not isinstance(self.products, CompletedMoments):
            return None
        found = narrowed(self.products, n_components)
        return None if found is None else {"products": found}


def gaussian_passes(source: DenseSource, options: Options, rng: np.random.Generator) -> Passes[GaussianMoments]:
    """Pass 1: mean, covariance, principal directions. Pass 2: third moments on them, and the rows where they fit.

    More passes where columns are many, components axis-aligned, or views asked for.
    """
    k, shape = options.n_components, options.covariance_type
    description = yield from description_passes(source, k, rng, exact=k == 1 or shape in ("full", "tied"))
    check_enough(description.n, k)
    check_columns(np.abs(description.mean) + np.sqrt(description.variances))
    mean, n, d, variance = description.mean, description.n, description.dimension, float(description.variances.mean())
    if k == 1:
        return GaussianMoments(mean, variance, n, description=description)
    directions = description.directions[:, : min(d, k - 1)]
    basis = np.ascontiguousarray(directions.astype(np.float32 if _in_single(description) else np.float64))
    rows, sums = None, None
    if source.holds_rows:
        rows = yield Projection(n, basis, mean)
        sums = rows.moments(basis, mean) if d >= k and not options.is_product else None
    elif d >= k and not options.is_product:
        sums = yield VectorMoments(basis, mean, cross=False)
    spheres = None if sums is None else _spherical_moments(sums, description)
    views = (yield from rotated_passes(mean, k, rng)) if options.route == "views" and d >= 3 * k else None
    products = (yield from product_passes(source, k, rng)) if options.is_product else None
    return GaussianMoments(mean, variance, n, spheres, directions, products, views, description, rows)


def product_passes(
    source: DenseSource, n_components: int, rng: np.random.Generator
) -> Passes[CompletedMoments | MomentError]:
    """The passes of a product mixture of numbers, or why they do not determine it."""
    schema = Schema(tuple(Column(f"x{j}", "gaussian") for j in range(source.n_features)))
    try:
        return (yield from completed_passes(first_look(source, schema), n_components, rng))
    except MomentError as error:
        return error


def description_passes(
    source: DenseSource, n_components: int, rng: np.random.Generator, *, exact: bool = True
) -> Passes[Description]:
    """Mean, covariance, principal directions.

    Unless `exact`, in single precision where rows are many, and by random products where columns are (5 passes).
    """
    d, width = source.n_features, min(source.n_features, n_components)
    batch = first_rows(source, DENSE_BATCH_SIZE)
    shift = batch.rows[:1024].mean(axis=0, dtype=np.float64)
    in_range = fits_single(float(batch.rows[:1024].var(dtype=np.float64)))
    if not exact and in_range and d > max(POLICY.most_columns, 10 * n_components):
        columns = yield ColumnMoments(d, shift)
        values, vectors = yield from direction_passes(columns.mean, width, rng)
        return Description(
            columns.mean, columns.variances, None, values, vectors, columns.n, columns.weight, source.dtype
        )
    many = not exact and in_range and len(batch) >= DENSE_BATCH_SIZE
    second = yield FastSecondMoments(d, shift) if many else SecondMoments(d, shift)
    covariance = second.covariance
    values, vectors = np.linalg.eigh(covariance)
    directions = np.ascontiguousarray(vectors[:, ::-1][:, :width])
    variances = np.maximum(np.diag(covariance), 0.0)
    return Description(
        second.mean, variances, covariance, values[::-1].copy(), directions, second.n, second.weight, source.dtype
    )


def _in_single(description: Description) -> bool:
    """Whether rows are projected in single precision."""
    single = description.n >= POLICY.single_rows or description.dtype == np.float32
    return single and fits_single(float(description.variances.mean()))


def fits_single(variance: float) -> bool:
    """Whether third powers of numbers of this variance are within the range of single precision, with room to spare."""
    return 1e-16 < variance < 1e16


def _spherical_moments(sums: VectorMoments, description: Description) -> SphericalMoments:
    """The moments of Theorems 3.2 and 3.3 from sums on the leading directions."""
    return SphericalMoments(
        description.eigenvalues,
        sums.third,
        sums.radial,
        float(description.variances.sum()),
        description.dimension,
        description.weight,
    )


@dataclass(frozen=True, eq=False)
class RotatedViews:
    """Three views by a random rotation (section 3.3.2, Proposition 3.3), and their moments."""

    rotation: Floats = field(repr=False)
    sums: ViewSums = field(repr=False)


def rotated_passes(mean: Floats, n_components: int, rng: np.random.Generator) -> Passes[RotatedViews]:
    """The passes of a multi-view model over rotated rows about the mean."""
    rotation = np.linalg.qr(rng.standard_normal((mean.size, mean.size)))[0]
    parts = np.array_split(rotation, 3, axis=1)

    def rotated(batch: DenseBatch) -> ViewBatch:
        y = batch.rows - mean.astype(batch.rows.dtype)
        return ViewBatch(tuple(np.asarray(y @ part, dtype=np.float64) for part in parts), batch.weights)

    look = yield Mapped(ViewLook([part.shape[1] for part in parts]), rotated)
    sums = yield from mapped(view_passes(look, n_components, rng), rotated)
    return RotatedViews(rotation, sums)


def gaussian_plan(n_features: int, options: Options) -> StreamPlan[Any, Any]:
    """How rows in chunks are summed: axis-aligned Gaussians are product mixtures."""
    if options.covariance_type == "diag":
        return table_plan(options.n_components, "gaussian", None, POLICY.held_rows)
    if n_features < options.n_components:
        raise ValueError(
            f"n_components={options.n_components} is larger than n_features={n_features}: the moments have no noise "
            "space. Use fit, which falls back on EM."
        )
    return vector_plan(n_features, options.n_components)


def vector_plan(n_features: int, n_components: int) -> StreamPlan[DenseBatch, VectorMoments]:
    """How spheres are fitted to rows in chunks: an origin and leading directions with slack from the first ones."""

    def learn(first: DenseBatch, rng: np.random.Generator) -> VectorMoments:
        rows = np.asarray(first.rows, dtype=np.float64)
        shift = np.average(rows, axis=0, weights=first.weights)
        y = (rows - shift) * (1.0 if first.weights is None else np.sqrt(first.weights)[:, None])
        width = min(n_features, POLICY.slack * n_components)
        vectors = np.linalg.eigh(y.T @ y)[1] if len(y) > n_features else np.linalg.svd(y.T)[0][:, ::-1]
        return VectorMoments(np.ascontiguousarray(vectors[:, ::-1][:, :width]), shift)

    return StreamPlan(VECTORS, max(POLICY.held_rows, POLICY.held_rows_each * n_features), learn)


def stream_moments(
    stream: MomentStream[Any, Any], plan: StreamPlan[Any, Any], options: Options, rng: np.random.Generator
) -> GaussianMoments:
    """The moments of all rows that a stream has seen."""
    check_enough(stream.n, options.n_components)
    if options.covariance_type == "diag":
        return _table_moments(stream, plan, options, rng)
    sums = stream.read(plan)
    check_columns(np.abs(sums.mean) + np.sqrt(max(sums.total_variance, 0.0)))
    moments, lift = _on_leading_directions(sums, options.n_components)
    return GaussianMoments(sums.mean, sums.total_variance / sums.mean.size, stream.n, moments, lift)


def _table_moments(
    stream: MomentStream[Any, Any], plan: StreamPlan[Any, Any], options: Options, rng: np.random.Generator
) -> GaussianMoments:
    """Of axis-aligned Gaussians: from sums, or from the rows as long as these are held."""
    k = options.n_components
    sums = stream.read(plan) if stream.started else None
    if sums is not None and sums.distinct is None:
        return GaussianMoments(np.zeros(len(sums.schema)), 1.0, stream.n, products=_read_sums(sums, k))
    held = read_table(stream.held(plan), "gaussian", None)[1] if sums is None else sums.distinct.batch()
    weights = held.weights if held.weights is None or held.weights.any() else None
    source = DenseSource(lambda: [held], max(len(held), 1))
    products = run_passes(product_passes(source, k, rng), source)
    mean = np.average(held.rows, axis=0, weights=weights)
    variance = float(np.average((held.rows - mean) ** 2, axis=0, weights=weights).mean())
    return GaussianMoments(mean, variance, stream.n, products=products)


def _read_sums(sums: StreamedTable, n_components: int) -> CompletedMoments | MomentError:
    try:
        return sums.moments(n_components)
    except MomentError as error:
        return error


def _on_leading_directions(sums: VectorMoments, n_components: int) -> tuple[SphericalMoments, Floats]:
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
