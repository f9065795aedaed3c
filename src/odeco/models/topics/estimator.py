"""What the scikit-learn shells of topic models share: input, moments, fallback, streaming, diagnostics."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin
from sklearn.utils import Tags
from sklearn.utils.validation import _check_feature_names, check_is_fitted

from odeco._random import as_generator
from odeco.diagnostics import Diagnostics, warn_all
from odeco.exceptions import MomentError
from odeco.fitting.estimator import MomentEstimator
from odeco.fitting.stream import StreamPlan
from odeco.kernels.threads import blas_for
from odeco.models.lazy import take_names
from odeco.models.topics.fallback import documents_as_topics
from odeco.models.topics.moments import HALF_LENGTH, word_moments
from odeco.models.topics.stream import StreamedWords, word_plan
from odeco.models.topics.theorem import BasisMoments, TopicEstimate
from odeco.refinement.loop import Trace
from odeco.sources import Batch, Source, as_batch, as_source
from odeco.sources.counts import check_range, is_block
from odeco.sources.kinds import fitted_by

Floats = NDArray[np.float64]


class TopicEstimator(MomentEstimator, ClassNamePrefixFeaturesOutMixin, BaseEstimator):  # type: ignore[misc]
    """Base of the estimators on word counts."""

    _stream_options = ("n_components", "word_scale", "basis_size", "document_weights")
    _refinements: tuple[str | None, ...]  # what `refine` may be
    n_components: int
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

    def _open(self, X: Any, sample_weight: ArrayLike | None) -> Source:
        """A source of X, with the names of its columns taken over."""
        self._check_options()
        source = as_source(fitted_by(self, X), sample_weight=sample_weight)
        self.n_features_in_ = source.n_features
        take_names(self, X)
        if is_block(X):
            _check_feature_names(self, X, reset=True)
        _check_components(self.n_components, source.n_features)
        return source

    def _check_options(self) -> None:
        """Raise for options that could not be used, before anything is computed."""
        if self.refine not in self._refinements:
            names = ", ".join(repr(name) for name in self._refinements)
            raise ValueError(f"refine must be one of {names}, got {self.refine!r}.")
        self._decomposer()
        self._half_length()
        for name in ("max_iter", "basis_size"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
                raise ValueError(f"{name} must be a positive integer, got {value!r}.")
        if not 0 <= self.tol < np.inf:
            raise ValueError(f"tol must be a number of at least 0, got {self.tol!r}.")

    def _counts(self, X: Any) -> Any:
        """Counts to predict on, with the columns of the fit."""
        check_is_fitted(self)
        if is_block(X):
            _check_feature_names(self, X, reset=False)
        batch = check_range(as_batch(X))
        self._check_width(batch.n_features)
        return batch

    def _half_length(self) -> float:
        """Equal weights for the paper's estimate, by length for the start of a refinement, unless told otherwise."""
        if self.document_weights not in ("auto", "equal", "length"):
            raise ValueError(f"document_weights must be 'auto', 'equal' or 'length', got {self.document_weights!r}.")
        equal = self.document_weights == "equal" or (self.document_weights == "auto" and self.refine is None)
        return 0.0 if equal else HALF_LENGTH

    def _scale(self) -> float | None:
        if isinstance(self.word_scale, str):
            if self.word_scale != "auto":
                raise ValueError(f"word_scale must be 'auto' or a number between 0 and 1, got {self.word_scale!r}.")
            return None
        return float(self.word_scale)

    def fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Fit to counts (n, d): an array, sparse matrix, DataFrame, or anything `odeco.sources.as_source` takes.

        The data are read four times for the moments (twice where the vocabulary is small) and once per step of the
        refinement. `sample_weight` says how often each document counts.
        """
        self._forget_stream()
        source = self._open(X, sample_weight)
        with blas_for(self.n_components):
            self._fit(source, as_generator(self.random_state))
        return self

    def _fit(self, source: Source, rng: np.random.Generator) -> None:
        refined = self.refine is not None
        try:
            moments = word_moments(
                source, self.n_components, word_scale=self._scale(), rng=rng, half_length=self._half_length()
            )
            estimate, advice, details = self._estimate(moments.basis, rng)
        except MomentError as error:
            if not refined:
                raise
            self._fit_without_moments(source, str(error), rng)
            return
        self._set(estimate)
        method, details = "moments", {"word_scale": moments.word_scale, **details}
        if refined:
            details["refinement"] = self._polish(source, estimate.topics, details, rng)
            method, advice = f"moments, then {self._steps_taken()}", []
        self._finish(
            describe(
                moments.basis,
                estimate,
                noise=moments.noise,
                method=method,
                advice=advice,
                details=details,
                refined=refined,
            )
        )

    def _fit_without_moments(self, source: Source, error: str, rng: np.random.Generator) -> None:
        """Refine from documents as topics, and say why."""
        start = documents_as_topics(source, self.n_components, rng)
        self._placeholders(start)
        trace = self._polish(source, start, {"alpha0_identified": False}, rng)
        text = f"the moments could not be used ({error}) The refinement started from documents: try other seeds."
        method = f"documents as topics, then {self._steps_taken()}"
        self._finish(without_moments(self.n_components, method, [text], {"refinement": trace}))

    def partial_fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Add documents in one pass; memory does not grow with their number, and chunks do not matter.

        Gives the moment estimate (`refine` is not used): a refinement would need the documents again. Everything is
        forgotten by a call of `fit`.
        """
        self._add_chunks(X, sample_weight=sample_weight)
        return self._read_moments()

    def _chunks(self, X: Any, *, reset: bool, sample_weight: ArrayLike | None = None) -> Iterator[Batch]:
        if reset:
            yield from self._open(X, sample_weight)
            return
        if is_block(X):
            _check_feature_names(self, X, reset=False)
        source = as_source(X, sample_weight=sample_weight)
        self._check_width(source.n_features)
        yield from source

    def _plan(self) -> StreamPlan[Batch, StreamedWords]:
        return word_plan(self.n_components, self._scale(), self.basis_size, self._half_length())

    def _read_moments(self) -> Self:
        """The moment estimate of all documents of the stream."""
        rng, n = as_generator(self.random_state), self._stream.n
        try:
            basis, noise = self._stream.read(self._plan()).read(self.n_components)
            estimate, advice, details = self._estimate(basis, rng)
        except MomentError as error:
            return self._wait_for_more(str(error), rng)
        self._set(estimate)
        details = {"n_documents": n, **details}
        self._finish(describe(basis, estimate, noise=noise, method="moments, one pass", advice=advice, details=details))
        return self

    @abstractmethod
    def _estimate(
        self, basis: BasisMoments, rng: np.random.Generator
    ) -> tuple[TopicEstimate, list[str], dict[str, Any]]:
        """What the theorem gives for these moments; advice and details on it."""

    @abstractmethod
    def _set(self, estimate: TopicEstimate) -> None:
        """Set the learned attributes."""

    @abstractmethod
    def _polish(self, source: Source, topics: Floats, details: dict[str, Any], rng: np.random.Generator) -> Trace:
        """Refine topics, set the learned attributes; `details` are those of the estimate."""

    @abstractmethod
    def _steps_taken(self) -> str:
        """What the refinement did, in words."""

    @abstractmethod
    def _placeholders(self, topics: Floats) -> None:
        """Set the learned attributes from topics that mean nothing yet."""

    def _wait_for_more(self, error: str, rng: np.random.Generator) -> Self:
        """Keep the topics there were, or put placeholders, until the stream has enough documents."""
        shape = (self.n_components, self.n_features_in_)
        if getattr(self, "components_", np.empty(0)).shape != shape:
            jitter = rng.random(shape) + 1e-12
            self._placeholders(jitter / jitter.sum(axis=1, keepdims=True))
        text = f"the {self._stream.n} documents so far do not determine the topics ({error}) Add more documents."
        self._finish(without_moments(self.n_components, "waiting for more documents", [text], {}))
        return self

    def _finish(self, diagnostics: Diagnostics) -> None:
        self.diagnostics_ = warn_all(diagnostics)

    def _check_width(self, n_features: int) -> None:
        if n_features != self.n_features_in_:
            raise ValueError(
                f"X has {n_features} features, but {type(self).__name__} is expecting {self.n_features_in_} "
                "features as input."
            )


def _check_components(n_components: Any, n_features: int) -> None:
    if isinstance(n_components, bool) or not isinstance(n_components, (int, np.integer)) or n_components < 1:
        raise ValueError(f"n_components must be a positive integer, got {n_components!r}.")
    if n_components > n_features:
        raise ValueError(
            f"n_components={n_components} is larger than n_features={n_features}: topics over so few words cannot be "
            "linearly independent. Lower n_components."
        )


def describe(
    basis: BasisMoments,
    estimate: TopicEstimate,
    *,
    noise: float | None,
    method: str,
    advice: list[str],
    details: dict[str, Any],
    refined: bool = False,
) -> Diagnostics:
    """The report on a moment estimate, with the advice that its numbers call for added to what the caller knows."""
    k = basis.whitener.n_components
    found = estimate.decomposition
    texts = list(advice)
    if noise == np.inf:
        texts.append(
            "there are too few documents to tell topics from noise. Use more documents, or fewer n_components."
        )
    elif noise is not None and basis.spectrum[k - 1] <= noise:
        texts.append(
            f"eigenvalue {k} of the word pairs, {basis.spectrum[k - 1]:.3g}, is within the noise ({noise:.3g}): the "
            f"data support about {basis.suggested_components} topics. Lower n_components, or use more documents."
        )
    if not refined and not found.status.ok:  # a refinement starts from what there is
        texts.append(f"the tensor's decomposition is {found.status}")
    return Diagnostics(
        n_components=k,
        spectrum=basis.spectrum,
        gap=_gap(basis.spectrum, k),
        condition=basis.whitener.condition,
        residual=found.residual,
        clipped_mass=float(estimate.clipped_mass.max()),
        suggested_components=basis.suggested_components,
        method=method,
        n_passes=basis.n_passes,
        advice=tuple(texts),
        details={
            "noise": noise,
            "certificate": found.certificate,
            "decomposition": found.status,
            "lowest_eigenvalue": float(basis.spectrum[-1]),
            **details,
        },
    )


def without_moments(n_components: int, method: str, advice: list[str], details: dict[str, Any]) -> Diagnostics:
    """The report on a fit that could not use the moments."""
    nothing = float("nan")
    return Diagnostics(
        n_components, np.empty(0), nothing, nothing, nothing, method=method, advice=tuple(advice), details=details
    )


def _gap(spectrum: Floats, k: int) -> float:
    return float(1.0 - max(spectrum[k], 0.0) / spectrum[k - 1]) if k < spectrum.size else 1.0
