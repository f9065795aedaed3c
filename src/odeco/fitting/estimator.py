"""What every estimator has: a decomposer, samples in chunks (`partial_fit`), moments made apart."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils.validation import validate_data

from odeco._random import as_generator
from odeco.decomposition import Decomposer
from odeco.fitting.stream import MomentStream, StreamPlan
from odeco.sources.counts import check_weights
from odeco.sources.dense import DenseBatch, as_dense_source, is_matrix
from odeco.sources.scale import check_magnitude
from odeco.sources.values import number_block


class MomentEstimator:
    """An estimator by moments, whose samples may come in chunks. It says how chunks are made, how they are summed (its
    plan), and how sums are read; the rest follows.
    """

    _stream_options: ClassVar[tuple[str, ...]] = ("n_components",)  # what the sums are made for
    _stream: MomentStream[Any, Any]
    method: str
    method_options: Mapping[str, Any] | None
    random_state: Any

    def _decomposer(self) -> Decomposer:
        """What decomposes the moment tensor, checked."""
        return Decomposer.of(self.method, self.method_options)

    # ``_chunks(X, *, reset, ...)``: checked chunks of X; with `reset` the form of the data is learned from the first.
    _chunks: Callable[..., Iterator[Any]]

    @abstractmethod
    def _plan(self) -> StreamPlan[Any, Any]:
        """How chunks are held and summed, once the form of the data is known."""

    @abstractmethod
    def _read_moments(self) -> Self:
        """Estimate from all that the stream has seen."""

    def _add_chunks(self, X: Any, **given: Any) -> None:
        """Add samples to the stream, which begins with the first of them."""
        for chunk in self._chunks(X, reset=not hasattr(self, "_stream"), **given):
            if not hasattr(self, "_stream"):
                options = {name: getattr(self, name) for name in self._stream_options}
                self._stream = MomentStream(self._stream_seed(), options)
            self._check_stream()
            self._stream.update(chunk, self._plan())

    def _stream_seed(self) -> int:
        return int(as_generator(self.random_state).integers(2**31))

    def _check_stream(self) -> None:
        """Raise where the sums were begun for other options."""
        for name, begun in self._stream.options.items():
            if getattr(self, name) != begun:
                raise ValueError(
                    f"{name}={getattr(self, name)!r} does not go with the moments kept so far, which are for "
                    f"{name}={begun!r}: start a new estimator, or call fit."
                )

    def _forget_stream(self) -> None:
        """Drop the sums of `partial_fit`: a new `fit` starts from nothing."""
        if hasattr(self, "_stream"):
            del self._stream


def vector_chunks(model: Any, X: Any, sample_weight: Any, *, reset: bool) -> Iterator[DenseBatch]:
    """Rows of numbers for a model: one matrix, checked as scikit-learn does, or the batches of a source."""
    if is_matrix(X):
        rows = check_magnitude(validate_data(model, number_block(X), dtype=[np.float64, np.float32], reset=reset))
        yield DenseBatch(rows, None if sample_weight is None else check_weights(sample_weight, len(rows)))
        return
    source = as_dense_source(X, sample_weight=sample_weight)
    if reset:
        model.n_features_in_ = source.n_features
    elif source.n_features != model.n_features_in_:
        raise ValueError(
            f"X has {source.n_features} features, but {type(model).__name__} is expecting {model.n_features_in_} "
            "features as input."
        )
    yield from source
