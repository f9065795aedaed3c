"""The exchangeable single topic model (Theorem 3.1): a mixture of multinomials, by moments and a few EM steps."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp
from sklearn.base import DensityMixin
from sklearn.utils.validation import check_is_fitted

from odeco._random import RandomState, as_generator
from odeco.exceptions import MomentError
from odeco.kernels.threads import blas_for
from odeco.models.base import TopicEstimator, describe, without_moments
from odeco.models.fallback import documents_as_topics
from odeco.models.lazy import by_rows
from odeco.models.topics import topics_at
from odeco.models.word_moments import word_moments
from odeco.models.word_stream import WordStream
from odeco.refinement.loop import Trace
from odeco.refinement.multinomial_mixture import log_joint, refine_multinomial_mixture
from odeco.sources import Source

Floats = NDArray[np.float64]

# Share of the uniform distribution in a topic when it judges documents it may not have seen the words of.
_PREDICTION_SMOOTHING = 1e-6


class SingleTopicModel(DensityMixin, TopicEstimator):  # type: ignore[misc]
    """Documents of one topic each: a mixture of multinomials.

    Parameters
    ----------
    n_components : int
        Number of topics k.
    refine : {"auto", "em", "one-step", None}
        What polishes the moment estimate: "auto" and "em" run EM to convergence, "one-step" takes a single EM step,
        None keeps the paper's pure estimate.
    smoothing : float
        Pseudo-count of each word in each topic during EM: keeps unseen words possible.
    max_iter : int
        EM steps at most.
    tol : float
        Gain of the mean log-likelihood per document below which EM stops.
    word_scale : "auto" or float
        As in `LatentDirichletAllocation`.
    method : str
        Method of `odeco.decompose`.
    basis_size : int
        Documents from which `partial_fit` learns its basis.
    random_state : int, Generator, RandomState or None

    Attributes
    ----------
    weights_ : (k,)
        Topic probabilities, largest first.
    components_ : (k, d)
        Word probabilities of each topic, rows on the simplex.
    n_iter_ : int
        EM steps taken.
    diagnostics_ : Diagnostics
    n_features_in_ : int
    """

    _refinements = ("auto", "em", "one-step", None)

    def __init__(
        self,
        n_components: int = 10,
        *,
        refine: str | None = "auto",
        smoothing: float = 0.01,
        max_iter: int = 100,
        tol: float = 1e-4,
        word_scale: float | str = "auto",
        method: str = "auto",
        basis_size: int = 5000,
        random_state: RandomState = None,
    ) -> None:
        self.n_components = n_components
        self.refine = refine
        self.smoothing = smoothing
        self.max_iter = max_iter
        self.tol = tol
        self.word_scale = word_scale
        self.method = method
        self.basis_size = basis_size
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Fit to counts (n, d): an array, sparse matrix, DataFrame, or anything `odeco.sources.as_source` takes."""
        self._forget_stream()
        source = self._open(X, sample_weight)
        with blas_for(self.n_components):
            return self._fit(source)

    def _fit(self, source: Source) -> Self:
        rng = as_generator(self.random_state)
        steps = self._steps()
        try:
            moments = word_moments(source, self.n_components, word_scale=self._scale(), rng=rng)
            estimate = topics_at(moments.basis, 0.0, rng, self.method)
        except MomentError as error:
            if steps == 0:
                raise
            return self._fit_without_moments(source, str(error), steps, rng)
        self._set(estimate.weights, estimate.topics, 0)
        details: dict[str, Any] = {"word_scale": moments.word_scale, "weights_total": estimate.raw_total}
        method = "moments"
        if steps:
            trace = self._polish(source, steps)
            details["refinement"] = trace
            method = f"moments, then {trace.n_iter} EM steps"
        self._finish(
            describe(
                moments.basis,
                estimate,
                noise=moments.noise,
                method=method,
                advice=[],
                details=details,
                refined=steps > 0,
            )
        )
        return self

    def partial_fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Add documents in one pass; memory does not grow with their number, and chunks do not matter.

        Gives the moment estimate (`refine` is not used): EM would need the documents again.
        """
        return self._read_moments(self._stream(X, sample_weight))

    def _read_moments(self, stream: WordStream) -> Self:
        """The estimate of all documents that a stream has seen."""
        rng = as_generator(self.random_state)
        try:
            basis, noise = stream.read()
            estimate = topics_at(basis, 0.0, rng, self.method)
        except MomentError as error:
            return self._wait_for_more(stream, str(error), rng)
        self._set(estimate.weights, estimate.topics, 0)
        details = {"n_documents": stream.n_documents, "weights_total": estimate.raw_total}
        self._finish(describe(basis, estimate, noise=noise, method="moments, one pass", advice=[], details=details))
        return self

    def _steps(self) -> int:
        """EM steps that `refine` asks for."""
        return {None: 0, "one-step": 1}.get(self.refine, self.max_iter)

    def _polish(self, source: Source, steps: int) -> Trace:
        refined = refine_multinomial_mixture(
            source,
            self.weights_,
            self.components_,
            smoothing=self.smoothing,
            max_iter=steps,
            tol=self.tol,
        )
        self._set(refined.weights, refined.topics, refined.n_iter)
        return refined.trace

    def _fit_without_moments(self, source: Source, error: str, steps: int, rng: np.random.Generator) -> Self:
        """EM from documents as topics, and say why."""
        topics = documents_as_topics(source, self.n_components, rng)
        self._set(np.full(self.n_components, 1.0 / self.n_components), topics, 0)
        trace = self._polish(source, steps)
        text = f"the moments could not be used ({error}) EM started from documents: try other seeds."
        method = f"documents as topics, then {trace.n_iter} EM steps"
        self._finish(without_moments(self.n_components, method, [text], {"refinement": trace}))
        return self

    def _placeholders(self, topics: Floats) -> None:
        self._set(np.full(self.n_components, 1.0 / self.n_components), topics, 0)

    def _set(self, weights: Floats, topics: Floats, n_iter: int) -> None:
        order = np.argsort(-weights, kind="stable")
        self.weights_, self.components_, self.n_iter_ = weights[order], topics[order], n_iter

    def _joint(self, X: Any) -> Floats:
        return log_joint(self._counts(X).counts, self.weights_, self._smoothed())

    def _smoothed(self) -> Floats:
        """Topics in which no word is impossible, so that new documents always have a likelihood."""
        d = self.components_.shape[1]
        return np.asarray((1 - _PREDICTION_SMOOTHING) * self.components_ + _PREDICTION_SMOOTHING / d)

    @by_rows("shares")
    def predict_proba(self, X: Any) -> Floats:
        """Posterior probabilities of the topics (n, k)."""
        joint = self._joint(X)
        return np.asarray(np.exp(joint - logsumexp(joint, axis=1, keepdims=True)))

    @by_rows("label")
    def predict(self, X: Any) -> NDArray[np.intp]:
        """The most probable topic of each document."""
        return np.asarray(np.argmax(self._joint(X), axis=1))

    def fit_predict(self, X: Any, y: Any = None, **params: Any) -> NDArray[np.intp]:
        """Fit, then the most probable topic of each document."""
        return self.fit(X, **params).predict(X)

    @by_rows("score")
    def score_samples(self, X: Any) -> Floats:
        """Log probability of each document's words in their order (without the multinomial coefficient)."""
        return np.asarray(logsumexp(self._joint(X), axis=1))

    def score(self, X: Any, y: Any = None) -> float:
        """Mean of `score_samples`."""
        return float(self.score_samples(X).mean())

    def _n_parameters(self) -> int:
        k, d = self.components_.shape
        return int((k - 1) + k * (d - 1))

    def aic(self, X: Any) -> float:
        """Akaike's criterion on X: smaller is better."""
        return -2 * float(self.score_samples(X).sum()) + 2 * self._n_parameters()

    def bic(self, X: Any) -> float:
        """Bayes' criterion on X: smaller is better."""
        scores = self.score_samples(X)
        return -2 * float(scores.sum()) + self._n_parameters() * float(np.log(scores.size))

    def sample(self, n_samples: int = 1, *, mean_length: float = 60.0) -> tuple[Any, NDArray[np.intp]]:
        """Draw documents: counts (n, d) as CSR and their topics (n,)."""
        from odeco.simulate import single_topic_documents

        check_is_fitted(self)
        drawn = single_topic_documents(
            n_samples, self.components_, self.weights_, mean_length=mean_length, random_state=self.random_state
        )
        return drawn.counts, np.asarray(np.argmax(drawn.proportions, axis=1))
