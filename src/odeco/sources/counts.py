"""Checks and conversions: any two-dimensional thing that holds counts, to a canonical CSR array."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from odeco.sources.base import Batch
from odeco.sources.kinds import Checkpointed, OutOfCore, is_remote

# Integers up to here are exact in float32: counts in float32 take half the memory and nothing is lost.
_EXACT_IN_FLOAT32 = 2**24
# Whole numbers are exact up to here. Weights in place of counts may be as small: float32 holds them.
_LARGEST_COUNT = 2**53


def as_batch(X: Any, weights: NDArray[np.float64] | None = None) -> Batch:
    """Check counts and put them into the form of :class:`Batch`; the caller's arrays are never changed."""
    counts = as_counts(X)
    return Batch(counts, row_sums(counts), weights)


def as_counts(X: Any) -> sparse.csr_array:
    """Return non-negative finite counts as a canonical CSR array of float32 or float64.

    float32 and float64 keep their type; others become float32 where that is exact for all their values, float64
    elsewhere.
    """
    matrix = _to_csr(X)
    if matrix.shape[0] == 0 or matrix.shape[1] == 0:
        what = "sample" if matrix.shape[0] == 0 else "feature"
        shape = f"({matrix.shape[0]}, {matrix.shape[1]})"
        raise ValueError(f"X is empty: found 0 {what}(s) (shape={shape}) while a minimum of 1 is required.")
    values = matrix.data
    if values.size:
        lowest, highest = values.min(), values.max()  # NaN shows in both
        if not (np.isfinite(lowest) and np.isfinite(highest)):
            raise ValueError("X contains NaN or infinite counts: remove or impute them first.")
        if lowest < 0:
            raise ValueError(f"Negative values in data: the smallest count in X is {lowest}, and none may be negative.")
        if highest > _LARGEST_COUNT or 0 < highest < 1 / _LARGEST_COUNT:
            raise ValueError(
                f"the largest count in X is {highest:.3g}, and counts must reach between 2^-53 and 2^53: scale X."
            )
    if values.dtype not in (np.float32, np.float64):
        whole = values.dtype.kind != "f" and (values.size == 0 or values.max() <= _EXACT_IN_FLOAT32)
        values = values.astype(np.float32 if whole or values.dtype.itemsize <= 2 else np.float64)
    return _canonical(values, matrix)


def row_sums(counts: sparse.csr_array) -> NDArray[np.float64]:
    """The lengths of the documents, summed in double precision."""
    return np.asarray(counts.sum(axis=1, dtype=np.float64), dtype=np.float64).ravel()


def check_weights(sample_weight: ArrayLike, n_samples: int) -> NDArray[np.float64]:
    """Return weights as a finite non-negative vector of length ``n_samples``."""
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.shape != (n_samples,):
        raise ValueError(f"sample_weight must have shape ({n_samples},), got {weights.shape}.")
    if not np.isfinite(weights).all() or (weights < 0).any():
        raise ValueError("sample_weight must be finite and non-negative.")
    if not weights.any():
        raise ValueError("sample_weight is zero for every sample: at least one must be positive.")
    return weights


def is_block(X: Any) -> bool:
    """Whether X is a two-dimensional block of rows by itself: sparse, array or DataFrame."""
    if is_remote(X) or isinstance(X, (OutOfCore, Checkpointed)):
        return False
    return sparse.issparse(X) or hasattr(X, "__array__") or hasattr(X, "to_numpy")


def _to_csr(X: Any) -> sparse.csr_array:
    """Any block as a CSR array that owns no more than it must; the caller's object is not touched."""
    if hasattr(X, "sparse") and hasattr(X, "dtypes") and _all_sparse(X):
        X = X.sparse.to_coo()
    if sparse.issparse(X):
        if len(X.shape) != 2:
            raise ValueError(f"X must be two-dimensional, got shape {tuple(X.shape)}.")
        _check_dtype(X.dtype)
        return X.tocsr()
    dense = np.asarray(X.to_numpy() if hasattr(X, "to_numpy") else X)
    if dense.ndim != 2:
        raise ValueError(
            f"X must be two-dimensional (documents x words), got shape {dense.shape}. "
            "Reshape your data: X.reshape(1, -1) for a single document."
        )
    if dense.dtype == object:
        dense = _from_objects(dense)
    _check_dtype(dense.dtype)
    return sparse.csr_array(dense.astype(np.float32) if dense.dtype == np.float16 else dense)  # scipy has no float16


def _all_sparse(frame: Any) -> bool:
    """Whether all columns of a pandas DataFrame are sparse."""
    return len(frame.dtypes) > 0 and all(type(dtype).__name__ == "SparseDtype" for dtype in frame.dtypes)


def _from_objects(dense: NDArray[np.object_]) -> NDArray[np.float64]:
    try:
        return dense.astype(np.float64)
    except ValueError as error:  # a TypeError says enough by itself
        raise ValueError(f"X must hold numbers: {error}") from error


def _check_dtype(dtype: np.dtype[Any]) -> None:
    if dtype.kind not in "biuf":
        hint = "Complex data not supported" if dtype.kind == "c" else f"got dtype {dtype}"
        raise ValueError(f"X must hold real counts. {hint}.")


def _canonical(values: NDArray[np.floating], matrix: Any) -> sparse.csr_array:
    """A CSR array around the parts of ``matrix``; duplicates are summed and columns sorted on a copy."""
    counts = sparse.csr_array((values, matrix.indices, matrix.indptr), shape=matrix.shape, copy=False)
    if counts.has_canonical_format:
        return counts
    counts = counts.copy()
    counts.sum_duplicates()
    return counts
