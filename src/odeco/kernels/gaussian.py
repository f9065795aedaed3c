"""Densities and weighted sums of Gaussian observations with diagonal covariances: one pass over a slice each."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from odeco.kernels.compiling import njit

Floats = NDArray[np.floating]

BLOCK = 64  # steps whose columns are laid side by side: loops over a constant number of them fill the vector units
_OPTIONS = {
    "cache": True,
    "nogil": True,
    "error_model": "numpy",
    "fastmath": {"contract", "reassoc", "arcp", "nsz"},  # NaN keeps its meaning: a missing entry
}


@njit(**_OPTIONS)
def _transposed(values: Floats, center: Floats, begin: int, out: Floats, absent: Floats) -> bool:
    """`BLOCK` steps about the centre, a column in each row, 0 where missing; whether something is. Zeros at the end."""
    total = 0.0
    if begin + BLOCK <= values.shape[0]:
        for c in range(values.shape[1]):
            for s in range(BLOCK):
                out[c, s] = values[begin + s, c] - center[c]
                total += out[c, s]
    else:
        out[:] = 0.0
        for s in range(values.shape[0] - begin):
            for c in range(values.shape[1]):
                out[c, s] = values[begin + s, c] - center[c]
                total += out[c, s]
    if total - total == 0.0:  # neither NaN nor an overflow
        return False
    for c in range(values.shape[1]):
        for s in range(BLOCK):
            there = out[c, s] == out[c, s]
            absent[c, s] = 0.0 if there else 1.0
            out[c, s] = out[c, s] if there else 0.0
    return True


@njit(**_OPTIONS)
def diagonal_log_rows(
    values: Floats, center: Floats, linear: Floats, half: Floats, constants: Floats, rows: Floats, scales: Floats
) -> None:
    """Log densities less their largest in ``rows`` (m, k), the largest in ``scales`` (m,).

    ``log p = sum_c constants[c, j] + v_c (linear[c, j] - v_c half[c, j])`` with v = values - center over the entries
    that are there; ``linear``, ``half`` and ``constants`` have shape (d, k).
    """
    (n, k), d = rows.shape, center.shape[0]
    v, absent = np.empty((d, BLOCK)), np.empty((d, BLOCK))
    sums, top = np.empty((k, BLOCK)), np.empty(BLOCK)
    totals = constants.sum(axis=0)
    for begin in range(0, n, BLOCK):
        missing = _transposed(values, center, begin, v, absent)
        top[:] = -np.inf
        for j in range(k):
            for s in range(BLOCK):
                sums[j, s] = totals[j]
            for c in range(d):
                slope, bend = linear[c, j], half[c, j]
                for s in range(BLOCK):
                    sums[j, s] += v[c, s] * (slope - v[c, s] * bend)
                if missing:
                    for s in range(BLOCK):
                        sums[j, s] -= absent[c, s] * constants[c, j]
            for s in range(BLOCK):
                top[s] = sums[j, s] if sums[j, s] > top[s] else top[s]
        for s in range(min(BLOCK, n - begin)):
            scales[begin + s] = top[s]
            for j in range(k):
                rows[begin + s, j] = sums[j, s] - top[s]


@njit(**_OPTIONS)
def diagonal_sums(
    values: Floats, center: Floats, weights: Floats, totals: Floats, first: Floats, second: Floats
) -> None:
    """Weights, weighted sums and sums of squares about the centre, each added to (k, d); NaN counts nowhere."""
    (n, k), d = weights.shape, center.shape[0]
    v, absent, w = np.empty((d, BLOCK)), np.empty((d, BLOCK)), np.empty((k, BLOCK))
    mass = np.zeros(k)
    for begin in range(0, n, BLOCK):
        missing = _transposed(values, center, begin, v, absent)
        for s in range(BLOCK):
            for j in range(k):
                w[j, s] = weights[begin + s, j] if begin + s < n else 0.0
        for j in range(k):
            for s in range(BLOCK):
                mass[j] += w[j, s]
            for c in range(d):
                one, two = 0.0, 0.0
                for s in range(BLOCK):
                    scaled = w[j, s] * v[c, s]
                    one += scaled
                    two += scaled * v[c, s]
                first[j, c] += one
                second[j, c] += two
                if missing:
                    for s in range(BLOCK):
                        totals[j, c] -= w[j, s] * absent[c, s]
    for j in range(k):
        for c in range(d):
            totals[j, c] += mass[j]
