"""Batches of several views of the same samples: dense arrays and sparse matrices, side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from odeco.sources.arrays import row_slice
from odeco.sources.chunks import once
from odeco.sources.counts import as_csr, check_weights
from odeco.sources.dense import as_rows
from odeco.sources.kinds import Checkpointed, OutOfCore, are_dask, is_spark
from odeco.sources.scale import check_magnitude
from odeco.sources.values import weight_array

Block: TypeAlias = "NDArray[np.floating] | sparse.csr_array"

# Rows that are worked on at a time: temporaries stay below 2^20 numbers, in or near the cache, whatever the number of
# columns, and columns of them no whole number of pages apart, which would share their places in the cache. Sparse views
# alone take more rows, for each piece of them adds to sums of the size of all columns.
_MOST_ROWS, _MOST_SPARSE_ROWS, _NUMBERS = 4_000, 16_384, 2**20
# Runs that a batch is handed out in, a thread for each, and pieces of one at most: enough of both that no thread waits
# for long, be it for work or for another thread.
_RUNS, _MOST_PIECES = 16, 16


@dataclass(frozen=True, eq=False)
class ViewBatch:
    """Some samples in all their views, checked: finite real blocks with the same rows; weights, or None for ones."""

    blocks: tuple[Block, ...] = field(repr=False)
    weights: NDArray[np.float64] | None = field(default=None, repr=False)

    def __len__(self) -> int:
        return int(self.blocks[0].shape[0])

    @property
    def widths(self) -> tuple[int, ...]:
        """The numbers of columns d_t."""
        return tuple(int(block.shape[1]) for block in self.blocks)

    def row_weights(self) -> NDArray[np.float64]:
        """The weights, ones where none were given."""
        return np.ones(len(self)) if self.weights is None else self.weights

    @property
    def n_features(self) -> int:
        """Columns of all views together."""
        return sum(self.widths)

    def take(self, rows: slice | NDArray[np.intp]) -> ViewBatch:
        """Some of the samples."""
        weights = None if self.weights is None else self.weights[rows]
        return ViewBatch(tuple(block[rows] for block in self.blocks), weights)

    def cut(self, start: int, stop: int) -> ViewBatch:
        """The rows start to stop."""
        weights = None if self.weights is None else self.weights[start:stop]
        return ViewBatch(tuple(_rows(block, start, stop) for block in self.blocks), weights)

    def pieces(self) -> Iterator[ViewBatch]:
        """The same samples, few enough at a time for temporaries of the size of a block."""
        return self._cuts(self._piece)

    def runs(self) -> Iterator[ViewBatch]:
        """The same samples in a few runs of whole pieces: what threads share."""
        return self._cuts(self._piece * min(-(-len(self) // (self._piece * _RUNS)), _MOST_PIECES))

    @property
    def _piece(self) -> int:
        width = max((b.shape[1] for b in self.blocks if not sparse.issparse(b)), default=0)
        return min(max(_NUMBERS // width, 64), _MOST_ROWS) if width else _MOST_SPARSE_ROWS

    def _cuts(self, step: int) -> Iterator[ViewBatch]:
        if len(self) <= step:
            yield self
            return
        for start in range(0, len(self), step):
            yield self.cut(start, min(start + step, len(self)))


class ViewSource:
    """Batches of views, in the same order at every reading. Made by :func:`as_view_source`."""

    def __init__(
        self,
        read: Callable[[], Iterable[Any]],
        sample_weight: NDArray[np.float64] | None = None,
        *,
        reiterable: bool = True,
    ) -> None:
        self._read, self._weights, self.reiterable = read, sample_weight, reiterable
        self._head: ViewBatch | None = None
        self._unread: Iterator[ViewBatch] | None = None

    @property
    def head(self) -> ViewBatch:
        """The first sample; looks at the first batch."""
        if self._head is None:
            batches = self._batches()
            first = next(batches)
            self._head = first.cut(0, 1)
            if not self.reiterable:
                self._unread = _chain(first, batches)
        return self._head

    @property
    def widths(self) -> tuple[int, ...]:
        """The numbers of columns of the views."""
        return self.head.widths

    def __iter__(self) -> Iterator[ViewBatch]:
        batches = self._unread if self._unread is not None else self._batches()
        self._unread = None
        return (run for batch in batches for run in batch.runs())

    def _batches(self) -> Iterator[ViewBatch]:
        n_seen = 0
        for item in self._read():
            batch = as_view_batch(item)
            if self._head is None:
                self._head = batch.cut(0, 1)
            if batch.widths != self._head.widths:
                raise ValueError(
                    f"batches differ in the columns of their views: {self._head.widths}, then {batch.widths}."
                )
            if self._weights is not None:
                if batch.weights is not None:
                    raise ValueError("weights are given twice: by sample_weight and with the batches.")
                part = self._weights[n_seen : n_seen + len(batch)]
                if len(part) < len(batch):
                    raise ValueError(f"sample_weight has length {len(self._weights)}, the source gives more rows.")
                batch = ViewBatch(batch.blocks, part)
            n_seen += len(batch)
            yield batch
        if n_seen == 0:
            raise ValueError("X is empty: the source gave no batches.")
        if self._weights is not None and n_seen != len(self._weights):
            raise ValueError(f"sample_weight has length {len(self._weights)}, the source gave {n_seen} rows.")


def as_view_source(X: Any, sample_weight: ArrayLike | None = None) -> ViewSource:
    """Make a source of views.

    Parameters
    ----------
    X : list of three or more blocks of the same rows, or batches of such lists
        A block is an array, a scipy sparse matrix or a DataFrame. Batches: a list of lists of blocks, a function that
        returns a new iterator over lists of blocks at each call, or an iterator (read once). A batch may be a pair
        (list of blocks, weights). Also a list of Dask collections with the same chunks of rows, a Spark DataFrame with
        a column for each view (`from_spark`), and any of these in `out_of_core` or `checkpointed`.
    sample_weight : (n,) array, optional
    """
    if isinstance(X, ViewSource):
        if sample_weight is not None:
            raise ValueError("sample_weight cannot be added to a source: give it to as_view_source with the data.")
        return X
    if isinstance(X, OutOfCore):  # nothing is kept of any source of views
        return as_view_source(X.data, sample_weight)
    if isinstance(X, Checkpointed):
        from odeco.sources.checkpoints import keep

        return keep(as_view_source(X.data, sample_weight), X)  # type: ignore[no-any-return]
    if are_dask(X) or is_spark(X):
        from odeco.sources.remote import remote_views

        return remote_views(X, sample_weight)
    weights = None
    if sample_weight is not None:
        weights = weight_array(sample_weight)
        check_weights(weights, weights.shape[0] if weights.ndim else 0)
    if isinstance(X, ViewBatch) or is_views(X):
        batch = as_view_batch(X)
        if weights is not None:
            check_weights(weights, len(batch))
        return ViewSource(lambda: [batch], weights)
    if callable(X):
        return ViewSource(X, weights)
    if isinstance(X, Iterator):
        return ViewSource(once(X), weights, reiterable=False)
    if isinstance(X, (list, tuple)) and X:
        return ViewSource(lambda: X, weights)
    raise ValueError(
        f"X must be a list of three or more views [X1, X2, X3, ...] with the same rows, or batches of them, got "
        f"{_describe(X)}."
    )


def as_view_batch(item: Any) -> ViewBatch:
    """Check a list of blocks, or a pair of such a list and weights."""
    if isinstance(item, ViewBatch):
        return item
    if isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], (list, tuple)):
        batch = as_view_batch(list(item[0]))
        return ViewBatch(batch.blocks, check_weights(item[1], len(batch)))
    if not isinstance(item, (list, tuple)):
        raise ValueError(f"X must be a list of three or more views [X1, X2, X3, ...], got {_describe(item)}.")
    if len(item) < 3:
        raise ValueError(
            f"X has {len(item)} view{'s' * (len(item) != 1)}, and Theorem 3.6 needs three: split a view with "
            "independent columns, or use ProductMixture for one table."
        )
    blocks = tuple(_as_block(block, t) for t, block in enumerate(item))
    rows = [int(block.shape[0]) for block in blocks]
    if len(set(rows)) > 1:
        raise ValueError(f"the views must have the same rows, one per sample, got {rows} rows.")
    if rows[0] == 0:
        raise ValueError("X is empty: its views have 0 samples, and a minimum of 1 is required.")
    return ViewBatch(blocks)


def is_views(X: Any) -> bool:
    """Whether X is one list of blocks, rather than batches of them."""
    if not isinstance(X, (list, tuple)) or not X or are_dask(X):
        return False
    if isinstance(X, tuple) and len(X) == 2 and isinstance(X[0], (list, tuple)) and _is_block(X[0][0]):
        return True  # one pair (views, weights)
    return all(_is_block(item) for item in X)


def _is_block(item: Any) -> bool:
    if sparse.issparse(item) or hasattr(item, "to_numpy") or hasattr(item, "__array__"):
        return True
    return isinstance(item, (list, tuple)) and bool(item) and not _is_block_like(item[0])


def _is_block_like(item: Any) -> bool:
    """Whether an item of a nested list is itself a matrix: then the list holds views, not rows."""
    if sparse.issparse(item) or hasattr(item, "to_numpy"):
        return True
    if hasattr(item, "shape"):
        return len(item.shape) >= 2
    nested = isinstance(item, (list, tuple)) and bool(item)
    return nested and (hasattr(item[0], "shape") or isinstance(item[0], (list, tuple)))


def _as_block(block: Any, index: int) -> Block:
    try:
        if not sparse.issparse(block):
            return as_rows(block)
        rows = sparse.csr_array(as_csr(block))
        if rows.shape[1] == 0:
            raise ValueError(f"X has no columns: its shape is {rows.shape}.")
        if not rows.has_canonical_format:
            rows = rows.copy()  # the caller's stays as it is
            rows.sum_duplicates()
        if rows.dtype not in (np.float32, np.float64):
            rows = rows.astype(np.float64)
        if not np.isfinite(rows.data).all():
            raise ValueError("X contains NaN or infinity.")
        check_magnitude(rows.data)
        return rows
    except ValueError as error:
        text = str(error).replace("X ", f"view {index} ", 1)
        hint = " One-hot encode codes of categories." if "two-dimensional" in text else ""
        raise ValueError(f"{text}{hint}") from error


def _rows(block: Block, start: int, stop: int) -> Block:
    return row_slice(block, start, stop) if sparse.issparse(block) else block[start:stop]


def _describe(X: Any) -> str:
    return f"an array of shape {tuple(X.shape)}" if hasattr(X, "shape") else type(X).__name__


def _chain(first: ViewBatch, rest: Iterator[ViewBatch]) -> Iterator[ViewBatch]:
    yield first
    yield from rest
