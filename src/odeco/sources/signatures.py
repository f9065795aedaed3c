"""Which sums are meant: a short description of what they are sums on, equal up to rounding where they may be added."""

from __future__ import annotations

from typing import Any

import numpy as np

# Repeating a fit reproduces a basis to rounding, magnified by the condition of what it comes from.
_TOLERANCE = 1e-5
_DEPTH = 4


def signature(sums: Any) -> dict[str, Any]:
    """The class of empty sums and, of every number and array they hold, its shape and a few of its sums."""
    found: dict[str, Any] = {"": type(sums).__name__}
    _describe(sums, "", found, 0)
    return found


def _describe(value: Any, path: str, found: dict[str, Any], depth: int) -> None:
    if isinstance(value, (bool, str, int, type(None))):
        found[path] = value
    elif isinstance(value, (float, np.number, np.ndarray)):
        found[path] = _numbers(np.asarray(value))
    elif depth < _DEPTH and isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            _describe(item, f"{path}.{index}", found, depth + 1)
    elif depth < _DEPTH and hasattr(value, "__dict__") and type(value).__name__ != "ScatterSum":
        for name, item in vars(value).items():
            _describe(item, f"{path}.{name}", found, depth + 1)


def _numbers(array: Any) -> list[Any]:
    if array.dtype.kind not in "biuf":
        return [list(array.shape), str(array.dtype)]
    flat = np.nan_to_num(np.asarray(array, dtype=np.float64).ravel(), posinf=1e300, neginf=-1e300)
    wave = np.cos(np.arange(flat.size))
    scale = float(np.sqrt(np.mean(flat**2))) if flat.size and np.abs(flat).max() < 1e150 else 0.0
    return [list(array.shape), scale, float(flat @ wave / max(flat.size, 1) ** 0.5) if scale else 0.0]


def same_signature(first: dict[str, Any], second: dict[str, Any]) -> bool:
    """Whether two signatures are of sums that may be added."""
    return set(first) == set(second) and all(_same(first[name], second[name]) for name in first)


def _same(first: Any, second: Any) -> bool:
    if not isinstance(first, list) or not isinstance(second, list) or len(first) != 3 or len(second) != 3:
        return bool(first == second)
    if first[0] != second[0]:
        return False
    size = max(abs(first[1]), abs(second[1]), 1e-300)
    return all(abs(a - b) <= _TOLERANCE * size for a, b in zip(first[1:], second[1:], strict=True))
