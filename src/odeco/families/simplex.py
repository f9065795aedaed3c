"""Rows on the simplex: how they are estimated, and how accelerated steps mix them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from odeco.families.averages import averages

Floats = NDArray[np.float64]

_LEAST_COUNT = 1e-12  # of all counts of a row: less is rounding


def pack_simplex(rows: Floats) -> Floats:
    """Square roots of probabilities: on this sphere a step of the same length is as easy to see everywhere."""
    return np.sqrt(rows).ravel()


def unpack_simplex(vector: Floats, shape: tuple[int, ...]) -> Floats:
    """Rows on the simplex from any vector like that of `pack_simplex`; none of them becomes exactly 0."""
    rows = np.maximum(vector.reshape(shape), 1e-12) ** 2
    return np.asarray(rows / rows.sum(axis=-1, keepdims=True))


def proportions(counts: Floats, smoothing: float, otherwise: Floats | float = 0.0) -> Floats:
    """Counts plus pseudo-counts as proportions of their row; rows without any weight are `otherwise`."""
    counts = counts + smoothing
    return averages(counts, counts.sum(axis=-1, keepdims=True), otherwise, _LEAST_COUNT)


def log_dirichlet(rows: Floats, smoothing: float) -> float:
    """Log density of Dirichlet(1 + smoothing) priors of all rows, up to a constant."""
    return float(smoothing * np.log(np.maximum(rows, 1e-300)).sum()) if smoothing else 0.0
