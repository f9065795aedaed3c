"""What the hidden Markov models of real observations share: input, starts from the moments of features, streaming."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from odeco.diagnostics import Diagnostics, without_moments
from odeco.fitting.candidates import Candidate, Origin
from odeco.fitting.estimator import Found
from odeco.fitting.stream import StreamPlan
from odeco.models.hmm.base import HiddenMarkovModel
from odeco.models.hmm.chain_theorem import THEOREM, Estimate, Parameters
from odeco.models.hmm.feature_chain import Chain
from odeco.models.hmm.feature_theorem import StateMoments, state_moments, theorem_chain
from odeco.models.hmm.policy import POLICY
from odeco.models.hmm.remote import refuse_elsewhere
from odeco.models.hmm.search import Starts, effort_of, spread
from odeco.models.hmm.starts import (
    CLUSTERS,
    COMMON,
    ROWS,
    FeatureMoments,
    OneState,
    Recovered,
    StreamedFeatures,
    cluster_start,
    describe,
    feature_passes,
    first_made,
    parameters_of,
    recovered_chains,
)
from odeco.models.hmm.stream import feature_plan
from odeco.moments.passes import Passes, run_passes
from odeco.moments.sequence_features import FeatureBasis
from odeco.refinement.emissions import Emission, HMMParameters
from odeco.sources.chains import Chains
from odeco.sources.scale import check_magnitude
from odeco.sources.sequences import Extent, Joined, Sequences, column_bounds, join_sequences
from odeco.sources.values import number_array

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ChainMoments:
    """What the passes give: emissions in the units of the data, and moments of features or, of one state, its sums."""

    template: Any
    features: FeatureMoments | None = None
    alone: OneState | None = field(default=None, repr=False)


class FeatureHMM(HiddenMarkovModel):
    """Base of the models whose observations are rows of numbers; NaN is a missing entry."""

    @abstractmethod
    def _template(self, values: Floats, rng: np.random.Generator) -> Emission:
        """Emissions of the right family, with the units of the data; their parameters do not matter yet."""

    @abstractmethod
    def _read_emission(self, moments: StateMoments, template: Any) -> Emission:
        """The emissions with these moments; MomentError where there are none."""

    @abstractmethod
    def _lifted(self, chain: Chain, basis: FeatureBasis, template: Any) -> Emission:
        """A start: emissions whose features have the conditional means that regularised moments give."""

    def _correlated(self) -> bool:
        """Whether states may differ in how columns go together."""
        return False

    def _check_values(self, values: Floats) -> None:
        """Refuse what the family cannot have produced."""

    def _packed(self, data: Sequences) -> Sequences:
        """The same steps in the form that is fastest to fit."""
        return data

    # Input

    def _encode_joined(self, joined: Joined, *, reset: bool) -> Sequences:
        return self._packed(self._clean(joined, reset=reset))

    def _look(self, joined: Joined) -> Extent:
        return Extent.of(self._checked(joined), joined.offsets, joined.weights)

    def _settle(self, extent: Extent) -> None:
        self.n_features_in_ = extent.largest.size

    def _checked(self, joined: Joined) -> Floats:
        """Observations (n, d) of any number of columns."""
        values = np.ascontiguousarray(number_array(joined.array), dtype=np.float64)
        if values.ndim == 1:
            values = values[:, None]
        if values.ndim != 2 or values.shape[1] == 0:
            raise ValueError(f"X must have shape (n_steps, n_features), got {values.shape}.")
        if np.isinf(values).any():
            raise ValueError("X contains infinity: give finite numbers, or NaN where an observation is missing.")
        check_magnitude(values)
        self._check_values(values)
        return values

    def _clean(self, joined: Joined, *, reset: bool) -> Sequences:
        values = self._checked(joined)
        if reset:
            self.n_features_in_ = values.shape[1]
        elif values.shape[1] != self.n_features_in_:
            raise ValueError(
                f"X has {values.shape[1]} features, but {type(self).__name__} is expecting {self.n_features_in_} "
                "features as input."
            )
        return Sequences(values, None, joined.offsets, joined.weights)

    # Estimates

    def _passes(self, source: Chains, rng: np.random.Generator) -> Passes[ChainMoments]:
        extent, k = source.extent, self.n_components
        template = self._checked_template(source, extent, rng)
        if k == 1:
            return ChainMoments(template, alone=(yield OneState(template, self.n_features_in_)))
        moments = yield from feature_passes(source, k, correlated=self._correlated())
        constant = np.flatnonzero(extent.smallest == extent.largest)
        if constant.size:
            text = f"columns {constant.tolist()} of X are constant: they say nothing of the states. Leave them out."
            moments = replace(moments, advice=(*moments.advice, text))
        return ChainMoments(template, moments)

    def _narrowed(self, moments: ChainMoments, n_components: int) -> ChainMoments | None:
        """On the first directions of each basis; the units of the data are those of the larger number."""
        features = None if moments.features is None else moments.features.narrowed(n_components)
        if n_components == 1 or features is None:
            return None
        return ChainMoments(moments.template.permute(np.zeros(n_components, dtype=np.intp)), features)

    def _checked_template(self, source: Chains, extent: Extent, rng: np.random.Generator) -> Emission:
        self._check_seen(extent.largest, extent.n_seen)
        values = source.sample(POLICY.learned_from * POLICY.sample_steps).observations()
        largest = column_bounds(values)[1]
        if isinstance(source, Sequences) and np.isnan(largest).any():
            values, largest = source.observations(), extent.largest  # a sample may miss what is seldom seen
        self._check_seen(largest, extent.n_seen)
        return self._template(values, rng)

    def _check_seen(self, largest: Floats, n_seen: int) -> None:
        """Refuse columns without observations, and fewer steps than states."""
        if np.isnan(largest).any():
            columns = np.flatnonzero(np.isnan(largest)).tolist()
            raise ValueError(f"columns {columns} of X have no observation: every entry is NaN. Leave them out.")
        if n_seen < self.n_components:
            raise ValueError(
                f"n_components={self.n_components} states need at least as many observations, X has {n_seen}."
            )

    def _theorem(self, moments: ChainMoments, rng: np.random.Generator) -> Estimate:
        """Proposition 3.4 for features: E[x|h] and E[xx'|h] are lifted, the parameters are read from them."""
        k, template, features = self.n_components, moments.template, moments.features
        if features is None:
            assert moments.alone is not None
            return Estimate(moments.alone.read(), without_moments(k, "one state", (), {}))
        chain = theorem_chain(features, self._decomposer(), rng)
        triples = features.triples[0]
        emission = self._read_emission(state_moments(triples, chain), template)
        start, clipped = chain.start(triples.first / max(triples.first_weight, 1e-300), triples.first_weight)
        residual, clipped = chain.components.residual, max(clipped, chain.clipped_mass)
        report = describe(features, k, residual=residual, clipped_mass=clipped, warn=True)
        return Estimate(HMMParameters(start, chain.transmat, emission), replace(report, method=THEOREM))

    def _starts(self, found: Found, rng: np.random.Generator) -> Starts:
        """The theorem's estimate, regularised moments, clusters; the last two of twice as many states, too."""
        k, template, moments = self.n_components, found.moments.template, found.moments.features
        chains = recovered_chains(moments, rng)
        first = first_made(chains)
        residual, clipped = (float("nan"), 0.0) if first is None else (first[0].residual, first[0].clipped)
        report = describe(moments, k, residual=residual, clipped_mass=clipped, warn=False)
        own = [Candidate(COMMON, partial(self._started, chain, template)) for chain in chains]
        if found.estimate is not None:
            own.insert(0, Candidate(THEOREM, lambda: spread(found.estimate.parameters, POLICY.spread)))
        sample = found.rows.sample(POLICY.sample_steps)
        twice, merged = template.permute(np.zeros(2 * k, dtype=np.intp)), f", merged from {2 * k}"
        wide = Candidate(COMMON + merged, partial(self._wide_start, sample, twice, rng), origin="larger")
        larger = self._clusters(sample, twice, merged, rng)
        rivals = [*self._clusters(sample, template, "", rng), *larger[:1], wide, *larger[1:]]
        return Starts(own, rivals, sample, report, residual, report.suggested_components)

    def _clusters(
        self, sample: Sequences, template: Emission, merged: str, rng: np.random.Generator
    ) -> list[Candidate[Parameters]]:
        """k-means, and the nearest of random observations, in turn."""
        cluster = partial(cluster_start, sample, template.n_components, template, rng)
        origin: Origin = "larger" if merged else "field"
        centres = Candidate(CLUSTERS + merged, cluster, origin=origin)
        rows = Candidate(ROWS + merged, partial(cluster, n_rounds=0), origin=origin)
        return (effort_of(self).n_field // 2) * [centres, rows]

    def _started(self, make: Callable[[], Recovered | None], template: Emission) -> Parameters | None:
        found = make()
        return None if found is None else parameters_of(found[0], self._lifted(*found, template))

    def _wide_start(self, sample: Sequences, template: Emission, rng: np.random.Generator) -> Parameters | None:
        """Regularised moments of more states than are asked for."""
        passes = feature_passes(sample, template.n_components, correlated=self._correlated())
        chains = recovered_chains(run_passes(passes, sample), rng)
        return self._started(partial(first_made, reversed(chains)), template)

    # MomentEstimator

    def partial_fit(
        self, X: Any, lengths: ArrayLike | None = None, *, sequence_weight: ArrayLike | None = None
    ) -> Self:
        """Add whole sequences, and fit to all seen since the first call (or the first after `fit`).

        The first 50,000 steps are kept: up to there the result is that of `fit`. Later sequences enter the moments and
        are dropped. With ``refine=None`` the result is then the paper's estimate of everything; otherwise Baum-Welch
        runs on the steps kept, from the best of the starts by moments of everything and of clusters of the steps kept
        (one state: from the steps kept alone). How the sequences are divided into calls makes no difference.
        """
        return self._partial_fit(X, lengths=lengths, sequence_weight=sequence_weight)

    def _chunks(self, X: Any, *, reset: bool, lengths: Any = None, sequence_weight: Any = None) -> Iterator[Sequences]:
        refuse_elsewhere(X, "partial_fit")
        yield self._clean(join_sequences(X, lengths, sequence_weight), reset=reset)

    def _chunk_of(self, batch: Sequences) -> Sequences:
        return Sequences(batch.observations(), None, batch.offsets, batch.weights)

    def _plan(self) -> StreamPlan[Sequences, StreamedFeatures]:
        return feature_plan(self.n_components, correlated=self._correlated())

    def _kept_rows(self) -> Sequences:
        return self._packed(super()._kept_rows())

    def _read_sums(self, sums: StreamedFeatures, kept: Sequences, rng: np.random.Generator) -> ChainMoments:
        if self.n_components == 1:
            return run_passes(self._passes(kept, rng), kept)
        return ChainMoments(self._template(kept.observations(), rng), sums.read())

    def _of_stream(self, report: Diagnostics, kept: Sequences, *, refined: bool) -> Diagnostics:
        if report.method in (THEOREM, COMMON):
            return super()._of_stream(report, kept, refined=refined)
        return replace(report, method=f"{report.method}, of the first {len(kept):,} steps, which are kept")
