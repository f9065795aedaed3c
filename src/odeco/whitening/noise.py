"""How large the sampling noise of the word pairs is: what an eigenvalue must exceed to mean anything."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from odeco.kernels.threads import balanced_parts, map_parts, thread_count
from odeco.moments.words import tuple_weights
from odeco.sources import Batch
from odeco.sources.arrays import row_slice

Floats = NDArray[np.float64]

# Extremes of noise differ by up to a fifth from draw to draw; a direction must stand out by more.
_MARGIN = 1.25
# Documents per component below which signal and noise cannot be told apart.
_FEWEST_DOCUMENTS = 3
# Below this number of nonzeros threads cost more than they save.
_LEAST_NONZEROS = 100_000
# On the noise of real text 12 steps came within 2 % of the eigenvalue: far below what an estimate of noise is worth.
_LANCZOS_STEPS = 12
# Of the largest image, below which a vector is rounding: a hundred times that of single precision.
_ROUNDING = 1e-5


def pair_noise(batch: Batch, scale: Floats, directions: Floats, n_documents: int) -> float:
    """The largest eigenvalue that noise alone gives ``S E[x1 (x) x2] S`` outside of the leading directions.

    Half the difference of the moments of two halves of a sample has the distribution of the sample's own error, and
    nothing of the signal. Its largest eigenvalue on the complement of `directions` is found by Lanczos iterations on
    the documents of `batch`, and shrunk to `n_documents` at the n^(-1/2) rate. (On the directions themselves the noise
    is larger, in proportion to the signal, and does no harm.) A margin of a quarter is included.

    Parameters
    ----------
    batch : Batch
        Some of the documents; a few thousand are enough.
    scale : (d,)
        Diagonal of S.
    directions : (d, k)
        Orthonormal columns.
    n_documents : int
        Documents that the moments were taken over.
    """
    weights, scaled = tuple_weights(batch, 2)
    usable = np.flatnonzero(weights > 0)
    if usable.size < _FEWEST_DOCUMENTS * (1 + directions.shape[1]):
        return float("inf")
    if scale.size - directions.shape[1] < 3:
        return 0.0  # no complement to speak of
    signs = np.zeros(len(batch))
    signs[usable] = np.where(np.arange(usable.size) % 2, -1.0, 1.0)
    for sign in (1.0, -1.0):  # each half is an average of its own
        signs[signs == sign] /= weights[signs == sign].sum()
    product = _difference(batch, signs * scaled / 2, scale, directions)
    largest = _largest_eigenvalue(product, np.ones(scale.size, dtype=np.float32))
    return float(_MARGIN * max(largest, 0.0) * np.sqrt(usable.size / max(n_documents, 1)))


def _difference(
    batch: Batch, signed: Floats, scale: Floats, directions: Floats
) -> Callable[[NDArray[np.float32]], NDArray[np.float32]]:
    """The product with ``P S (C' diag(signed) C - diag) S``, P the projection on the complement of the directions."""
    counts = sparse.csr_array(batch.counts, dtype=np.float32)
    diagonal = ((signed @ counts) * scale**2).astype(np.float32)
    words, block = scale.astype(np.float32), directions.astype(np.float32)
    edges = balanced_parts(counts.indptr, thread_count() if counts.nnz > _LEAST_NONZEROS else 1).tolist()
    parts = [row_slice(counts, low, high) for low, high in pairwise(edges)]
    weights = [signed[low:high].astype(np.float32) for low, high in pairwise(edges)]
    transposed = [part.T for part in parts]  # views: no copies

    def product(vector: NDArray[np.float32]) -> NDArray[np.float32]:
        scaled = words * vector
        images = map_parts(lambda t: transposed[t] @ (weights[t] * (parts[t] @ scaled)), len(parts))
        image = words * sum(images[1:], start=images[0]) - diagonal * vector
        return np.asarray(image - block @ (block.T @ image))

    return product


def _largest_eigenvalue(
    product: Callable[[NDArray[np.float32]], NDArray[np.float32]], start: NDArray[np.float32]
) -> float:
    """The largest eigenvalue by Lanczos iterations from the image of `start`, orthogonalized in full.

    Products are in single precision, all else in double. Where a few words leave few dimensions, the space is soon
    exhausted: what is left of a vector is rounding, which lies anywhere.
    """
    vector = product(start).astype(np.float64)
    norm = largest = float(np.linalg.norm(vector))
    basis = np.zeros((min(_LANCZOS_STEPS, start.size), start.size))
    images = np.zeros_like(basis)
    for step in range(len(basis)):
        if not norm > _ROUNDING * largest:
            break
        basis[step] = vector / norm
        images[step] = product(basis[step].astype(np.float32))
        vector, largest = images[step], max(largest, float(np.linalg.norm(images[step])))
        for _ in range(2):
            vector = vector - (basis[: step + 1] @ vector) @ basis[: step + 1]
        norm = float(np.linalg.norm(vector))
    projected = basis @ images.T
    return float(np.linalg.eigvalsh((projected + projected.T) / 2)[-1])
