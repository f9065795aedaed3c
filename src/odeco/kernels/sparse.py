"""Products of a CSR matrix with tall dense blocks, the loops of section 6.1.2 that scipy has not fused.

A row of the block is read or written per nonzero, so the products are bound by memory and float32 halves their time.
Blocks that are read from or added to here and there may be wider than the rows they give or take (`kernels.lines`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from odeco.kernels._native import (
    gram_rows,
    posterior_rows,
    posterior_sets,
    project_rows,
    scatter_rows,
    weighted_column_sums,
)
from odeco.kernels.threads import balanced_parts, map_parts, thread_count

__all__ = [
    "add_posterior_sets",
    "add_posteriors",
    "gram_rows",
    "project_rows",
    "scatter_rows",
    "sparse_product",
    "weighted_column_sums",
]

Floats = NDArray[np.float64]

_LEAST_PRODUCTS = 2**19  # nonzeros times columns below which one thread is enough


def sparse_product(counts: Any, block: Floats) -> Floats:
    """``counts @ block`` for a CSR array (n, d) and a dense block (d, k), rows shared by threads."""
    parts = _parts(counts)
    out = np.empty((counts.shape[0], block.shape[1]))
    n_parts = thread_count() if counts.nnz * block.shape[1] > _LEAST_PRODUCTS else 1
    bounds = balanced_parts(parts[0], n_parts).tolist()

    def work(part: int) -> None:
        low, high = bounds[part], bounds[part + 1]
        project_rows(*parts, block, low, high, out[low:high])

    map_parts(work, n_parts)
    return out


def add_posteriors(
    counts: Any, weights: Floats, logs: Floats, log_weights: Floats, sums: list[tuple[Floats, Floats]]
) -> float:
    """The E step of a mixture of multinomials (`posterior_rows`), documents shared by threads; the log-likelihood.

    `sums` has the totals (k,) and the word counts (d, k) that each thread adds to, and gets more where there are more.
    """
    indptr, columns = counts.indptr.astype(np.int64, copy=False), counts.indices.astype(np.int32, copy=False)
    n_parts = thread_count() if counts.nnz * logs.shape[1] > _LEAST_PRODUCTS else 1
    bounds = balanced_parts(indptr, n_parts).tolist()
    sums.extend((np.zeros(logs.shape[1]), np.zeros(logs.shape)) for _ in range(n_parts - len(sums)))

    def work(part: int) -> float:
        low, high = bounds[part], bounds[part + 1]
        return posterior_rows(indptr, columns, counts.data, weights, logs, log_weights, low, high, *sums[part])

    return float(sum(map_parts(work, n_parts)))


def add_posterior_sets(
    counts: Any, weights: Floats, logs: Floats, log_weights: Floats, totals: Floats, out: Floats, likelihoods: Floats
) -> None:
    """The E step of several mixtures over all rows (`posterior_sets`), on the thread that calls."""
    posterior_sets(*_parts(counts), weights, logs, log_weights, 0, counts.shape[0], totals, out, likelihoods)


def _parts(counts: Any) -> tuple[NDArray[np.int64], NDArray[np.int32], Floats]:
    return (
        counts.indptr.astype(np.int64, copy=False),
        counts.indices.astype(np.int32, copy=False),
        counts.data.astype(np.float64, copy=False),
    )
