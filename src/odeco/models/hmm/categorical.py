"""Hidden Markov models of symbols: moments of consecutive triples, then Baum-Welch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from odeco._random import RandomState
from odeco.diagnostics import Diagnostics
from odeco.families.simplex import SPARSE_OR_NOT, fitted_gain
from odeco.fitting.estimator import Found, MomentEstimator
from odeco.fitting.free import Free
from odeco.fitting.stream import StreamPlan
from odeco.models.hmm.base import HiddenMarkovModel
from odeco.models.hmm.chain_theorem import Estimate
from odeco.models.hmm.policy import POLICY
from odeco.models.hmm.search import Starts, effort_of
from odeco.models.hmm.stream import StreamedSymbols, symbol_plan
from odeco.models.hmm.symbol_moments import SymbolSums, symbol_passes, symbol_theorem
from odeco.models.hmm.symbol_starts import SymbolStarts, most_likely
from odeco.moments.passes import Passes
from odeco.refinement.categorical_emission import CategoricalEmission
from odeco.sources.chains import Chains
from odeco.sources.sequences import Extent, Joined, Sequences, as_symbols

Floats = NDArray[np.float64]

_BLOCK = 1 << 18  # symbols looked at at a time


class CategoricalHMM(HiddenMarkovModel):
    """A hidden Markov chain whose states emit symbols 0 to d - 1 (section 3.3.3, Proposition 3.4).

    Parameters
    ----------
    n_components : int or "auto"
        Number of states k; "auto" lets the data choose it (`odeco.choose_components`).
    n_features : int, optional
        Size d of the alphabet; the largest symbol seen plus one by default, at most 10,000 or ten for each step.
    refine : {"auto", "baum-welch", None}
        "auto" is accelerated Baum-Welch from the best of several starts, which `diagnostics_` names. None keeps the
        paper's pure estimate: Proposition 3.4, negative probabilities put on the simplex; `MomentError` where the
        data do not determine it.
    effort : {"auto", "quick", "thorough"}
        How long to look for a start: "quick" refines the theorem's estimate alone, "auto" compares a few candidates and
        moves the best, "thorough" many.
    method, method_options : str, mapping or None
        Method of `odeco.decompose`, and its options: for the paper's estimate and for starts by symmetrized moments.
    smoothing : float
        Pseudo-count of each symbol in each state and of each transition.
    max_iter : int
        Passes of Baum-Welch at most; those over a part of the steps count as that part.
    tol : float
        Gain of the log-likelihood per observation, in nats, below which Baum-Welch ends.
    random_state : int, Generator, RandomState or None
    verbose : bool
        Say on stderr what a fit does: its passes over the data, the steps of its refinement, and how it ended.

    Attributes
    ----------
    startprob_ : (k,)
        With ``refine=None`` from the first symbols of at least 10 sequences for each state; of fewer, the stationary
        distribution of `transmat_`.
    transmat_ : (k, k)
        ``transmat_[i, j]`` is the probability of going from i to j: rows sum to 1, as in hmmlearn. The paper's T is its
        transpose. States come in the order of their stationary probability, largest first.
    emissionprob_ : (k, d)
        Probabilities of the symbols in each state.
    monitor_ : ConvergenceMonitor
    diagnostics_ : Diagnostics
    n_symbols_ : int
        Size of the alphabet.
    n_features_in_ : int
        Columns of X: 1.
    """

    def __init__(
        self,
        n_components: int | str = 2,
        *,
        n_features: int | None = None,
        refine: str | None = "auto",
        effort: str = "auto",
        method: str = "auto",
        method_options: Mapping[str, Any] | None = None,
        smoothing: float = 0.01,
        max_iter: int = 500,
        tol: float = 4e-6,
        random_state: RandomState = None,
        verbose: bool = False,
    ) -> None:
        self.n_components = n_components
        self.n_features = n_features
        self.refine = refine
        self.effort = effort
        self.method = method
        self.method_options = method_options
        self.smoothing = smoothing
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.verbose = verbose

    def _encode_joined(self, joined: Joined, *, reset: bool) -> Sequences:
        symbols = as_symbols(joined.array)
        if reset:
            self._settle(_extent(symbols, joined))
        d = self.n_symbols_
        self._check_largest(int(symbols.max()))
        codes = symbols if symbols.min() >= 0 else _coded(symbols, d)
        return Sequences(np.append(np.arange(d), -1), codes, joined.offsets, joined.weights)

    def _look(self, joined: Joined) -> Extent:
        return _extent(as_symbols(joined.array), joined)

    def _settle(self, extent: Extent) -> None:
        self.n_features_in_ = 1
        largest = int(extent.largest[0])
        self.n_symbols_ = _alphabet(largest, self.n_features, extent.n_steps)
        self._check_largest(largest)

    def _check_largest(self, largest: int) -> None:
        d = self.n_symbols_
        if largest >= d:
            raise ValueError(
                f"X holds the symbol {largest}, but the model knows {d} symbols, 0 to {d - 1}. Give n_features before "
                "fitting where later data may hold more, or -1 for what is not known."
            )

    def partial_fit(
        self, X: Any, lengths: ArrayLike | None = None, *, sequence_weight: ArrayLike | None = None
    ) -> Self:
        """Add whole sequences, and fit to all seen since the first call (or the first after `fit`).

        The first 50,000 steps are kept: up to there the result is that of `fit`. Later sequences enter the moments and
        are dropped, and the result comes from the moments of everything: Baum-Welch would need the steps again. With
        ``refine=None`` it is the paper's estimate; otherwise the start that is most likely on the steps kept, and a
        `MomentWarning` says so. How the sequences are divided into calls makes no difference. Give `n_features` where
        later symbols may be larger.
        """
        return self._partial_fit(X, lengths=lengths, sequence_weight=sequence_weight)

    def _emission_price(self, steps: Floats) -> float:
        """Integrated out as well: BIC would count all steps for symbols that never come.

        With Jeffreys' prior 5 of 40 drawn chains of 2,000 steps and 20 symbols, few in each state, had a state too few;
        with the likeliest prior 3, and of these the fit with a state too few is likelier than the true parameters.
        """
        return fitted_gain(steps * self.emissionprob_, self.emissionprob_, SPARSE_OR_NOT)

    def _plan(self) -> StreamPlan[Sequences, StreamedSymbols]:
        return symbol_plan(self.n_symbols_, self.n_components)

    def _passes(self, source: Chains, rng: np.random.Generator) -> Passes[SymbolSums]:
        return symbol_passes(self.n_symbols_, self.n_components, rng, windows=self.refine is not None)

    def _narrowed(self, moments: SymbolSums, n_components: int) -> SymbolSums | None:
        return moments.narrowed(n_components)

    def _read_sums(self, sums: StreamedSymbols, kept: Sequences, rng: np.random.Generator) -> SymbolSums:
        return sums.read(self.n_components, rng)

    def _theorem(self, moments: SymbolSums, rng: np.random.Generator) -> Estimate:
        method = self._decomposer()
        return symbol_theorem(moments, self.n_components, smoothing=self.smoothing, method=method, rng=rng)

    def _starts(self, found: Found, rng: np.random.Generator) -> Starts:
        return self._candidates(rng).of(found, self.n_components, effort_of(self).n_field)

    def _candidates(self, rng: np.random.Generator) -> SymbolStarts:
        return SymbolStarts(self.n_symbols_, self.smoothing, self._decomposer(), rng)

    def _refine(self, found: Found, rng: np.random.Generator) -> Estimate | None:
        """Of a stream that is longer than what is kept, the start that is most likely on that, as it is."""
        if not self._is_beyond_kept():
            return super()._refine(found, rng)
        moments = None if found.moments is None else found.moments.moments
        if moments is None:
            return MomentEstimator._refine(self, found, rng)  # type: ignore[no-any-return]
        candidates, report = self._candidates(rng).of_moments(moments, self.n_components)
        name, best = most_likely(candidates, found.rows)
        return Estimate(best, replace(report, method=name))

    def _of_stream(self, report: Diagnostics, kept: Sequences, *, refined: bool) -> Diagnostics:
        report = super()._of_stream(report, kept, refined=refined)
        if not refined:
            return report
        text = (
            f"{self._stream.n:,} steps came, of which partial_fit keeps {len(kept):,}: the result is a moment estimate "
            "of all of them, without Baum-Welch. Call fit where they fit in memory, or set refine=None for the "
            "paper's estimate."
        )
        method = f"{report.method}, most likely on the {len(kept):,} kept, not refined"
        return replace(report, method=method, advice=(*report.advice, text))

    @classmethod
    def from_hmmlearn(cls, peer: Any) -> Self:
        """A fitted model with the parameters of a fitted `hmmlearn.hmm.CategoricalHMM`."""
        model = cls(peer.n_components, n_features=int(np.shape(peer.emissionprob_)[1]))
        model.startprob_, model.transmat_ = np.array(peer.startprob_), np.array(peer.transmat_)
        model.emissionprob_ = np.array(peer.emissionprob_)
        model.n_symbols_, model.n_features_in_ = model.emissionprob_.shape[1], 1
        return model

    def to_hmmlearn(self) -> Any:
        """A fitted `hmmlearn.hmm.CategoricalHMM` with these parameters (needs hmmlearn)."""
        from hmmlearn.hmm import CategoricalHMM as Peer  # type: ignore[import-untyped]

        parameters = self._parameters()
        peer = Peer(self.n_components, n_features=self.n_symbols_)
        peer.startprob_, peer.transmat_ = parameters.startprob, parameters.transmat
        peer.emissionprob_ = np.asarray(self.emissionprob_)
        return peer

    def _emission(self) -> CategoricalEmission:
        return CategoricalEmission(np.asarray(self.emissionprob_, dtype=np.float64), self.smoothing)

    def _set_emission(self, emission: CategoricalEmission) -> None:
        self.emissionprob_ = emission.probabilities

    def _free_emission(self) -> list[Free]:
        return [Free("emissionprob_", "simplex", self.emissionprob_)]

    def _expected_observation(self, states: Floats) -> Floats:
        return np.asarray(states @ self.emissionprob_)


def _coded(symbols: NDArray[np.integer], missing: int) -> NDArray[np.integer]:
    """A copy with a symbol of its own for what is missing, in as few bytes as that takes."""
    codes = np.empty(symbols.shape, dtype=np.min_scalar_type(missing))
    for low in range(0, symbols.size, _BLOCK):
        part = symbols[low : low + _BLOCK]
        codes[low : low + _BLOCK] = np.where(part < 0, missing, part)
    return codes


def _extent(symbols: NDArray[np.integer], joined: Joined) -> Extent:
    return Extent.of(symbols[:, None], joined.offsets, joined.weights)


def _alphabet(largest: int, given: int | None, n_steps: int) -> int:
    """Number of symbols: as given, or the largest plus one."""
    if largest < 0:
        raise ValueError("X holds no symbol: every observation is missing.")
    if given is None:
        if largest >= max(POLICY.symbols, POLICY.symbols_per_step * n_steps):
            raise ValueError(
                f"X holds the symbol {largest} in {n_steps} steps: of the symbols up to it few occur, and all would be "
                "kept. Number those that occur 0, 1, 2, ... (np.unique(X, return_inverse=True)), or give n_features."
            )
        return largest + 1
    whole = isinstance(given, (int, np.integer)) and not isinstance(given, bool)
    if not whole or not 1 <= given < 2**31:  # compiled code counts them in 32 bits
        raise ValueError(f"n_features must be None or a positive integer below 2**31, got {given!r}.")
    return int(given)
