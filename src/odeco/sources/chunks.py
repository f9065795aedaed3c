"""Chunks that come one after the other, checked, and joined and cut into batches of one size."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sized
from itertools import chain
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from odeco.sources.counts import check_weights
from odeco.sources.values import weight_array

Chunk = TypeVar("Chunk", bound=Sized)


class Rechunked(ABC, Generic[Chunk]):
    """Batches from a function that returns a new iterator over chunks at each call.

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
        self._weights = None if sample_weight is None else weight_array(sample_weight)
        self._n_features: int | None = None
        self._n_samples: int | None = None
        self._unread: Iterator[Chunk] | None = None

    @property
    def reiterable(self) -> bool:
        """Whether the source can be read more than once."""
        return self._reiterable

    @property
    def n_features(self) -> int:
        """The number of columns d; looks at the first chunk."""
        self._peek()
        assert self._n_features is not None
        return self._n_features

    def __iter__(self) -> Iterator[Chunk]:
        """One pass, in batches of exactly ``batch_size`` rows (the last one excepted)."""
        chunks = self._unread if self._unread is not None else self._chunks()
        self._unread = None
        return self._rebatch(chunks)

    @abstractmethod
    def _check(self, item: Any) -> Chunk:
        """A block of rows, a pair (rows, weights) or a chunk already checked, as a chunk."""

    @abstractmethod
    def _width(self, chunk: Chunk) -> int:
        """Number of columns."""

    @abstractmethod
    def _weigh(self, chunk: Chunk, weights: NDArray[np.float64]) -> Chunk:
        """The chunk with these weights; an error where it has its own."""

    @abstractmethod
    def _cut(self, chunk: Chunk, start: int, stop: int) -> Chunk:
        """Some of its rows."""

    @abstractmethod
    def _join(self, chunks: list[Chunk]) -> Chunk:
        """Chunks under one another."""

    def _peek(self) -> None:
        if self._n_features is None:
            chunks = self._chunks()
            first = next(chunks)
            if not self._reiterable:  # a source that is read once keeps it
                self._unread = chain([first], chunks)

    def _chunks(self) -> Iterator[Chunk]:
        """The checked chunks of one pass, as they arrive."""
        n_seen = 0
        for item in self._read():
            chunk = self._check(item)
            self._check_width(chunk)
            if self._weights is not None:
                chunk = self._weigh(chunk, self._part_of_weights(self._weights, n_seen, n_seen + len(chunk)))
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

    def _check_width(self, chunk: Chunk) -> None:
        width = self._width(chunk)
        if self._n_features is None:
            self._n_features = width
        if width != self._n_features:
            raise ValueError(f"batches differ in their number of columns: {self._n_features}, then {width}.")

    @staticmethod
    def _part_of_weights(weights: NDArray[np.float64], start: int, stop: int) -> NDArray[np.float64]:
        if weights.ndim != 1 or stop > len(weights):
            raise ValueError(f"sample_weight has shape {weights.shape}, the source has at least {stop} rows.")
        part = weights[start:stop]
        return check_weights(part, stop - start) if part.any() else part  # all of them are checked in the end

    def _rebatch(self, chunks: Iterator[Chunk]) -> Iterator[Chunk]:
        waiting: list[Chunk] = []
        n_waiting = 0
        for chunk in chunks:
            start = 0
            while n_waiting + len(chunk) - start >= self._batch_size:
                stop = start + self._batch_size - n_waiting
                yield self._join([*waiting, self._cut(chunk, start, stop)])
                waiting, n_waiting, start = [], 0, stop
            if start < len(chunk):
                waiting.append(self._cut(chunk, start, len(chunk)))
                n_waiting += len(chunk) - start
        if waiting:
            yield self._join(waiting)


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


def join_weights(chunks: list[Any]) -> NDArray[np.float64] | None:
    """Weights of chunks under one another, ones where some have none; None where none have any."""
    if all(chunk.weights is None for chunk in chunks):
        return None
    return np.concatenate([np.ones(len(c)) if c.weights is None else c.weights for c in chunks])


def refuse_two_weights(chunk: Any) -> None:
    """Raise where a chunk already has weights."""
    if chunk.weights is not None:
        raise ValueError("weights are given twice: by sample_weight and with the batches.")
