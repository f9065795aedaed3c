"""Sums of third powers of vectors, by GEMM over blocks of samples, at about a fifth of the work of all k^3 entries."""

from __future__ import annotations

from itertools import pairwise, permutations, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating]

# Samples per GEMM: the largest Khatri-Rao block of k = 100 then takes 2 MB, about one cache. Best of 256 to 4096.
ROWS_PER_BLOCK = 1024
# Coordinates per block of the symmetric split. Smaller ones save work, larger ones run nearer to GEMM speed.
_SIDE = 10
# Bytes that the sums of all threads may take.
_MOST_BYTES = 2**30


def coordinate_blocks(k: int) -> list[tuple[int, int]]:
    """Cut ``range(k)`` into runs of about ten."""
    edges = np.linspace(0, k, max(1, round(k / _SIDE)) + 1).round().astype(int)
    return [(int(lo), int(hi)) for lo, hi in pairwise(edges)]


def cube_buffer(k: int, m: int, dtype: Any) -> Floats:
    """Room for `add_cubes` of (k, m) vectors.

    Loops over blocks keep theirs: where memory goes back to the system at once, as it does in Dask's workers, a new
    block costs as much as filling it.
    """
    return np.empty(max(min(hi, k - lo) * (hi - lo) for lo, hi in coordinate_blocks(k)) * m, dtype=dtype)


def add_cubes(sums: NDArray[np.float64], vectors: Floats, weights: Floats, buffer: Floats | None = None) -> None:
    """Add ``sum_j weights[j] * vectors[:, j]^(x3)`` to ``sums``, blocks in order a <= b <= c only.

    The product runs in the dtype of ``vectors`` (k, m), the sum is kept in double precision. `fill_symmetric`
    completes the other five sixths when the tensor is read. ``buffer`` is a `cube_buffer` of as many columns or more.
    """
    k, m = vectors.shape
    blocks = coordinate_blocks(k)
    buffer = cube_buffer(k, m, vectors.dtype) if buffer is None else buffer
    for lo, hi in blocks:
        left, middle, right = vectors[:hi], vectors[lo:hi] * weights, vectors[lo:]
        # T[a, b, c] for a <= hi, b in the block, c >= lo: the shorter side goes into the Khatri-Rao product.
        if hi <= k - lo:
            pairs = _khatri_rao(left, middle, buffer)
            block = pairs @ right.T
        else:
            pairs = _khatri_rao(middle, right, buffer)
            block = left @ pairs.T
        sums[:hi, lo:hi, lo:] += block.reshape(hi, hi - lo, k - lo)


def fill_symmetric(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    """The whole symmetric tensor from its blocks a <= b <= c."""
    full = np.empty_like(sums)
    runs = [slice(lo, hi) for lo, hi in coordinate_blocks(sums.shape[0])]
    for a, b, c in product(range(len(runs)), repeat=3):
        if a <= b <= c:
            where = (runs[a], runs[b], runs[c])
            for axes in permutations(range(3)):
                full[tuple(where[axis] for axis in axes)] = sums[where].transpose(axes)
    return full


def mixed_cubes(vectors: Floats, others: Floats) -> NDArray[np.float64]:
    """``sum_i (v_i (x) v_i (x) x_i + v_i (x) x_i (x) v_i + x_i (x) v_i (x) v_i)`` of the rows of two (m, k) arrays."""
    from odeco.kernels.threads import map_parts, single_threaded_blas, thread_count

    m, k = vectors.shape
    n_parts = max(1, min(thread_count(), m // ROWS_PER_BLOCK, _MOST_BYTES // (8 * k**3)))
    edges = np.linspace(0, m, n_parts + 1).astype(int)
    with single_threaded_blas():
        parts = map_parts(lambda t: _mixed_part(vectors, others, edges[t], edges[t + 1]), n_parts)
    sums = np.asarray(sum(parts[1:], start=parts[0]))
    for lo, hi in coordinate_blocks(k):  # pairs (a, b) and (b, a) are the same
        sums[hi:, lo:hi] = sums[lo:hi, hi:].transpose(1, 0, 2)
    return np.asarray(sums + sums.transpose(0, 2, 1) + sums.transpose(2, 1, 0))


def _mixed_part(vectors: Floats, others: Floats, first: int, last: int) -> NDArray[np.float64]:
    """``sum_i v_i (x) v_i (x) x_i`` over first <= i < last, blocks of the first two coordinates in order."""
    k = vectors.shape[1]
    sums = np.zeros((k, k, k))
    blocks = coordinate_blocks(k)
    buffer = np.empty(max((hi - lo) * (k - lo) for lo, hi in blocks) * ROWS_PER_BLOCK, dtype=vectors.dtype)
    columns = np.empty(k * ROWS_PER_BLOCK, dtype=vectors.dtype)
    for start in range(first, last, ROWS_PER_BLOCK):
        rows = slice(start, min(start + ROWS_PER_BLOCK, last))
        left, right = transposed(vectors[rows], columns), others[rows]
        for lo, hi in blocks:
            pairs = _khatri_rao(left[lo:hi], left[lo:], buffer)
            sums[lo:hi, lo:] += (pairs @ right).reshape(hi - lo, k - lo, k)
    return sums


def transposed(rows: Floats, buffer: Floats) -> Floats:
    """The rows as contiguous columns, in ``buffer``."""
    columns = buffer[: rows.size].reshape(rows.shape[::-1])
    np.copyto(columns, rows.T)
    return columns


def _khatri_rao(first: Floats, second: Floats, buffer: Floats) -> Floats:
    """All products of a row of first with a row of second: (p, m), (q, m) to (p q, m), in ``buffer``."""
    p, q, m = len(first), len(second), first.shape[1]
    out = buffer[: p * q * m].reshape(p, q, m)
    np.multiply(first[:, None], second[None], out=out)
    return out.reshape(p * q, m)
