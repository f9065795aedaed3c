"""Batches of dense rows of real numbers: arrays, DataFrames, lists of batches, functions, iterators.

float32 and float64 keep their type and, where they come as one array, their memory: nothing is copied.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from odeco.sources.base import evenly
from odeco.sources.chunks import Rechunked, join_weights, once, refuse_two_weights
from odeco.sources.counts import check_weights
from odeco.sources.kinds import Checkpointed, OutOfCore, is_remote
from odeco.sources.scale import check_magnitude, is_within_range
from odeco.sources.values import number_array, weight_array

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

    @property
    def n_features(self) -> int:
        """The number of columns."""
        return int(self.rows.shape[1])

    def take(self, rows: slice | NDArray[np.bool_] | NDArray[np.intp]) -> DenseBatch:
        """Some of the rows."""
        return DenseBatch(self.rows[rows], None if self.weights is None else self.weights[rows])


class DenseSource(Rechunked[DenseBatch]):
    """Batches of rows, in the same order at every reading. Made by :func:`as_dense_source`."""

    holds_rows: ClassVar[bool] = True  # whether all of them may be kept, projected at least
    _dtype: np.dtype[Any] | None = None

    def __init__(
        self,
        read: Callable[[], Iterable[Any]],
        batch_size: int = DENSE_BATCH_SIZE,
        sample_weight: ArrayLike | None = None,
        *,
        reiterable: bool = True,
    ) -> None:
        super().__init__(read, batch_size, sample_weight, reiterable=reiterable)

    @property
    def dtype(self) -> np.dtype[Any]:
        """float32 or float64: that of the first chunk."""
        self._peek()
        assert self._dtype is not None
        return self._dtype

    @property
    def n_rows(self) -> int:
        """The number of rows; counting them may take a pass."""
        if self._n_samples is None:
            for _ in self:
                pass
        assert self._n_samples is not None
        return self._n_samples

    def take(self, rows: NDArray[np.intp]) -> DenseBatch:
        """Some rows, given by their places, ascending."""
        found, first = [], 0
        for batch in self:
            mine = rows[(rows >= first) & (rows < first + len(batch))] - first
            if mine.size:
                found.append(batch.take(mine))
            first += len(batch)
            if first > rows[-1]:
                break
        return join_batches(found)

    def sample(self, size: int) -> DenseBatch:
        """`size` rows, evenly spaced, or all of them."""
        return self.take(evenly(self.n_rows, size))

    def _check(self, item: Any) -> DenseBatch:
        if isinstance(item, DenseBatch):
            chunk = item
        elif isinstance(item, tuple) and len(item) == 2:
            rows = as_rows(item[0])
            chunk = DenseBatch(rows, check_weights(item[1], len(rows)))
        else:
            chunk = DenseBatch(as_rows(item))
        if self._dtype is None:
            self._dtype = chunk.rows.dtype
        return chunk

    def _width(self, chunk: DenseBatch) -> int:
        return int(chunk.rows.shape[1])

    def _weigh(self, chunk: DenseBatch, weights: NDArray[np.float64]) -> DenseBatch:
        refuse_two_weights(chunk)
        return DenseBatch(chunk.rows, weights)

    def _cut(self, chunk: DenseBatch, start: int, stop: int) -> DenseBatch:
        return chunk.take(slice(start, stop))

    def _join(self, chunks: list[DenseBatch]) -> DenseBatch:
        return join_batches(chunks)


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
    if isinstance(X, OutOfCore):
        inner = X.data if isinstance(X.data, DenseSource) else as_dense_source(X.data, batch_size, sample_weight)
        if isinstance(inner, OutOfCoreRows):
            return inner
        return OutOfCoreRows(lambda: inner, inner._batch_size, reiterable=inner.reiterable)
    if isinstance(X, Checkpointed):
        from odeco.sources.checkpoints import keep

        return keep(as_dense_source(X.data, batch_size, sample_weight), X)  # type: ignore[no-any-return]
    if is_remote(X):
        from odeco.sources.remote import remote_rows

        return remote_rows(X, int(batch_size), sample_weight)
    weights = None if sample_weight is None else weight_array(sample_weight)
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
    if is_remote(X) or isinstance(X, (OutOfCore, Checkpointed)):
        return False
    if hasattr(X, "shape") or hasattr(X, "to_numpy") or hasattr(X, "__array__"):
        return True
    if not isinstance(X, (list, tuple)) or isinstance(X, DenseSource):
        return False
    if not X:
        return True
    first = X[0][0] if isinstance(X[0], tuple) and len(X[0]) == 2 else X[0]
    return not (isinstance(first, DenseBatch) or (hasattr(first, "shape") and len(first.shape) == 2))


def first_rows(source: DenseSource, size: int) -> DenseBatch:
    """The first rows: what origins and scales are chosen from."""
    if isinstance(source, OutOfCoreRows) and hasattr(source, "partitions"):  # no more than these rows travel
        return source.take(np.arange(source.n_first(size)))
    batch = next(iter(source))
    return batch.take(slice(size))


class OutOfCoreRows(DenseSource):
    """Rows of which nothing is kept but sums and small samples, wherever they are.

    Estimators keep projected rows of other sources where these fit; of such a source they take sums only.
    """

    holds_rows = False

    def add_to(self, sums: Any) -> Any:
        """Add all rows to `sums`, which must be empty; one pass."""
        from odeco.kernels.threads import sum_batches

        return sum_batches(iter(self), partial(deepcopy, sums))

    def n_first(self, most: int) -> int:
        """The number of rows, counted up to `most` where that saves anything."""
        return min(most, self.n_rows)

    def map(self, function: Callable[[DenseBatch], DenseBatch]) -> OutOfCoreRows:
        """A source of ``function(batch)``."""
        return OutOfCoreRows(lambda: map(function, self), self._batch_size, reiterable=self._reiterable)


def as_rows(X: Any) -> Rows:
    """Return finite rows as a (m, d) array of float32 or float64; other real types become float64."""
    array = number_array(X)
    if array.ndim != 2:
        raise ValueError(f"X must be two-dimensional (samples x channels), got shape {array.shape}.")
    if array.shape[1] == 0:
        raise ValueError(f"X has no columns: its shape is {array.shape}.")
    if array.dtype not in (np.float32, np.float64):
        array = array.astype(np.float64)
    if is_within_range(array):
        return np.asarray(array)
    if not np.isfinite(array).all():
        raise ValueError(f"X contains NaN or infinity in {int((~np.isfinite(array)).any(axis=1).sum())} rows.")
    return np.asarray(check_magnitude(array))


def batches_of(rows: Rows, weights: NDArray[np.float64] | None, size: int) -> Iterator[DenseBatch]:
    """Rows in memory, `size` at a time."""
    for low in range(0, len(rows), size):
        yield DenseBatch(rows[low : low + size], None if weights is None else weights[low : low + size])


def join_batches(batches: list[DenseBatch]) -> DenseBatch:
    """Batches under one another."""
    if len(batches) == 1:
        return batches[0]
    return DenseBatch(np.concatenate([batch.rows for batch in batches]), join_weights(batches))
