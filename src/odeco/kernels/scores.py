"""Loops over samples and grids for score functions: what BLAS cannot do."""

from __future__ import annotations

import numpy as np

from odeco.kernels.compiling import njit

# Samples at a time.
_LENGTH = 1024


@njit(cache=True, nogil=True, error_model="numpy")  # type: ignore[untyped-decorator]
def _place(row, halves, low, step, n_cells, cells, places):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """The cell of every sample, after those of the other half for half 1, and where in it the sample lies, 0 to 1.

    A loop of its own: it vectorises, the scattered reads and writes that follow do not. Beyond the grid is at its ends.
    """
    last, zero = np.float32(n_cells - 1.001), np.float32(0.0)
    origin, scale = np.float32(low), np.float32(1 / step)
    for t in range(row.size):
        place = min(max((np.float32(row[t]) - origin) * scale, zero), last)
        cell = np.int32(place)
        cells[t], places[t] = cell + np.int32(n_cells) * halves[t], place - np.float32(cell)


@njit(cache=True, nogil=True, error_model="numpy")  # type: ignore[untyped-decorator]
def add_counts(outputs, weights, halves, low, step, counts):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """Add samples (k, m) to the cells of a grid: their weights, and their weights times where in the cell they lie.

    `counts` is (k, 2 n_cells, 2), the cells of both halves after one another. `weights` may be empty, for ones.
    """
    k, m = outputs.shape
    cells, places = np.empty(_LENGTH, dtype=np.int32), np.empty(_LENGTH, dtype=np.float32)
    for i in range(k):
        table = counts[i]
        for start in range(0, m, _LENGTH):
            row = outputs[i, start : min(start + _LENGTH, m)]
            _place(row, halves[start : start + row.size], low, step, counts.shape[1] // 2, cells, places)
            if weights.size > 0:
                for t in range(row.size):
                    weight = weights[start + t]
                    table[cells[t], 0] += weight
                    table[cells[t], 1] += weight * places[t]
            else:
                for t in range(row.size):
                    table[cells[t], 0] += 1.0
                    table[cells[t], 1] += places[t]


@njit(cache=True, nogil=True, error_model="numpy")  # type: ignore[untyped-decorator]
def look_up(outputs, halves, low, step, tables, out):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """Piecewise linear functions of samples (k, m), constant beyond the grid; `tables` is (k, 2 n_cells)."""
    k, m = outputs.shape
    cells, places = np.empty(_LENGTH, dtype=np.int32), np.empty(_LENGTH, dtype=np.float32)
    for i in range(k):
        table = tables[i]
        for start in range(0, m, _LENGTH):
            row = outputs[i, start : min(start + _LENGTH, m)]
            values = out[i, start : min(start + _LENGTH, m)]
            _place(row, halves[start : start + row.size], low, step, tables.shape[1] // 2, cells, places)
            for t in range(row.size):
                left = table[cells[t]]
                values[t] = left + places[t] * (table[cells[t] + 1] - left)


@njit(cache=True, nogil=True, error_model="numpy")  # type: ignore[untyped-decorator]
def smoothing_splines(masses, right, penalties, out):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """out[l, i] = (diag(masses[i]) + penalties[l] D'D)^-1 right[i], D the second differences: five diagonals, LDL'."""
    k, m = masses.shape
    pivots, first, second = np.empty(m), np.empty(m), np.empty(m)
    for level in range(penalties.size):
        penalty = penalties[level]
        for i in range(k):
            solution = out[level, i]
            for b in range(m):
                edge = min(b, m - 1 - b)
                diagonal = masses[i, b] + penalty * (1.0 if edge == 0 else (5.0 if edge == 1 else 6.0))
                beside = penalty * (-2.0 if b == 0 or b == m - 2 else -4.0)
                value = right[i, b]
                if b >= 1:
                    diagonal -= pivots[b - 1] * first[b - 1] ** 2
                    beside -= pivots[b - 1] * first[b - 1] * second[b - 1]
                    value -= first[b - 1] * solution[b - 1]
                if b >= 2:
                    diagonal -= pivots[b - 2] * second[b - 2] ** 2
                    value -= second[b - 2] * solution[b - 2]
                pivots[b], solution[b] = diagonal, value
                first[b] = beside / diagonal if b < m - 1 else 0.0
                second[b] = penalty / diagonal if b < m - 2 else 0.0
            for b in range(m - 1, -1, -1):
                value = solution[b] / pivots[b]
                if b < m - 1:
                    value -= first[b] * solution[b + 1]
                if b < m - 2:
                    value -= second[b] * solution[b + 2]
                solution[b] = value
