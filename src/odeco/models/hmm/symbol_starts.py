"""Symbols: where Baum-Welch starts.

Candidates are regularised moments, windows where symbols are too few, guesses where both fail.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from odeco.decomposition import Decomposer
from odeco.diagnostics import Diagnostics, without_moments
from odeco.exceptions import MomentError
from odeco.fitting.candidates import Candidate
from odeco.fitting.estimator import Found
from odeco.models.hmm.chain_theorem import stationary_distribution, transitions_of
from odeco.models.hmm.feature_chain import recover_chain
from odeco.models.hmm.policy import POLICY
from odeco.models.hmm.search import Starts
from odeco.models.hmm.starts import clusters
from odeco.models.hmm.symbol_chain import chain_from_core, emissions_from_pairs, fit_pairs
from odeco.models.hmm.symbol_moments import SymbolMoments, describe, symbol_passes
from odeco.models.hmm.symbol_windows import window_start
from odeco.moments.passes import run_passes
from odeco.moments.sequences import SymbolPairs
from odeco.refinement.categorical_emission import CategoricalEmission
from odeco.refinement.emissions import HMMParameters
from odeco.refinement.forward_backward import ForwardBackward
from odeco.sources.sequences import Sequences

Floats = NDArray[np.float64]
Parameters = HMMParameters[CategoricalEmission]

SEGMENTS, GUESS = "clusters of segments", "a random guess"  # what starts are called


@dataclass(frozen=True, eq=False)
class SymbolStarts:
    """Makes starts; what all of them need."""

    n_symbols: int
    smoothing: float
    method: Decomposer
    rng: np.random.Generator

    def of(self, found: Found, k: int, n_field: int) -> Starts:
        """Regularised moments or windows, segments and random models; of twice as many states, too."""
        try:
            own, report = self._own(found, k)
        except MomentError as error:
            text = (
                f"the moments do not determine {k} states ({error}) Random guesses were tried instead: lower "
                "n_components, or compare seeds."
            )
            own, report = [], without_moments(k, "", (text,), {})
        sample = found.rows.sample(POLICY.symbol_steps)
        frequencies, twice = SymbolPairs(self.n_symbols).update(sample).frequencies, f", merged from {2 * k}"
        rivals = [
            Candidate(SEGMENTS, partial(self._segments, sample, k), origin="field"),
            *n_field * [Candidate(GUESS, partial(self._guess, frequencies, k), origin="field")],
            *n_field * [Candidate(GUESS + twice, partial(self._guess, frequencies, 2 * k), origin="larger")],
            Candidate(f"moments{twice}", partial(self._wide, sample, 2 * k), origin="larger"),
            Candidate(SEGMENTS + twice, partial(self._segments, sample, 2 * k), origin="larger"),
        ]
        # As many states as there are symbols are shown by any data.
        shown = report.suggested_components if k < report.spectrum.size else None
        return Starts(own, rivals, sample, report, report.details.get("misfit", float("nan")), shown)

    def _own(self, found: Found, k: int) -> tuple[list[Candidate[Parameters]], Diagnostics]:
        sums = found.moments
        if sums is None:
            assert found.error is not None
            raise found.error
        if sums.moments is not None:
            return self.of_moments(sums.moments, k)
        start, n_seen = window_start(sums.windows, k, self.smoothing, self.rng), sums.pairs.n_seen
        text = (
            f"{n_seen} different symbols cannot tell {k} states apart: windows of {sums.windows.length} symbols were "
            "used as observations, and random guesses beside them. Compare seeds."
        )
        report = replace(without_moments(k, "", (text,), {}), suggested_components=n_seen, n_passes=2)
        return [Candidate("moments of windows", lambda: start)], report

    def of_moments(self, moments: SymbolMoments, k: int) -> tuple[list[Candidate[Parameters]], Diagnostics]:
        """Candidates for each ridge of the symmetrization and of common eigenvectors, and the report on the first."""
        core, rng = (moments.second, moments.core), self.rng
        chains = [chain_from_core(*core, ridge=ridge, rng=rng, method=self.method) for ridge in POLICY.ridges]
        views = [
            (f"symmetrized moments with ridge {ridge:g} and EM on pairs", chain.means, chain.joint)
            for ridge, chain in zip(POLICY.ridges, chains, strict=True)
        ]
        misfit = 0.0
        with suppress(np.linalg.LinAlgError):  # noise has made a factor singular: the others stand
            common = recover_chain(*core, rng)
            joint = (common.joint + POLICY.least_pair) / (common.joint + POLICY.least_pair).sum()
            views.append(("common eigenvectors of moments and EM on pairs", common.vectors, joint))
            misfit = common.residual
        candidates = [Candidate(name, partial(self._near_pairs, moments, *chain)) for name, *chain in views]
        report = describe(moments, chains[0].decomposition, chains[0].clipped_mass, k)
        return candidates, replace(report, details={**report.details, "misfit": misfit})

    def _near_pairs(self, moments: SymbolMoments, means: Floats, joint: Floats) -> Parameters:
        """From what the moments showed, E[y|h] on the basis and the joint distribution of two states, EM on pairs."""
        emissions = emissions_from_pairs(moments.pairs, moments.basis, means, joint)
        emissions, joint = fit_pairs(moments.pairs.joint, emissions, joint, POLICY.pair_steps)
        transmat = transitions_of(joint)
        start = _first_states(moments.pairs.first, emissions, stationary_distribution(transmat))
        return HMMParameters(start, transmat, CategoricalEmission(emissions, self.smoothing))

    def _wide(self, sample: Sequences, k: int) -> Parameters | None:
        """The likeliest moment estimate of more states than are asked for; None where the data do not determine it."""
        with suppress(MomentError):
            moments = run_passes(symbol_passes(self.n_symbols, k, self.rng, windows=False), sample).moments
            if moments is not None:
                return most_likely(self.of_moments(moments, k)[0], sample)[1]
        return None

    def _guess(self, frequencies: Floats, k: int) -> Parameters:
        """A random model around the frequencies of the symbols; its states last in every second one."""
        emissions = frequencies * self.rng.gamma(0.5, size=(k, self.n_symbols)) + 1e-2 * frequencies + 1e-12
        transmat = 0.8 * self.rng.integers(2) * np.eye(k) + self.rng.dirichlet(np.ones(k), size=k)
        return self._from_any(transmat / transmat.sum(axis=1, keepdims=True), emissions)

    def _segments(self, data: Sequences, k: int) -> Parameters:
        """States that last: clusters of segments by composition, as along a genome, where pairs show little."""
        assert data.codes is not None
        n_symbols, length = self.n_symbols, POLICY.segment_steps
        n_segments = max(min(len(data) // length, POLICY.most_segments), 1)
        parts = data.codes[: n_segments * (len(data) // n_segments)].reshape(n_segments, -1)
        counts = np.array([np.bincount(part, minlength=n_symbols)[:n_symbols] for part in parts], dtype=np.float64)
        counts = counts[counts.any(axis=1)]  # others have missing symbols alone
        n_segments = len(counts)
        composition = counts / counts.sum(axis=1, keepdims=True)
        scaled = composition / np.sqrt(composition.mean(axis=0) + 1e-3 / n_symbols)
        labels = clusters(scaled, k, self.rng) if n_segments >= k else self.rng.integers(k, size=n_segments)
        emissions = np.eye(k)[labels].T @ counts + counts.sum(axis=0) / counts.sum() + 1e-3
        return self._from_any(np.full((k, k), 1.0 / (length * k)) + (1 - 1.0 / length) * np.eye(k), emissions)

    def _from_any(self, transmat: Floats, emissions: Floats) -> Parameters:
        """A chain that may begin with any state; emissions up to the scale of each."""
        k, emission = len(transmat), emissions / emissions.sum(axis=1, keepdims=True)
        return HMMParameters(np.full(k, 1.0 / k), transmat, CategoricalEmission(emission, self.smoothing))


def _first_states(first: Floats, emissions: Floats, stationary: Floats) -> Floats:
    """The start (k,) that makes the first symbols most likely; the stationary one where there are few sequences."""
    k = stationary.size
    if first.sum() < POLICY.fewest_starts * k:
        return stationary
    weights = np.maximum(stationary, 1e-3)
    weights = weights / weights.sum()
    for _ in range(POLICY.start_steps):
        weights = weights * (emissions @ (first / np.maximum(weights @ emissions, 1e-300))) / first.sum()
    return np.asarray(weights / weights.sum())


def most_likely(candidates: list[Candidate[Parameters]], data: Sequences) -> tuple[str, Parameters]:
    """The best as the data see them, and its name."""
    recursions = ForwardBackward(data)
    made = [(candidate.name, state) for candidate in candidates if (state := candidate.make()) is not None]
    return max(made, key=lambda start: recursions.log_likelihood(start[1]))
