"""The law of the moments: sums that can be updated, merged and read."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray


class Moments(ABC):
    """Sums over samples. Division happens only when they are read.

    Any chunking of the samples into batches and any order of merges give the same statistics. The basis
    on which a moment is projected travels with it: merging moments of different bases is an error.
    """

    def __init__(self, n_features: int, basis: NDArray[np.floating] | None = None) -> None:
        self.n_features = n_features
        self.basis = basis
        self.n = 0
        """The number of samples seen, whatever their weights."""

    def update(self, batch: Any) -> Self:
        """Add the samples of a batch, of the kind that the subclass takes; returns self."""
        if batch.n_features != self.n_features:
            raise ValueError(f"the batch has {batch.n_features} columns, the moments {self.n_features}.")
        self._update(batch)
        self.n += len(batch)
        return self

    def update_all(self, batches: Iterable[Any]) -> Self:
        """Add every batch of a source; returns self."""
        for batch in batches:
            self.update(batch)
        return self

    def merge(self, other: Self) -> Self:
        """Add the sums of ``other``, which is left as it is; returns self."""
        if type(other) is not type(self):
            raise ValueError(f"cannot merge {type(other).__name__} into {type(self).__name__}.")
        if other.n_features != self.n_features or not _same_basis(self.basis, other.basis):
            raise ValueError(
                "cannot merge moments of different bases: create both from the same array, learned once, before "
                "the data are split."
            )
        self._merge(other)
        self.n += other.n
        return self

    @abstractmethod
    def _update(self, batch: Any) -> None:
        """Add the samples of a checked batch."""

    @abstractmethod
    def _merge(self, other: Self) -> None:
        """Add the sums of moments that were checked to be alike."""

    def __repr__(self) -> str:
        width = "" if self.basis is None else f", basis of {self.basis.shape[1]}"
        return f"{type(self).__name__}(n={self.n}, n_features={self.n_features}{width})"


def _same_basis(first: NDArray[np.floating] | None, second: NDArray[np.floating] | None) -> bool:
    if first is second:
        return True
    return first is not None and second is not None and np.array_equal(first, second)
