"""Checks shared by the options of several methods."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from odeco.tensors.algebra import Floats


def check_count(name: str, value: int) -> None:
    """A count must be a positive integer."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
        raise ValueError(f"{name} must be a positive integer, got {value!r}.")


def check_positive(name: str, value: float) -> None:
    """A tolerance must be positive and finite."""
    if (
        isinstance(value, bool)
        or not isinstance(value, (int, float, np.integer, np.floating))
        or not 0 < value < np.inf
    ):
        raise ValueError(f"{name} must be positive, got {value!r}.")


def check_shift(shift: float) -> None:
    """0 for no shift, or positive: its direction is the method's business."""
    if shift != 0:
        check_positive("shift", shift)


def check_starts(starts: ArrayLike, n: int, rank: int | None = None) -> Floats:
    """Start vectors as unit columns (n, m); m must be `rank` where it is given."""
    given = np.asarray(starts)
    if given.dtype.kind not in "biuf":
        raise ValueError(f"starts must be real numbers, got dtype {given.dtype}.")
    vectors = np.array(given, dtype=float)
    if vectors.ndim != 2 or vectors.shape[0] != n or vectors.shape[1] < 1 or rank not in (None, vectors.shape[1]):
        expected = f"({n}, {'m' if rank is None else rank})"
        raise ValueError(f"starts must hold one start vector per column, shape {expected}, got shape {vectors.shape}.")
    norms = np.linalg.norm(vectors, axis=0)
    if not np.all(np.isfinite(norms)) or np.any(norms == 0):
        raise ValueError("starts must be finite and have no zero column.")
    return np.asarray(vectors / norms)
