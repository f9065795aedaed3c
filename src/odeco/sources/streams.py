"""Sources over batches that come one after the other: lists, functions that return iterators, iterators."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from odeco.sources.arrays import row_slice, stack_rows
from odeco.sources.base import Batch, Source
from odeco.sources.counts import as_batch, check_weights


class StreamSource(Source):
    """Batches from a function that returns a new iterator at each call.

    Whatever the chunks that arrive, batches of exactly ``batch_size`` rows (the last one excepted) leave: sums over
    them do not depend on the chunks, not even in their rounding, and tiny chunks cost no more than large ones.
    """

    def __init__(
        self,
        read: Callable[[], Iterable[Any]],
        batch_size: int,
        sample_weight: ArrayLike | None = None,
        *,
        reiterable: bool = True,
    ) -> None:
        self._read, self._batch_size, self._reiterable = read, batch_size, reiterable
        self._weights = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        self._n_features: int | None = None
        self._n_samples: int | None = None
        self._unread: Iterator[Batch] | None = None

    @property
    def reiterable(self) -> bool:
        return self._reiterable

    @property
    def n_features(self) -> int:
        if self._n_features is None:  # look at the first chunk; a source that is read once keeps it
            chunks = self._chunks()
            first = next(chunks)
            if not self._reiterable:
                self._unread = _chain(first, chunks)
        assert self._n_features is not None
        return self._n_features

    def __iter__(self) -> Iterator[Batch]:
        chunks = self._unread if self._unread is not None else self._chunks()
        self._unread = None
        return _rebatch(chunks, self._batch_size)

    def _chunks(self) -> Iterator[Batch]:
        """The checked chunks of one pass, as they arrive."""
        n_seen = 0
        for item in self._read():
            chunk = self._as_chunk(item, n_seen)
            n_seen += len(chunk)
            yield chunk
        if n_seen == 0 and self._n_samples is None:
            raise ValueError("X is empty: the source gave no batches.")
        if self._n_samples is not None and n_seen != self._n_samples:
            raise ValueError(
                f"the source gave {n_seen} rows, {self._n_samples} in an earlier pass: the function must return a new "
                "iterator over the same rows at each call."
            )
        if self._weights is not None:
            check_weights(self._weights, n_seen)
        self._n_samples = n_seen

    def _as_chunk(self, item: Any, n_seen: int) -> Batch:
        """Check one chunk: a block of rows, a pair (rows, weights), or a batch already checked."""
        if isinstance(item, Batch):
            chunk = item
        elif isinstance(item, tuple) and len(item) == 2:
            chunk = as_batch(item[0])
            chunk = Batch(chunk.counts, chunk.lengths, check_weights(item[1], len(chunk)))
        else:
            chunk = as_batch(item)
        width = int(chunk.counts.shape[1])
        if self._n_features is None:
            self._n_features = width
        if width != self._n_features:
            raise ValueError(f"batches differ in their number of columns: {self._n_features}, then {width}.")
        if self._weights is None:
            return chunk
        if chunk.weights is not None:
            raise ValueError("weights are given twice: by sample_weight and with the batches.")
        stop = n_seen + len(chunk)
        if self._weights.ndim != 1 or stop > len(self._weights):
            raise ValueError(f"sample_weight has shape {self._weights.shape}, the source has at least {stop} rows.")
        return Batch(chunk.counts, chunk.lengths, check_weights(self._weights[n_seen:stop], len(chunk)))


def once(iterator: Iterator[Any]) -> Callable[[], Iterable[Any]]:
    """A function that gives ``iterator`` at its first call and an error afterwards."""
    remaining = [iterator]

    def read() -> Iterable[Any]:
        if not remaining:
            raise ValueError(
                "this source was made from an iterator and has been read: pass a function that returns a new iterator."
            )
        return remaining.pop()

    return read


def _chain(first: Batch, rest: Iterator[Batch]) -> Iterator[Batch]:
    yield first
    yield from rest


def _rebatch(chunks: Iterator[Batch], batch_size: int) -> Iterator[Batch]:
    """Cut and join chunks into batches of exactly ``batch_size`` rows, the last one excepted."""
    waiting: list[Batch] = []
    n_waiting = 0
    for chunk in chunks:
        start = 0
        while n_waiting + len(chunk) - start >= batch_size:
            stop = start + batch_size - n_waiting
            yield _join([*waiting, _cut(chunk, start, stop)])
            waiting, n_waiting, start = [], 0, stop
        if start < len(chunk):
            waiting.append(_cut(chunk, start, len(chunk)))
            n_waiting += len(chunk) - start
    if waiting:
        yield _join(waiting)


def _cut(batch: Batch, start: int, stop: int) -> Batch:
    weights = None if batch.weights is None else batch.weights[start:stop]
    return Batch(row_slice(batch.counts, start, stop), batch.lengths[start:stop], weights)


def _join(batches: list[Batch]) -> Batch:
    if len(batches) == 1:
        return batches[0]
    weights: NDArray[np.float64] | None = None
    if any(batch.weights is not None for batch in batches):
        weights = np.concatenate([batch.row_weights() for batch in batches])
    counts = stack_rows([batch.counts for batch in batches])
    return Batch(counts, np.concatenate([batch.lengths for batch in batches]), weights)
