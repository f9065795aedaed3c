"""From a table to the parameters of a product mixture: completed pair and triple moments, decomposed (Theorem 4.3).

The affine form: features are centred, their second moment has rank k - 1, and a constant 1 is put before the k - 1
whitened coordinates. The k x k x k tensor of (1, z) is then orthogonally decomposable, the squared first coordinates of
its eigenvectors are the weights, and k - 1 independent differences of means suffice.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from odeco.decomposition.door import run_method
from odeco.decomposition.result import Decomposition
from odeco.exceptions import MomentError
from odeco.moments.products import (
    FeatureMap,
    ProductMarginals,
    ProductPairs,
    ProductTriples,
    repeated_terms,
)
from odeco.sources.dense import DenseSource
from odeco.sources.tables import Column, Schema, open_table
from odeco.tensors import ExplicitTensor
from odeco.whitening.completed import CompletedPairs, whiten_completed
from odeco.whitening.whitener import Whitener

Floats = NDArray[np.float64]

# Features up to which all their pairs are kept; beyond, products with the pairs read the data instead.
MOST_EXPLICIT = 2_000
# Passes of that reading: the error of a subspace that far ahead of the noise is smaller by then.
_IMPLICIT_ITERATIONS = 15
# Rounds of refilling the triples that repeat a column.
_REFILLS = 3
# Weights are not taken to be smaller than this share of 1/k: means are divided by their roots.
_LEAST_WEIGHT = 1e-3


@dataclass(frozen=True, eq=False)
class ProductStart:
    """The moment estimate of a product mixture, components in no particular order.

    Attributes
    ----------
    weights : (k,)
    features : FeatureMap
    feature_means, feature_seconds : (k, D)
        E[e_a | i] and E[e_a^2 | i] of the features; the latter for numbers only (others: the means).
    spectrum : eigenvalues of the completed second moment of unit-variance features, largest first
    noise : float
        How large an eigenvalue pure sampling noise has.
    """

    weights: Floats
    features: FeatureMap = field(repr=False)
    feature_means: Floats = field(repr=False)
    feature_seconds: Floats = field(repr=False)
    spectrum: Floats = field(repr=False)
    gap: float
    condition: float
    noise: float
    decomposition: Decomposition | None = field(repr=False)
    n_passes: int

    @property
    def residual(self) -> float:
        """Relative residual of the decomposition."""
        return float("nan") if self.decomposition is None else self.decomposition.residual

    @property
    def means(self) -> Floats:
        """(k, d) for tables of numbers."""
        return np.asarray(self.feature_means * self.features.scale + self.features.centre)

    @property
    def variances(self) -> Floats:
        """(k, d) for tables of numbers: not below a hundredth of the column's."""
        spread = self.feature_seconds - self.feature_means**2
        return np.asarray(np.maximum(spread, 1e-2) * self.features.scale**2)


def gaussian_start(
    X: DenseSource | ArrayLike, n_components: int, *, sample_weight: ArrayLike | None = None, rng: np.random.Generator
) -> ProductStart:
    """Weights, means and variances of a mixture of axis-aligned Gaussians from completed moments.

    Raises `MomentError` where the moments do not support so many components.
    """
    source = X if isinstance(X, DenseSource) else open_table(X, "gaussian", sample_weight)
    schema = Schema(tuple(Column(f"x{j}", "gaussian") for j in range(source.n_features)))
    return product_start(source, schema, n_components, rng)


def product_start(
    source: DenseSource, schema: Schema, n_components: int, rng: np.random.Generator, *, method: str = "auto"
) -> ProductStart:
    """Pass 1: pairs, completed and whitened (many passes for more than 2,000 features). Pass 2: triples."""
    features = first_look(source, schema)
    if features.n_features <= MOST_EXPLICIT:
        pairs = ProductPairs(features).update_all(source)
        summary = summarize(pairs, np.diag(pairs.covariance()))
        n_passes = 2
    else:
        marginals = ProductMarginals(features).update_all(source)
        summary = summarize(marginals, marginals.variance)
        n_passes = 2 + (_IMPLICIT_ITERATIONS if n_components > 1 else 0)
    if n_components == 1:
        return _one_component(summary, n_passes)
    _check_rank(features, n_components)
    if features.n_features <= MOST_EXPLICIT:
        whitener = whiten_completed(explicit_pairs(pairs, summary), n_components - 1, rng)
    else:
        implicit = _implicit_pairs(source, summary)
        whitener = whiten_completed(implicit, n_components - 1, rng, max_iter=_IMPLICIT_ITERATIONS)
    basis = summary.table(np.asarray(whitener.matrix, dtype=np.float64))
    triples = ProductTriples(summary.features, basis).update_all(source)
    return solve_triples(summary, triples, whitener, rng, method, n_passes)


@dataclass(frozen=True, eq=False)
class Summary:
    """Features about their means, scaled to unit variance: f_a = (e_a - mean_a) / spread_a where observed.

    Indicators are divided by the root of their probability instead (the scale of chi-square distances).
    """

    features: FeatureMap
    mean: Floats = field(repr=False)
    spread: Floats = field(repr=False)
    variance: Floats = field(repr=False)
    shares: Floats = field(repr=False)
    weight: float

    def table(self, W: Floats) -> Floats:
        """Rows u_a with sum_a e_a u_a = W' f, divided by the shares that are observed: (D, r)."""
        scaled = W / self.spread[:, None]
        offset = self.features.column_sums(self.mean[:, None] * scaled)[self.features.owner]
        return np.asarray((scaled - self.features.onehot[:, None] * offset) / self.shares[self.features.owner][:, None])

    def within(self) -> tuple[NDArray[np.intp], NDArray[np.intp], Floats]:
        """Covariances of f inside columns: places and values."""
        rows, columns = self.features.within()
        mean, spread = self.mean, self.spread
        values = np.where(rows == columns, self.variance[rows], -mean[rows] * mean[columns])
        return rows, columns, values / (spread[rows] * spread[columns])


def first_look(source: DenseSource, schema: Schema) -> FeatureMap:
    """Centres and scales from the first rows: near enough for sums about them to keep their digits."""
    rows = next(iter(source)).rows[:4096].astype(np.float64)
    known = ~np.isnan(rows)
    count = np.maximum(known.sum(axis=0), 1)
    centre = np.where(known, rows, 0.0).sum(axis=0) / count
    scale = np.sqrt((np.where(known, rows - centre, 0.0) ** 2).sum(axis=0) / count)
    return FeatureMap.of(schema, centre, np.where(scale > 0, scale, 1.0))


def summarize(moments: ProductPairs | ProductMarginals, variance: Floats) -> Summary:
    """Centre numbers exactly and scale them to unit variance."""
    features, mean = moments.features, moments.mean
    onehot, owner = features.onehot, features.owner
    numbers = features.starts[~onehot[features.starts]]
    deviation = np.sqrt(np.maximum(variance, 0.0))
    # A column that does not vary, up to the rounding of its sums, is left as it is: it is 0 everywhere.
    deviation = np.where(deviation > 1e-7 * (1.0 + np.abs(mean)), deviation, 1.0)
    centre, scale = features.centre.copy(), features.scale.copy()
    columns = owner[numbers]
    centre[columns] += features.scale[columns] * mean[numbers]
    scale[columns] *= deviation[numbers]
    exact = FeatureMap(owner, onehot, centre, scale)
    spread = np.where(onehot, np.sqrt(np.maximum(mean, 1.0 / max(moments.weight, 1.0))), 1.0)
    unit = np.where(onehot, mean * (1 - mean), variance / deviation**2)
    shares = np.maximum(moments.shares, 1.0 / max(moments.weight, 1.0))
    return Summary(exact, np.where(onehot, mean, 0.0), spread, unit, shares, moments.weight)


def explicit_pairs(pairs: ProductPairs, summary: Summary) -> CompletedPairs:
    """The covariance of different columns, from the sums of pairs."""
    factor = np.where(
        pairs.features.onehot, summary.spread, (summary.features.scale / pairs.features.scale)[pairs.features.owner]
    )
    covariance = pairs.covariance() / np.outer(factor, factor)
    rows, columns, start = summary.within()
    covariance[rows, columns] = 0.0
    return CompletedPairs(len(covariance), lambda V: covariance @ V, rows, columns, start)


def _implicit_pairs(source: DenseSource, summary: Summary) -> CompletedPairs:
    """The same without forming it: every product reads the data once."""
    features, owner = summary.features, summary.features.owner
    rows, columns, start = summary.within()
    shares = summary.shares[owner]
    operator = CompletedPairs(features.n_features, lambda V: V, rows, columns, start)
    inside = operator.filled(start / shares[rows])
    factor = 1.0 / (summary.spread * shares)

    def product(V: Floats) -> Floats:
        table, step = summary.table(V), features.block_rows()
        cross = np.zeros_like(V)
        for batch in source:
            for low in range(0, len(batch), step):
                encoded = features.encode(np.asarray(batch.rows[low : low + step], dtype=np.float64))
                z = encoded @ table
                if batch.weights is not None:
                    z *= batch.weights[low : low + step, None]
                cross += encoded.T @ z
        cross /= summary.weight
        offset = features.column_sums(cross)[owner] * summary.mean[:, None]
        return np.asarray((cross - offset * features.onehot[:, None]) * factor[:, None] - inside @ V)

    return CompletedPairs(features.n_features, product, rows, columns, start)


def solve_triples(
    summary: Summary, triples: ProductTriples, whitener: Whitener, rng: np.random.Generator, method: str, n_passes: int
) -> ProductStart:
    """Decompose the completed triples; refill what repeats a column from the model, and decompose again."""
    W, lift = np.asarray(whitener.matrix, dtype=np.float64), np.asarray(whitener.lift, dtype=np.float64)
    distinct = triples.distinct()
    refill = np.zeros_like(distinct)
    best: tuple[Decomposition, Floats, Floats] | None = None
    for _ in range(_REFILLS + 1):
        found = run_method(ExplicitTensor(_affine(distinct + refill)), W.shape[1] + 1, method, rng, {})
        weights, centred = _read(found, lift)
        if best is None or found.residual < best[0].residual:
            best = found, weights, centred
        refill = repeated_terms(summary.features, W, weights, centred)
    assert best is not None
    found, weights, centred = best
    centred = np.clip(centred, *_range(summary))
    return ProductStart(
        weights,
        summary.features,
        centred * summary.spread + summary.mean,
        _seconds(summary, triples, W, weights, centred),
        np.asarray(whitener.spectrum),
        whitener.gap,
        whitener.condition,
        sampling_noise(summary),
        found,
        n_passes,
    )


def sampling_noise(summary: Summary) -> float:
    """The norm of a sample covariance of independent columns beyond their variances: about 2 sqrt(D/n) + D/n."""
    ratio = np.sqrt(summary.features.n_features / max(summary.weight, 1.0))
    return float(2 * ratio + ratio**2)


def _affine(cubes: Floats) -> Floats:
    """The third moment of (1, z), z white and centred, from that of z."""
    r = len(cubes)
    tensor = np.zeros((r + 1,) * 3)
    tensor[1:, 1:, 1:] = cubes
    tensor[0, 0, 0] = 1.0
    where = np.arange(1, r + 1)
    tensor[0, where, where] = tensor[where, 0, where] = tensor[where, where, 0] = 1.0
    return tensor


def _read(found: Decomposition, lift: Floats) -> tuple[Floats, Floats]:
    """Weights and centred means of f (k, D) from the eigenvectors of the affine tensor."""
    vectors = found.eigenvectors * np.where(found.eigenvectors[0] < 0, -1.0, 1.0)
    k = vectors.shape[1]
    roots = np.maximum(vectors[0], np.sqrt(_LEAST_WEIGHT / k))
    weights = roots**2 / np.sum(roots**2)
    return weights, np.asarray((lift @ (vectors[1:] / roots)).T)


def _range(summary: Summary) -> tuple[Floats, Floats]:
    """Bounds of the means of f: indicators lie between 0 and 1, numbers within some deviations of their mean."""
    low = np.where(summary.features.onehot, -summary.mean / summary.spread, -10.0)
    high = np.where(summary.features.onehot, (1.0 - summary.mean) / summary.spread, 10.0)
    return low, high


def _seconds(summary: Summary, triples: ProductTriples, W: Floats, weights: Floats, means: Floats) -> Floats:
    """E[e_a^2 | i] of numbers from E[e_a^2 z]: with m_i the mean of z under i and column a taken out of it,

    sum_i w_i s_ia (1, m_i - W_a mu_ia) = (E e_a^2, E[e_a^2 z] - E[e_a^3] W_a):  k equations for k unknowns, a rank-one
    change of the same matrix for every a (Sherman and Morrison).
    """
    onehot, owner = summary.features.onehot, summary.features.owner
    if onehot.all():
        return np.asarray(means * summary.spread + summary.mean)
    known = triples.weight * summary.shares[owner]
    second = triples.second / known
    crossed = triples.squares / known[:, None] - (triples.third / known / summary.shares[owner])[:, None] * W
    projected = means @ W  # m_i, (k, r)
    base = np.linalg.pinv(np.vstack([weights, (projected * weights[:, None]).T]), rcond=1e-3)
    plain = base @ np.vstack([second, crossed.T])  # (k, D)
    turned = base @ np.vstack([np.zeros(len(W)), W.T])
    change = weights[:, None] * means  # (k, D)
    below = 1.0 - np.sum(change * turned, axis=0)
    solved = plain + turned * (np.sum(change * plain, axis=0) / np.where(np.abs(below) > 0.1, below, 1.0))
    return np.asarray(np.where(onehot, means * summary.spread + summary.mean, solved))


def _check_rank(features: FeatureMap, n_components: int) -> None:
    free = features.n_features - int(features.onehot[features.starts].sum())
    if free < n_components or features.n_columns < 3:
        raise MomentError(
            f"{features.n_columns} columns with {free} free features do not determine {n_components} components by "
            "their second and third moments: at least 3 columns and as many features as components are needed."
        )


def _one_component(summary: Summary, n_passes: int) -> ProductStart:
    mean = (summary.mean)[None]
    second = np.where(summary.features.onehot, summary.mean, summary.variance)[None]
    return ProductStart(
        np.ones(1), summary.features, mean, second, np.zeros(0), 1.0, 1.0, sampling_noise(summary), None, n_passes
    )
