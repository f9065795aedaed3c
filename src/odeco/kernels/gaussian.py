"""Densities and weighted sums of Gaussian observations with diagonal covariances: one pass over a slice each."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Floats = NDArray[np.floating]

_OPTIONS = {
    "cache": True,
    "nogil": True,
    "error_model": "numpy",
    "fastmath": {"contract", "reassoc", "arcp", "nsz"},  # NaN keeps its meaning: a missing entry
}


@njit(**_OPTIONS)
def diagonal_log_rows(
    values: Floats, center: Floats, linear: Floats, half: Floats, constants: Floats, rows: Floats, scales: Floats
) -> None:
    """Log densities less their largest in ``rows`` (m, k), the largest in ``scales`` (m,).

    ``log p = sum_c constants[c, j] + v_c (linear[c, j] - v_c half[c, j])`` with v = values - center over the entries
    that are there. ``linear``, ``half`` and ``constants`` have shape (d, kp), kp being k padded with anything finite.
    """
    k, (d, kp) = rows.shape[1], linear.shape
    totals = np.zeros(kp)
    for c in range(d):
        for j in range(kp):
            totals[j] += constants[c, j]
    sums = np.empty(kp)
    for t in range(values.shape[0]):
        for j in range(kp):
            sums[j] = totals[j]
        for c in range(d):
            v = values[t, c] - center[c]
            if v == v:
                for j in range(kp):
                    sums[j] += v * (linear[c, j] - v * half[c, j])
            else:
                for j in range(kp):
                    sums[j] -= constants[c, j]
        top = sums[0]
        for j in range(1, k):
            top = max(top, sums[j])
        for j in range(k):
            rows[t, j] = sums[j] - top
        scales[t] = top


@njit(**_OPTIONS)
def diagonal_sums(
    values: Floats, center: Floats, weights: Floats, least: float, totals: Floats, first: Floats, second: Floats
) -> None:
    """Weights, weighted sums and weighted sums of squares about the centre, each added to (k, d); NaN counts nowhere.

    Weights of at most ``least`` are taken for 0: most posteriors are.
    """
    d, k = values.shape[1], weights.shape[1]
    centred, present = np.empty(d), np.empty(d)
    mass = np.zeros(k)
    for t in range(values.shape[0]):
        whole = True
        for c in range(d):
            v = values[t, c] - center[c]
            there = v == v
            whole &= there
            centred[c] = v if there else 0.0
            present[c] = 1.0 if there else 0.0
        for j in range(k):
            w = weights[t, j]
            if w > least:
                for c in range(d):
                    scaled = w * centred[c]
                    first[j, c] += scaled
                    second[j, c] += scaled * centred[c]
                if whole:
                    mass[j] += w
                else:
                    for c in range(d):
                        totals[j, c] += w * present[c]
    for j in range(k):
        for c in range(d):
            totals[j, c] += mass[j]
