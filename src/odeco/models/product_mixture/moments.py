"""From a table to completed pair moments, whitened, and to triples: the passes of a product mixture's fit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from odeco.decomposition import AUTO, Decomposer
from odeco.exceptions import MomentError
from odeco.kernels.products import tall_inner, tall_product
from odeco.models.product_mixture.solve import (
    REFILLS,
    ProductStart,
    Summary,
    WhiteTriples,
    sampling_noise,
    solve_triples,
)
from odeco.moments.products import (
    MOST_EXPLICIT,
    FeatureMap,
    ProductCross,
    ProductMarginals,
    ProductPairs,
    ProductTriples,
)
from odeco.sources.dense import DenseSource, OutOfCoreRows, first_rows
from odeco.sources.tables import Column, Schema, open_table
from odeco.whitening.completed import CompletedPairs, rank_above, whiten_completed

Floats = NDArray[np.float64]

# Passes of that reading: the error of a subspace that far ahead of the noise is smaller by then.
_IMPLICIT_ITERATIONS = 15
# Features of all rows are kept up to this size.
_MOST_BYTES = 2**29


def gaussian_start(
    X: DenseSource | ArrayLike,
    n_components: int,
    *,
    sample_weight: ArrayLike | None = None,
    rng: np.random.Generator,
    method: Decomposer = AUTO,
) -> ProductStart:
    """Weights, means and variances of a mixture of axis-aligned Gaussians from completed moments.

    Raises `MomentError` where the moments do not support so many components.
    """
    source = X if isinstance(X, DenseSource) else open_table(X, "gaussian", sample_weight)
    schema = Schema(tuple(Column(f"x{j}", "gaussian") for j in range(source.n_features)))
    return product_start(source, schema, n_components, rng, method=method)


def product_start(
    source: DenseSource,
    schema: Schema,
    n_components: int,
    rng: np.random.Generator,
    *,
    n_refills: int = REFILLS,
    n_fills: int = 100,
    tol: float = 1e-5,
    refill_tol: float | None = None,
    method: Decomposer = AUTO,
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
        return one_component(summary, n_passes)
    _check_rank(features, n_components)
    n_distinct = None
    if features.n_features <= MOST_EXPLICIT:
        known = explicit_pairs(pairs, summary)
        n_distinct = 1 + rank_above(known, sampling_noise(summary))
        whitener = whiten_completed(known, n_components - 1, rng, max_iter=n_fills, tol=tol)
    else:
        implicit = implicit_pairs(source, summary)
        whitener = whiten_completed(implicit, n_components - 1, rng, max_iter=_IMPLICIT_ITERATIONS)
    matrix, lift = (np.asarray(part, dtype=np.float64) for part in (whitener.matrix, whitener.lift))
    triples = ProductTriples(summary.features, summary.table(matrix)).update_all(source)
    white = WhiteTriples.of(triples, summary, matrix, lift)
    spectrum = np.asarray(whitener.spectrum, dtype=np.float64)
    start = solve_triples(white, summary, rng, spectrum, n_passes, n_refills, refill_tol, method)
    return replace(start, n_distinct=n_distinct)


def first_look(source: DenseSource, schema: Schema) -> FeatureMap:
    """Centres and scales from the first rows: near enough for sums about them to keep their digits."""
    rows = first_rows(source, 1024).rows.astype(np.float64)
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


def implicit_pairs(source: DenseSource, summary: Summary) -> CompletedPairs:
    """The same without forming it: every product reads the data once."""
    features, owner = summary.features, summary.features.owner
    rows, columns, start = summary.within()
    shares = summary.shares[owner]
    operator = CompletedPairs(features.n_features, lambda V: V, rows, columns, start)
    inside = operator.filled(start / shares[rows])
    factor = 1.0 / (summary.spread * shares)

    blocks = _EncodedBlocks(source, features)

    def product(V: Floats) -> Floats:
        if isinstance(source, OutOfCoreRows):
            cross = ProductCross(features, summary.table(V)).update_all(source).cross
        else:
            table, cross = summary.table(V), np.zeros_like(V)
            for encoded, weights in blocks:
                z = tall_product(encoded, table)
                cross += tall_inner(encoded, z if weights is None else z * weights[:, None])
        cross = cross / summary.weight
        offset = features.column_sums(cross)[owner] * summary.mean[:, None]
        return np.asarray((cross - offset * features.onehot[:, None]) * factor[:, None] - inside @ V)

    return CompletedPairs(features.n_features, product, rows, columns, start)


def _check_rank(features: FeatureMap, n_components: int) -> None:
    free = features.n_features - int(features.onehot[features.starts].sum())
    if free < n_components or features.n_columns < 3:
        raise MomentError(
            f"{features.n_columns} columns with {free} free features do not determine {n_components} components by "
            "their second and third moments: at least 3 columns and as many features as components are needed."
        )


def one_component(summary: Summary, n_passes: int) -> ProductStart:
    """Means and variances: all there is to one component."""
    mean = (summary.mean)[None]
    second = np.where(summary.features.onehot, summary.mean, summary.variance + summary.mean**2)[None]
    noise = sampling_noise(summary)
    return ProductStart(np.ones(1), summary.features, mean, second, np.zeros(0), 1.0, 1.0, noise, 0.0, n_passes)


class _EncodedBlocks:
    """Features of all rows in blocks, kept from the first reading on where they fit."""

    def __init__(self, source: DenseSource, features: FeatureMap) -> None:
        self._source, self._features = source, features
        self._kept: list[tuple[Floats, Floats | None]] | None = None

    def __iter__(self) -> Iterator[tuple[Floats, Floats | None]]:
        if self._kept is not None:
            yield from self._kept
            return
        step, size = self._features.block_rows(), 0
        kept: list[tuple[Floats, Floats | None]] = []
        for batch in self._source:
            for low in range(0, len(batch), step):
                encoded = self._features.encode(np.asarray(batch.rows[low : low + step], dtype=np.float64))
                block = encoded, None if batch.weights is None else batch.weights[low : low + step]
                size += encoded.nbytes
                if size <= _MOST_BYTES:
                    kept.append(block)
                yield block
        self._kept = kept if size <= _MOST_BYTES else None
