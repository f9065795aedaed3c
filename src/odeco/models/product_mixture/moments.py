"""From a table to completed pair moments, whitened, and to triples: the passes of a product mixture's fit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from odeco.decomposition import AUTO, Decomposer
from odeco.exceptions import MomentError
from odeco.families.tables import Families
from odeco.models.product_mixture.column_pairs import ColumnPairs
from odeco.models.product_mixture.policy import POLICY, Policy
from odeco.models.product_mixture.solve import CompletedMoments, ProductStart, Summary, WhiteTriples, sampling_noise
from odeco.moments.passes import Passes, fill, mapped, run_passes
from odeco.moments.products import (
    MOST_EXPLICIT,
    FeatureMap,
    ProductCross,
    ProductMarginals,
    ProductPairs,
    ProductTriples,
)
from odeco.sources.dense import DenseBatch, DenseSource, first_rows
from odeco.sources.tables import Schema, TableSource
from odeco.whitening.completed import CompletedPairs, rank_above, sparse_blocks, whiten_completed

Floats = NDArray[np.float64]


def product_start(
    source: DenseSource,
    schema: Schema,
    n_components: int,
    rng: np.random.Generator,
    *,
    method: Decomposer = AUTO,
    policy: Policy = POLICY,
) -> ProductStart:
    """The moment estimate of the rows of a source."""
    passes = completed_passes(first_look(source, schema), n_components, rng, policy)
    return run_passes(passes, source).start(rng, method, policy)


def completed_passes(
    features: FeatureMap, n_components: int, rng: np.random.Generator, policy: Policy = POLICY
) -> Passes[CompletedMoments]:
    """Pass 1: pairs, completed and whitened (many passes for more than 2,000 features). Pass 2: triples."""
    k, n_passes, n_distinct, n_fills = n_components, 2, None, policy.fills
    summary, pairs = yield from pair_passes(features)
    if k == 1:
        return CompletedMoments(summary, n_passes)
    _check_rank(features, k)
    if is_explicit(features):
        n_distinct = 1 + rank_above(pairs, sampling_noise(summary))
    else:
        n_fills = policy.implicit_iterations
        n_passes += n_fills
    whitener = yield from whiten_completed(pairs, k - 1, rng, max_iter=n_fills, tol=policy.fill_tol)
    matrix, lift = (np.asarray(part, dtype=np.float64) for part in (whitener.matrix, whitener.lift))
    triples = yield ProductTriples(summary.features, summary.table(matrix))
    white = WhiteTriples.of(triples, summary, matrix, lift)
    spectrum = np.asarray(whitener.spectrum, dtype=np.float64)
    return CompletedMoments(
        summary, n_passes, white, spectrum, n_distinct, pairs=pairs if is_explicit(features) else None
    )


def narrowed(more: CompletedMoments, n_components: int, policy: Policy = POLICY) -> CompletedMoments | None:
    """The moments of fewer components from those of more; None where these do not hold them.

    What fills the pairs hangs on their rank: they are filled anew. The triples are known on the directions of more
    components alone, and white ones are sought among these. Few columns leave the directions of fewer components
    partly outside: then their triples have to be read. So have those of pairs of columns.
    """
    if more.column_pairs is not None:
        return None
    if n_components == 1 or more.white is None:
        return CompletedMoments(more.summary, more.n_passes)
    white, r = more.white, n_components - 1
    if more.pairs is None:  # columns are many: what one of them is filled with no longer matters
        return replace(more, white=white.turned(np.eye(white.matrix.shape[1], r), white.lift[:, :r]))
    passes = whiten_completed(more.pairs, r, np.random.default_rng(0), max_iter=policy.fills, tol=policy.fill_tol)
    whitener = run_passes(passes, None)
    basis, triangle = np.linalg.qr(white.matrix)
    roots = np.sqrt(whitener.spectrum[:r])
    cosines = basis.T @ (whitener.lift / roots)
    if np.linalg.svd(cosines, compute_uv=False)[-1] ** 2 < 1 - policy.most_lost:
        return None
    inner, lengths, rotation = np.linalg.svd(cosines * roots, full_matrices=False)  # M2 = lift lift'
    turned = white.turned(np.linalg.solve(triangle, inner / lengths), np.asarray(whitener.lift @ rotation.T))
    return replace(more, white=turned, spectrum=np.asarray(whitener.spectrum, dtype=np.float64))


def paired_passes(
    first: DenseBatch, schema: Schema, n_components: int, rng: np.random.Generator
) -> Passes[CompletedMoments]:
    """The same for pairs of columns."""
    pairs = ColumnPairs(schema)
    found = yield from mapped(completed_passes(feature_map(pairs(first), pairs.schema), n_components, rng), pairs)
    return replace(found, column_pairs=pairs)


def is_explicit(features: FeatureMap) -> bool:
    """Whether all pairs of features are kept."""
    return features.n_features <= MOST_EXPLICIT


def pair_passes(features: FeatureMap) -> Passes[tuple[Summary, CompletedPairs]]:
    """One pass: centres and scales, and products of different columns, which take more passes where they are many."""
    if is_explicit(features):
        pairs = yield ProductPairs(features)
        summary = summarize(pairs, np.diag(pairs.covariance()))
        return summary, explicit_pairs(pairs, summary)
    marginals = yield ProductMarginals(features)
    summary = summarize(marginals, marginals.variance)
    return summary, implicit_pairs(summary)


def first_look(source: DenseSource, schema: Schema) -> FeatureMap:
    """Centres and scales from the first rows: near enough for sums about them to keep their digits."""
    return feature_map(first_rows(source, POLICY.first_look), schema)


def exact_families(source: TableSource) -> Families:
    """The columns for EM, with centres and scales of all rows; one pass."""
    marginals = fill(ProductMarginals(first_look(source, source.schema)), source)
    features = summarize(marginals, marginals.variance).features
    return Families.of(source.schema, features.centre, features.scale)


def feature_map(first: DenseBatch, schema: Schema) -> FeatureMap:
    """Centres and scales of some rows."""
    rows = first.rows.astype(np.float64)
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
    return CompletedPairs.at_hand(covariance, rows, columns, start)


def implicit_pairs(summary: Summary) -> CompletedPairs:
    """The same without forming it: every product is a pass."""
    features, owner = summary.features, summary.features.owner
    rows, columns, start = summary.within()
    shares = summary.shares[owner]
    inside = sparse_blocks(features.n_features, rows, columns, start / shares[rows])
    factor = 1.0 / (summary.spread * shares)

    def product(V: Floats) -> Passes[Floats]:
        sums = yield ProductCross(features, summary.table(V))
        cross = sums.cross / summary.weight
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
