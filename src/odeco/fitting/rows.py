"""Rows of numbers for a model: opened for `fit`, or one chunk after the other for `partial_fit`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import _check_feature_names, validate_data

from odeco.sources.counts import check_weights
from odeco.sources.dense import DenseBatch, DenseSource, as_dense_source, is_matrix
from odeco.sources.kinds import fitted_by, is_dask
from odeco.sources.scale import check_magnitude
from odeco.sources.values import number_block


def open_vectors(model: Any, X: Any, sample_weight: ArrayLike | None = None, *, reset: bool = True) -> DenseSource:
    """A source of rows to fit on; one matrix is checked as scikit-learn does, names of columns included.

    Without `reset` the columns must be those of the fit.
    """
    if is_matrix(X):
        least = 2 if reset else 1
        X = validate_data(model, number_block(X), dtype=[np.float64, np.float32], ensure_min_samples=least, reset=reset)
        if sample_weight is not None:
            sample_weight = check_weights(sample_weight, X.shape[0])
    source = as_dense_source(fitted_by(model, X), sample_weight=sample_weight)
    take_names(model, X, reset=reset)
    if reset:
        model.n_features_in_ = source.n_features
    check_width(model, source.n_features)
    return source


def vector_chunks(model: Any, X: Any, sample_weight: Any, *, reset: bool) -> Iterator[DenseBatch]:
    """The same for a stream: one matrix, or the batches of a source."""
    if is_matrix(X):
        rows = check_magnitude(validate_data(model, number_block(X), dtype=[np.float64, np.float32], reset=reset))
        yield DenseBatch(rows, None if sample_weight is None else check_weights(sample_weight, len(rows)))
        return
    source = as_dense_source(X, sample_weight=sample_weight)
    if reset:
        model.n_features_in_ = source.n_features
    check_width(model, source.n_features)
    yield from source


def check_width(model: Any, n_features: int) -> None:
    """Raise where rows do not have the columns of the fit."""
    if n_features != model.n_features_in_:
        raise ValueError(
            f"X has {n_features} features, but {type(model).__name__} is expecting {model.n_features_in_} features as "
            "input."
        )


def take_names(model: Any, X: Any, *, reset: bool = True) -> None:
    """Take over the names of the columns of a Dask DataFrame, or compare them: its partitions come with them."""
    if is_dask(X) and (reset or hasattr(X, "columns")):
        _check_feature_names(model, X._meta if hasattr(X, "columns") else np.empty((0, 1)), reset=reset)
