"""Documents that show what a topic is: those that are mostly of it and not short."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_LEAST_LENGTH = 0.5  # of the mean length: shorter documents are poor examples
_EXAMPLE_WORDS = 40  # that are kept of an example


@dataclass(frozen=True, order=True)
class Example:
    """A document that is mostly of one topic: the topic's share of it, its number, and its most frequent words."""

    share: float
    document: int
    words: tuple[int, ...] = field(default=(), compare=False)


class Examples:
    """The documents with the largest share of each topic among those that are not short."""

    def __init__(self, k: int, n: int) -> None:
        self._n = n
        self._heaps: list[list[Example]] = [[] for _ in range(k)]

    def update(self, counts: Any, lengths: Floats, proportions: Floats, first: int) -> None:
        """Look at a batch, whose first document has the number `first`."""
        long = np.flatnonzero(lengths >= _LEAST_LENGTH * lengths.mean())
        if not self._n or not long.size or not lengths.any():
            return
        n = min(self._n, long.size)
        for heap, shares in zip(self._heaps, proportions[long].T, strict=True):
            for i in np.argpartition(-shares, n - 1)[:n]:
                found = Example(float(shares[i]), -(first + int(long[i])), _frequent_words(counts, int(long[i])))
                heapq.heappush(heap, found)  # of equal shares the earlier document is the larger
                if len(heap) > self._n:
                    heapq.heappop(heap)

    def best(self) -> tuple[tuple[Example, ...], ...]:
        """Those of each topic, best first."""
        return tuple(
            tuple(Example(e.share, -e.document, e.words) for e in sorted(heap, reverse=True)) for heap in self._heaps
        )


def _frequent_words(counts: Any, row: int) -> tuple[int, ...]:
    start, stop = counts.indptr[row : row + 2]
    order = np.argsort(-counts.data[start:stop], kind="stable")[:_EXAMPLE_WORDS]
    return tuple(int(word) for word in counts.indices[start:stop][order])
