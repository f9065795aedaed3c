"""What the hidden Markov models share: hmmlearn's manners over moments, Baum-Welch and the compiled recursions."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from odeco._random import RandomState, as_generator
from odeco.diagnostics import Diagnostics, warn_all
from odeco.exceptions import MomentError
from odeco.fitting.candidates import check_effort
from odeco.fitting.estimator import MomentEstimator
from odeco.models.hmm.remote import by_sequences, is_elsewhere, open_source, refuse_elsewhere, travelling
from odeco.refinement.emissions import Emission, HMMParameters
from odeco.refinement.expectation_sums import recursions_of
from odeco.refinement.forward_backward import ForwardBackward
from odeco.refinement.hmm import Smoothing, baum_welch
from odeco.refinement.loop import Refined, StopReason, Trace
from odeco.refinement.viterbi import best_path
from odeco.sources.chains import Chains, Extent
from odeco.sources.kinds import fitted_by
from odeco.sources.sequences import Joined, Sequences, join_sequences

Floats = NDArray[np.float64]
Parameters = HMMParameters[Any]
Algorithm = Literal["viterbi", "map"]

THEOREM = "moments (Proposition 3.4)"  # the estimate of refine=None


@dataclass(frozen=True, eq=False)
class MomentReport:
    """What the moments of a fit say of themselves; see `odeco.diagnostics.Diagnostics`.

    `method` names the estimate, or the start that won; `refined_on` the steps that Baum-Welch saw, where these are not
    all. `n_early` is what Baum-Welch on parts of the data has cost, in passes over all of them.
    """

    spectrum: Floats = field(default_factory=lambda: np.empty(0), repr=False)
    gap: float = float("nan")
    condition: float = float("nan")
    residual: float = float("nan")
    clipped_mass: float = 0.0
    suggested_components: int | None = None
    method: str = ""
    refined_on: str = ""
    n_passes: int = 2
    n_early: int = 0
    advice: tuple[str, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class ConvergenceMonitor:
    """What Baum-Welch did, under the names of hmmlearn's monitor.

    Attributes
    ----------
    history : list of float
        Log-likelihood (plus log prior) of all observations before each pass that was kept: it never falls.
    iter : int
        Passes over the data.
    converged : bool
    tol : float
        In nats per observation.
    n_iter : int
        Passes at most.
    """

    history: list[float]
    iter: int
    converged: bool
    tol: float
    n_iter: int


class HiddenMarkovModel(MomentEstimator, BaseEstimator):  # type: ignore[misc]
    """Base of the hidden Markov models: a family says how to encode, where to start and how to name its parameters."""

    n_components: int
    refine: str | None
    effort: str
    method: str
    method_options: Mapping[str, Any] | None
    smoothing: float
    max_iter: int
    tol: float
    random_state: RandomState
    startprob_: Floats
    transmat_: Floats
    n_features_in_: int

    @abstractmethod
    def _encode_joined(self, joined: Joined, *, reset: bool) -> Sequences:
        """Clean sequences; with `reset` what a fit learns of the observations' form is set."""

    @abstractmethod
    def _look(self, joined: Joined) -> Extent:
        """How much there is, once it is checked that it is of the right kind."""

    @abstractmethod
    def _settle(self, extent: Extent) -> None:
        """Set what a fit learns of the observations' form."""

    @abstractmethod
    def _theorem(self, data: Chains, rng: np.random.Generator) -> tuple[Parameters, MomentReport]:
        """What Proposition 3.4 alone gives, and what to say of it; MomentError where the data do not determine it."""

    @abstractmethod
    def _start(self, data: Chains, rng: np.random.Generator) -> tuple[Parameters, MomentReport]:
        """Where Baum-Welch starts: the best of several candidates, and what to say of it."""

    @abstractmethod
    def _one_state(self, data: Chains, rng: np.random.Generator) -> tuple[Parameters, MomentReport]:
        """The fit of one state."""

    @abstractmethod
    def _emission(self) -> Emission:
        """The emissions of the learned attributes."""

    @abstractmethod
    def _set_emission(self, emission: Any) -> None:
        """Set the learned attributes of the emissions."""

    @abstractmethod
    def _expected_observation(self, states: Floats) -> NDArray[Any]:
        """Distribution or mean of an observation for each distribution of the state (m, k)."""

    # Fitting

    def fit(self, X: Any, lengths: ArrayLike | None = None, *, sequence_weight: ArrayLike | None = None) -> Self:
        """Fit to sequences: (X, lengths) as in hmmlearn, or a list of them; `sequence_weight` has a number for each.

        Also to sequences elsewhere, of which only sums and samples come here: a Dask Bag of sequences, a list of
        delayed lists of them, a Dask array or DataFrame with `lengths`, or a function that returns a new iterator over
        lists of sequences at each call (docs/scaling.md).
        """
        return self._fit(X, lengths=lengths, sequence_weight=sequence_weight)

    def _encode(self, X: Any, lengths: ArrayLike | None, weights: ArrayLike | None, *, reset: bool) -> Sequences:
        return self._encode_joined(join_sequences(X, lengths, weights), reset=reset)

    def _open(self, X: Any, lengths: ArrayLike | None, sequence_weight: Any = None, *, reset: bool = True) -> Chains:
        """Sequences in memory, or elsewhere: one pass then looks at all of them."""
        if not is_elsewhere(X):
            return self._encode(X, lengths, sequence_weight, reset=reset)

        def make_encode(extent: Extent) -> Callable[[Joined], Sequences]:
            if reset:
                self._settle(extent)
            return partial(travelling(self)._encode_joined, reset=False)

        source = open_source(fitted_by(self, X), lengths, sequence_weight)
        return source.prepare(travelling(self)._look, make_encode)

    def _fit_rows(self, source: Chains, rng: np.random.Generator) -> Self:
        """The theorem's estimate, or Baum-Welch from the best start."""
        if self.refine is None:
            self._adopt(*self._theorem(source, rng), source)
            return self
        start, report = self._start(source, rng)
        return self._refined(source, start, report)

    def _refined(self, data: Chains, start: Parameters, report: MomentReport) -> Self:
        passes = max(self.max_iter - report.n_early, 1)
        refined = baum_welch(data, start, smoothing=self._chain_smoothing(), max_iter=passes, tol=self.tol)
        self._adopt(refined.state, report, data, refined)
        return self

    def _chain_smoothing(self) -> Smoothing:
        return Smoothing(0.0, self.smoothing)

    def _check_options(self) -> None:
        if (
            isinstance(self.n_components, bool)
            or not isinstance(self.n_components, (int, np.integer))
            or self.n_components < 1
        ):
            raise ValueError(f"n_components must be a positive integer, got {self.n_components!r}.")
        if self.refine not in (None, "auto", "baum-welch"):
            raise ValueError(f"refine must be None, 'auto' or 'baum-welch', got {self.refine!r}.")
        check_effort(self.effort)
        whole = isinstance(self.max_iter, (int, np.integer)) and not isinstance(self.max_iter, bool)
        if self.refine is not None and not (whole and self.max_iter >= 1):
            raise ValueError(
                f"max_iter must be an integer of at least 1, got {self.max_iter!r}; use refine=None for moments alone."
            )
        self._decomposer()
        if not 0 <= self.tol < np.inf:
            raise ValueError(f"tol must be a number of at least 0, got {self.tol!r}.")
        if not 0 <= self.smoothing < np.inf:
            raise ValueError(f"smoothing must be 0 or a positive number, got {self.smoothing!r}.")

    def _adopt(
        self, parameters: Parameters, report: MomentReport, data: Chains, refined: Refined[Parameters] | None = None
    ) -> None:
        """Set everything that a fit learns, states in order of their stationary probability."""
        order = np.argsort(-stationary_distribution(parameters.transmat), kind="stable")
        parameters = parameters.permute(order)
        self.startprob_, self.transmat_ = parameters.startprob, parameters.transmat
        self._set_emission(parameters.emission)
        trace = refined.trace if refined else Trace((), 0, StopReason.NOT_WATCHED)
        total = data.total_weight
        self.monitor_ = ConvergenceMonitor(
            [float(value * total) for value in trace.values], trace.n_iter, trace.converged, self.tol, self.max_iter
        )
        self.n_iter_ = trace.n_iter
        unfinished = trace.reason is StopReason.MAX_ITER and trace.n_iter > 1 and self.tol > 0  # else they were wanted
        advice = (f"Baum-Welch has not converged: {StopReason.MAX_ITER.value}",) if unfinished else ()
        passes = f", then {trace.n_iter} Baum-Welch passes{report.refined_on}" if refined else ""
        self.diagnostics_ = warn_all(
            Diagnostics(
                n_components=self.n_components,
                spectrum=report.spectrum,
                gap=report.gap,
                condition=report.condition,
                residual=report.residual,
                clipped_mass=report.clipped_mass,
                suggested_components=report.suggested_components,
                method=report.method + passes,
                n_passes=report.n_passes,
                advice=report.advice + advice,
                details={"refinement": trace, "early_passes": report.n_early, **report.details},
            ),
        )

    def _partial_fit(self, X: Any, **given: Any) -> Self:
        self._check_options()
        refuse_elsewhere(X, "partial_fit")
        self._add_chunks(X, **given)
        try:
            return self._read_moments()
        except MomentError as error:
            if self.refine is not None:
                raise
            return self._wait_for_more(str(error))

    def _wait_for_more(self, error: str) -> Self:
        """States that differ in nothing, until the stream has enough steps for the theorem."""
        kept, k = self._kept_steps(), self.n_components
        text = f"the {self._stream.n:,} steps so far do not determine the states ({error}) Add more steps."
        emission = self._one_state(kept, as_generator(self._stream.seed))[0].emission.permute(
            np.zeros(k, dtype=np.intp)
        )
        alike = HMMParameters(np.full(k, 1.0 / k), np.full((k, k), 1.0 / k), emission)
        self._adopt(alike, MomentReport(method="waiting for more steps", advice=(text,)), kept)
        return self

    def _chunks(self, X: Any, *, reset: bool, lengths: Any = None, sequence_weight: Any = None) -> Iterator[Sequences]:
        yield self._encode(X, lengths, sequence_weight, reset=reset)

    def _kept_steps(self) -> Sequences:
        """The first steps of the stream: all there are, or those that its basis was learned from."""
        first = self._stream.first if self._stream.started else self._stream.held(self._plan())
        assert isinstance(first, Sequences)
        return first

    def _parameters(self) -> Parameters:
        check_is_fitted(self, "transmat_")
        start, transmat = np.asarray(self.startprob_, dtype=np.float64), np.asarray(self.transmat_, dtype=np.float64)
        return HMMParameters(start, transmat, self._emission())

    def _recursions(self, X: Any, lengths: ArrayLike | None) -> tuple[ForwardBackward, Parameters]:
        parameters = self._parameters()
        return ForwardBackward(self._encode(X, lengths, None, reset=False)), parameters

    def _likelihood(self, X: Any, lengths: ArrayLike | None) -> tuple[float, int]:
        """Log-likelihood and number of steps."""
        parameters = self._parameters()
        data = self._open(X, lengths, reset=False)
        return recursions_of(data).log_likelihood(parameters), len(data)

    # Judging and decoding

    def score(self, X: Any, lengths: ArrayLike | None = None) -> float:
        """Log-likelihood of all sequences together; of sequences elsewhere, one pass over them."""
        return self._likelihood(X, lengths)[0]

    @by_sequences("shares", valued=True)
    def score_samples(self, X: Any, lengths: ArrayLike | None = None) -> tuple[float, Floats]:
        """Log-likelihood of all sequences, and the posterior of the state of each step given its sequence, (n, k)."""
        recursions, parameters = self._recursions(X, lengths)
        return recursions.posteriors(parameters)

    @by_sequences("shares")
    def predict_proba(self, X: Any, lengths: ArrayLike | None = None) -> Floats:
        """Posterior of the state of each step given its whole sequence, (n, k)."""
        return self.score_samples(X, lengths)[1]

    @by_sequences("shares")
    def filter_proba(self, X: Any, lengths: ArrayLike | None = None) -> Floats:
        """Probabilities of the state of each step given the observations up to it alone, (n, k)."""
        recursions, parameters = self._recursions(X, lengths)
        return recursions.filtered(parameters)[1]

    @by_sequences("next")
    def predict_next(self, X: Any, lengths: ArrayLike | None = None) -> NDArray[Any]:
        """What follows each step, as the observations up to it tell: row t looks at nothing after t of its sequence.

        Probabilities of the next symbol for a categorical model, the mean of the next observation for the others.
        """
        return self._expected_observation(self.filter_proba(X, lengths) @ self.transmat_)

    @by_sequences("state", valued=True)
    def decode(
        self, X: Any, lengths: ArrayLike | None = None, algorithm: Algorithm = "viterbi"
    ) -> tuple[float, NDArray[np.int64]]:
        """A log probability and states: the best sequence of states ("viterbi") or the best state of each step ("map").

        As in hmmlearn the number is the joint log probability of states and observations for "viterbi", and the sum of
        the posterior probabilities of the chosen states for "map".
        """
        if algorithm == "viterbi":
            parameters = self._parameters()
            return best_path(self._encode(X, lengths, None, reset=False), parameters)
        if algorithm == "map":
            posteriors = self.predict_proba(X, lengths)
            return float(posteriors.max(axis=1).sum()), np.asarray(posteriors.argmax(axis=1))
        raise ValueError(f"algorithm must be 'viterbi' or 'map', got {algorithm!r}.")

    @by_sequences("state")
    def predict(self, X: Any, lengths: ArrayLike | None = None) -> NDArray[np.int64]:
        """The best sequence of states (Viterbi)."""
        return self.decode(X, lengths)[1]

    def sample(
        self, n_samples: int = 1, random_state: RandomState = None, currstate: int | None = None
    ) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """Draw one sequence: observations (n, d) and states (n,); `currstate` is the state of the first step."""
        from odeco.simulate import markov_chain

        parameters = self._parameters()
        if isinstance(n_samples, bool) or not isinstance(n_samples, (int, np.integer)) or n_samples < 1:
            raise ValueError(f"n_samples must be a positive integer, got {n_samples!r}.")
        rng = as_generator(self.random_state if random_state is None else random_state)
        states = markov_chain(
            n_samples, parameters.transmat, start=parameters.startprob, first_state=currstate, random_state=rng
        )
        observations = parameters.emission.draw(states, rng)
        return observations.reshape(n_samples, -1), states

    def get_stationary_distribution(self) -> Floats:
        """The distribution of states that a step of the chain does not change, (k,)."""
        check_is_fitted(self, "transmat_")
        return stationary_distribution(self.transmat_)

    def aic(self, X: Any, lengths: ArrayLike | None = None) -> float:
        """Akaike information criterion: lower is better."""
        return -2 * self.score(X, lengths) + 2 * self._parameters().n_parameters

    def bic(self, X: Any, lengths: ArrayLike | None = None) -> float:
        """Bayesian information criterion: lower is better; counts the steps of all sequences."""
        value, n_steps = self._likelihood(X, lengths)
        return -2 * value + self._parameters().n_parameters * float(np.log(n_steps))


def stationary_distribution(transmat: ArrayLike) -> Floats:
    """The w with ``w = w @ transmat`` that a chain with equally likely first states tends to, on average.

    One eigenvalue problem would do for an irreducible chain. Chains with absorbing or periodic parts have several
    answers, or eigenvalues of modulus 1 besides it: repeated squaring of the lazy chain (T + I) / 2 settles on one.
    """
    chain = (np.asarray(transmat, dtype=np.float64) + np.eye(len(np.asarray(transmat)))) / 2
    for _ in range(60):
        squared = chain @ chain
        squared /= squared.sum(axis=1, keepdims=True)
        if np.abs(squared - chain).max() < 1e-15:
            break
        chain = squared
    weights = np.maximum(chain.mean(axis=0), 0.0)
    return np.asarray(weights / weights.sum())
