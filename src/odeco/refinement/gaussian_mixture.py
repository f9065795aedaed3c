"""EM for Gaussian mixtures: spherical, tied spherical, diagonal, tied and full covariances.

Log densities are linear in features of a row: (y, ||y||^2, 1) where covariances are spherical, (y, y^2, 1) where they
are diagonal, (y, 1) where one covariance is shared. So an E step is one matrix product with the natural parameters, and
the sums of the M step another one. With full covariances they are quadratic in y, and sums of products come with them.

Spherical components also have a short form: rows projected on the k - 1 dimensions that the means span, with the
squared norm of what is left. A step then costs n k^2 instead of n d k.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from odeco.families.averages import averages
from odeco.families.gaussian import COVARIANCES, CovarianceType, natural, scatter_about, standardizing
from odeco.families.responsibilities import Quadratic, expected_features, expected_products, normalize
from odeco.kernels.columns import centred_columns
from odeco.kernels.threads import map_parts, single_threaded_blas, thread_count
from odeco.moments.base import Additive
from odeco.refinement.loop import StoppingRule, Trace, run_refinement
from odeco.sources.dense import DenseBatch

Floats = NDArray[np.float64]
Rows = NDArray[np.floating]
Block = tuple[Rows, Floats | None]  # features of some rows, and their weights
Result = TypeVar("Result")

COVARIANCE_TYPES = tuple(COVARIANCES)
# Rows at a time: as many as have so many numbers, so that threads do not wait for the interpreter, but this at least.
_NUMBERS = 2**18
_ROWS = 4032
# Coefficients up to which one compiled loop is faster than two products of BLAS and what lies between them.
_FEW_COEFFICIENTS = 2**13
# Of posterior mass: however small the weights of rows are, a component that has more is moved.
_LEAST_WEIGHT = 10 * float(np.finfo(np.float64).tiny)
# Single precision loses up to 1e-7 of the squared distance in units of the smallest variance: allowed up to here.
_SINGLE_RANGE = 1e4


@dataclass(frozen=True, eq=False)
class GaussianParameters:
    """Weights (k,), means (k, d) and covariances: (k,), a number, (k, d), (d, d) or (k, d, d), as the type has it."""

    weights: Floats
    means: Floats = field(repr=False)
    covariances: Any = field(repr=False)
    covariance_type: str

    def ordered(self) -> GaussianParameters:
        """The same components, largest weight first."""
        order = np.argsort(-self.weights, kind="stable")
        covariances = COVARIANCES[self.covariance_type].pick(self.covariances, order)
        return replace(self, weights=self.weights[order], means=self.means[order], covariances=covariances)

    def shifted(self, offset: Floats) -> GaussianParameters:
        """The same components about another origin."""
        return replace(self, means=self.means + offset)


def n_parameters(covariance_type: str, k: int, d: int) -> int:
    """Free parameters of k components in d dimensions."""
    return k - 1 + k * d + COVARIANCES[covariance_type].n_free(k, d)


class Kept:
    """Features of n rows, in one piece of memory: the system gives that in large pages, in a third of the time."""

    def __init__(self, n: int) -> None:
        self.n = n
        self.blocks: dict[tuple[str, int], Block] = {}
        self._memory: dict[str, Rows] = {}

    def room(self, family: str, shape: tuple[int, int], first: int, dtype: Any) -> Rows:
        """Where the features (p, m) of the rows from ``first`` on go; of threads that ask at once one makes it."""
        width, m = shape
        memory = self._memory.get(family)
        if memory is None:
            memory = self._memory.setdefault(family, np.empty(self.n * width, dtype))
        return memory[first * width : (first + m) * width].reshape(shape)

    def all(self, kind: str) -> list[Block]:
        """Those of all rows in order, so that nobody has to read these again; none before all are there."""
        mine = [self.blocks[key] for key in sorted(self.blocks) if key[0] == _family(kind)]
        return mine if sum(len(features) for features, _ in mine) == self.n else []


def _family(kind: str) -> str:
    """Types of covariances with the same features have one name."""
    return "spherical" if kind == "tied_spherical" else kind


def _some_rows(n: int, p: int) -> int:
    """Rows that are handled at a time, of n with p columns: even parts."""
    n_parts = max(1, -(-n // max(_ROWS, _NUMBERS // max(p, 1))))
    rows = max(1, -(-n // n_parts))
    # At a large power of two all features of a row would share a few places in the cache.
    return rows + 32 if rows % 512 == 0 else rows


@dataclass(frozen=True, eq=False)
class Points:
    """Rows that EM can read again and again: batches, the origin they are taken about, the dtype of the products.

    ``rest`` are squared norms of what was projected out of each row, where rows are projections; ``dimension`` is that
    of the data all the same. Features are formed once and for all where there is room for them in ``kept``.
    """

    batches: Iterable[DenseBatch]
    origin: Floats | None
    dtype: Any
    dimension: int
    rest: Rows | None = None
    kept: Kept | None = field(default=None, repr=False)

    def blocks(self, kind: str, batch: DenseBatch, first: int) -> Iterator[Block]:
        """Features of rows about the origin, and their weights; ``first`` is the batch's place among all rows.

        A feature of all rows lies in one piece of memory: (m, p) in Fortran's order.
        """
        family, n = _family(kind), _some_rows(*batch.rows.shape)
        for low in range(0, len(batch), n):
            key = (family, first + low)
            block = None if self.kept is None else self.kept.blocks.get(key)
            if block is None:
                weights = None if batch.weights is None else batch.weights[low : low + n]
                block = self._features(family, batch.rows[low : low + n], first + low), weights
                if self.kept is not None:
                    self.kept.blocks[key] = block
            yield block

    def features(self, kind: str) -> Iterator[Rows]:
        """Those of all rows, block by block."""
        first = 0
        for batch in self.batches:
            yield from (features for features, _ in self.blocks(kind, batch, first))
            first += len(batch)

    def _features(self, kind: str, rows: Rows, first: int) -> Rows:
        """What log densities are linear in: (y, ||y||^2 + rest, 1), (y, y^2, 1), or (y, 1)."""
        m, p = rows.shape
        shape = (p + {"spherical": 2, "diag": p + 1}.get(kind, 1), m)
        features = (
            np.empty(shape, self.dtype) if self.kept is None else self.kept.room(kind, shape, first, self.dtype)
        ).T
        y = features[:, :p]
        centred_columns(rows, y.T, self.origin)
        features[:, -1] = 1.0
        if kind == "diag":
            np.multiply(y, y, out=features[:, p : 2 * p])
        elif kind == "spherical":
            np.einsum("ij,ij->i", y, y, out=features[:, p])
            if self.rest is not None:
                features[:, p] += self.rest[first : first + m]
        return features


@dataclass(frozen=True, eq=False)
class Sums:
    """What one pass gives: log-likelihood, weight, posterior sums of features (k, p) and of y y' (k, d, d)."""

    value: float
    weight: float
    features: Floats
    products: Floats | None

    def __add__(self, other: Sums) -> Sums:
        products = None if self.products is None or other.products is None else self.products + other.products
        return Sums(self.value + other.value, self.weight + other.weight, self.features + other.features, products)

    def scatter(self, kind: CovarianceType, means: Floats, total: Floats | None) -> Floats:
        """Sums of squares about the means (k, p), as the type of covariance has them."""
        counts, p = self.features[:, -1], means.shape[1]
        if kind.order == 2 and kind.shared:  # what all rows have together, `total` on average, needs no posteriors
            assert total is not None
            return np.asarray(counts.sum() * total - (means.T * counts) @ means)
        second = self.features[:, p:-1] if kind.order else self.features[:, p]
        return scatter_about(means, counts, second if self.products is None else self.products)


@dataclass(frozen=True, eq=False)
class Refinement:
    """Parameters after EM; the trace holds the mean log-likelihood before each step, which never falls."""

    parameters: GaussianParameters
    trace: Trace = field(repr=False)


def refine_gaussian_mixture(
    points: Points,
    start: GaussianParameters,
    rule: StoppingRule,
    *,
    scales: Floats,
    floor: float = 1e-6,
    total: Floats | None = None,
) -> Refinement:
    """EM from `start`, whose means are about the origin of `points`.

    Parameters
    ----------
    scales : (d,)
        Variance of each column: variances are kept above ``floor`` of it. That is the maximum under this constraint, so
        the likelihood still never falls.
    total : (d, d)
        Second moment of all rows about the origin; needed for one shared covariance alone.
    """

    def step(state: GaussianParameters, _: int) -> tuple[GaussianParameters, float]:
        sums = posterior_sums(points, state)
        return maximize(sums, state, points.dimension, floor * scales, total), sums.value / sums.weight

    done = run_refinement(step, start, rule)
    return Refinement(done.state, done.trace)


def posterior_sums(points: Points, parameters: GaussianParameters) -> Sums:
    """The E step over all rows, made where they are."""
    if hasattr(points.batches, "add_to"):
        found = PosteriorSums(replace(points, batches=()), parameters).update_all(points.batches)
        return Sums(found.value, found.weight, found.features, found.products)
    work = _Pass(points, parameters)
    if points.kept is not None and (blocks := points.kept.all(parameters.covariance_type)):
        with single_threaded_blas():
            parts = map_parts(lambda t: work.expect(*blocks[t]), len(blocks))
    else:
        parts = over_batches(points, work)
    return sum(parts[1:], start=parts[0])


def over_batches(points: Points, work: Callable[[DenseBatch, int], Result]) -> list[Result]:
    """``work(batch, place of its first row)`` for all batches in order, shared out among threads.

    Batches that have to be read are taken as many at a time as there are threads; those in memory all at once.
    """
    if isinstance(points.batches, Sequence) and len(points.batches) == 1:  # of few rows, often: nothing to hand over
        return [work(points.batches[0], 0)]
    iterator, first = iter(points.batches), 0
    results: list[Result] = []
    at_a_time = None if isinstance(points.batches, Sequence) else thread_count()
    with single_threaded_blas():
        while group := list(islice(iterator, at_a_time)):
            starts = first + np.concatenate([[0], np.cumsum([len(batch) for batch in group])]).astype(int)
            results += map_parts(lambda t, g=group, s=starts: work(g[t], int(s[t])), len(group))  # type: ignore[misc]
            first = int(starts[-1])
    return results


def log_joint(points: Points, parameters: GaussianParameters) -> Floats:
    """Log weight + log density of every row under every component, (n, k)."""
    joint, kind = joint_densities(parameters, points.dimension, points.dtype), parameters.covariance_type

    def work(batch: DenseBatch, first: int) -> list[Rows]:
        return [joint(features).T for features, _ in points.blocks(kind, batch, first)]

    parts = [part for some in over_batches(points, work) for part in some]
    return np.concatenate(parts).astype(np.float64, copy=False)


class _Pass:
    """The E step on one batch."""

    def __init__(self, points: Points, parameters: GaussianParameters) -> None:
        self.points, self.kind = points, parameters.covariance_type
        self.expect = joint_densities(parameters, points.dimension, points.dtype).expect

    def __call__(self, batch: DenseBatch, first: int) -> Sums:
        parts = [self.expect(*block) for block in self.points.blocks(self.kind, batch, first)]
        return sum(parts[1:], start=parts[0])


def _total(values: Rows, weights: Floats | None) -> tuple[float, float]:
    """The log-likelihood of all rows, and their weight."""
    if weights is None:
        return float(values.sum(dtype=np.float64)), float(values.size)
    return float(weights @ values), float(weights.sum())


class PosteriorSums(Additive):
    """`Sums` of rows that are elsewhere."""

    _sums = ("value", "weight", "features", "products")

    def __init__(self, points: Points, parameters: GaussianParameters) -> None:
        self.points, self.parameters = points, parameters
        (k, p), kind = parameters.means.shape, parameters.covariance_type
        self.value, self.weight = 0.0, 0.0
        self.features = np.zeros((k, p + {"diag": p + 1, "full": 1, "tied": 1}.get(kind, 2)))
        self.products = np.zeros((k, p, p)) if kind == "full" else None

    def update(self, batch: DenseBatch) -> None:
        if not len(batch):
            return
        found = _Pass(self.points, self.parameters)(batch, 0)
        self.value, self.weight = self.value + found.value, self.weight + found.weight
        self.features = self.features + found.features
        if self.products is not None and found.products is not None:
            self.products = self.products + found.products


class Joint(Protocol):
    """Log weight + log density of each component."""

    def __call__(self, features: Rows, /) -> Rows:
        """Those of rows, (k, m), from their features (m, p)."""

    def expect(self, features: Rows, weights: Floats | None, /) -> Sums:
        """The E step on these rows."""


def joint_densities(parameters: GaussianParameters, dimension: int, dtype: Any) -> Joint:
    """Densities of rows from their features, in the precision of these."""
    with np.errstate(divide="ignore"):
        logs = np.log(parameters.weights)
    if COVARIANCES[parameters.covariance_type].order == 2:
        turns, shifts, constants = standardizing(parameters.means, parameters.covariances)
        triangles, logs = np.swapaxes(turns, -1, -2), logs + constants
        if parameters.covariance_type == "full":
            return _Full(Quadratic.of(triangles, shifts, logs, dtype))
        slopes = np.hstack([-shifts @ triangles, (logs - 0.5 * (shifts * shifts).sum(axis=1))[:, None]])
        return _Tied(_Linear(slopes.astype(dtype)), Quadratic.of(triangles[None], 0 * shifts[:1], np.zeros(1), dtype))
    (k, p), variances = parameters.means.shape, np.asarray(parameters.covariances, dtype=np.float64)
    if variances.ndim < 2:  # of all columns
        variances = variances.reshape(-1, 1) + np.zeros((k, 1))
    linear, square, constants = natural(parameters.means, variances)
    logs = logs + constants.sum(axis=1)
    if dimension > p:  # columns that are projected out
        logs = logs + (dimension - p) * natural(0.0, variances[:, 0])[2]
    return _Linear(np.hstack([linear, square, logs[:, None]]).astype(dtype))


@dataclass(frozen=True, eq=False)
class _Linear:
    """Log joint densities that are linear in the features: coefficients (k, p)."""

    coefficients: Rows

    def __call__(self, features: Rows) -> Rows:
        with np.errstate(invalid="ignore"):  # BLAS pads with zeros, and the logarithm of no weight times 0 is noticed
            return np.asarray(self.coefficients @ features.T)

    def expect(self, features: Rows, weights: Floats | None) -> Sums:
        if self.coefficients.size <= _FEW_COEFFICIENTS:
            nothing = np.zeros(len(self.coefficients), self.coefficients.dtype)  # the last feature is 1
            found = expected_features(features.T, self.coefficients, nothing, weights)
            return Sums(*_total(found.values[0], weights), found.features, None)
        shares, values = normalize(self(features))
        if weights is not None:
            shares *= weights.astype(shares.dtype)
        return Sums(*_total(values, weights), (shares @ features).astype(np.float64), None)


@dataclass(frozen=True, eq=False)
class _Tied:
    """The part of the log densities in which components differ, and -|y turn|^2 / 2, which they share."""

    linear: _Linear
    shared: Quadratic

    def __call__(self, features: Rows) -> Rows:
        return np.asarray(self.linear(features) + self.shared.densities(features.T))

    def expect(self, features: Rows, weights: Floats | None) -> Sums:
        sums = self.linear.expect(features, weights)
        return replace(sums, value=sums.value + _total(self.shared.densities(features.T)[0], weights)[0])


@dataclass(frozen=True, eq=False)
class _Full:
    """A quadratic for each component."""

    quadratic: Quadratic

    def __call__(self, features: Rows) -> Rows:
        return self.quadratic.densities(features.T)

    def expect(self, features: Rows, weights: Floats | None) -> Sums:
        found, products = expected_products(features.T, self.quadratic, weights)
        return Sums(*_total(found.values[0], weights), found.features, products)


def single_is_enough(parameters: GaussianParameters, largest: float, scales: Floats) -> bool:
    """Whether squared distances in units of the variances are small enough for single precision.

    `largest` is the largest squared norm of a row, `scales` the variances of the columns.
    """
    kind = COVARIANCES[parameters.covariance_type]
    if kind.order == 1:
        # Columns have scales of their own: the shares of the variance that are left, at the overall scale.
        lowest = kind.least(parameters.covariances, scales).min() * scales.mean()
    else:
        lowest = kind.least(parameters.covariances, np.ones_like(scales)).min()
    return bool(largest <= _SINGLE_RANGE * lowest)


def maximize(
    sums: Sums, old: GaussianParameters, dimension: int, floor: Floats, total: Floats | None = None
) -> GaussianParameters:
    """The M step: weights, means and covariances of largest expected likelihood, variances at least `floor`.

    A component that no row belongs to stays where it was, with weight 0.
    """
    kind, p = COVARIANCES[old.covariance_type], old.means.shape[1]
    counts = sums.features[:, -1]
    means = averages(sums.features[:, :p], counts[:, None], old.means, _LEAST_WEIGHT)
    scatter, mass = sums.scatter(kind, means, total), counts if kind.order else dimension * counts
    covariances = kind.estimate(scatter, mass, old.covariances, floor, least=_LEAST_WEIGHT)
    return GaussianParameters(counts / counts.sum(), means, covariances, old.covariance_type)
