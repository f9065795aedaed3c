"""The paper's way to a product mixture: a random partition of the columns into three views (section 3.3.1)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from odeco import theory
from odeco.decomposition import AUTO, Decomposer
from odeco.exceptions import MomentError
from odeco.models.multiview.moments import solve_views
from odeco.models.product_mixture.moments import first_look, summarize
from odeco.models.product_mixture.solve import ProductStart, Summary
from odeco.moments.products import ProductMarginals
from odeco.sources.dense import DenseSource
from odeco.sources.tables import Schema

Floats = NDArray[np.float64]

# What Proposition 3.2 is asked for: views that keep sqrt(1/6) of the smallest singular value, in nine cases of ten.
_EPSILON, _DELTA = 0.5, 0.1


def views_start(
    source: DenseSource,
    schema: Schema,
    n_components: int,
    rng: np.random.Generator,
    *,
    method: Decomposer = AUTO,
    polish: bool = False,
) -> tuple[ProductStart, dict[str, object]]:
    """The moment estimate from three views (Theorem 3.6), and what Proposition 3.2 says of the partition.

    `polish` fits the cross moments by least squares from there.
    """
    marginals = ProductMarginals(first_look(source, schema)).update_all(source)
    summary = summarize(marginals, marginals.variance)
    groups = random_partition(len(schema), rng)
    owner = summary.features.owner
    members = [np.flatnonzero(groups[owner] == t) for t in range(3)]
    if min(map(len, members)) == 0:
        raise MomentError(f"{len(schema)} columns cannot be parted into three views: at least 3 are needed.")
    solution = solve_views(_Views(source, summary, members), n_components, rng, method=method, polish=polish)
    means = np.empty((n_components, owner.size))
    variances = np.empty(owner.size)
    for places, mean, variance in zip(members, solution.means, solution.variances, strict=True):
        means[:, places], variances[places] = mean, variance
    seconds = np.where(summary.features.onehot, means, means**2 + variances)
    masses = np.maximum(solution.weights, 1e-6)
    spectrum = np.asarray(solution.components.spectrum, dtype=np.float64)
    values = np.asarray(solution.components.singular_values[0])
    start = ProductStart(
        masses / masses.sum(),
        summary.features,
        means,
        seconds,
        spectrum,
        float(1 - values[n_components] / values[n_components - 1]) if values.size > n_components else 1.0,
        float(spectrum[0] / spectrum[-1]),
        0.0,  # the spectrum is that of k white directions: noise has no place in it
        solution.components.residual,
        solution.n_passes + 1,
    )
    limit = theory.incoherence_limit(n_components, epsilon=_EPSILON, delta=_DELTA)
    found = theory.coherence(means)
    return start, {
        "coherence": found,
        "incoherence_limit": limit,
        "coherence_condition": found <= limit,
        "partition_probability": theory.partition_probability(means, epsilon=_EPSILON),
        "views": groups,
    }


def random_partition(n_columns: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """A view 0, 1 or 2 for each column, independent and uniform (Proposition 3.2), drawn again while one is empty."""
    groups = rng.integers(3, size=n_columns)
    while n_columns >= 3 and np.bincount(groups, minlength=3).min() == 0:
        groups = rng.integers(3, size=n_columns)
    return np.asarray(groups)


class _Views:
    """Batches of three blocks of features; what is missing is made up for by the share that is observed."""

    def __init__(self, source: DenseSource, summary: Summary, members: list[NDArray[np.intp]]) -> None:
        self._source, self._summary, self._members = source, summary, members

    def __call__(self) -> Iterator[tuple[list[Floats], Floats]]:
        features = self._summary.features
        factors = 1.0 / self._summary.shares[features.owner]
        for batch in self._source:
            encoded = features.encode(np.asarray(batch.rows, dtype=np.float64)) * factors
            weights = np.ones(len(batch)) if batch.weights is None else batch.weights
            yield [np.ascontiguousarray(encoded[:, places]) for places in self._members], weights
