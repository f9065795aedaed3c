"""Starts that fits of several numbers of components share: where the search for a larger one ended.

A choice of the number makes many fits to the same rows (`odeco.fitting.choice`). Inside `shared` every search keeps
the best state that it has found, and the next smaller number begins with that, too: merged down, it is often there.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

Ladder = dict[int, Any]  # states, by their number of components

_ladder: ContextVar[Ladder | None] = ContextVar("odeco_ladder", default=None)


@contextmanager
def shared(ladder: Ladder) -> Iterator[None]:
    """Searches of this thread inside add to the ladder, and take from it.

    Examples
    --------
    >>> from odeco.fitting.ladder import above, keep, shared
    >>> with shared({}):
    ...     keep(5, "five components")
    ...     above(3)
    (5, 'five components')
    >>> above(3) is None
    True
    """
    token = _ladder.set(ladder)
    try:
        yield
    finally:
        _ladder.reset(token)


def keep(k: int, state: Any) -> None:
    """What a search has found, where ladders are climbed."""
    ladder = _ladder.get()
    if ladder is not None:
        ladder[k] = state


def above(k: int) -> tuple[int, Any] | None:
    """The next larger number that is known, and its state."""
    ladder = _ladder.get() or {}
    larger = min((size for size in ladder if size > k), default=None)
    return None if larger is None else (larger, ladder[larger])
