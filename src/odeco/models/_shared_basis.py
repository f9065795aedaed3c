"""What streams of `partial_fit` need to be made apart and added up: all parts start from one basis."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Self


class SharedBasis(ABC):
    """A stream that learns a basis from its first rows and then keeps nothing but sums on it."""

    @property
    @abstractmethod
    def started(self) -> bool:
        """Whether the basis is final."""

    @abstractmethod
    def settle(self) -> None:
        """Fix the basis, on what there is if need be, and count what waits: no rows are held any more."""

    @abstractmethod
    def _emptied(self) -> Self:
        """The same without rows, where the basis is final."""

    @abstractmethod
    def _merge(self, other: Self) -> None:
        """Add other sums; both have a basis and hold no rows."""

    def emptied(self) -> Self:
        """A stream on the same basis without any rows."""
        self.settle()
        if not self.started:
            raise ValueError("no samples have been seen yet.")
        return self._emptied()

    def merge(self, other: Self) -> None:
        """Add the rows of a stream on the same basis."""
        self.settle()
        other.settle()
        if not self.started or not other.started:
            raise ValueError("streams without a basis cannot be merged: make one from a sample first.")
        self._merge(other)
