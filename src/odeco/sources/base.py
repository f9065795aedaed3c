"""What a source is: batches of rows that can be read as often as needed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse


@dataclass(frozen=True, eq=False)
class Batch:
    """Some rows of a count matrix, checked and in one form.

    Attributes
    ----------
    counts : (m, d) CSR array of float32 or float64
        Canonical: columns sorted, no duplicates. It may share memory with the caller's data and is never written to.
    lengths : (m,) array
        Row sums: the number of words of each document.
    weights : (m,) array or None
        Weight of each row; None means 1 each.
    """

    counts: sparse.csr_array = field(repr=False)
    lengths: NDArray[np.float64] = field(repr=False)
    weights: NDArray[np.float64] | None = field(default=None, repr=False)

    def __len__(self) -> int:
        return int(self.counts.shape[0])

    @property
    def n_features(self) -> int:
        """The number of columns."""
        return int(self.counts.shape[1])

    def take(self, rows: slice | NDArray[np.bool_] | NDArray[np.integer]) -> Batch:
        """Some of the rows."""
        return Batch(self.counts[rows], self.lengths[rows], None if self.weights is None else self.weights[rows])

    def row_weights(self) -> NDArray[np.float64]:
        """The weights, ones where none were given."""
        return np.ones(len(self)) if self.weights is None else self.weights


def thin(batch: Batch, size: int) -> Batch:
    """Evenly spaced rows of a batch, `size` of them at most."""
    return batch if len(batch) <= size else batch.take(evenly(len(batch), size))


def evenly(n: int, size: int) -> NDArray[np.intp]:
    """`size` evenly spaced places of n, or all of them."""
    return np.linspace(0, n - 1, size).astype(np.intp) if n > size else np.arange(n)


class Source(ABC):
    """Batches of rows, in the same order at every reading. Made by :func:`odeco.sources.as_source`."""

    @property
    @abstractmethod
    def n_features(self) -> int:
        """The number of columns d."""

    @property
    def reiterable(self) -> bool:
        """Whether the source can be read more than once."""
        return True

    @abstractmethod
    def __iter__(self) -> Iterator[Batch]:
        """One pass over the rows."""

    def sample(self, size: int) -> Batch:
        """About `size` rows, evenly spread over the data where they lie in memory, over the first batch elsewhere."""
        return thin(next(iter(self)), size)

    def map(self, function: Callable[[Batch], Batch]) -> Source:
        """A source of ``function(batch)``; the function must treat rows one by one and keep the columns."""
        return MappedSource(self, function)


class MappedSource(Source):
    """Batches of another source, each passed through a function when it is read."""

    def __init__(self, source: Source, function: Callable[[Batch], Batch]) -> None:
        self._source, self._function = source, function

    @property
    def n_features(self) -> int:
        return self._source.n_features

    @property
    def reiterable(self) -> bool:
        return self._source.reiterable

    def __iter__(self) -> Iterator[Batch]:
        return map(self._function, self._source)


def require_passes(source: Any, n_passes: int) -> None:
    """Raise unless ``source`` can be read ``n_passes`` times."""
    if n_passes > 1 and not getattr(source, "reiterable", True):
        raise ValueError(
            f"{n_passes} passes over the data are needed, but an iterator can be read only once: pass a function "
            "that returns a new iterator at each call (or a list of batches), or use partial_fit."
        )
