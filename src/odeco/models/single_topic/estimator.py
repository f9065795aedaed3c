"""The exchangeable single topic model (Theorem 3.1): a mixture of multinomials, by moments and a few EM steps."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import DensityMixin
from sklearn.utils.validation import check_is_fitted

from odeco._random import RandomState
from odeco.diagnostics import Diagnostics
from odeco.families.responsibilities import posterior
from odeco.families.simplex import fitted_gain
from odeco.fitting.candidates import EFFORTS, check_effort
from odeco.fitting.choice.judging import Judged, judged_rows
from odeco.fitting.estimator import Found
from odeco.fitting.free import FINER, Free
from odeco.models.lazy import by_rows
from odeco.models.single_topic.choice import SearchedRefinement, is_trusted, search_topics
from odeco.models.single_topic.policy import POLICY
from odeco.models.topics.estimator import TopicEstimator
from odeco.models.topics.fallback import documents_as_topics
from odeco.models.topics.moments import WordMoments
from odeco.models.topics.theorem import TopicEstimate, topics_at
from odeco.refinement.multinomial_mixture import Mixture, MixtureRefinement, log_joint, refine_multinomial_mixture
from odeco.refinement.one_step import topic_step
from odeco.sources import Batch, as_source

Floats = NDArray[np.float64]


class SingleTopicModel(DensityMixin, TopicEstimator):  # type: ignore[misc]
    """Documents of one topic each: a mixture of multinomials.

    Parameters
    ----------
    n_components : int or "auto"
        Number of topics k; "auto" lets the data choose it (`odeco.choose_components`).
    refine : {"auto", "em", "one-step", None}
        What polishes the moment estimate: "auto" and "em" run EM to convergence, "one-step" takes one scoring step,
        None keeps the paper's pure estimate.
    effort : {"auto", "quick", "thorough"}
        How long to look for a start: "quick" refines the theorem's estimate alone, "auto" compares a few candidates and
        moves the best, "thorough" many.
    smoothing : float
        Pseudo-count of each word in each topic during EM: keeps unseen words possible.
    max_iter : int
        EM steps at most.
    tol : float
        Gain of the mean log-likelihood per document below which EM stops.
    word_scale : "auto" or float
        As in `LatentDirichletAllocation`.
    method, method_options : str, mapping or None
        Method of `odeco.decompose`, and its options.
    document_weights : {"auto", "equal", "length"}
        What a document counts in the moments, beside `sample_weight`. "equal": one each, as in the paper. "length":
        long ones more, which tell more; biased where lengths go with topics. "auto": "equal" for the paper's estimate
        (``refine=None``), "length" where a refinement follows, which leaves that bias behind.
    basis_size : int
        Documents from which `partial_fit` learns its basis.
    random_state : int, Generator, RandomState or None
    verbose : bool
        Say on stderr what a fit does: its passes over the data, the steps of its refinement, and how it ended.

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

    _criterion = "marginal"

    def __init__(
        self,
        n_components: int | str = 10,
        *,
        refine: str | None = "auto",
        effort: str = "auto",
        smoothing: float = 0.01,
        max_iter: int = 100,
        tol: float = 1e-4,
        word_scale: float | str = "auto",
        method: str = "auto",
        method_options: Mapping[str, Any] | None = None,
        document_weights: str = "auto",
        basis_size: int = 5000,
        random_state: RandomState = None,
        verbose: bool = False,
    ) -> None:
        self.n_components = n_components
        self.refine = refine
        self.effort = effort
        self.smoothing = smoothing
        self.max_iter = max_iter
        self.tol = tol
        self.word_scale = word_scale
        self.method = method
        self.method_options = method_options
        self.document_weights = document_weights
        self.basis_size = basis_size
        self.random_state = random_state
        self.verbose = verbose

    def _theorem(self, moments: WordMoments, rng: np.random.Generator) -> TopicEstimate:
        """Theorem 3.1: alpha0 = 0."""
        estimate = topics_at(moments.basis, 0.0, rng, self._decomposer())
        return replace(estimate, details={"weights_total": estimate.raw_total})

    def _check_options(self) -> None:
        super()._check_options()
        check_effort(self.effort)

    def _refine(self, found: Found, rng: np.random.Generator) -> SearchedRefinement:
        k, estimate, alone = self.n_components, found.estimate, self.refine == "one-step" or self.effort == "quick"
        start = None if estimate is None else Mixture(estimate.weights, estimate.topics)
        searched = None
        if k > 1 and not alone and not is_trusted(found, k, self.effort):
            searched = search_topics(found.rows, start, k, self.smoothing, EFFORTS[self.effort], rng)
            start = searched.best.state
        elif start is None:
            start = Mixture(np.full(k, 1 / k), documents_as_topics(found.rows, k, rng))
        if self.refine == "one-step":
            moved, step = topic_step(found.rows, start)
            return SearchedRefinement(moved.weights, moved.topics, step.trace, step_share=step.share)
        done = refine_multinomial_mixture(
            found.rows,
            start.weights,
            start.topics,
            smoothing=self.smoothing,
            max_iter=self.max_iter,
            tol=self.tol,
        )
        return SearchedRefinement(done.weights, done.topics, done.trace, searched)

    def _conclude(self, found: Found, refined: SearchedRefinement | None) -> Diagnostics:
        report = super()._conclude(found, refined)
        share = None if refined is None else refined.step_share
        return report if share is None else replace(report, details={**report.details, "step_share": share})

    def _learn(self, estimate: TopicEstimate | None, refined: MixtureRefinement | None) -> None:
        if refined is not None:
            self._keep(refined.weights, refined.topics, refined.n_iter)
        elif estimate is not None:
            self._keep(estimate.weights, estimate.topics, 0)

    def _steps_taken(self) -> str:
        return "one scoring step" if self.refine == "one-step" else f"{self.n_iter_} EM steps"

    def _placeholders(self, topics: Floats) -> None:
        self._keep(np.full(self.n_components, 1.0 / self.n_components), topics, 0)

    def _keep(self, weights: Floats, topics: Floats, n_iter: int) -> None:
        order = np.argsort(-weights, kind="stable")
        self.weights_, self.components_, self.n_iter_ = weights[order], topics[order], n_iter

    def _climbed(self, X: Any, given: Mapping[str, Any], rng: Any) -> Self | None:
        source = as_source(X, **given)
        done = refine_multinomial_mixture(
            source,
            self.weights_,
            self.components_,
            smoothing=self.smoothing,
            max_iter=self.max_iter,
            tol=self.tol / FINER,
        )
        again = copy(self)
        again.weights_, again.components_ = done.weights, done.topics
        return again

    def _free_parameters(self) -> list[Free]:
        return [Free("weights_", "simplex", self.weights_), Free("components_", "simplex", self.components_)]

    def _batch_joint(self, batch: Batch) -> Floats:
        """Log joint densities of a batch of the rows that a fit reads, words that a topic never has included."""
        return log_joint(batch.counts, self.weights_, self.components_)

    def _joint(self, X: Any) -> Floats:
        return log_joint(self._counts(X).counts, self.weights_, self._smoothed())

    def _smoothed(self) -> Floats:
        """Topics in which no word is impossible, so that new documents always have a likelihood."""
        d = self.components_.shape[1]
        return np.asarray((1 - POLICY.prediction_smoothing) * self.components_ + POLICY.prediction_smoothing / d)

    @by_rows("shares")
    def predict_proba(self, X: Any) -> Floats:
        """Posterior probabilities of the topics (n, k)."""
        return posterior(self._joint(X))[0]

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
        return posterior(self._joint(X))[1]

    def score(self, X: Any, y: Any = None) -> float:
        """Mean of `score_samples`."""
        return float(self.score_samples(X).mean())

    def _judge(self, batch: Batch) -> Judged:
        words = np.asarray(batch.counts.sum(axis=1), dtype=np.float64)
        return judged_rows(log_joint(batch.counts, self.weights_, self._smoothed()), batch.weights, words)

    def _n_parameters(self) -> int:
        return Mixture(self.weights_, self.components_).n_parameters

    def _parameter_price(self, members: Floats, trials: float) -> float:
        """Of shares and topics at the expected numbers of documents and words: BIC would count every document for each
        word of each topic, also for words that a topic never has.
        """
        words = trials * (members / members.sum())[:, None] * self.components_
        return fitted_gain(members[None], self.weights_[None]) + fitted_gain(words, self.components_)

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
