"""How loops are compiled: once for a machine where the result can be kept, and once for a process elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba


def njit(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """``numba.njit`` that needs no writable folder.

    With ``cache=True`` numba keeps compiled code beside the sources or in the user's cache, and refuses to compile
    where it can write to neither: a read-only installation, a container without a home.
    """

    def compiled(function: Callable[..., Any]) -> Any:
        try:
            return numba.njit(**options)(function)
        except RuntimeError:  # "cannot cache function": found when the module is read, before anything is compiled
            return numba.njit(**{**options, "cache": False})(function)

    return compiled
