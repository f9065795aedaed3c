"""A start for EM where the moments of the views give none: clusters of some samples."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from odeco.models.multiview.moments import column_scale
from odeco.moments.views import ColumnSums
from odeco.refinement.views import PosteriorSums, ViewDensities, ViewModel, ViewParameters, maximize
from odeco.sources.partitions import Partitioned
from odeco.sources.rows import join_views
from odeco.sources.views import ViewBatch, ViewSource

Floats = NDArray[np.float64]

_SAMPLE = 5_000
_WIDEST = 100  # columns of a view beyond which it is projected at random


def clusters_as_components(
    source: ViewSource, columns: ColumnSums, n_components: int, model: ViewModel, rng: np.random.Generator
) -> ViewParameters:
    """k-means on the first samples, all views side by side with columns of unit variance."""
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    batch = _first_samples(source, columns.n)
    parts = []
    for block, variance, center in zip(batch.blocks, columns.variances, columns.means, strict=True):
        scale = column_scale(variance, counts=bool(sparse.issparse(block)))
        directions = np.diag(scale) if scale.size <= _WIDEST else _random_directions(scale, rng)
        parts.append(np.asarray(block @ directions) - center @ directions)
    rows = np.hstack(parts)
    rows += 1e-9 * rng.standard_normal(rows.shape)  # equal rows still make k clusters
    clusters = KMeans(n_components, n_init=3, random_state=int(rng.integers(2**31)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer different rows than clusters: EM sorts it out
        labels = clusters.fit_predict(rows, sample_weight=batch.weights)
    shares = np.eye(n_components)[labels] * batch.row_weights()[:, None]
    shares += 1e-3 * batch.row_weights().mean() / n_components  # no component is empty
    means = tuple(np.zeros((n_components, d)) for d in columns.widths)
    gaussian = [name == "gaussian" for name in model.likelihoods]
    variances = tuple(np.ones_like(mean) if given else None for mean, given in zip(means, gaussian, strict=True))
    empty = ViewParameters(np.full(n_components, 1 / n_components), means, variances)
    densities = ViewDensities(empty, model)
    sums = PosteriorSums(empty, model, densities)
    sums.add(densities.features(batch.blocks), shares)
    return maximize(sums.totals, sums.first, sums.second, model, None)


def _first_samples(source: ViewSource, n_samples: int) -> ViewBatch:
    """Every m-th sample, about 5,000 in all."""
    step = max(1, n_samples // _SAMPLE)
    if isinstance(source, Partitioned):  # no more than these travel
        return join_views(source.only(np.arange(0, source.n_rows, step)).collect())
    kept, seen = [], 0
    for batch in source:
        rows = np.arange((-seen) % step, len(batch), step)
        seen += len(batch)
        if rows.size:
            kept.append(batch.take(rows))
    return join_views(kept)


def _random_directions(scale: Floats, rng: np.random.Generator) -> Floats:
    return np.asarray(scale[:, None] * rng.standard_normal((scale.size, _WIDEST)) / np.sqrt(_WIDEST))
