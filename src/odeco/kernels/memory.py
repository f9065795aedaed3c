"""Memory that stays with the process while it is used again and again.

Dask's workers are started with ``MALLOC_TRIM_THRESHOLD_``, so that they give freed memory back to the system at once.
Every partition is then read into new pages, which the system has to clear first: about a fifth of the time of a pass
over word counts. Elsewhere the C library keeps what it may need again, and so it does inside of `kept_memory`.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any

# Parameters of glibc's mallopt: what it keeps at the end of a heap, and from which size on an array is mapped alone.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
# What glibc comes to by itself where nobody sets them, and where it starts.
_KEPT = {_TRIM_THRESHOLD: 2**26, _MMAP_THRESHOLD: 2**25}
_NAMES = {_TRIM_THRESHOLD: "MALLOC_TRIM_THRESHOLD_", _MMAP_THRESHOLD: "MALLOC_MMAP_THRESHOLD_"}
_AT_FIRST = 2**17

_lock = Lock()
_n_inside = 0


@contextmanager
def kept_memory() -> Iterator[None]:
    """Keep freed memory inside, where the process was told not to; give it back at the end. Of no effect elsewhere."""
    global _n_inside
    library = _told_to_trim()
    if library is None:
        yield
        return
    with _lock:
        _n_inside += 1
        if _n_inside == 1:
            for parameter, value in _KEPT.items():
                library.mallopt(parameter, value)
    try:
        yield
    finally:
        with _lock:
            _n_inside -= 1
            if _n_inside == 0:
                for parameter, name in _NAMES.items():
                    given = _given(name)
                    library.mallopt(parameter, _AT_FIRST if given is None else given)
                library.malloc_trim(0)


@cache
def _told_to_trim() -> Any:
    """The C library, where it is glibc and trims earlier than it would by itself; None elsewhere."""
    threshold = _given(_NAMES[_TRIM_THRESHOLD])
    if threshold is None or threshold >= _KEPT[_TRIM_THRESHOLD]:
        return None
    try:
        library = ctypes.CDLL(None)
        return library if library.mallopt and library.malloc_trim else None
    except (OSError, TypeError, AttributeError):  # another C library, or none
        return None


def _given(name: str) -> int | None:
    """A size in the environment."""
    value = os.environ.get(name, "")
    return int(value) if value.isdigit() else None
