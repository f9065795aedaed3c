"""The law of the moments: sums that can be updated, merged and read."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class PackedSums:
    """Sums alone, as they travel and are stored: arrays by name, those that add up and those of which the largest
    counts. What they are sums on (a basis, a model) is known at both ends and does not travel.
    """

    sums: dict[str, NDArray[Any]] = field(repr=False)
    maxima: dict[str, NDArray[Any]] = field(default_factory=dict, repr=False)

    def __add__(self, other: PackedSums) -> PackedSums:
        return PackedSums(
            {name: value + other.sums[name] for name, value in self.sums.items()},
            {name: np.maximum(value, other.maxima[name]) for name, value in self.maxima.items()},
        )

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        return sum(value.nbytes for part in (self.sums, self.maxima) for value in part.values())


class Additive(ABC):
    """Anything that adds up over batches: the one thing that a pass over a source makes.

    Subclasses name the attributes that add up in `_sums`, and those of which the largest counts in `_maxima`.
    """

    _sums: ClassVar[tuple[str, ...]] = ()
    _maxima: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def update(self, batch: Any) -> Any:
        """Add the samples of a batch."""

    def update_all(self, batches: Iterable[Any]) -> Self:
        """Add every batch of a source, where its rows are; returns self."""
        add_to = getattr(batches, "add_to", None)
        if add_to is not None:
            added: Self = add_to(self)
            return added
        for batch in batches:
            self.update(batch)
        return self

    def merge(self, other: Self) -> Self:
        """Add other sums of the same kind; returns self."""
        return self.unpack(other.pack())

    def pack(self) -> PackedSums:
        """The sums, ready to travel."""
        return PackedSums(
            {name: np.asarray(getattr(self, name)) for name in self._sums if getattr(self, name) is not None},
            {name: np.asarray(getattr(self, name)) for name in self._maxima},
        )

    def unpack(self, packed: PackedSums) -> Self:
        """Add packed sums of the same kind; returns self."""
        for name, value in packed.sums.items():
            setattr(self, name, _like(getattr(self, name), getattr(self, name) + value))
        for name, value in packed.maxima.items():
            setattr(self, name, _like(getattr(self, name), np.maximum(getattr(self, name), value)))
        return self


def _like(old: Any, value: NDArray[Any]) -> Any:
    """Numbers stay numbers."""
    return value if isinstance(old, np.ndarray) else type(old)(value)


class Moments(Additive):
    """Sums over samples. Division happens only when they are read.

    Any chunking of the samples into batches and any order of merges give the same statistics. The basis
    on which a moment is projected travels with it: merging moments of different bases is an error.
    """

    _sums: ClassVar[tuple[str, ...]] = ("n",)

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
