"""Where Baum-Welch starts for real observations: moments on features, clusters, and what a sample says of each.

The moment estimate needs no luck, but its noise differs from basis to basis; a few candidates, each polished on a
sample of the data, cost less than one pass over all of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from odeco.diagnostics import Diagnostics, without_moments
from odeco.fitting.clusters import k_means, nearest
from odeco.models.hmm.chain_theorem import report_on, transitions_of
from odeco.models.hmm.feature_chain import Chain, recover_chain
from odeco.models.hmm.policy import POLICY
from odeco.models.hmm.search import spread
from odeco.moments.base import Additive
from odeco.moments.columns import Columns
from odeco.moments.passes import Passes
from odeco.moments.sequence_features import (
    FeatureBasis,
    FeatureMap,
    FeaturePairs,
    FeatureTriples,
    learn_map,
    update_triples,
)
from odeco.refinement.emissions import Emission, HMMParameters, Statistics
from odeco.refinement.forward_backward import ForwardBackward
from odeco.sources.chains import Chains
from odeco.sources.sequences import Sequences

Floats = NDArray[np.float64]
Recovered = tuple[Chain, FeatureBasis]

CLUSTERS, ROWS, COMMON = "k-means", "random observations", "common eigenvectors of moments"  # what starts are called


@dataclass(frozen=True, eq=False)
class FeatureMoments:
    """The moments of a fit: one `FeatureTriples` for each basis; without any, the first advice says what is lacking."""

    pairs: FeaturePairs
    triples: tuple[FeatureTriples, ...]
    advice: tuple[str, ...] = ()

    @property
    def spectrum(self) -> Floats:
        """Correlations of one step with the next, of the first basis."""
        return self.triples[0].basis.spectrum if self.triples else np.empty(0)

    def narrowed(self, n_components: int) -> FeatureMoments | None:
        """Those of fewer states; None where a basis does not reach as far as these, and may reach as far as those."""
        if len(self.triples) < len(POLICY.least_variances):
            return None
        return replace(self, triples=tuple(triples.narrowed(n_components) for triples in self.triples))


def steps_of(data: Sequences, low: int = 0, high: int | None = None) -> tuple[Floats, NDArray[np.uint8], Floats]:
    """Observations in order (n, d), where sequences begin, and weights: 0 where more than half is missing.

    Of all steps, or of those from low to high: what is made here is as large as what is asked for.
    """
    high = len(data) if high is None else high
    values = np.ascontiguousarray(data.observations(low, high))
    weights = np.ones(len(values)) if data.weights is None else data.step_weights(low, high)
    missing = np.isnan(values)
    if missing.any():
        weights = np.where(missing.mean(axis=1) > 0.5, 0.0, weights)
    return values, data.first(low, high), weights


def feature_passes(data: Chains, n_components: int, *, correlated: bool) -> Passes[FeatureMoments]:
    """A sample finds the map and the bases; a pass over everything takes the triples."""
    moments = feature_bases(data, n_components, correlated=correlated)
    if not moments.triples:
        return moments
    sums: StreamedFeatures = yield StreamedFeatures(moments)
    if not sums.triples[0].triple_weight > 0:
        text = "no three steps follow each other with observations: the third moments are empty."
        return replace(moments, triples=(), advice=(text,))
    return sums.read()


class StreamedFeatures(Additive):
    """Triples on several bases, of which the features are computed once, as one sum; `found` says what else a sample
    showed.
    """

    _sums: ClassVar[tuple[str, ...]] = ("parts",)
    _on: ClassVar[tuple[str, ...]] = ("found",)
    _names = (*FeatureTriples.names, "n")

    def __init__(self, found: FeatureMoments) -> None:
        self.triples = tuple(FeatureTriples(triples.basis) for triples in found.triples)
        self.found = replace(found, triples=self.triples)

    @property
    def parts(self) -> list[list[Any]]:
        """What adds up."""
        return [[getattr(sums, name) for name in self._names] for sums in self.triples]

    @parts.setter
    def parts(self, parts: list[list[Any]]) -> None:
        for sums, values in zip(self.triples, parts, strict=True):
            for name, value in zip(self._names, values, strict=True):
                setattr(sums, name, value)

    def update(self, batch: Sequences) -> Self:
        """Add whole sequences; returns self."""
        update_triples(self.triples, len(batch), lambda run: steps_of(batch, run.start, run.stop))
        return self

    def merge(self, other: Self) -> Self:
        for triples, more in zip(self.triples, other.triples, strict=True):
            triples.merge(more)
        return self

    def read(self) -> FeatureMoments:
        """The moments of all steps."""
        return replace(self.found, triples=self.triples)


class OneState(Additive):
    """What a single state emits: the statistics of all observations."""

    _sums: ClassVar[tuple[str, ...]] = ("statistics",)

    def __init__(self, emission: Emission, n_features: int) -> None:
        self.alone = HMMParameters(np.ones(1), np.ones((1, 1)), emission)
        nothing = np.full((1, n_features), np.nan)  # an observation that is missing, and does not count
        self.statistics: Statistics = emission.statistics(nothing, np.zeros((1, 1)))

    def update(self, batch: Sequences) -> Self:
        """Add whole sequences; returns self."""
        more = ForwardBackward(batch).expectations(self.alone).emission
        self.statistics = tuple(old + new for old, new in zip(self.statistics, more, strict=True))
        return self

    def read(self) -> HMMParameters[Any]:
        """The state that has emitted all of them."""
        return replace(self.alone, emission=self.alone.emission.maximize(self.statistics))


def feature_bases(data: Chains, n_components: int, *, correlated: bool) -> FeatureMoments:
    """The map and the bases that a sample of the data suggests, with empty triples."""
    head = steps_of(data.sample(POLICY.learned_from * POLICY.sample_steps))
    features = learn_map(head[0], correlated=correlated)
    pairs = FeaturePairs(features)
    head = steps_of(data.sample(int(max(POLICY.basis_work / pairs.total.size**2, POLICY.sample_steps))))
    pairs.update(*head)
    if not pairs.pair_weight > 0:
        text = "no two steps follow each other with observations: the moments say nothing of transitions."
        return FeatureMoments(pairs, (), (text,))
    bases = [
        pairs.basis(n_components, columns, least_variance=least)
        for columns, least in zip(column_sets(features, pairs.total.size), POLICY.least_variances, strict=True)
    ]
    largest = max(basis.size for basis in bases)
    if largest < n_components:
        text = (
            f"the features of the observations span {largest} dimensions and {n_components} states need as many: "
            "the moments do not determine the model (too few distinct values?). Lower n_components."
        )
        return FeatureMoments(pairs, (), (text,))
    return FeatureMoments(pairs, tuple(FeatureTriples(basis) for basis in bases if basis.size == n_components))


def column_sets(features: FeatureMap, size: int) -> list[NDArray[np.bool_]]:
    """All features; and those without the bumps, which see less but with less noise."""
    d = features.center.size
    smooth = np.ones(size, dtype=bool)
    bumps = 4 * d + len(features.products)
    smooth[bumps : bumps + 2 * d] = False
    return [np.ones(size, dtype=bool), smooth]


def recovered_chains(moments: FeatureMoments, rng: np.random.Generator) -> list[Callable[[], Recovered | None]]:
    """Common eigenvectors on each basis, with less and with more of a ridge: each made once, when it is asked for."""
    return [
        cache(partial(_recovered, triples, ridge, rng)) for triples in moments.triples for ridge in POLICY.common_ridges
    ]


def _recovered(triples: FeatureTriples, ridge: float, rng: np.random.Generator) -> Recovered | None:
    try:
        return recover_chain(*triples.read(), rng, ridge=ridge), triples.basis
    except np.linalg.LinAlgError:  # noise has made a factor singular: the other candidates stand
        return None


def first_made(chains: Iterable[Callable[[], Recovered | None]]) -> Recovered | None:
    """The first chain that can be made."""
    return next((found for make in chains if (found := make()) is not None), None)


def describe(
    moments: FeatureMoments, n_components: int, *, residual: float, clipped_mass: float, warn: bool
) -> Diagnostics:
    """What the moments say of themselves; with `warn` also where they are too weak to stand alone."""
    if not moments.triples:
        lacking, *more = moments.advice
        lacking = f"{lacking} The fit starts from clusters of the observations instead."
        return without_moments(n_components, "", (lacking, *more), {})
    spectrum = np.concatenate([[1.0], moments.spectrum])
    k, size = n_components, moments.spectrum.size
    noise = float(
        (1 + np.sqrt(0.5)) * np.sqrt(size / moments.pairs.pair_weight)
    )  # largest singular value of noise alone
    supported = int(np.count_nonzero(spectrum > noise))
    advice = moments.advice
    if warn and supported < k:
        advice += (
            f"correlation {k} of the features with those of the next step, {spectrum[k - 1]:.2g}, is within the noise "
            f"({noise:.2g}): the moments alone support about {supported} states. Use refine='auto', more data or fewer "
            "states.",
        )
    return report_on(k, spectrum, noise, residual=residual, clipped_mass=clipped_mass, advice=advice)


def parameters_of(chain: Chain, emission: Emission) -> HMMParameters[Any]:
    """Start and transitions of the joint distribution of two states."""
    weights = chain.joint.sum(axis=1)
    found = HMMParameters(weights / weights.sum(), transitions_of(chain.joint), emission)
    return spread(found, POLICY.spread)


def cluster_start(
    sample: Sequences,
    n_components: int,
    like: Emission,
    rng: np.random.Generator,
    n_rounds: int = POLICY.cluster_rounds,
) -> HMMParameters[Any]:
    """Clusters of the observations as states, transitions as counted between them."""
    values, first, weights = steps_of(sample)
    columns = Columns.of(values)
    standard = np.nan_to_num((values - columns.mean) / np.where(columns.deviation > 0, columns.deviation, 1.0))
    labels = clusters(standard, n_components, rng, n_rounds)
    return _labelled(values, first, weights, labels, n_components, like)


def within_deviations(values: Floats, columns: Columns, n_components: int, rng: np.random.Generator) -> Floats:
    """Deviation of each column within a typical cluster: the unit of a state, however far apart states are."""
    some = values[rng.choice(len(values), min(len(values), POLICY.cluster_rows), replace=False)]
    center, spread = columns.mean, columns.deviation
    # A constant column has no unit of its own; its rounding must not become one.
    spread = np.where(spread > 1e-12 * np.maximum(np.abs(center), 1e-300), spread, 1.0)
    standard = np.nan_to_num((some - center) / spread)
    labels = clusters(standard, n_components, rng) if n_components > 1 else np.zeros(len(some), dtype=np.intp)
    inside = [standard[labels == j].std(axis=0) for j in np.unique(labels)]
    typical = np.median(inside, axis=0)
    return np.asarray(spread * np.where(typical > POLICY.least_within, typical, 1.0))


def clusters(
    points: Floats, k: int, rng: np.random.Generator, n_rounds: int = POLICY.cluster_rounds
) -> NDArray[np.intp]:
    """The nearest of k centres found by a few rounds of k-means on some of the points, from k-means++."""
    some = points[rng.choice(len(points), min(len(points), POLICY.cluster_rows), replace=False)]
    return nearest(points, k_means(some, k, rng, n_rounds))


def _labelled(
    values: Floats, first: NDArray[np.uint8], weights: Floats, labels: NDArray[np.integer], k: int, like: Emission
) -> HMMParameters[Any]:
    member = np.zeros((len(values), k))
    member[np.arange(len(values)), labels] = 1.0
    member = (0.9 * member + 0.1 / k) * weights[:, None]
    both = first[1:] == 0
    counts = member[:-1][both].T @ member[1:][both] + 1.0 / k
    start = member.sum(axis=0) + 1.0 / k
    emission = like.maximize(like.statistics(values, member))
    return HMMParameters(start / start.sum(), counts / counts.sum(axis=1, keepdims=True), emission)
