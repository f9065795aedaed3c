"""Batches of dense rows of real numbers: arrays, DataFrames, lists of batches, functions, iterators.

float32 and float64 keep their type and, where they come as one array, their memory: nothing is copied.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from odeco.sources.counts import check_weights
from odeco.sources.streams import once

Rows = NDArray[np.floating]

# Rows per batch that leaves a stream: whatever the chunks that arrive, sums run over the same blocks.
DENSE_BATCH_SIZE = 16_384


@dataclass(frozen=True, eq=False)
class DenseBatch:
    """Some rows, checked: (m, d) float32 or float64, finite, never written to; a weight per row or None for ones."""

    rows: Rows = field(repr=False)
    weights: NDArray[np.float64] | None = field(default=None, repr=False)

    def __len__(self) -> int:
        return int(self.rows.shape[0])


class DenseSource:
    """Batches of rows, in the same order at every reading. Made by :func:`as_dense_source`."""

    def __init__(
        self,
        read: Callable[[], Iterable[Any]],
        batch_size: int = DENSE_BATCH_SIZE,
        sample_weight: NDArray[np.float64] | None = None,
        *,
        reiterable: bool = True,
    ) -> None:
        self._read, self._batch_size, self._weights = read, batch_size, sample_weight
        self.reiterable = reiterable
        self._unread: Iterator[DenseBatch] | None = None
        self._n_features: int | None = None
        self._n_samples: int | None = None
        self._dtype: np.dtype[Any] | None = None

    @property
    def n_features(self) -> int:
        """The number of columns d; looks at the first chunk."""
        self._peek()
        assert self._n_features is not None
        return self._n_features

    @property
    def dtype(self) -> np.dtype[Any]:
        """float32 or float64: that of the first chunk."""
        self._peek()
        assert self._dtype is not None
        return self._dtype

    def __iter__(self) -> Iterator[DenseBatch]:
        """One pass, in batches of exactly ``batch_size`` rows (the last one excepted)."""
        chunks = self._unread if self._unread is not None else self._chunks()
        self._unread = None
        return _rebatch(chunks, self._batch_size)

    def _peek(self) -> None:
        if self._n_features is None:
            chunks = self._chunks()
            first = next(chunks)
            if not self.reiterable:
                self._unread = _chain(first, chunks)

    def _chunks(self) -> Iterator[DenseBatch]:
        n_seen = 0
        for item in self._read():
            chunk = self._as_chunk(item, n_seen)
            n_seen += len(chunk)
            yield chunk
        if n_seen == 0:
            raise ValueError("X is empty: the source gave no batches.")
        if self._n_samples is not None and n_seen != self._n_samples:
            raise ValueError(
                f"the source gave {n_seen} rows, {self._n_samples} in an earlier pass: the function must return a new "
                "iterator over the same rows at each call."
            )
        if self._weights is not None and len(self._weights) != n_seen:
            raise ValueError(f"sample_weight has length {len(self._weights)}, the source gave {n_seen} rows.")
        self._n_samples = n_seen

    def _as_chunk(self, item: Any, n_seen: int) -> DenseBatch:
        if isinstance(item, DenseBatch):
            chunk = item
        elif isinstance(item, tuple) and len(item) == 2:
            rows = as_rows(item[0])
            chunk = DenseBatch(rows, check_weights(item[1], len(rows)))
        else:
            chunk = DenseBatch(as_rows(item))
        width = chunk.rows.shape[1]
        if self._n_features is None:
            self._n_features, self._dtype = width, chunk.rows.dtype
        if width != self._n_features:
            raise ValueError(f"batches differ in their number of columns: {self._n_features}, then {width}.")
        if self._weights is None:
            return chunk
        if chunk.weights is not None:
            raise ValueError("weights are given twice: by sample_weight and with the batches.")
        part = self._weights[n_seen : n_seen + len(chunk)]
        return DenseBatch(chunk.rows[: len(part)], part) if len(part) == len(chunk) else chunk


def as_dense_source(X: Any, batch_size: int = DENSE_BATCH_SIZE, sample_weight: ArrayLike | None = None) -> DenseSource:
    """Make a source of dense rows.

    Parameters
    ----------
    X : array, DataFrame, list of batches, callable, iterator or DenseSource
        One matrix; or batches of rows, each an array, a DataFrame or a pair (rows, weights). A callable returns a new
        iterator over the batches at each call; a bare iterator can be read once.
    batch_size : int
        Rows per batch that leaves the source.
    sample_weight : (n,) array, optional
    """
    if isinstance(X, DenseSource):
        if sample_weight is not None:
            raise ValueError("sample_weight cannot be added to a source: give it to as_dense_source with the data.")
        return X
    if isinstance(batch_size, bool) or not isinstance(batch_size, (int, np.integer)) or batch_size < 1:
        raise ValueError(f"batch_size must be a positive integer, got {batch_size!r}.")
    weights = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    if weights is not None:
        check_weights(weights, weights.shape[0] if weights.ndim else 0)
    if is_matrix(X):
        rows = as_rows(X)
        return DenseSource(lambda: [DenseBatch(rows)], int(batch_size), weights)
    if callable(X):
        return DenseSource(X, int(batch_size), weights)
    if isinstance(X, Iterator):
        return DenseSource(once(X), int(batch_size), weights, reiterable=False)
    if hasattr(X, "__iter__") and not isinstance(X, (str, bytes, dict)):
        return DenseSource(lambda: X, int(batch_size), weights)
    raise ValueError(f"X must be a matrix or batches of one, got {type(X).__name__}.")


def is_matrix(X: Any) -> bool:
    """Whether X is one block of rows (array, DataFrame, nested lists of numbers) rather than several."""
    if hasattr(X, "shape") or hasattr(X, "to_numpy") or hasattr(X, "__array__"):
        return True
    if not isinstance(X, (list, tuple)) or isinstance(X, DenseSource):
        return False
    if not X:
        return True
    first = X[0][0] if isinstance(X[0], tuple) and len(X[0]) == 2 else X[0]
    return not (isinstance(first, DenseBatch) or (hasattr(first, "shape") and len(first.shape) == 2))


def as_rows(X: Any) -> Rows:
    """Return finite rows as a (m, d) array of float32 or float64; other real types become float64."""
    array = np.asarray(X.to_numpy() if hasattr(X, "to_numpy") else X)
    if array.ndim != 2:
        raise ValueError(f"X must be two-dimensional (samples x channels), got shape {array.shape}.")
    if array.dtype == object:
        try:
            array = array.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"X must hold numbers: {error}") from error
    if array.dtype.kind not in "biuf":
        raise ValueError(f"X must hold real numbers, got dtype {array.dtype}.")
    if array.shape[1] == 0:
        raise ValueError(f"X has no columns: its shape is {array.shape}.")
    if array.dtype not in (np.float32, np.float64):
        array = array.astype(np.float64)
    # The sum is finite unless an entry is not, or it overflows: one pass without a mask of the size of the data.
    if not np.isfinite(array.sum(dtype=np.float64)) and not np.isfinite(array).all():
        raise ValueError(f"X contains NaN or infinity in {int((~np.isfinite(array)).any(axis=1).sum())} rows.")
    return np.asarray(array)


def _chain(first: DenseBatch, rest: Iterator[DenseBatch]) -> Iterator[DenseBatch]:
    yield first
    yield from rest


def _rebatch(chunks: Iterator[DenseBatch], batch_size: int) -> Iterator[DenseBatch]:
    """Cut and join chunks into batches of exactly ``batch_size`` rows, the last one excepted."""
    waiting: list[DenseBatch] = []
    n_waiting = 0
    for chunk in chunks:
        start = 0
        while n_waiting + len(chunk) - start >= batch_size:
            stop = start + batch_size - n_waiting
            yield join_batches([*waiting, _cut(chunk, start, stop)])
            waiting, n_waiting, start = [], 0, stop
        if start < len(chunk):
            waiting.append(_cut(chunk, start, len(chunk)))
            n_waiting += len(chunk) - start
    if waiting:
        yield join_batches(waiting)


def _cut(batch: DenseBatch, start: int, stop: int) -> DenseBatch:
    return DenseBatch(batch.rows[start:stop], None if batch.weights is None else batch.weights[start:stop])


def join_batches(batches: list[DenseBatch]) -> DenseBatch:
    """Batches under one another."""
    if len(batches) == 1:
        return batches[0]
    weights = None
    if any(batch.weights is not None for batch in batches):
        weights = np.concatenate([np.ones(len(b)) if b.weights is None else b.weights for b in batches])
    return DenseBatch(np.concatenate([batch.rows for batch in batches]), weights)
