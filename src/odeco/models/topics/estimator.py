"""What the scikit-learn shells of topic models share: input, moments, fallback, streaming, diagnostics."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin
from sklearn.utils import Tags
from sklearn.utils.validation import _check_feature_names, check_is_fitted

from odeco.diagnostics import Diagnostics, without_moments
from odeco.fitting.candidates import said_of
from odeco.fitting.estimator import Converging, Found, MomentEstimator
from odeco.fitting.options import check_choice, check_integer, check_number
from odeco.fitting.rows import check_width, take_names
from odeco.fitting.stream import StreamPlan
from odeco.kernels.threads import blas_for
from odeco.models.topics.fallback import documents_as_topics
from odeco.models.topics.fractions import said_of_fractions
from odeco.models.topics.moments import WordMoments, word_passes
from odeco.models.topics.policy import POLICY
from odeco.models.topics.reading import TopicReading
from odeco.models.topics.stream import StreamedWords, word_plan
from odeco.models.topics.theorem import TopicEstimate
from odeco.moments.passes import Passes
from odeco.sources import Batch, Source, as_batch, as_source
from odeco.sources.counts import check_range, is_block
from odeco.sources.kinds import fitted_by

Floats = NDArray[np.float64]


class TopicEstimator(TopicReading, Converging, MomentEstimator, ClassNamePrefixFeaturesOutMixin, BaseEstimator):  # type: ignore[misc]
    """Base of the estimators on word counts."""

    _stream_options = ("n_components", "word_scale", "basis_size", "document_weights")
    _refinements: tuple[str | None, ...]  # what `refine` may be
    n_components: Any
    refine: str | None
    method: str
    method_options: Mapping[str, Any] | None
    max_iter: int
    tol: float
    word_scale: float | str
    basis_size: int
    document_weights: str
    random_state: Any
    components_: Floats
    n_features_in_: int

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        return tags

    @property
    def _n_features_out(self) -> int:
        return int(self.components_.shape[0])

    def _open(self, X: Any, sample_weight: ArrayLike | None = None) -> Source:
        """A source of X, with the names of its columns taken over."""
        source = as_source(fitted_by(self, X), sample_weight=sample_weight)
        self.n_features_in_ = source.n_features
        take_names(self, X)
        if is_block(X):
            _check_feature_names(self, X, reset=True)
        if self.n_components > source.n_features:
            raise ValueError(
                f"n_components={self.n_components} is larger than n_features={source.n_features}: topics over so few "
                "words cannot be linearly independent. Lower n_components."
            )
        return source

    def _reopen(self, X: Any, **given: Any) -> Source:
        if is_block(X):
            _check_feature_names(self, X, reset=False)
        source = as_source(X, **given)
        take_names(self, X, reset=False)
        check_width(self, source.n_features)
        return source

    def _check_options(self) -> None:
        super()._check_options()
        check_choice("refine", self.refine, self._refinements)
        check_choice("document_weights", self.document_weights, ("auto", "equal", "length"))
        for name in ("n_components", "max_iter", "basis_size"):
            check_integer(name, getattr(self, name))
        check_number("tol", self.tol)
        scale = self.word_scale
        if not (scale == "auto" if isinstance(scale, str) else 0 <= scale <= 1):
            raise ValueError(f"word_scale must be 'auto' or a number between 0 and 1, got {scale!r}.")

    def _counts(self, X: Any) -> Any:
        """Counts to predict on, with the columns of the fit."""
        check_is_fitted(self)
        if is_block(X):
            _check_feature_names(self, X, reset=False)
        batch = check_range(as_batch(X))
        check_width(self, batch.n_features)
        return batch

    def _half_length(self) -> float:
        """Equal weights for the paper's estimate, by length for the start of a refinement, unless told otherwise."""
        equal = self.document_weights == "equal" or (self.document_weights == "auto" and self.refine is None)
        return 0.0 if equal else POLICY.half_length

    def _scale(self) -> float | None:
        return None if isinstance(self.word_scale, str) else float(self.word_scale)

    def fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Fit to counts (n, d): an array, sparse matrix, DataFrame, or anything `odeco.sources.as_source` takes.

        The data are read four times for the moments (twice where the vocabulary is small, two times more where few
        documents do not show all topics at the first `word_scale`) and once per step of the refinement.
        `sample_weight` says how often each document counts.
        """
        return self._fit(X, sample_weight=sample_weight)

    def partial_fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Add documents in one pass; memory does not grow with their number, and chunks do not matter.

        Gives the moment estimate (`refine` is not used): a refinement would need the documents again. Everything is
        forgotten by a call of `fit`.
        """
        return self._partial_fit(X, sample_weight=sample_weight)

    def _chunks(self, X: Any, *, reset: bool, sample_weight: ArrayLike | None = None) -> Iterator[Batch]:
        if reset:
            yield from self._open(X, sample_weight)
            return
        yield from self._reopen(X, sample_weight=sample_weight)

    def _blas(self) -> AbstractContextManager[None]:
        return blas_for(self.n_components)

    def _passes(self, source: Source, rng: np.random.Generator) -> Passes[WordMoments]:
        k, scale, half_length = self.n_components, self._scale(), self._half_length()
        return word_passes(source, k, word_scale=scale, rng=rng, half_length=half_length)

    def _plan(self) -> StreamPlan[Batch, StreamedWords]:
        return word_plan(self.n_components, self._scale(), self.basis_size, self._half_length())

    def _stream_moments(self, kept: None, rng: np.random.Generator) -> WordMoments:
        return self._stream.read(self._plan()).read(self.n_components)  # type: ignore[no-any-return]

    def _warns(self) -> bool:
        return True

    def _most_components(self, source: Source) -> int:
        return source.n_features

    def _narrowed(self, moments: WordMoments, n_components: int) -> WordMoments:
        return moments.narrowed(n_components)

    @abstractmethod
    def _theorem(self, moments: WordMoments, rng: np.random.Generator) -> TopicEstimate: ...

    def _refine(self, found: Found, rng: np.random.Generator) -> Any:
        estimate = found.estimate
        topics = documents_as_topics(found.rows, self.n_components, rng) if estimate is None else estimate.topics
        return self._polish(found.rows, topics, estimate, rng)

    @abstractmethod
    def _polish(self, source: Source, topics: Floats, estimate: TopicEstimate | None, rng: np.random.Generator) -> Any:
        """Refine topics; where there is no estimate they are documents."""

    def _conclude(self, found: Found, refined: Any) -> Diagnostics:
        self._learn(found.estimate, refined)
        report = self._report(found, refined)
        return replace(report, advice=(*report.advice, *said_of_fractions(found.rows)))

    def _report(self, found: Found, refined: Any) -> Diagnostics:
        """How the topics were reached, and what to think of that."""
        if found.rows is None:
            return describe(found, "moments, one pass", {"n_documents": self._stream.n})
        searched = getattr(refined, "searched", None)  # of a model that compares several starts
        details = {} if searched is None else searched.details()
        advice = () if searched is None else said_of(searched, self.n_components)
        if found.estimate is None:
            why = f"the moments could not be used ({found.error})"
            if searched is None:
                advice = (f"{why} The refinement started from documents: try other seeds.",)
            name = "documents as topics" if searched is None else searched.best.name
            details |= {"refinement": refined.trace, "moments": why}
            return without_moments(self.n_components, f"{name}, then {self._steps_taken()}", advice, details)
        details["word_scale"] = found.moments.word_scale
        if refined is None:
            return describe(found, "moments", details)
        name = "moments" if searched is None else searched.best.name
        details["refinement"] = refined.trace
        report = describe(found, f"{name}, then {self._steps_taken()}", details, refined=True)
        return replace(report, advice=(*report.advice, *advice))

    @abstractmethod
    def _learn(self, estimate: TopicEstimate | None, refined: Any) -> None:
        """Set the learned attributes."""

    @abstractmethod
    def _steps_taken(self) -> str:
        """What the refinement did, in words."""

    @abstractmethod
    def _placeholders(self, topics: Floats) -> None:
        """Set the learned attributes from topics that mean nothing yet."""

    def _wait(self, found: Found, rng: np.random.Generator) -> Diagnostics:
        """Keep the topics there were, or put placeholders, until the stream has enough documents."""
        shape = (self.n_components, self.n_features_in_)
        if getattr(self, "components_", np.empty(0)).shape != shape:
            jitter = rng.random(shape) + 1e-12
            self._placeholders(jitter / jitter.sum(axis=1, keepdims=True))
        n, error = self._stream.n, found.error
        text = f"the {n} documents so far do not determine the topics ({error}) Add more documents."
        return without_moments(self.n_components, "waiting for more documents", (text,), {})


def describe(found: Found, method: str, details: dict[str, Any], *, refined: bool = False) -> Diagnostics:
    """The report on a moment estimate, with the advice that its numbers call for."""
    estimate, basis, noise = found.estimate, found.moments.basis, found.moments.noise
    k, decomposition = basis.whitener.n_components, estimate.decomposition
    texts = [] if refined else list(estimate.advice)  # a refinement starts from what there is
    if noise == np.inf:
        texts.append(
            "there are too few documents to tell topics from noise. Use more documents, or fewer n_components."
        )
    elif basis.spectrum[k - 1] <= noise:
        texts.append(
            f"eigenvalue {k} of the word pairs, {basis.spectrum[k - 1]:.3g}, is within the noise ({noise:.3g}): the "
            f"data support about {basis.suggested_components} topics. Lower n_components, or use more documents."
        )
    if not refined and not decomposition.status.ok:
        texts.append(f"the tensor's decomposition is {decomposition.status}")
    return Diagnostics(
        n_components=k,
        spectrum=basis.spectrum,
        gap=_gap(basis.spectrum, k),
        condition=basis.whitener.condition,
        residual=decomposition.residual,
        clipped_mass=float(estimate.clipped_mass.max()),
        suggested_components=basis.suggested_components,
        method=method,
        n_passes=basis.n_passes,
        advice=tuple(texts),
        details={
            "noise": noise,
            "certificate": decomposition.certificate,
            "decomposition": decomposition.status,
            "lowest_eigenvalue": float(basis.spectrum[-1]),
            **details,
            **estimate.details,
        },
    )


def _gap(spectrum: Floats, k: int) -> float:
    return float(1.0 - max(spectrum[k], 0.0) / spectrum[k - 1]) if k < spectrum.size else 1.0
