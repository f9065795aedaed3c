"""Products of a CSR matrix C with tall dense blocks, the loops of section 6.1.2 that scipy has not fused.

All functions work on the rows ``start`` to ``stop`` and release the GIL, so that threads can share the rows; every
thread that scatters needs an output of its own. ``values`` and the dense blocks have one dtype, float32 or float64: a
row of the block is read or written per nonzero, so the products are bound by memory and float32 halves their time.
Blocks that are read from or added to here and there may be wider than the rows they give or take (`kernels.lines`).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from odeco.kernels.compiling import njit

Ints = NDArray[np.integer]
Floats = NDArray[np.floating]

# "contract" alone lets multiply and add fuse; sums keep their order, NaN and infinity their meaning.
_OPTIONS = {"cache": True, "nogil": True, "fastmath": {"contract"}}


@njit(inline="always", **_OPTIONS)
def _gather(columns: Ints, values: Floats, first: int, last: int, block: Floats, out: Floats) -> None:
    """``out = sum_p values[p] * block[columns[p]]`` over first <= p < last, four rows at a time."""
    width = out.shape[0]
    out[:] = 0
    p = first
    while p + 4 <= last:  # four rows in flight hide the latency of memory and save three stores of `out`
        v0, v1, v2, v3 = values[p], values[p + 1], values[p + 2], values[p + 3]
        b0, b1 = block[columns[p]], block[columns[p + 1]]
        b2, b3 = block[columns[p + 2]], block[columns[p + 3]]
        for a in range(width):
            out[a] += (v0 * b0[a] + v1 * b1[a]) + (v2 * b2[a] + v3 * b3[a])
        p += 4
    while p < last:
        v0, b0 = values[p], block[columns[p]]
        for a in range(width):
            out[a] += v0 * b0[a]
        p += 1


@njit(inline="always", **_OPTIONS)
def _scatter(columns: Ints, values: Floats, first: int, last: int, row: Floats, out: Floats) -> None:
    """``out[columns[p]] += values[p] * row`` for first <= p < last."""
    width = row.shape[0]
    for p in range(first, last):
        v, target = values[p], out[columns[p]]
        for a in range(width):
            target[a] += v * row[a]


@njit(**_OPTIONS)
def project_rows(
    indptr: Ints, columns: Ints, values: Floats, block: Floats, start: int, stop: int, out: Floats
) -> None:
    """``out = C[start:stop] @ block``."""
    for j in range(start, stop):
        _gather(columns, values, indptr[j], indptr[j + 1], block, out[j - start])


@njit(**_OPTIONS)
def scatter_rows(
    indptr: Ints, columns: Ints, values: Floats, weights: Floats, rows: Floats, start: int, stop: int, out: Floats
) -> None:
    """``out += C[start:stop].T @ (weights[start:stop, None] * rows)``."""
    scaled = np.empty(rows.shape[1], rows.dtype)
    for j in range(start, stop):
        if weights[j] != 0:
            for a in range(scaled.shape[0]):
                scaled[a] = weights[j] * rows[j - start, a]
            _scatter(columns, values, indptr[j], indptr[j + 1], scaled, out)


@njit(**_OPTIONS)
def gram_rows(
    indptr: Ints, columns: Ints, values: Floats, weights: Floats, block: Floats, start: int, stop: int, out: Floats
) -> None:
    """``out += C.T @ (weights[:, None] * (C @ block))`` over the rows start to stop, in one sweep."""
    row = np.empty(block.shape[1], block.dtype)
    for j in range(start, stop):
        if weights[j] != 0:
            _gather(columns, values, indptr[j], indptr[j + 1], block, row)
            for a in range(row.shape[0]):
                row[a] *= weights[j]
            _scatter(columns, values, indptr[j], indptr[j + 1], row, out)


@njit(**_OPTIONS)
def weighted_column_sums(
    indptr: Ints, columns: Ints, values: Floats, weights: Floats, out: NDArray[np.float64]
) -> None:
    """``out += C.T @ weights``, in double precision."""
    for j in range(indptr.shape[0] - 1):
        weight = weights[j]
        if weight != 0:
            for p in range(indptr[j], indptr[j + 1]):
                out[columns[p]] += weight * values[p]
