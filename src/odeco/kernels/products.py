"""Products of tall dense blocks, rows shared between threads of our own.

BLAS threads wait for one another by spinning, which on a busy machine can cost many times the product itself. Runs of
rows with one BLAS thread each use the same cores and wait for nobody.
"""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from odeco.kernels.threads import map_parts, single_threaded_blas, thread_count

Scalar = TypeVar("Scalar", bound=np.floating[Any])

# Rows below which one thread is enough.
_LEAST_ROWS = 2048


def row_parts(n_rows: int) -> list[slice]:
    """Runs of rows, one per thread."""
    n_parts = max(1, min(thread_count(), n_rows // _LEAST_ROWS))
    edges = np.linspace(0, n_rows, n_parts + 1).astype(int)
    return [slice(edges[t], edges[t + 1]) for t in range(n_parts)]


def tall_inner(first: NDArray[Scalar], second: NDArray[Scalar]) -> NDArray[Scalar]:
    """``first.T @ second`` for two blocks of the same many rows."""
    parts = row_parts(len(first))
    with single_threaded_blas():
        sums = map_parts(lambda t: first[parts[t]].T @ second[parts[t]], len(parts))
    return np.asarray(sum(sums[1:], start=sums[0]))


def tall_product(block: NDArray[Scalar], matrix: NDArray[Scalar]) -> NDArray[Scalar]:
    """``block @ matrix`` for a block of many rows."""
    parts = row_parts(len(block))
    out = np.empty((len(block), matrix.shape[1]), dtype=block.dtype)
    with single_threaded_blas():
        map_parts(lambda t: np.matmul(block[parts[t]], matrix, out=out[parts[t]]), len(parts))
    return out
