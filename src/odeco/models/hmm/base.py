"""What the hidden Markov models share: hmmlearn's manners over moments, Baum-Welch and the compiled recursions."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from odeco._random import RandomState, as_generator
from odeco.diagnostics import Diagnostics, without_moments
from odeco.families.simplex import fitted_gain
from odeco.fitting.candidates import check_effort
from odeco.fitting.choice.judging import BLOCKS, Judged
from odeco.fitting.estimator import Converging, Found, MomentEstimator
from odeco.fitting.free import FINER, Free
from odeco.fitting.options import check_choice, check_integer, check_number
from odeco.models.hmm.by_hand import settle_by_hand
from odeco.models.hmm.chain_theorem import Estimate, Parameters, stationary_distribution
from odeco.models.hmm.remote import by_sequences, is_elsewhere, open_source, refuse_elsewhere, travelling
from odeco.models.hmm.search import Starts, best_start
from odeco.moments.passes import run_passes
from odeco.refinement.emissions import Emission, HMMParameters
from odeco.refinement.expectation_sums import recursions_of
from odeco.refinement.forward_backward import ForwardBackward
from odeco.refinement.hmm import Smoothing, baum_welch
from odeco.refinement.loop import StopReason, Trace
from odeco.refinement.viterbi import best_path
from odeco.sources.chains import Chains
from odeco.sources.kinds import fitted_by
from odeco.sources.sequences import Extent, Joined, Sequences, join_sequences

Floats = NDArray[np.float64]
Algorithm = Literal["viterbi", "map"]

_NOT_REFINED = Trace((), 0, StopReason.NOT_WATCHED)


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


class HiddenMarkovModel(Converging, MomentEstimator, BaseEstimator):  # type: ignore[misc]
    """Base of the hidden Markov models: a family says how to encode, where to start and how to name its parameters."""

    _criterion = "marginal"
    n_components: Any
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
    def _read_sums(self, sums: Any, kept: Sequences, rng: np.random.Generator) -> Any:
        """The moments of a stream of more steps than are kept, in the form in which `_passes` returns them."""

    @abstractmethod
    def _starts(self, found: Found, rng: np.random.Generator) -> Starts:
        """Where Baum-Welch may start, for more than one state."""

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

    def _open(
        self, X: Any, lengths: ArrayLike | None = None, sequence_weight: Any = None, *, reset: bool = True
    ) -> Chains:
        """Sequences in memory, or elsewhere: one pass then looks at all of them."""
        if not is_elsewhere(X):
            return self._encode(X, lengths, sequence_weight, reset=reset)

        def make_encode(extent: Extent) -> Callable[[Joined], Sequences]:
            if reset:
                self._settle(extent)
            return partial(travelling(self)._encode_joined, reset=False)

        source = open_source(fitted_by(self, X), lengths, sequence_weight)
        return source.prepare(travelling(self)._look, make_encode)

    def _reopen(self, X: Any, **given: Any) -> Chains:
        return self._open(X, reset=False, **given)

    def _refine(self, found: Found, rng: np.random.Generator) -> Estimate | None:
        """Baum-Welch from the best start; of one state there is nothing to look for."""
        start: Estimate = found.estimate
        if self.n_components > 1:
            start = best_start(self, found, rng)
        passes = max(self.max_iter - start.report.details.get("early_passes", 0), 1)
        smoothing = self._chain_smoothing()
        refined = baum_welch(found.rows, start.parameters, smoothing=smoothing, max_iter=passes, tol=self.tol)
        return Estimate(refined.state, start.report, refined.trace)

    def _chain_smoothing(self) -> Smoothing:
        return Smoothing(0.0, self.smoothing)

    def _check_options(self) -> None:
        super()._check_options()
        check_integer("n_components", self.n_components)
        check_choice("refine", self.refine, ("auto", "baum-welch", None))
        check_effort(self.effort)
        if self.refine is not None:
            check_integer("max_iter", self.max_iter)
        check_number("tol", self.tol)
        check_number("smoothing", self.smoothing)

    def _conclude(self, found: Found, refined: Estimate | None) -> Diagnostics:
        done: Estimate = found.estimate if refined is None else refined
        report, trace, kept = done.report, done.trace or _NOT_REFINED, ""
        if self._is_beyond_kept():
            report = self._of_stream(report, found.rows, refined=refined is not None)
            kept = f" on the first {len(found.rows):,} steps, which are kept"
        passes = f", then {trace.n_iter} Baum-Welch passes{kept}" if done.trace else ""
        self._learn(done.parameters, trace, found.rows.total_weight)
        unfinished = trace.reason is StopReason.MAX_ITER and trace.n_iter > 1 and self.tol > 0  # else they were wanted
        advice = (f"Baum-Welch has not converged: {StopReason.MAX_ITER.value}",) if unfinished else ()
        return replace(
            report,
            method=report.method + passes,
            advice=(*report.advice, *self._advice_on(done.parameters.emission), *advice),
            details={"refinement": trace, "early_passes": 0, **report.details},
        )

    def _learn(self, parameters: Parameters, trace: Trace, weight: float) -> None:
        """Set everything that a fit learns, states in order of their stationary probability."""
        parameters = parameters.permute(np.argsort(-stationary_distribution(parameters.transmat), kind="stable"))
        self.startprob_, self.transmat_ = parameters.startprob, parameters.transmat
        self._set_emission(parameters.emission)
        history = [float(value * weight) for value in trace.values]
        self.monitor_ = ConvergenceMonitor(history, trace.n_iter, trace.converged, self.tol, self.max_iter)
        self.n_iter_ = trace.n_iter

    def _advice_on(self, emission: Any) -> tuple[str, ...]:
        """What the fitted emissions themselves call for."""
        return ()

    def _wait(self, found: Found, rng: np.random.Generator) -> Diagnostics:
        """States that differ in nothing, until the stream has enough steps for the theorem."""
        k, alone = self.n_components, copy(self)
        alone.n_components = 1
        one: Estimate = alone._theorem(run_passes(alone._passes(found.rows, rng), found.rows), rng)
        emission = one.parameters.emission.permute(np.zeros(k, dtype=np.intp))
        alike = HMMParameters(np.full(k, 1.0 / k), np.full((k, k), 1.0 / k), emission)
        self._learn(alike, _NOT_REFINED, found.rows.total_weight)
        text = f"the {self._stream.n:,} steps so far do not determine the states ({found.error}) Add more steps."
        return without_moments(k, "waiting for more steps", (text,), {})

    # Streams: the first steps are kept

    def _chunks(self, X: Any, *, reset: bool, lengths: Any = None, sequence_weight: Any = None) -> Iterator[Sequences]:
        refuse_elsewhere(X, "partial_fit")
        yield self._encode(X, lengths, sequence_weight, reset=reset)

    def _kept_rows(self) -> Sequences:
        """The first steps of the stream: all there are, or those that its basis was learned from."""
        first = self._stream.first if self._stream.started else self._stream.held(self._plan())
        assert isinstance(first, Sequences)
        return first

    def _is_beyond_kept(self) -> bool:
        """Whether the fit is that of a stream of more steps than are kept."""
        return hasattr(self, "_stream") and self._stream.started

    def _stream_moments(self, kept: Sequences, rng: np.random.Generator) -> Any:
        """While all steps are kept, what `fit` would have; then those of everything."""
        if not self._stream.started:
            return run_passes(self._passes(kept, rng), kept)
        return self._read_sums(self._stream.read(self._plan()), kept, rng)

    def _of_stream(self, report: Diagnostics, kept: Sequences, *, refined: bool) -> Diagnostics:
        """The report on a fit of more steps than are kept: which of them it comes from."""
        return replace(report, method=f"{report.method}, of all {self._stream.n:,} steps")

    def _warns(self) -> bool:
        return True

    def _parameters(self) -> Parameters:
        check_is_fitted(self, "transmat_")
        settle_by_hand(self)
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

    def _judge(self, batch: Sequences) -> Judged:
        """Groups of whole sequences: cut ones would have other likelihoods."""
        parameters = self._parameters()
        groups = batch.groups(BLOCKS)
        found = [ForwardBackward(group).posteriors(parameters) for group in groups]
        completed = [best_path(group, parameters)[0] for group in groups] if batch.weights is None else None
        return Judged(
            np.array([value for value, _ in found]),
            np.array([group.total_weight for group in groups]),
            None if completed is None else np.array(completed),
            np.vstack([shares for _, shares in found]),
        )

    def _n_parameters(self) -> int:
        return self._parameters().n_parameters

    def _parameter_price(self, members: Floats, trials: float) -> float:
        """Of transitions at the expected numbers of steps: BIC would count all steps for each, also for rare ones."""
        steps = members[:, None]
        return fitted_gain(steps * self.transmat_, self.transmat_) + self._emission_price(steps)

    def _emission_price(self, steps: Floats) -> float:
        """Of the emissions, `steps` (k, 1) being expected in each state: as BIC has it, unless a model knows better."""
        return float(0.5 * self._parameters().emission.n_parameters * np.log(max(steps.sum(), 2.0)))

    # What intervals ask for

    @abstractmethod
    def _free_emission(self) -> list[Free]:
        """The free parameters of the emissions, by the names of their attributes."""

    def _free_parameters(self) -> list[Free]:
        chain = [Free("startprob_", "simplex", self.startprob_), Free("transmat_", "simplex", self.transmat_)]
        return [*chain, *self._free_emission()]

    def _step_log_likelihoods(self, data: Sequences) -> Floats:
        """Log probability of each step's observation given those before it, (n,)."""
        parameters = self._parameters()
        filtered = ForwardBackward(data).filtered(parameters)[1]
        expected = np.empty_like(filtered)
        expected[1:] = filtered[:-1] @ parameters.transmat
        expected[data.offsets[:-1]] = parameters.startprob
        rows, scales = parameters.emission.likelihood(data.values)
        if data.codes is not None:
            rows, scales = rows[data.codes], scales[data.codes]
        return np.asarray(np.log(np.einsum("tk,tk->t", expected, rows)) + scales)

    def _step_shares(self, data: Sequences) -> Floats:
        """Posterior of the state of each step given its sequence, (n, k)."""
        return ForwardBackward(data).posteriors(self._parameters())[1]

    def _trial_shapes(self) -> dict[str, tuple[int, ...]]:
        return {"startprob_": self.startprob_.shape}

    def _batch_trials(self, batch: Sequences, shares: Floats) -> dict[str, Floats]:
        """The start is seen once in each sequence."""
        n = batch.n_sequences if batch.weights is None else batch.weights.sum()
        return {"startprob_": np.full(len(self.startprob_), float(n))}

    def _climbed(self, X: Any, given: Mapping[str, Any], rng: Any) -> Self | None:
        data = self._encode(X, None, given.get("sequence_weight"), reset=False)
        done = baum_welch(
            data, self._parameters(), smoothing=self._chain_smoothing(), max_iter=self.max_iter, tol=self.tol / FINER
        )
        again = copy(self)
        again.startprob_, again.transmat_ = done.state.startprob, done.state.transmat
        again._set_emission(done.state.emission)
        return again

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
