"""Where Baum-Welch starts for real observations: moments on features, clusters, and what a sample says of each.

The moment estimate needs no luck, but its noise differs from basis to basis; a few candidates, each polished on a
sample of the data, cost less than one pass over all of it.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from odeco.models.hmm.base import MomentReport
from odeco.models.hmm.feature_chain import Chain, recover_chain
from odeco.moments.base import Additive
from odeco.moments.sequence_features import (
    FeatureBasis,
    FeatureMap,
    FeaturePairs,
    FeatureTriples,
    learn_map,
    update_triples,
)
from odeco.refinement.emissions import Emission, HMMParameters
from odeco.sources.chains import BATCH_STEPS, Chains, ChainSource, Extent
from odeco.sources.sequences import Sequences, cut_offsets, spread_steps

Floats = NDArray[np.float64]

_BASIS_WORK = 5e8  # multiplications spent on finding the basis; the triples on it use every step
_LEAST_VARIANCES = (1e-2, 1e-4)  # of each basis: less noise; or small differences between columns that go together
_RIDGES = (0.05, 0.2)
SAMPLE_STEPS = 20_000  # on which candidates are compared
_LEAST_WITHIN = 1e-10  # of a column's deviation: less is rounding of repeated values
_CLUSTER_ROWS = 5_000
_CLUSTER_ROUNDS = 12
CLUSTERS, ROWS, COMMON = "k-means", "random observations", "common eigenvectors of moments"  # what starts are called
_STICKY = 0.02  # of each row of transitions is spread evenly: Baum-Welch never revives a zero


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


def steps_of(data: Sequences, low: int = 0, high: int | None = None) -> tuple[Floats, NDArray[np.bool_], Floats]:
    """Observations in order (n, d), whether t + 1 follows t, and weights: 0 where more than half is missing.

    Of all steps, or of those from low to high: what is made here is as large as what is asked for.
    """
    high = len(data) if high is None else high
    values = values_of(data, low, high)
    linked = np.zeros(len(values), dtype=bool)
    linked[: min(high, len(data) - 1) - low] = data.first(low + 1, min(high + 1, len(data))) == 0
    weights = np.ones(len(values)) if data.weights is None else data.step_weights(low, high)
    missing = np.isnan(values)
    if missing.any():
        weights = np.where(missing.mean(axis=1) > 0.5, 0.0, weights)
    return values, linked, weights


def values_of(data: Sequences, low: int = 0, high: int | None = None) -> Floats:
    """Observations of all steps, or of those from low to high."""
    values = data.values[low:high] if data.codes is None else data.values[data.codes[low:high]]
    return np.asarray(values, dtype=np.float64)


def extent_of(data: Chains) -> Extent:
    """How much there is, and the bounds of each column."""
    if isinstance(data, ChainSource):
        return data.extent
    parts = range(0, len(data), BATCH_STEPS)
    inside = [np.array([0, min(BATCH_STEPS, len(data) - low)]) for low in parts]
    found = [Extent.of(values_of(data, low, low + cut[1]), cut, None) for low, cut in zip(parts, inside, strict=True)]
    return replace(reduce(Extent.merge, found), n_sequences=data.n_sequences, weight=data.total_weight)


def sample_of(data: Chains, n_steps: int) -> Sequences:
    """Whole sequences, or windows of long ones, spread evenly over the data: at most about `n_steps`."""
    if isinstance(data, ChainSource):
        return data.sample(n_steps)
    if len(data) <= n_steps:
        return data
    steps = spread_steps(len(data), n_steps)
    offsets, weights = cut_offsets(data.offsets, data.weights, steps)
    if data.codes is None:
        return Sequences(data.values[steps], None, offsets, weights)
    return Sequences(data.values, data.codes[steps], offsets, weights)


def feature_moments(data: Chains, n_components: int, *, correlated: bool) -> FeatureMoments:
    """Pass 1 on a sample finds the map and the bases; pass 2 over everything takes the triples."""
    moments = feature_bases(data, n_components, correlated=correlated)
    if moments.triples:
        moments = replace(moments, triples=TripleSums(moments.triples).update(data).triples)
    if moments.triples and not moments.triples[0].triple_weight > 0:
        text = "no three steps follow each other with observations: the third moments are empty."
        return replace(moments, triples=(), advice=(text,))
    return moments


class TripleSums(Additive):
    """Triples on several bases, of which the features are computed once, as one sum."""

    _sums: ClassVar[tuple[str, ...]] = ("parts",)
    _names = (*FeatureTriples.names, "n")

    def __init__(self, triples: tuple[FeatureTriples, ...]) -> None:
        self.triples = triples

    @property
    def parts(self) -> list[list[Any]]:
        """What adds up."""
        return [[getattr(sums, name) for name in self._names] for sums in self.triples]

    @parts.setter
    def parts(self, parts: list[list[Any]]) -> None:
        for sums, values in zip(self.triples, parts, strict=True):
            for name, value in zip(self._names, values, strict=True):
                setattr(sums, name, value)

    def update(self, batch: Chains) -> Self:
        """Add whole sequences; returns the sums."""
        if isinstance(batch, ChainSource):
            return self.update_all(batch)
        update_triples(self.triples, len(batch), lambda block: steps_of(batch, block.start, block.stop))
        return self


def feature_bases(data: Chains, n_components: int, *, correlated: bool) -> FeatureMoments:
    """The map and the bases that a sample of the data suggests, with empty triples."""
    head = steps_of(sample_of(data, 8 * SAMPLE_STEPS))
    features = learn_map(head[0], correlated=correlated)
    pairs = FeaturePairs(features)
    head = steps_of(sample_of(data, int(max(_BASIS_WORK / pairs.total.size**2, SAMPLE_STEPS))))
    pairs.update(*head)
    if not pairs.pair_weight > 0:
        text = "no two steps follow each other with observations: the moments say nothing of transitions."
        return FeatureMoments(pairs, (), (text,))
    bases = [
        pairs.basis(n_components, columns, least_variance=least)
        for columns, least in zip(column_sets(features, pairs.total.size), _LEAST_VARIANCES, strict=True)
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


def recovered_chains(moments: FeatureMoments, rng: np.random.Generator) -> list[tuple[Chain, FeatureBasis]]:
    """Common eigenvectors on each basis, with less and with more of a ridge."""
    out = []
    for triples in moments.triples:
        for ridge in _RIDGES:
            with suppress(np.linalg.LinAlgError):  # noise has made a factor singular: the other candidates stand
                out.append((recover_chain(*triples.read(), rng, ridge=ridge), triples.basis))
    return out


def describe(
    moments: FeatureMoments, n_components: int, *, residual: float, clipped_mass: float, warn: bool
) -> MomentReport:
    """What the moments say of themselves; with `warn` also where they are too weak to stand alone."""
    if not moments.triples:
        lacking, *more = moments.advice
        return MomentReport(advice=(f"{lacking} The fit starts from clusters of the observations instead.", *more))
    spectrum = np.concatenate([[1.0], moments.spectrum])
    k, size = n_components, moments.spectrum.size
    noise = (1 + np.sqrt(0.5)) * np.sqrt(size / moments.pairs.pair_weight)  # largest singular value of noise alone
    supported = int(np.count_nonzero(spectrum > noise))
    advice = moments.advice
    if warn and supported < k:
        advice += (
            f"correlation {k} of the features with those of the next step, {spectrum[k - 1]:.2g}, is within the noise "
            f"({noise:.2g}): the moments alone support about {supported} states. Use refine='auto', more data or fewer "
            "states.",
        )
    return MomentReport(
        spectrum=spectrum,
        gap=float(1 - spectrum[k] / spectrum[k - 1]) if spectrum.size > k else 1.0,
        condition=float(spectrum[0] / max(spectrum[k - 1], 1e-300)),
        residual=residual,
        clipped_mass=clipped_mass,
        suggested_components=supported,
        advice=advice,
        details={"noise": float(noise)},
    )


def parameters_of(chain: Chain, emission: Emission) -> HMMParameters[Any]:
    """Start and transitions of the joint distribution of two states."""
    k = len(chain.joint)
    rows = chain.joint.sum(axis=1, keepdims=True)
    transmat = np.where(rows > 0, chain.joint / np.where(rows > 0, rows, 1.0), 1.0 / k)
    return spread(HMMParameters(rows[:, 0] / rows.sum(), transmat, emission))


def spread(parameters: HMMParameters[Any]) -> HMMParameters[Any]:
    """A little of each row for every state: a start for Baum-Welch, which never revives a zero."""
    k = parameters.n_components
    start = (1 - _STICKY) * parameters.startprob + _STICKY / k
    return replace(parameters, startprob=start, transmat=(1 - _STICKY) * parameters.transmat + _STICKY / k)


def cluster_start(
    sample: Sequences, n_components: int, like: Emission, rng: np.random.Generator, n_rounds: int = _CLUSTER_ROUNDS
) -> HMMParameters[Any]:
    """Clusters of the observations as states, transitions as counted between them."""
    values, linked, weights = steps_of(sample)
    spread = np.nanstd(values, axis=0)
    standard = np.nan_to_num((values - np.nanmean(values, axis=0)) / np.where(spread > 0, spread, 1.0))
    labels = clusters(standard, n_components, rng, n_rounds)
    return _labelled(values, linked, weights, labels, n_components, like)


def within_deviations(values: Floats, n_components: int, rng: np.random.Generator) -> Floats:
    """Deviation of each column within a typical cluster: the unit of a state, however far apart states are."""
    some = values[rng.choice(len(values), min(len(values), _CLUSTER_ROWS), replace=False)]
    center, spread = np.nanmean(values, axis=0), np.nanstd(values, axis=0)
    # A constant column has no unit of its own; its rounding must not become one.
    spread = np.where(spread > 1e-12 * np.maximum(np.abs(center), 1e-300), spread, 1.0)
    standard = np.nan_to_num((some - center) / spread)
    labels = clusters(standard, n_components, rng) if n_components > 1 else np.zeros(len(some), dtype=np.intp)
    inside = [standard[labels == j].std(axis=0) for j in np.unique(labels)]
    typical = np.median(inside, axis=0)
    return np.asarray(spread * np.where(typical > _LEAST_WITHIN, typical, 1.0))


def clusters(points: Floats, k: int, rng: np.random.Generator, n_rounds: int = _CLUSTER_ROUNDS) -> NDArray[np.intp]:
    """The nearest of k centres found by a few rounds of k-means on some of the points, from k-means++."""
    some = points[rng.choice(len(points), min(len(points), _CLUSTER_ROWS), replace=False)]
    centres = some[[int(rng.integers(len(some)))]]
    distance = np.full(len(some), np.inf)
    for _ in range(k - 1):
        distance = np.minimum(distance, ((some - centres[-1]) ** 2).sum(axis=1))
        total = distance.sum()
        row = rng.choice(len(some), p=distance / total) if total > 0 else rng.integers(len(some))
        centres = np.vstack([centres, some[row]])
    for _ in range(n_rounds):
        member = np.eye(k)[_nearest(some, centres)]
        sizes = member.sum(axis=0)[:, None]
        centres = np.where(sizes > 0, member.T @ some / np.maximum(sizes, 1.0), centres)
    return _nearest(points, centres)


def _nearest(points: Floats, centres: Floats) -> NDArray[np.intp]:
    return np.asarray(np.argmin((centres**2).sum(axis=1) - 2 * points @ centres.T, axis=1))


def _labelled(
    values: Floats, linked: NDArray[np.bool_], weights: Floats, labels: NDArray[np.integer], k: int, like: Emission
) -> HMMParameters[Any]:
    member = np.zeros((len(values), k))
    member[np.arange(len(values)), labels] = 1.0
    member = (0.9 * member + 0.1 / k) * weights[:, None]
    both = linked[:-1]
    counts = member[:-1][both].T @ member[1:][both] + 1.0 / k
    start = member.sum(axis=0) + 1.0 / k
    emission = like.maximize(like.statistics(values, member))
    return HMMParameters(start / start.sum(), counts / counts.sum(axis=1, keepdims=True), emission)
