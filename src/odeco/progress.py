"""What a fit says while it works: passes, steps and how it ended, to whoever listens. Nobody does unless asked.

The runner and the loops call `tell`; `verbose=True` lets a fit write lines to stderr, and the command line shows the
same words beside its bar.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from time import monotonic

Listener = Callable[[str, bool], None]  # what is said, and whether it is one of many steps

_listener: ContextVar[Listener | None] = ContextVar("odeco_progress", default=None)
_BETWEEN_STEPS = 0.5  # seconds: more lines than that are noise


def tell(text: Callable[[], str] | str, *, step: bool = False) -> None:
    """Say something to whoever listens; a function is asked for its words only then."""
    listener = _listener.get()
    if listener is not None:
        listener(text if isinstance(text, str) else text(), step)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Hear what is told by this thread inside.

    Examples
    --------
    >>> from odeco.progress import listening, tell
    >>> heard = []
    >>> with listening(lambda text, step: heard.append(text)):
    ...     tell("pass 1 over the data")
    >>> tell("to nobody")
    >>> heard
    ['pass 1 over the data']
    """
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


class Lines:
    """A listener that writes lines to stderr, with the seconds since its beginning; of many steps, two a second."""

    def __init__(self, name: str) -> None:
        self._name, self._start, self._last = name, monotonic(), -1.0

    def __call__(self, text: str, step: bool) -> None:
        """Write one line."""
        seconds = monotonic() - self._start
        if step and seconds - self._last < _BETWEEN_STEPS:
            return
        self._last = seconds if step else self._last
        sys.stderr.write(f"{self._name} [{seconds:6.1f} s] {text}\n")
