"""Checks and conversions: any two-dimensional thing that holds counts, to a canonical CSR array."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from odeco.kernels.products import by_rows
from odeco.sources.base import Batch
from odeco.sources.kinds import Checkpointed, OutOfCore, is_remote
from odeco.sources.values import is_frame, number_array, refuse_kind, weight_array

# Integers up to here are exact in float32: counts in float32 take half the memory and nothing is lost.
_EXACT_IN_FLOAT32 = 2**24
# Whole numbers are exact up to here. Weights in place of counts may be as small: float32 holds them.
_LARGEST_COUNT = 2**53
_INDEXED = ("coo", "csr", "csc", "bsr")  # formats of scipy that hold indices as they were given
_NOT_VALID = "X is not a valid sparse matrix: {}. Make it anew from its rows, columns and values."


def as_batch(X: Any, weights: NDArray[np.float64] | None = None) -> Batch:
    """Check counts and put them into the form of :class:`Batch`; the caller's arrays are never changed."""
    counts = as_counts(X)
    return Batch(counts, row_sums(counts), weights)


def check_range(batch: Batch) -> Batch:
    """The batch, unless its counts, which a file may hold, are out of the range of the loops of topic models."""
    highest = batch.counts.data.max(initial=0)
    if highest > _LARGEST_COUNT or 0 < highest < 1 / _LARGEST_COUNT:
        raise ValueError(
            f"the largest count in X is {highest:.3g}, and counts must reach between 2^-53 and 2^53: scale X."
        )
    return batch


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
        lowest, highest = _extremes(values)  # NaN shows in both
        if not (np.isfinite(lowest) and np.isfinite(highest)):
            raise ValueError("X contains NaN or infinite counts: remove or impute them first.")
        if lowest < 0:
            raise ValueError(f"Negative values in data: the smallest count in X is {lowest}, and none may be negative.")
    if values.dtype not in (np.float32, np.float64):
        whole = values.dtype.kind != "f" and (values.size == 0 or highest <= _EXACT_IN_FLOAT32)
        values = values.astype(np.float32 if whole or values.dtype.itemsize <= 2 else np.float64)
    return _canonical(values, matrix)


def as_csr(X: Any) -> sparse.csr_array:
    """A sparse matrix of real numbers in any format as a CSR array whose indices are all within its shape.

    scipy believes the indices that it is given, and so does compiled code after it: both would read and write outside
    of the arrays. Looking at them takes a pass without a copy.
    """
    if len(X.shape) != 2:
        raise ValueError(f"X must be two-dimensional, got shape {tuple(X.shape)}.")
    refuse_kind(X.dtype, "X")
    if X.dtype.kind not in "biuf":
        raise ValueError(f"X must hold real numbers, got dtype {X.dtype}.")
    _check_indices(X)  # before conversion, which uses them
    rows = X.tocsr()
    if X.format not in _INDEXED:
        _check_indices(rows)
    return rows


def _check_indices(X: Any) -> None:
    if X.format == "coo":
        if any(places.shape != X.data.shape for places in X.coords):
            raise ValueError(_NOT_VALID.format("its coordinates and its data differ in their number"))
        for places, size in zip(X.coords, X.shape, strict=True):
            _check_within(places, size)
    if X.format not in ("csr", "csc", "bsr"):
        return
    rows, columns = X.shape if X.format != "csc" else X.shape[::-1]
    height, width = X.blocksize if X.format == "bsr" else (1, 1)
    pointers, places = X.indptr, X.indices
    if pointers.shape != (rows // height + 1,) or pointers[0] != 0 or (pointers[1:] < pointers[:-1]).any():
        raise ValueError(_NOT_VALID.format(f"its indptr does not rise from 0 over {rows // height} rows or columns"))
    if pointers[-1] > min(len(places), len(X.data)):
        held = f"its indptr ends at {pointers[-1]}, and it holds {len(places)} indices and {len(X.data)} values"
        raise ValueError(_NOT_VALID.format(held))
    _check_within(places, columns // width)


def _check_within(places: NDArray[np.integer], size: int) -> None:
    if places.dtype.kind not in "iu":
        raise ValueError(_NOT_VALID.format(f"its indices are {places.dtype}, not integers"))
    low, high = map(int, _extremes(places)) if places.size else (0, -1)
    if low < 0 or high >= size:
        found = low if low < 0 else high
        raise ValueError(_NOT_VALID.format(f"it has the index {found}, and 0 to {size - 1} are possible"))


def _extremes(values: NDArray[Any]) -> tuple[Any, Any]:
    """The smallest and the largest; threads share many."""
    found: list[tuple[Any, Any]] = []
    by_rows(lambda part: found.append((values[part].min(), values[part].max())), values)
    return np.min([low for low, _ in found]), np.max([high for _, high in found])


def row_sums(counts: sparse.csr_array) -> NDArray[np.float64]:
    """The lengths of the documents, summed in double precision."""
    return np.asarray(counts.sum(axis=1, dtype=np.float64), dtype=np.float64).ravel()


def check_weights(sample_weight: ArrayLike, n_samples: int) -> NDArray[np.float64]:
    """Return weights as a finite non-negative vector of length ``n_samples``."""
    weights = weight_array(sample_weight)
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


def _refuse_texts(X: Any) -> None:
    """Raise where X holds texts, or lists of words, in the place of their counts: say how these are had."""
    text = _first_text(X)
    if text is not None:
        shown = repr(text) if len(text) <= 40 else f"{text[:37]!r}..."
        raise ValueError(
            f"X must hold numbers, and holds the text {shown}: topic models take how often each word stands in each "
            "document, so count the words first, X = odeco.text.Vectorizer(stop_words='english').fit_transform(texts)."
        )


def _first_text(X: Any) -> str | bytes | None:
    """The text that X begins with: a string, one in a list, a list of words, a column of a frame."""
    if is_frame(X):
        columns = [X.iloc[:, j] for j, dtype in enumerate(X.dtypes) if getattr(dtype, "kind", "O") in "OUST"]
        return next((text for column in columns if (text := _first_text(column.to_numpy())) is not None), None)
    kind = getattr(getattr(X, "dtype", None), "kind", "O")
    if kind not in "OUST" or sparse.issparse(X):
        return None
    first = X
    while isinstance(first, (list, tuple, np.ndarray)) or hasattr(first, "iloc"):
        if not len(first):
            return None
        first = first.iloc[0] if hasattr(first, "iloc") else first[0]
    if isinstance(first, bytes):
        return bytes(first)
    return str(first) if isinstance(first, str) else None


def _to_csr(X: Any) -> sparse.csr_array:
    """Any block as a CSR array that owns no more than it must; the caller's object is not touched."""
    _refuse_texts(X)
    if hasattr(X, "sparse") and hasattr(X, "dtypes") and _all_sparse(X):
        X = X.sparse.to_coo()
    if sparse.issparse(X):
        return as_csr(X)
    dense = number_array(X)
    if dense.ndim != 2:
        raise ValueError(
            f"X must be two-dimensional (documents x words), got shape {dense.shape}. "
            "Reshape your data: X.reshape(1, -1) for a single document."
        )
    return sparse.csr_array(dense.astype(np.float32) if dense.dtype == np.float16 else dense)  # scipy has no float16


def _all_sparse(frame: Any) -> bool:
    """Whether all columns of a pandas DataFrame are sparse."""
    return len(frame.dtypes) > 0 and all(type(dtype).__name__ == "SparseDtype" for dtype in frame.dtypes)


def _canonical(values: NDArray[np.floating], matrix: Any) -> sparse.csr_array:
    """A CSR array around the parts of ``matrix``; duplicates are summed and columns sorted on a copy."""
    places = _narrow(matrix.indices, matrix.indptr, matrix.shape)
    counts = sparse.csr_array((values, *places), shape=matrix.shape, copy=False)
    if counts.has_canonical_format:
        return counts
    counts = counts.copy()
    counts.sum_duplicates()
    return counts


def _narrow(
    indices: NDArray[np.integer], indptr: NDArray[np.integer], shape: tuple[int, int]
) -> tuple[NDArray[np.integer], NDArray[np.integer]]:
    """The same as int32, which the loops take, where it holds them: else every pass would convert them again."""
    if indices.dtype == np.int32 or max(*shape, len(indices)) > np.iinfo(np.int32).max:
        return indices, indptr
    narrow = np.empty(indices.shape, dtype=np.int32)
    by_rows(lambda part: np.copyto(narrow[part], indices[part], casting="unsafe"), narrow)
    return narrow, indptr.astype(np.int32)
