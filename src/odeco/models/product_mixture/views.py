"""The paper's way to a product mixture: a random partition of the columns into three views (section 3.3.1)."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray

from odeco import theory
from odeco.decomposition import AUTO, Decomposer
from odeco.exceptions import MomentError
from odeco.models.multiview.likelihoods import ViewLook
from odeco.models.multiview.moments import BasisSearch, basis_passes, read_solution
from odeco.models.product_mixture.moments import summarize
from odeco.models.product_mixture.policy import POLICY
from odeco.models.product_mixture.solve import ProductStart, Summary
from odeco.moments.passes import Mapped, Passes, mapped
from odeco.moments.products import FeatureMap, ProductMarginals
from odeco.moments.views import ColumnSums, ViewMoments
from odeco.sources.dense import DenseBatch
from odeco.sources.views import ViewBatch

Floats = NDArray[np.float64]
Places = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class PartedMoments:
    """Moments of three views of the features, and which columns these are of."""

    summary: Summary
    groups: Places
    members: list[Places] = field(repr=False)
    columns: ColumnSums = field(repr=False)
    search: BasisSearch = field(repr=False)
    moments: ViewMoments = field(repr=False)
    n_components: int
    polish: bool

    def start(self, rng: np.random.Generator, method: Decomposer = AUTO) -> ProductStart:
        """The estimate of Theorem 3.6, and what Proposition 3.2 says of the partition.

        `polish` fits the cross moments by least squares from there.
        """
        k, onehot = self.n_components, self.summary.features.onehot
        found = read_solution(self.columns, self.moments, self.search, k, rng, method, polish=self.polish)
        means, variances = np.empty((k, onehot.size)), np.empty(onehot.size)
        for places, mean, variance in zip(self.members, found.means, found.variances, strict=True):
            means[:, places], variances[places] = mean, variance
        masses = np.maximum(found.weights, 1e-6)
        spectrum = np.asarray(found.components.spectrum, dtype=np.float64)
        values = np.asarray(found.components.singular_values[0])
        return ProductStart(
            masses / masses.sum(),
            self.summary.features,
            means,
            np.where(onehot, means, means**2 + variances),
            spectrum,
            float(1 - values[k] / values[k - 1]) if values.size > k else 1.0,
            float(spectrum[0] / spectrum[-1]),
            0.0,  # the spectrum is that of k white directions: noise has no place in it
            found.components.residual,
            found.n_passes + 1,
            name="three views",
            details={**_coherence(means), "views": self.groups},
        )


def _coherence(means: Floats) -> dict[str, object]:
    epsilon = POLICY.views_epsilon
    limit = theory.incoherence_limit(len(means), epsilon=epsilon, delta=POLICY.views_delta)
    found = theory.coherence(means)
    return {
        "coherence": found,
        "incoherence_limit": limit,
        "coherence_condition": found <= limit,
        "partition_probability": theory.partition_probability(means, epsilon=epsilon),
    }


def parted_passes(
    features: FeatureMap, n_components: int, rng: np.random.Generator, *, polish: bool = False
) -> Passes[PartedMoments]:
    """Columns, then those of the views, their directions, and moments on these."""
    marginals = yield ProductMarginals(features)
    summary = summarize(marginals, marginals.variance)
    groups = random_partition(features.n_columns, rng)
    members = [np.flatnonzero(groups[features.owner] == t) for t in range(3)]
    if min(map(len, members)) == 0:
        raise MomentError(f"{features.n_columns} columns cannot be parted into three views: at least 3 are needed.")
    parted = partial(_parted, summary, members)
    look = yield Mapped(ViewLook([len(places) for places in members]), parted)
    search = yield from mapped(basis_passes(look.columns, n_components, rng), parted)
    moments = yield Mapped(ViewMoments(search.basis), parted)
    return PartedMoments(summary, groups, members, look.columns, search, moments, n_components, polish)


def _parted(summary: Summary, members: list[Places], batch: DenseBatch) -> ViewBatch:
    """Three blocks of features; what is missing is made up for by the share that is observed."""
    features = summary.features
    encoded = features.encode(np.asarray(batch.rows, dtype=np.float64)) / summary.shares[features.owner]
    return ViewBatch(tuple(np.ascontiguousarray(encoded[:, places]) for places in members), batch.weights)


def random_partition(n_columns: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """A view 0, 1 or 2 for each column, independent and uniform (Proposition 3.2), drawn again while one is empty."""
    groups = rng.integers(3, size=n_columns)
    while n_columns >= 3 and np.bincount(groups, minlength=3).min() == 0:
        groups = rng.integers(3, size=n_columns)
    return np.asarray(groups)
