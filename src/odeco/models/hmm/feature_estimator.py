"""What the hidden Markov models of real observations share: input, starts from the moments of features, streaming."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from odeco._random import as_generator
from odeco.exceptions import MomentError
from odeco.fitting.candidates import Candidate
from odeco.fitting.stream import StreamPlan
from odeco.models.hmm import starts as starts
from odeco.models.hmm.base import THEOREM, HiddenMarkovModel, MomentReport, Parameters
from odeco.models.hmm.feature_chain import Chain
from odeco.models.hmm.feature_theorem import StateMoments, state_moments, theorem_chain
from odeco.models.hmm.search import Starts, best_start, effort_of
from odeco.models.hmm.stream import StreamedFeatures, feature_plan
from odeco.moments.sequence_features import FeatureBasis
from odeco.refinement.emissions import Emission, HMMParameters
from odeco.refinement.expectation_sums import recursions_of
from odeco.refinement.loop import Refined
from odeco.sources.chains import Chains, Extent
from odeco.sources.scale import check_magnitude
from odeco.sources.sequences import Joined, Sequences, join_sequences
from odeco.sources.values import number_array

Floats = NDArray[np.float64]


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

    def _packed(self, values: Floats, offsets: NDArray[np.int64], weights: Floats | None) -> Sequences:
        return Sequences(values, None, offsets, weights)

    # Input

    def _encode_joined(self, joined: Joined, *, reset: bool) -> Sequences:
        return self._packed(*self._clean(joined, reset=reset))

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

    def _clean(self, joined: Joined, *, reset: bool) -> tuple[Floats, NDArray[np.int64], Floats | None]:
        values = self._checked(joined)
        if reset:
            self.n_features_in_ = values.shape[1]
        elif values.shape[1] != self.n_features_in_:
            raise ValueError(
                f"X has {values.shape[1]} features, but {type(self).__name__} is expecting {self.n_features_in_} "
                "features as input."
            )
        return values, joined.offsets, joined.weights

    # Estimates

    def _theorem(self, data: Chains, rng: np.random.Generator) -> tuple[Parameters, MomentReport]:
        if self.n_components == 1:
            return self._one_state(data, rng)
        template = self._checked_template(data, rng)
        return self._estimate(self._moments(data), template, rng)

    def _start(self, data: Chains, rng: np.random.Generator) -> tuple[Parameters, MomentReport]:
        if self.n_components == 1:
            return self._one_state(data, rng)
        template = self._checked_template(data, rng)
        return best_start(self, data, self._starts(self._moments(data), data, template, rng), rng)

    def _checked_template(self, data: Chains, rng: np.random.Generator) -> Emission:
        extent = starts.extent_of(data)
        self._check_seen(extent.largest, extent.n_seen)
        values = starts.values_of(starts.sample_of(data, 8 * starts.SAMPLE_STEPS))
        if isinstance(data, Sequences) and np.isnan(np.fmax.reduce(values, axis=0)).any():
            values = starts.values_of(data)  # a sample may miss what is seldom seen
        self._check_seen(np.fmax.reduce(values, axis=0), extent.n_seen)
        return self._template(values, rng)

    def _one_state(self, data: Chains, rng: np.random.Generator) -> tuple[Parameters, MomentReport]:
        template = self._checked_template(data, rng).permute(np.zeros(1, dtype=np.intp))
        alone = HMMParameters(np.ones(1), np.ones((1, 1)), template)
        emission = template.maximize(recursions_of(data).expectations(alone).emission)
        return replace(alone, emission=emission), MomentReport(method="one state")

    def _moments(self, data: Chains) -> starts.FeatureMoments:
        moments = starts.feature_moments(data, self.n_components, correlated=self._correlated())
        extent = starts.extent_of(data)
        constant = np.flatnonzero(extent.smallest == extent.largest)
        if not constant.size:
            return moments
        text = f"columns {constant.tolist()} of X are constant: they say nothing of the states. Leave them out."
        return replace(moments, advice=(*moments.advice, text))

    def _check_seen(self, largest: Floats, n_seen: int) -> None:
        """Refuse columns without observations, and fewer steps than states."""
        if np.isnan(largest).any():
            columns = np.flatnonzero(np.isnan(largest)).tolist()
            raise ValueError(f"columns {columns} of X have no observation: every entry is NaN. Leave them out.")
        if n_seen < self.n_components:
            raise ValueError(
                f"n_components={self.n_components} states need at least as many observations, X has {n_seen}."
            )

    def _estimate(
        self, moments: starts.FeatureMoments, template: Emission, rng: np.random.Generator
    ) -> tuple[Parameters, MomentReport]:
        """Proposition 3.4 for features: E[x|h] and E[xx'|h] are lifted, the parameters are read from them."""
        chain = theorem_chain(moments, self._decomposer(), rng)
        triples = moments.triples[0]
        emission = self._read_emission(state_moments(triples, chain), template)
        start, clipped = chain.start(triples.first / max(triples.first_weight, 1e-300), triples.first_weight)
        residual, clipped = chain.components.residual, max(clipped, chain.clipped_mass)
        report = starts.describe(moments, self.n_components, residual=residual, clipped_mass=clipped, warn=True)
        return HMMParameters(start, chain.transmat, emission), replace(report, method=THEOREM)

    def _starts(
        self, moments: starts.FeatureMoments, data: Chains, template: Emission, rng: np.random.Generator
    ) -> Starts:
        """The theorem's estimate, regularised moments, clusters; the last two of twice as many states, too."""
        k, chains = self.n_components, starts.recovered_chains(moments, rng)
        residual, clipped = (chains[0][0].residual, chains[0][0].clipped) if chains else (float("nan"), 0.0)
        report = starts.describe(moments, k, residual=residual, clipped_mass=clipped, warn=False)
        own = [Candidate(starts.COMMON, partial(self._started, *chain, template)) for chain in chains]
        with suppress(MomentError):  # the theorem's estimate competes where there is one
            theorem = starts.spread(self._estimate(moments, template, rng)[0])
            own.insert(0, Candidate(THEOREM, lambda: theorem))
        sample = starts.sample_of(data, starts.SAMPLE_STEPS)
        twice, merged = template.permute(np.zeros(2 * k, dtype=np.intp)), f", merged from {2 * k}"
        rivals = [
            *self._clusters(sample, template, "", rng),
            Candidate(starts.COMMON + merged, partial(self._wide_start, sample, twice, rng)),
            *self._clusters(sample, twice, merged, rng),
        ]
        return Starts(own, rivals, sample, report, residual, report.suggested_components)

    def _clusters(
        self, sample: Sequences, template: Emission, merged: str, rng: np.random.Generator
    ) -> list[Candidate[Parameters]]:
        """k-means, and the nearest of random observations, in turn."""
        cluster = partial(starts.cluster_start, sample, template.n_components, template, rng)
        centres = Candidate(starts.CLUSTERS + merged, cluster)
        return (effort_of(self).n_field // 2) * [centres, Candidate(starts.ROWS + merged, partial(cluster, n_rounds=0))]

    def _started(self, chain: Chain, basis: FeatureBasis, template: Emission) -> Parameters:
        return starts.parameters_of(chain, self._lifted(chain, basis, template))

    def _wide_start(self, sample: Sequences, template: Emission, rng: np.random.Generator) -> Parameters | None:
        """Regularised moments of more states than are asked for."""
        moments = starts.feature_moments(sample, template.n_components, correlated=self._correlated())
        chains = starts.recovered_chains(moments, rng)
        return self._started(*chains[-1], template) if chains else None

    def _adopt(
        self, parameters: Parameters, report: MomentReport, data: Chains, refined: Refined[Parameters] | None = None
    ) -> None:
        more = self._advice_on(parameters.emission)
        super()._adopt(parameters, replace(report, advice=(*report.advice, *more)), data, refined)

    def _advice_on(self, emission: Any) -> tuple[str, ...]:
        """What the fitted emissions themselves call for."""
        return ()

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
        values, offsets, weights = self._clean(join_sequences(X, lengths, sequence_weight), reset=reset)
        yield Sequences(values, None, offsets, weights)

    def _plan(self) -> StreamPlan[Sequences, StreamedFeatures]:
        return feature_plan(self.n_components, correlated=self._correlated())

    def _read_moments(self) -> Self:
        """The fit to the first steps while there are no more; then what the moments of all give, or start."""
        stream, rng = self._stream, as_generator(self.random_state)
        kept = self._kept_steps()
        data = self._packed(kept.values, kept.offsets, kept.weights)
        if not stream.started:
            return self._fit_rows(data, rng)
        first = f" the first {len(kept):,} steps, which are kept"
        if self.n_components == 1:
            found, report = self._one_state(data, rng)
            self._adopt(found, replace(report, method=f"one state of{first}"), data)
            return self
        moments, template = stream.read(self._plan()).read(), self._template(kept.values, rng)
        if self.refine is None:
            found, report = self._estimate(moments, template, rng)
            self._adopt(found, replace(report, method=f"{report.method}, of all {stream.n:,} steps"), data)
            return self
        start, report = best_start(self, data, self._starts(moments, data, template, rng), rng)
        of_all = report.method in (THEOREM, starts.COMMON)
        seen = f" all {stream.n:,} steps" if of_all else first
        report = replace(report, method=f"{report.method}, of{seen}", refined_on=f" on{first}")
        return self._refined(data, start, report)
