"""Hidden Markov models of symbols: moments of consecutive triples, then Baum-Welch."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from odeco._random import RandomState
from odeco.models._symbol_starts import symbol_starts
from odeco.models.hmm_base import HiddenMarkovModel, MomentReport, Parameters
from odeco.refinement.categorical_emission import CategoricalEmission
from odeco.sources.sequences import Sequences, as_symbols, join_sequences

Floats = NDArray[np.float64]


class CategoricalHMM(HiddenMarkovModel):
    """A hidden Markov chain whose states emit symbols 0 to d - 1 (section 3.3.3, Proposition 3.4).

    Parameters
    ----------
    n_components : int
        Number of states k.
    n_features : int, optional
        Size d of the alphabet; the largest symbol seen plus one by default.
    refine : {"auto", "baum-welch", None}
        What polishes the moment estimate: accelerated Baum-Welch, or nothing (the paper's pure estimate).
    smoothing : float
        Pseudo-count of each symbol in each state and of each transition.
    max_iter : int
        Passes of Baum-Welch at most.
    tol : float
        Gain of the log-likelihood per observation, in nats, below which Baum-Welch ends.
    random_state : int, Generator, RandomState or None

    Attributes
    ----------
    startprob_ : (k,)
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
        n_components: int = 2,
        *,
        n_features: int | None = None,
        refine: str | None = "auto",
        smoothing: float = 0.01,
        max_iter: int = 100,
        tol: float = 1e-6,
        random_state: RandomState = None,
    ) -> None:
        self.n_components = n_components
        self.n_features = n_features
        self.refine = refine
        self.smoothing = smoothing
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def _encode(self, X: Any, lengths: ArrayLike | None, weights: ArrayLike | None, *, reset: bool) -> Sequences:
        joined = join_sequences(X, lengths, weights)
        symbols = as_symbols(joined.array)
        if reset:
            self.n_features_in_ = 1
            self.n_symbols_ = _alphabet(symbols, self.n_features)
        d = self.n_symbols_
        largest = int(symbols.max())
        if largest >= d:
            raise ValueError(
                f"X holds the symbol {largest}, but the model knows {d} symbols, 0 to {d - 1}. Give n_features before "
                "fitting where later data may hold more, or -1 for what is not known."
            )
        codes = np.where(symbols < 0, d, symbols).astype(np.int32)
        return Sequences(np.append(np.arange(d), -1), codes, joined.offsets, joined.weights)

    def _starts(self, data: Sequences, rng: np.random.Generator) -> tuple[list[Parameters], MomentReport]:
        return symbol_starts(
            data,
            self.n_symbols_,
            self.n_components,
            smoothing=self.smoothing,
            refined=self.refine is not None,
            rng=rng,
        )

    def _emission(self) -> CategoricalEmission:
        return CategoricalEmission(np.asarray(self.emissionprob_, dtype=np.float64), self.smoothing)

    def _set_emission(self, emission: CategoricalEmission) -> None:
        self.emissionprob_ = emission.probabilities

    def _expected_observation(self, states: Floats) -> Floats:
        return np.asarray(states @ self.emissionprob_)


def _alphabet(symbols: NDArray[np.int64], given: int | None) -> int:
    """Number of symbols: as given, or the largest plus one."""
    largest = int(symbols.max())
    if largest < 0:
        raise ValueError("X holds no symbol: every observation is missing.")
    if given is None:
        return largest + 1
    if isinstance(given, bool) or not isinstance(given, (int, np.integer)) or given < 1:
        raise ValueError(f"n_features must be None or a positive integer, got {given!r}.")
    return int(given)
