"""What `partial_fit` of hidden Markov models keeps: the first steps as they are, of later ones the moments alone."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Self

from odeco.sources.sequences import Sequences, first_steps, followed_by

HEAD_STEPS = 50_000


class HeadStream(ABC):
    """Sequences that arrive in any division; memory stays bounded. `head` are the first `HEAD_STEPS` steps."""

    _head: Sequences | None = None

    @property
    def head(self) -> Sequences:
        """The steps that are kept."""
        if self._head is None:
            raise ValueError("nothing has been added yet.")
        return self._head

    @property
    @abstractmethod
    def full(self) -> bool:
        """Whether more came than the head holds."""

    @abstractmethod
    def _learn(self, head: Sequences) -> None:
        """Find the basis of the moments in the head, which is full from now on."""

    @abstractmethod
    def _add(self, data: Sequences) -> None:
        """Add sequences to the moments on that basis."""

    def update(self, data: Sequences) -> Self:
        """Add whole sequences."""
        if self.full:
            self._add(data)
            return self
        joined = data if self._head is None else followed_by(self._head, data)
        self._head = first_steps(joined, HEAD_STEPS)
        if len(joined) > HEAD_STEPS:
            self._learn(self._head)
            self._add(joined)
        return self
