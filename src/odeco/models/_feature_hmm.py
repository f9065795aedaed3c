"""What the hidden Markov models of real observations share: input, starts from the moments of features, streaming."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from odeco._random import as_generator
from odeco.fitting.stream import StreamPlan
from odeco.models import _hmm_starts as starts
from odeco.models._feature_chain import Chain
from odeco.models._hmm_stream import StreamedFeatures, feature_plan
from odeco.models.hmm_base import HiddenMarkovModel, MomentReport, Parameters
from odeco.moments.sequence_features import FeatureBasis
from odeco.refinement.emissions import Emission, HMMParameters
from odeco.refinement.expectation_sums import recursions_of
from odeco.refinement.hmm import baum_welch
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
    def _lifted(self, chain: Chain, basis: FeatureBasis, template: Any) -> Emission:
        """The emissions whose features have the conditional means that the moments give."""

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

    # Starts

    def _starts(self, data: Chains, rng: np.random.Generator) -> tuple[list[Parameters], MomentReport]:
        extent = starts.extent_of(data)
        self._check_seen(extent.largest, extent.n_seen)
        values = starts.values_of(starts.sample_of(data, 8 * starts.SAMPLE_STEPS))
        if isinstance(data, Sequences) and np.isnan(np.fmax.reduce(values, axis=0)).any():
            values = starts.values_of(data)  # a sample may miss what is seldom seen
        self._check_seen(np.fmax.reduce(values, axis=0), extent.n_seen)
        template = self._template(values, rng)
        if self.n_components == 1:
            alone = HMMParameters(np.ones(1), np.ones((1, 1)), template)
            emission = template.maximize(recursions_of(data).expectations(alone).emission)
            return [replace(alone, emission=emission)], MomentReport(method="one state")
        moments = starts.feature_moments(data, self.n_components, correlated=self._correlated())
        constant = np.flatnonzero(extent.smallest == extent.largest)
        if constant.size:
            text = f"columns {constant.tolist()} of X are constant: they say nothing of the states. Leave them out."
            moments = replace(moments, advice=(*moments.advice, text))
        return self._starts_of(moments, data, template, rng)

    def _check_seen(self, largest: Floats, n_seen: int) -> None:
        """Refuse columns without observations, and fewer steps than states."""
        if np.isnan(largest).any():
            columns = np.flatnonzero(np.isnan(largest)).tolist()
            raise ValueError(f"columns {columns} of X have no observation: every entry is NaN. Leave them out.")
        if n_seen < self.n_components:
            raise ValueError(
                f"n_components={self.n_components} states need at least as many observations, X has {n_seen}."
            )

    def _starts_of(
        self, moments: starts.FeatureMoments, data: Chains, template: Emission, rng: np.random.Generator
    ) -> tuple[list[Parameters], MomentReport]:
        found = starts.chains_of(moments, rng, first_only=self.refine is None)
        candidates = [starts.parameters_of(chain, self._lifted(chain, basis, template)) for chain, basis in found]
        report = starts.describe(moments, [chain for chain, _ in found], self.n_components, warn=self.refine is None)
        if self.refine is None:
            return candidates or starts.cluster_starts(data, self.n_components, template, rng), report
        candidates += starts.cluster_starts(data, self.n_components, template, rng)
        best, settled = starts.best_starts(data, candidates, rng)
        if settled or len(data) < starts.LONG:
            return best, report
        start, spent = starts.on_a_part(data, best[0], self._chain_smoothing(), self.max_iter, self.tol)
        return [start], replace(report, n_early=spent)

    def _adopt(
        self, parameters: Parameters, refined: Refined[Parameters] | None, data: Chains, report: MomentReport
    ) -> None:
        more = self._advice_on(parameters.emission)
        super()._adopt(parameters, refined, data, replace(report, advice=(*report.advice, *more)))

    def _advice_on(self, emission: Any) -> tuple[str, ...]:
        """What the fitted emissions themselves call for."""
        return ()

    # MomentEstimator

    def partial_fit(
        self, X: Any, lengths: ArrayLike | None = None, *, sequence_weight: ArrayLike | None = None
    ) -> Self:
        """Add whole sequences, and fit to all seen since the first call (or the first after `fit`).

        The first 50,000 steps are kept: up to there the result is that of `fit`. Later sequences enter the moments and
        are dropped: the start is then the moment estimate of everything, and Baum-Welch runs on the steps kept. How the
        sequences are divided into calls makes no difference.
        """
        return self._partial_fit(X, lengths, sequence_weight)

    def _chunks(self, X: Any, *, reset: bool, lengths: Any = None, sequence_weight: Any = None) -> Iterator[Sequences]:
        values, offsets, weights = self._clean(join_sequences(X, lengths, sequence_weight), reset=reset)
        yield Sequences(values, None, offsets, weights)

    def _plan(self) -> StreamPlan[Sequences, StreamedFeatures]:
        return feature_plan(self.n_components, correlated=self._correlated())

    def _read_moments(self) -> Self:
        """The fit to the first steps while there are no more; then Baum-Welch on them from the moments of all."""
        stream, rng = self._stream, as_generator(self.random_state)
        kept = self._kept_steps()
        data = self._packed(kept.values, kept.offsets, kept.weights)
        if not stream.started or self.n_components == 1:
            candidates, report = self._starts(data, rng)
        else:
            moments = stream.read(self._plan()).read()
            candidates, report = self._starts_of(moments, data, self._template(kept.values, rng), rng)
            report = replace(report, method=f"{report.method} of all steps, the first {len(kept):,} of them kept")
        if self.refine is None:
            self._adopt(candidates[0], None, data, report)
            return self
        refined = baum_welch(
            data, candidates[0], smoothing=self._chain_smoothing(), max_iter=self.max_iter, tol=self.tol
        )
        self._adopt(refined.state, refined, data, report)
        return self
