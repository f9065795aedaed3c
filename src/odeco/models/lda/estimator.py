"""Latent Dirichlet allocation by the method of moments (Theorem 3.5), polished by a few sweeps of CVB0."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import TransformerMixin
from sklearn.utils.validation import check_is_fitted

from odeco._random import RandomState
from odeco.completion import completed_documents, completion, infer_proportions
from odeco.fitting.choice.judging import Judged
from odeco.fitting.free import POSITIVE, Free
from odeco.models.lazy import by_rows
from odeco.models.topics.estimator import TopicEstimator
from odeco.models.topics.moments import WordMoments
from odeco.models.topics.policy import POLICY
from odeco.models.topics.theorem import TopicEstimate, search_alpha0, topics_at
from odeco.refinement.lda import LDARefinement, refine_lda
from odeco.refinement.lda_likelihood import (
    MOST_WORDS,
    SampledLikelihood,
    document_scores,
    likelihood_maximum,
    score_products,
)
from odeco.sources import Batch, Source, as_source
from odeco.sources.arrays import ArraySource

Floats = NDArray[np.float64]

REFINEMENTS = {"auto": "cvb0", "cvb0": "cvb0", "vb": "vb", "map": "map"}
_UNIDENTIFIED = (
    "alpha0 is not identified by these moments (the residual hardly depends on it): "
    f"{POLICY.unidentified_alpha0:g} was used. Give alpha0 where you know it, or refine, which estimates alpha_ anew."
)


class LatentDirichletAllocation(TransformerMixin, TopicEstimator):  # type: ignore[misc]
    """Topics of documents, each document a mixture of them.

    Parameters
    ----------
    n_components : int or "auto"
        Number of topics k; "auto" lets the data choose it (`odeco.choose_components`).
    alpha0 : float or "auto"
        Sum of the Dirichlet parameters: small for documents of few topics. "auto" takes the value at which the third
        moment is closest to the form of Theorem 3.5; it costs no further pass over the data. Where the moments do not
        identify it, 1 is taken and `diagnostics_` says so.
    refine : {"auto", "cvb0", "vb", "map", None}
        What polishes the moment estimate: "auto" is CVB0; None keeps the paper's pure estimate.
    eta : float
        Dirichlet parameter of words in a topic, used by the refinement.
    max_iter : int
        Sweeps of the refinement at most.
    tol : float
        Gain, in nats per held-out word (or of the objective per word), below which the refinement stops.
    word_scale : "auto" or float
        Words are scaled by frequency ** -word_scale before whitening. "auto": 1/2 where all components
        are above the noise at that scale (on a sample of many documents), 1/4 elsewhere.
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
    components_ : (k, d)
        Word probabilities of each topic, rows on the simplex, largest topic first.
    alpha_ : (k,)
        Dirichlet parameters.
    alpha0_ : float
        Their sum.
    eta_ : float
        The parameter the refinement ended with.
    n_iter_ : int
        Sweeps of the refinement.
    diagnostics_ : Diagnostics
    n_features_in_ : int
    """

    _refinements = (*REFINEMENTS, None)
    _criterion = "held_out"

    def __init__(
        self,
        n_components: int | str = 10,
        *,
        alpha0: float | str = "auto",
        refine: str | None = "auto",
        eta: float = 0.05,
        max_iter: int = 15,
        tol: float = 4e-3,
        word_scale: float | str = "auto",
        method: str = "auto",
        method_options: Mapping[str, Any] | None = None,
        document_weights: str = "auto",
        basis_size: int = 5000,
        random_state: RandomState = None,
        verbose: bool = False,
    ) -> None:
        self.n_components = n_components
        self.alpha0 = alpha0
        self.refine = refine
        self.eta = eta
        self.max_iter = max_iter
        self.tol = tol
        self.word_scale = word_scale
        self.method = method
        self.method_options = method_options
        self.document_weights = document_weights
        self.basis_size = basis_size
        self.random_state = random_state
        self.verbose = verbose

    def _placeholders(self, topics: Floats) -> None:
        self.components_ = topics
        self.alpha_ = np.full(self.n_components, POLICY.unidentified_alpha0 / self.n_components)
        self.alpha0_, self.eta_, self.n_iter_ = POLICY.unidentified_alpha0, self.eta, 0

    def _check_options(self) -> None:
        super()._check_options()
        if self.alpha0 != "auto" and (isinstance(self.alpha0, str) or not 0 < self.alpha0 < np.inf):
            raise ValueError(f"alpha0 must be 'auto' or a positive number, got {self.alpha0!r}.")

    def _theorem(self, moments: WordMoments, rng: np.random.Generator) -> TopicEstimate:
        """Topics at the given alpha0, or at the one that the residual points to."""
        basis, method = moments.basis, self._decomposer()
        search = search_alpha0(basis, method) if self.alpha0 == "auto" else None
        estimate = topics_at(basis, float(self.alpha0) if search is None else search.alpha0, rng, method)
        details: dict[str, Any] = {"alpha0_total": estimate.raw_total * estimate.alpha0}
        if search is None:
            return replace(estimate, details=details)
        details |= {"alpha0_curve": search.curve, "alpha0_identified": search.identified}
        return replace(estimate, advice=() if search.identified else (_UNIDENTIFIED,), details=details)

    def _polish(
        self, source: Source, topics: Floats, estimate: TopicEstimate | None, rng: np.random.Generator
    ) -> LDARefinement:
        """Refine the topics; where the moments do not know alpha the sweeps use 1/k for every topic."""
        alpha = None
        if estimate is not None and estimate.details.get("alpha0_identified", True):
            alpha = estimate.weights * estimate.alpha0
        return self._swept(source, topics, alpha, rng)

    def _swept(self, source: Source, topics: Floats, alpha: Floats | None, rng: np.random.Generator) -> LDARefinement:
        return refine_lda(
            source.whole() if isinstance(source, ArraySource) else source,
            topics,
            alpha,
            method=REFINEMENTS[str(self.refine)],
            eta=self.eta,
            max_iter=self.max_iter,
            tol=self.tol,
            random_state=rng,
        )

    def _learn(self, estimate: TopicEstimate | None, refined: LDARefinement | None) -> None:
        if refined is not None:
            order = np.argsort(-refined.alpha, kind="stable")
            self.components_, self.alpha_ = refined.topics[order], refined.alpha[order]
            self.alpha0_ = float(self.alpha_.sum())
            self.eta_, self.n_iter_ = refined.eta, refined.n_iter
        elif estimate is not None:
            self.components_, self.alpha_ = estimate.topics, estimate.weights * estimate.alpha0
            self.alpha0_, self.eta_, self.n_iter_ = estimate.alpha0, self.eta, 0

    def _ranges(self) -> dict[str, Any]:
        return {"alpha0_": POSITIVE}

    def _moved(self, values: Mapping[str, Any]) -> Self:
        moved = super()._moved(values)
        moved.alpha0_ = float(np.sum(moved.alpha_))
        return moved

    def _sampled_parameters(self) -> list[Free] | None:
        return [Free("alpha_", "positive", self.alpha_), Free("components_", "simplex", self.components_)]

    def _sampled(self, X: Any, rng: np.random.Generator) -> SampledLikelihood | None:
        """The model at the maximum of the likelihood near the fit, and what documents know of it; None of too many."""
        counts = self._counts(X).counts
        if counts.sum() > MOST_WORDS:
            return None
        best, draws = likelihood_maximum(counts, self.components_, self.alpha_, self.eta_, rng)
        moved = self._moved({"components_": best.topics, "alpha_": best.alpha})
        return SampledLikelihood(moved, best.words, lambda: score_products(*document_scores(draws, best, rng)))

    def _climbed(self, X: Any, given: Mapping[str, Any], rng: Any) -> Self | None:
        refined = self._swept(as_source(X, **given), self.components_, self.alpha_, rng)
        again = copy(self)
        again.components_, again.alpha_, again.alpha0_ = refined.topics, refined.alpha, float(refined.alpha.sum())
        return again

    def _steps_taken(self) -> str:
        return f"{self.n_iter_} sweeps of {REFINEMENTS[str(self.refine)]}"

    @by_rows("shares")
    def transform(self, X: Any) -> Floats:
        """Topic proportions of documents, rows summing to 1; each document by itself, whatever its batch-mates."""
        batch = self._counts(X)
        return infer_proportions(batch.counts, self.components_, self.alpha_)

    def perplexity(self, X: Any, *, random_state: RandomState = 0) -> float:
        """Document-completion perplexity: exp of minus the mean log probability of held-out words.

        A fair coin sends each word of a document to the half that is seen, from which the proportions are inferred, or
        to the half that is scored. The seed of the coin is fixed, so that models can be compared.
        """
        batch = self._counts(X)
        found = completion(batch.counts, self.components_, self.alpha_, random_state=random_state)
        if not found.n_words:
            raise ValueError("X has no words to score once each is seen or held out: give longer documents, or more.")
        return found.perplexity

    def _judge(self, batch: Batch) -> Judged:
        """Held-out words of documents: the likelihood of whole ones is no sum that could be taken."""
        scores, words = completed_documents(batch.counts, self.components_, self.alpha_)
        weights = batch.row_weights()
        return Judged(weights * scores, weights * words)

    def _described_components(self) -> Floats:
        """Roots of the probabilities, about their mean: words that all topics share say nothing of any."""
        roots = np.sqrt(self.components_)
        return roots if len(roots) == 1 else roots - roots.mean(axis=0)

    def _most_judged(self) -> int:
        return POLICY.most_judged

    def score(self, X: Any, y: Any = None) -> float:
        """Mean log probability of a held-out word, ``-log(perplexity(X))``: larger is better.

        Not the variational bound of other libraries: that mixes the quality of topics with that of an approximation.
        """
        return -float(np.log(self.perplexity(X)))

    def sample(self, n_samples: int = 1, *, mean_length: float = 60.0) -> tuple[Any, Floats]:
        """Draw documents: counts (n, d) as CSR and their topic proportions (n, k)."""
        from odeco.simulate import lda_documents

        check_is_fitted(self)
        drawn = lda_documents(
            n_samples, self.components_, self.alpha_, mean_length=mean_length, random_state=self.random_state
        )
        return drawn.counts, drawn.proportions
