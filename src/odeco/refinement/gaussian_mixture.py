"""EM for Gaussian mixtures: spherical, tied spherical, diagonal, tied and full covariances.

Log densities are linear in features of a row: (y, ||y||^2, 1) where covariances are spherical, (y, y^2, 1) where they
are diagonal, (y, 1) where one covariance is shared. So an E step is one matrix product with the natural parameters, and
the sums of the M step another one; full covariances take two more products per component.

Spherical components also have a short form: rows projected on the k - 1 dimensions that the means span, with the
squared norm of what is left. A step then costs n k^2 instead of n d k.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from odeco.kernels.threads import map_parts, single_threaded_blas, thread_count
from odeco.moments.base import Additive
from odeco.refinement.loop import StoppingRule, Trace, run_refinement
from odeco.sources.dense import DenseBatch

Floats = NDArray[np.float64]
Rows = NDArray[np.floating]
Result = TypeVar("Result")

COVARIANCE_TYPES = ("spherical", "tied_spherical", "diag", "tied", "full")
# Rows per product: (k, 1024) posteriors of 50 components in single precision stay in cache.
_ROWS = 1024
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
        tied = self.covariance_type in ("tied", "tied_spherical")
        covariances = self.covariances if tied else self.covariances[order]
        return replace(self, weights=self.weights[order], means=self.means[order], covariances=covariances)

    def shifted(self, offset: Floats) -> GaussianParameters:
        """The same components about another origin."""
        return replace(self, means=self.means + offset)


def n_parameters(covariance_type: str, k: int, d: int) -> int:
    """Free parameters of k components in d dimensions."""
    full = d * (d + 1) // 2
    covariances = {"spherical": k, "tied_spherical": 1, "diag": k * d, "tied": full, "full": k * full}
    return k - 1 + k * d + covariances[covariance_type]


@dataclass(frozen=True, eq=False)
class Points:
    """Rows that EM can read again and again: batches, the origin they are taken about, the dtype of the products.

    ``rest`` are squared norms of what was projected out of each row, where rows are projections; ``dimension`` is that
    of the data all the same. Features are formed once and for all where ``kept`` is an (empty) dictionary.
    """

    batches: Iterable[DenseBatch]
    origin: Floats | None
    dtype: Any
    dimension: int
    rest: Rows | None = None
    kept: dict[tuple[str, int], Rows] | None = field(default=None, repr=False)

    def blocks(self, kind: str, batch: DenseBatch, first: int) -> Iterator[tuple[Rows, Floats | None]]:
        """Features of rows about the origin, and their weights; ``first`` is the batch's place among all rows."""
        family = "spherical" if kind == "tied_spherical" else kind
        for low in range(0, len(batch), _ROWS):
            key = (family, first + low)
            features = None if self.kept is None else self.kept.get(key)
            if features is None:
                features = self._features(family, batch.rows[low : low + _ROWS], first + low)
                if self.kept is not None:
                    self.kept[key] = features
            yield features, None if batch.weights is None else batch.weights[low : low + _ROWS]

    def _features(self, kind: str, rows: Rows, first: int) -> Rows:
        """What log densities are linear in: (y, ||y||^2 + rest, 1), (y, y^2, 1), or (y, 1)."""
        m, p = rows.shape
        extra = {"spherical": 2, "diag": p + 1}.get(kind, 1)
        features = np.empty((m, p + extra), dtype=self.dtype)
        y = features[:, :p]
        if self.origin is None:
            y[:] = rows
        else:  # in the precision of the rows: few digits of a large offset are lost
            np.subtract(rows, self.origin.astype(rows.dtype), out=y, casting="same_kind")
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
    parts = over_batches(points, _Pass(points, parameters))
    return sum(parts[1:], start=parts[0])


def over_batches(points: Points, work: Callable[[DenseBatch, int], Result]) -> list[Result]:
    """``work(batch, place of its first row)`` for all batches in order, as many at a time as there are threads."""
    iterator, first = iter(points.batches), 0
    results: list[Result] = []
    with single_threaded_blas():
        while group := list(islice(iterator, thread_count())):
            starts = first + np.concatenate([[0], np.cumsum([len(batch) for batch in group])]).astype(int)
            results += map_parts(lambda t, g=group, s=starts: work(g[t], int(s[t])), len(group))  # type: ignore[misc]
            first = int(starts[-1])
    return results


def log_joint(points: Points, parameters: GaussianParameters) -> Floats:
    """Log weight + log density of every row under every component, (n, k)."""
    joint = joint_densities(parameters, points.dimension, points.dtype)
    kind, parts, first = parameters.covariance_type, [], 0
    for batch in points.batches:
        parts += [joint(features).T for features, _ in points.blocks(kind, batch, first)]
        first += len(batch)
    return np.concatenate(parts).astype(np.float64, copy=False)


def posteriors_of(
    points: Points, parameters: GaussianParameters
) -> Callable[[DenseBatch, int], Iterator[tuple[Rows, Rows, Floats | None]]]:
    """A function from a batch to its blocks: posteriors (k, m), log-likelihoods (m,), weights."""
    joint, kind = joint_densities(parameters, points.dimension, points.dtype), parameters.covariance_type

    def blocks(batch: DenseBatch, first: int) -> Iterator[tuple[Rows, Rows, Floats | None]]:
        for features, weights in points.blocks(kind, batch, first):
            yield *normalize(joint(features)), weights

    return blocks


class _Pass:
    """The E step on one batch."""

    def __init__(self, points: Points, parameters: GaussianParameters) -> None:
        self.points, self.kind = points, parameters.covariance_type
        self.joint = joint_densities(parameters, points.dimension, points.dtype)

    def __call__(self, batch: DenseBatch, first: int) -> Sums:
        total: Sums | None = None
        for features, weights in self.points.blocks(self.kind, batch, first):
            shares, values = normalize(self.joint(features))
            if weights is None:
                value, weight = float(values.sum(dtype=np.float64)), float(values.size)
            else:
                value, weight = float(weights @ values), float(weights.sum())
                shares *= weights.astype(shares.dtype)
            products = None
            if self.kind == "full":
                y = features[:, :-1]
                products = np.stack([(y.T * share) @ y for share in shares]).astype(np.float64)
            part = Sums(value, weight, (shares @ features).astype(np.float64), products)
            total = part if total is None else total + part
        assert total is not None
        return total


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


def normalize(joint: Rows) -> tuple[Rows, Rows]:
    """Posteriors (k, m), in place of `joint`, and log-likelihoods (m,)."""
    from odeco.kernels.mixtures import normalize as in_place

    highest, totals = np.empty((2, joint.shape[1]), dtype=joint.dtype)
    in_place(joint, highest, totals)
    return joint, highest + np.log(totals)


def joint_densities(parameters: GaussianParameters, dimension: int, dtype: Any) -> Callable[[Rows], Rows]:
    """A function from features (m, p) to log weight + log density, (k, m)."""
    means, kind = parameters.means, parameters.covariance_type
    with np.errstate(divide="ignore"):
        constants = np.log(parameters.weights) - dimension / 2 * np.log(2 * np.pi)
    if kind == "full":
        return _full_densities(parameters, constants, dtype)
    if kind == "tied":
        return _tied_densities(parameters, constants, dtype)
    if kind == "diag":
        precisions = 1 / parameters.covariances
        linear, square = means * precisions, -precisions / 2
        constants = constants + 0.5 * np.log(precisions).sum(axis=1) - 0.5 * (means * linear).sum(axis=1)
    else:
        variances = np.broadcast_to(np.asarray(parameters.covariances, dtype=np.float64), constants.shape)
        linear, square = means / variances[:, None], (-0.5 / variances)[:, None]
        constants = constants - dimension / 2 * np.log(variances) - 0.5 * (means * linear).sum(axis=1)
    natural = np.hstack([linear, square, constants[:, None]]).astype(dtype)
    return lambda features: natural @ features.T


def _full_densities(parameters: GaussianParameters, constants: Floats, dtype: Any) -> Callable[[Rows], Rows]:
    factors = _inverse_factor(parameters.covariances)
    constants = constants + np.log(np.diagonal(factors, axis1=1, axis2=2)).sum(axis=1)
    # (y, 1) times a (p + 1, p) matrix gives the whitened distance from the mean at once.
    maps = [
        np.vstack([factor.T, -(factor @ mean)[None]]).astype(dtype)
        for factor, mean in zip(factors, parameters.means, strict=True)
    ]

    def joint(features: Rows) -> Rows:
        out = np.empty((len(maps), len(features)), dtype=features.dtype)
        for j, (matrix, constant) in enumerate(zip(maps, constants, strict=True)):
            whitened = features @ matrix
            out[j] = constant - 0.5 * np.einsum("ij,ij->i", whitened, whitened)
        return out

    return joint


def _tied_densities(parameters: GaussianParameters, constants: Floats, dtype: Any) -> Callable[[Rows], Rows]:
    factor = _inverse_factor(parameters.covariances)
    whitened = parameters.means @ factor.T
    constants = constants + np.log(np.diag(factor)).sum() - 0.5 * (whitened * whitened).sum(axis=1)
    natural = np.hstack([whitened @ factor, constants[:, None]]).astype(dtype)
    turn = factor.T.astype(dtype)

    def joint(features: Rows) -> Rows:
        white = features[:, :-1] @ turn
        return np.asarray(natural @ features.T - 0.5 * np.einsum("ij,ij->i", white, white))

    return joint


def _inverse_factor(covariance: Floats) -> Floats:
    """L^-1 of covariances L L', (..., d, d)."""
    return np.asarray(np.linalg.inv(np.linalg.cholesky(covariance)))


def single_is_enough(parameters: GaussianParameters, largest: float, scales: Floats) -> bool:
    """Whether squared distances in units of the variances are small enough for single precision.

    `largest` is the largest squared norm of a row, `scales` the variances of the columns.
    """
    if parameters.covariance_type in ("full", "tied"):
        lowest = float(np.linalg.eigvalsh(parameters.covariances).min())
    elif parameters.covariance_type == "diag":
        # Columns have scales of their own: the shares of the variance that are left, at the overall scale.
        lowest = float((parameters.covariances / scales).min() * scales.mean())
    else:
        lowest = float(np.min(parameters.covariances))
    return bool(largest <= _SINGLE_RANGE * lowest)


def maximize(
    sums: Sums, old: GaussianParameters, dimension: int, floor: Floats, total: Floats | None = None
) -> GaussianParameters:
    """The M step: weights, means and covariances of largest expected likelihood, variances at least `floor`."""
    p = old.means.shape[1]
    counts = sums.features[:, -1]
    seen = counts > 10 * np.finfo(np.float64).tiny
    safe = np.where(seen, counts, 1.0)
    # A component that no row belongs to stays where it was, with weight 0.
    means = np.where(seen[:, None], sums.features[:, :p] / safe[:, None], old.means)
    weights = counts / counts.sum()
    covariances: Any
    if old.covariance_type == "tied":
        assert total is not None
        covariances = floored(total - (means.T * weights) @ means, floor)
    elif old.covariance_type == "tied_spherical":
        within = sums.features[:, p] - counts * (means * means).sum(axis=1)
        covariances = max(float(within.sum() / counts.sum() / dimension), float(floor.mean()))
    else:
        covariances = _separate(sums, old, means, seen, safe, dimension, floor)
    return GaussianParameters(weights, means, covariances, old.covariance_type)


def _separate(
    sums: Sums, old: GaussianParameters, means: Floats, seen: NDArray[np.bool_], counts: Floats, d: int, floor: Floats
) -> Floats:
    """Covariances of components that each have their own."""
    p = means.shape[1]
    if old.covariance_type == "spherical":
        within = sums.features[:, p] / counts - (means * means).sum(axis=1)
        return np.asarray(np.maximum(np.where(seen, within / d, old.covariances), float(floor.mean())))
    if old.covariance_type == "diag":
        within = sums.features[:, p : 2 * p] / counts[:, None] - means * means
        return np.asarray(np.maximum(np.where(seen[:, None], within, old.covariances), floor))
    assert sums.products is not None
    within = sums.products / counts[:, None, None] - np.einsum("ki,kj->kij", means, means)
    within = np.where(seen[:, None, None], within, old.covariances)
    return floored(within, floor)


def floored(covariance: Floats, floor: Floats) -> Floats:
    """Covariances (..., d, d) with their eigenvalues, columns scaled by the roots of `floor`, at least 1."""
    roots = np.sqrt(floor)
    scaled = (covariance + np.swapaxes(covariance, -1, -2)) / 2 / np.outer(roots, roots)
    values, vectors = np.linalg.eigh(scaled)
    if (values < 1).any():
        raised = (vectors * np.maximum(values, 1)[..., None, :]) @ np.swapaxes(vectors, -1, -2)
        scaled = np.where((values[..., :1] < 1)[..., None], raised, scaled)
    return np.asarray(scaled * np.outer(roots, roots))
