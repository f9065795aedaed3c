"""How large the sampling noise of the word pairs is: what an eigenvalue must exceed to mean anything."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from odeco.moments.words import tuple_weights
from odeco.sources import Batch

Floats = NDArray[np.float64]

# Extremes of noise differ by up to a fifth from draw to draw; a direction must stand out by more.
_MARGIN = 1.25


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
    from scipy.sparse.linalg import LinearOperator, eigsh

    weights, scaled = tuple_weights(batch, 2)
    usable = np.flatnonzero(weights > 0)
    if usable.size < 4:
        return float("inf")
    signs = np.zeros(len(batch))
    signs[usable] = np.where(np.arange(usable.size) % 2, -1.0, 1.0)
    for sign in (1.0, -1.0):  # each half is an average of its own
        signs[signs == sign] /= weights[signs == sign].sum()
    signed = signs * scaled / 2
    counts = batch.counts.astype(np.float64)
    diagonal = (signed @ counts) * scale**2

    def outside(vector: Floats) -> Floats:
        return np.asarray(vector - directions @ (directions.T @ vector))

    def product(vector: Floats) -> Floats:
        inside = outside(vector.ravel())
        return outside(scale * (counts.T @ (signed * (counts @ (scale * inside)))) - diagonal * inside)

    d = scale.size
    if d - directions.shape[1] < 3:
        return 0.0  # no complement to speak of
    operator = LinearOperator((d, d), matvec=product, dtype=np.float64)
    # One percent is far below what an estimate of noise is worth.
    largest = eigsh(operator, k=1, which="LA", tol=1e-2, v0=np.ones(d), return_eigenvectors=False)
    return float(_MARGIN * max(largest[0], 0.0) * np.sqrt(usable.size / max(n_documents, 1)))
