"""Symbols: the theorem's estimate, and where Baum-Welch starts.

Candidates for Baum-Welch are regularised moments, windows where symbols are too few, guesses where both fail.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from odeco.decomposition import AUTO, Decomposer, Decomposition
from odeco.exceptions import MomentError
from odeco.fitting.candidates import Candidate
from odeco.models.hmm.base import THEOREM, MomentReport, stationary_distribution
from odeco.models.hmm.chain_theorem import FEWEST_STARTS, lift_of, read_chain
from odeco.models.hmm.feature_chain import recover_chain
from odeco.models.hmm.search import Starts
from odeco.models.hmm.starts import clusters, sample_of
from odeco.models.hmm.symbol_chain import (
    SymbolBasis,
    chain_from_core,
    emissions_from_pairs,
    fit_pairs,
    symbol_basis,
)
from odeco.models.hmm.symbol_windows import window_length, window_start
from odeco.models.topics.theorem import to_simplex
from odeco.moments.sequences import SymbolPairs, SymbolTriples
from odeco.refinement.categorical_emission import CategoricalEmission
from odeco.refinement.emissions import HMMParameters
from odeco.refinement.forward_backward import ForwardBackward
from odeco.sources.chains import Chains
from odeco.sources.sequences import Sequences

Floats = NDArray[np.float64]
Parameters = HMMParameters[CategoricalEmission]

# Little damping for data that a chain of k states has made, much for text and the like, which no such chain has made:
# there a small ridge can end where symbols are independent. The likelihood tells which it is.
RIDGES = (0.01, 0.5)
COMMON_RIDGE = 0.05  # of common eigenvectors, whose least-squares fit needs a start near enough
_LEAST = 1e-4  # added to each pair of states: Baum-Welch never revives a zero
_PAIR_STEPS = 30
_START_STEPS = 100
_SEGMENT = 200
_SEARCH_STEPS = 50_000  # 20,000 of the 49,840 of `mvad` preferred the wrong one of two optima 0.002 nats apart
SEGMENTS, GUESS = "clusters of segments", "a random guess"  # what starts are called


@dataclass(frozen=True, eq=False)
class SymbolMoments:
    """Pairs, the basis that they show, and the third moments on it, (k, k, k)."""

    pairs: SymbolPairs = field(repr=False)
    basis: SymbolBasis
    core: Floats = field(repr=False)

    @property
    def second(self) -> Floats:
        """E[y1 y2'] on the basis, (k, k)."""
        vectors = self.basis.vectors
        return np.asarray(vectors.T @ (self.pairs.joint @ vectors))


def symbol_moments(data: Chains, pairs: SymbolPairs, k: int, rng: np.random.Generator) -> SymbolMoments:
    """The second pass: triples on the basis that the pairs show."""
    basis = symbol_basis(pairs, k, rng)
    return SymbolMoments(pairs, basis, SymbolTriples(basis.vectors).update(data).core)


def theorem_estimate(
    moments: SymbolMoments, k: int, *, smoothing: float, method: Decomposer, rng: np.random.Generator
) -> tuple[Parameters, MomentReport]:
    """Proposition 3.4 alone: emissions and the first states lifted from what Theorem 3.6 gives, then on the simplex."""
    pairs, vectors = moments.pairs, moments.basis.vectors
    chain = read_chain(moments.core, method, rng)
    before, after = (pairs.joint.T @ vectors).T, (pairs.joint @ vectors).T  # E[z1 x2'], E[z2 x1']
    lift = lift_of(np.vstack([moments.second, moments.second.T]), np.vstack([before, after]))
    emissions, clipped = to_simplex(chain.means @ lift)
    n_sequences = float(pairs.first.sum())
    start, clipped_start = chain.start(pairs.first @ vectors / max(n_sequences, 1e-300), n_sequences)
    largest = max(chain.clipped_mass, float(clipped.max()), clipped_start)
    report = describe(moments, chain.components.decomposition, largest, k)
    found = HMMParameters(start, chain.transmat, CategoricalEmission(emissions, smoothing))
    return found, replace(report, method=THEOREM)


def symbol_theorem(
    data: Chains, n_symbols: int, k: int, *, smoothing: float, method: Decomposer, rng: np.random.Generator
) -> tuple[Parameters, MomentReport]:
    """The estimate of ``refine=None``; MomentError where the data lack what the proposition needs."""
    pairs = SymbolPairs(n_symbols).update(data)
    if k == 1:
        return one_state(pairs, smoothing)
    n_seen = int(np.count_nonzero(pairs.frequencies))
    if n_seen < k:
        raise MomentError(
            f"{n_seen} different symbols cannot tell {k} states apart: Proposition 3.4 needs as many symbols as "
            "states. Lower n_components, or use refine='auto', which takes windows of symbols for observations."
        )
    return theorem_estimate(symbol_moments(data, pairs, k, rng), k, smoothing=smoothing, method=method, rng=rng)


def parameters_from(
    moments: SymbolMoments, means: Floats, joint: Floats, smoothing: float, pair_steps: int
) -> Parameters:
    """A model from what the moments showed: E[y|h] on the basis, and the joint distribution of two states."""
    emissions = emissions_from_pairs(moments.pairs, moments.basis, means, joint)
    emissions, joint = fit_pairs(moments.pairs.joint, emissions, joint, pair_steps)
    transmat = _rows(joint)
    start = first_states(moments.pairs.first, emissions, stationary_distribution(transmat))
    return HMMParameters(start, transmat, CategoricalEmission(emissions, smoothing))


def _rows(joint: Floats) -> Floats:
    totals = joint.sum(axis=1, keepdims=True)
    k = len(joint)
    return np.where(totals > 0, joint / np.where(totals > 0, totals, 1.0), 1.0 / k)


def first_states(first: Floats, emissions: Floats, stationary: Floats) -> Floats:
    """The start (k,) that makes the first symbols most likely; the stationary one where there are few sequences."""
    k = stationary.size
    if first.sum() < FEWEST_STARTS * k:
        return stationary
    weights = np.maximum(stationary, 1e-3)
    weights = weights / weights.sum()
    for _ in range(_START_STEPS):
        weights = weights * (emissions @ (first / np.maximum(weights @ emissions, 1e-300))) / first.sum()
    return np.asarray(weights / weights.sum())


def guess(frequencies: Floats, k: int, smoothing: float, rng: np.random.Generator) -> Parameters:
    """A random model around the frequencies of the symbols; its states last in every second one."""
    d = frequencies.size
    emissions = frequencies * rng.gamma(0.5, size=(k, d)) + 1e-2 * frequencies + 1e-12
    transmat = 0.8 * rng.integers(2) * np.eye(k) + rng.dirichlet(np.ones(k), size=k)
    transmat /= transmat.sum(axis=1, keepdims=True)
    emission = CategoricalEmission(emissions / emissions.sum(axis=1, keepdims=True), smoothing)
    return HMMParameters(np.full(k, 1.0 / k), transmat, emission)


def segments(data: Sequences, n_symbols: int, k: int, smoothing: float, rng: np.random.Generator) -> Parameters:
    """States that last: clusters of segments by composition, as along a genome, where pairs show next to nothing."""
    assert data.codes is not None
    n_segments = max(min(len(data) // _SEGMENT, 5_000), 1)
    parts = data.codes[: n_segments * (len(data) // n_segments)].reshape(n_segments, -1)
    counts = np.array([np.bincount(part, minlength=n_symbols)[:n_symbols] for part in parts], dtype=np.float64)
    counts = counts[counts.any(axis=1)]  # others have missing symbols alone
    n_segments = len(counts)
    composition = counts / counts.sum(axis=1, keepdims=True)
    scaled = composition / np.sqrt(composition.mean(axis=0) + 1e-3 / n_symbols)
    labels = clusters(scaled, k, rng) if n_segments >= k else rng.integers(k, size=n_segments)
    emissions = np.eye(k)[labels].T @ counts + counts.sum(axis=0) / counts.sum() + 1e-3
    transmat = np.full((k, k), 1.0 / (_SEGMENT * k)) + (1 - 1.0 / _SEGMENT) * np.eye(k)
    emission = CategoricalEmission(emissions / emissions.sum(axis=1, keepdims=True), smoothing)
    return HMMParameters(np.full(k, 1.0 / k), transmat, emission)


def symbol_starts(
    data: Chains,
    n_symbols: int,
    k: int,
    *,
    smoothing: float,
    rng: np.random.Generator,
    method: Decomposer,
    n_field: int,
) -> Starts:
    """Regularised moments or windows, segments and random models; of twice as many states, too."""
    try:
        own, report = _moment_or_window_starts(data, n_symbols, k, smoothing, rng, method)
    except MomentError as error:
        text = (
            f"the moments do not determine {k} states ({error}) Random guesses were tried instead: lower n_components, "
            "or compare seeds."
        )
        own, report = [], MomentReport(advice=(text,))
    sample = sample_of(data, _SEARCH_STEPS)
    pairs, twice = SymbolPairs(n_symbols).update(sample), f", merged from {2 * k}"
    lasting = partial(segments, sample, n_symbols, smoothing=smoothing, rng=rng)
    random = partial(guess, pairs.frequencies, smoothing=smoothing, rng=rng)
    rivals = [
        Candidate(SEGMENTS, partial(lasting, k)),
        *n_field * [Candidate(GUESS, partial(random, k))],
        *n_field * [Candidate(GUESS + twice, partial(random, 2 * k))],
        Candidate(f"moments{twice}", partial(_wide, sample, pairs, 2 * k, smoothing, rng, method)),
        Candidate(SEGMENTS + twice, partial(lasting, 2 * k)),
    ]
    # As many states as there are symbols are shown by any data.
    shown = report.suggested_components if k < report.spectrum.size else None
    return Starts(own, rivals, sample, report, report.details.get("misfit", float("nan")), shown)


def _wide(
    sample: Sequences, pairs: SymbolPairs, k: int, smoothing: float, rng: np.random.Generator, method: Decomposer
) -> Parameters | None:
    """The likeliest moment estimate of more states than are asked for; None where the data do not determine it."""
    if int(np.count_nonzero(pairs.frequencies)) < k:
        return None
    try:
        candidates, _ = moment_starts(symbol_moments(sample, pairs, k, rng), k, smoothing, rng, method)
    except MomentError:
        return None
    return most_likely(candidates, sample)[1]


def _moment_or_window_starts(
    data: Chains, n_symbols: int, k: int, smoothing: float, rng: np.random.Generator, method: Decomposer
) -> tuple[list[Candidate[Parameters]], MomentReport]:
    """Windows as views where the symbols are fewer than the states."""
    pairs = SymbolPairs(n_symbols).update(data)
    n_seen = int(np.count_nonzero(pairs.frequencies))
    if n_seen >= k:
        return moment_starts(symbol_moments(data, pairs, k, rng), k, smoothing, rng, method)
    start = window_start(data, n_symbols, k, smoothing, rng)
    text = (
        f"{n_seen} different symbols cannot tell {k} states apart: windows of {window_length(n_symbols, k)} symbols "
        "were used as observations, and random guesses beside them. Compare seeds."
    )
    return [Candidate("moments of windows", lambda: start)], MomentReport(suggested_components=n_seen, advice=(text,))


def moment_starts(
    moments: SymbolMoments, k: int, smoothing: float, rng: np.random.Generator, method: Decomposer = AUTO
) -> tuple[list[Candidate[Parameters]], MomentReport]:
    """Candidates for each ridge of the symmetrization and of common eigenvectors, and the report on the first."""
    second, core = moments.second, moments.core
    chains = [chain_from_core(second, core, ridge=ridge, rng=rng, method=method) for ridge in RIDGES]
    views = [
        (f"symmetrized moments with ridge {ridge:g} and EM on pairs", chain.means, chain.joint)
        for ridge, chain in zip(RIDGES, chains, strict=True)
    ]
    misfit = 0.0
    with suppress(np.linalg.LinAlgError):  # noise has made a factor singular: the others stand
        common = recover_chain(second, core, rng, ridge=COMMON_RIDGE)
        joint = (common.joint + _LEAST) / (common.joint + _LEAST).sum()
        views.append(("common eigenvectors of moments and EM on pairs", common.vectors, joint))
        misfit = common.residual
    candidates = [
        Candidate(name, partial(parameters_from, moments, means, joint, smoothing, _PAIR_STEPS))
        for name, means, joint in views
    ]
    report = describe(moments, chains[0].decomposition, chains[0].clipped_mass, k)
    return candidates, replace(report, details={**report.details, "misfit": misfit})


def most_likely(candidates: list[Candidate[Parameters]], data: Sequences) -> tuple[str, Parameters]:
    """The best as the data see them, and its name."""
    recursions = ForwardBackward(data)
    made = [(candidate.name, state) for candidate in candidates if (state := candidate.make()) is not None]
    return max(made, key=lambda start: recursions.log_likelihood(start[1]))


def describe(moments: SymbolMoments, decomposition: Decomposition, clipped_mass: float, k: int) -> MomentReport:
    """What the pairs and the tensor say, with advice where the pairs show fewer states."""
    spectrum, noise = moments.basis.spectrum, moments.basis.noise
    shown = int(np.sum(spectrum > noise))
    advice: tuple[str, ...] = ()
    if spectrum[k - 1] <= noise:
        advice = (
            f"correlation {k} between one step and the next, {spectrum[k - 1]:.3g}, is within the noise ({noise:.3g}): "
            f"pairs of symbols show about {shown} states. Lower n_components, or use more data.",
        )
    return MomentReport(
        spectrum=spectrum,
        gap=float(1 - spectrum[k] / spectrum[k - 1]) if k < spectrum.size and spectrum[k - 1] > 0 else 1.0,
        condition=float(spectrum[0] / max(spectrum[k - 1], 1e-300)),
        residual=decomposition.residual,
        clipped_mass=clipped_mass,
        suggested_components=shown,
        advice=advice,
        details={
            "noise": noise,
            "certificate": decomposition.certificate,
            "decomposition": decomposition.status,
        },
    )


def one_state(pairs: SymbolPairs, smoothing: float) -> tuple[Parameters, MomentReport]:
    """The frequencies of the symbols."""
    emission = CategoricalEmission(pairs.frequencies[None], smoothing)
    return HMMParameters(np.ones(1), np.ones((1, 1)), emission), MomentReport(method="frequencies", n_passes=1)
