"""Sums of products of three coordinates of samples: of one block of vectors, of two, or of three."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from odeco.kernels.cubes import add_cubes as add_triples

Floats = NDArray[np.floating]

# Samples that steps around a sum take at a time: enough for threads not to wait for the interpreter, few enough for a
# block of fifty single columns to stay in cache.
ROWS_PER_BLOCK = 2048
# Bytes that the sums of all threads may take.
_MOST_BYTES = 2**30


def add_cubes(sums: NDArray[np.float64], vectors: Floats, weights: Floats | None = None) -> None:
    """Add ``sum_i weights[i] * vectors[i]^(x3)`` of rows (n, k), or wider, to ``sums``, where a <= b <= c only.

    Products are in the dtype of ``vectors``, a thousand of them are added up in it, the sums in double precision.
    `fill_symmetric` completes the other five sixths when the tensor is read.
    """
    add_triples(vectors, vectors, vectors, as_weights(weights), sums)


def as_weights(weights: Floats | None) -> NDArray[np.float64]:
    """Weights as compiled loops take them: none for ones."""
    return np.empty(0) if weights is None else np.ascontiguousarray(weights, dtype=np.float64)


def fill_symmetric(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    """The whole symmetric tensor from its entries a <= b <= c."""
    full = np.empty_like(sums)
    for a in range(len(sums)):
        upper = np.triu(sums[a, a:, a:])
        face = upper + np.triu(upper, 1).T
        full[a, a:, a:] = full[a:, a, a:] = full[a:, a:, a] = face
    return full


def mixed_cubes(vectors: Floats, others: Floats) -> NDArray[np.float64]:
    """``sum_i (v_i (x) v_i (x) x_i + v_i (x) x_i (x) v_i + x_i (x) v_i (x) v_i)`` of the rows of two (m, k) arrays."""
    from odeco.kernels.threads import map_parts, thread_count

    m, k = vectors.shape
    n_parts = max(1, min(thread_count(), m // ROWS_PER_BLOCK, _MOST_BYTES // (8 * k**3)))
    edges = np.linspace(0, m, n_parts + 1).astype(int)
    parts = np.zeros((n_parts, k, k, k))

    def add(part: int) -> None:
        rows = slice(edges[part], edges[part + 1])
        add_triples(vectors[rows], vectors[rows], others[rows], np.empty(0), parts[part])

    map_parts(add, n_parts)
    upper = parts.sum(axis=0)
    above = np.arange(k)[:, None] < np.arange(k)  # pairs (a, b) and (b, a) are the same
    sums = np.where(above[:, :, None], upper, 0.0)
    sums += sums.transpose(1, 0, 2)
    sums[np.arange(k), np.arange(k)] = upper[np.arange(k), np.arange(k)]
    return np.asarray(sums + sums.transpose(0, 2, 1) + sums.transpose(2, 1, 0))
