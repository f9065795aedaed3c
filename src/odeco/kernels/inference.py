"""Loops over the nonzeros of documents whose topics are known: proportions and likelihoods.

Both functions work on the rows ``start`` to ``stop`` of a CSR matrix and release the GIL. Topics are stored word by
word, (d, k): one nonzero reads one row.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Ints = NDArray[np.integer]
Floats = NDArray[np.floating]

_OPTIONS = {"cache": True, "nogil": True, "fastmath": True}


@njit(**_OPTIONS)
def infer_rows(
    indptr: Ints,
    columns: Ints,
    values: Floats,
    topics: Floats,
    alpha: Floats,
    start: int,
    stop: int,
    n_iter: int,
    tol: float,
    strengths: Floats,
) -> None:
    """EM for the proportions of each document, topics fixed: N_k = alpha_k + sum_w c_w phi_wk, in ``strengths``.

    Starts from what ``strengths`` holds and ends when no proportion moves by more than ``tol``.
    """  # fmt: skip
    k = topics.shape[1]
    row = np.empty(k, topics.dtype)
    sums = np.empty(k, topics.dtype)
    for d in range(start, stop):
        length = alpha.dtype.type(0)
        for p in range(indptr[d], indptr[d + 1]):
            length += values[p]
        total = length
        for i in range(k):
            row[i] = strengths[d, i]
            total += alpha[i]
        for _ in range(n_iter):
            sums[:] = 0
            for p in range(indptr[d], indptr[d + 1]):
                topic = topics[columns[p]]
                norm = topics.dtype.type(0)
                for i in range(k):
                    norm += row[i] * topic[i]
                share = values[p] / max(norm, np.float32(1e-30))
                for i in range(k):
                    sums[i] += share * topic[i]
            change = topics.dtype.type(0)
            for i in range(k):
                new = alpha[i] + row[i] * sums[i]
                change = max(change, abs(new - row[i]))
                row[i] = new
            if change <= tol * total:
                break
        for i in range(k):
            strengths[d, i] = row[i]


@njit(**_OPTIONS)
def log_likelihood_rows(
    indptr: Ints, columns: Ints, values: Floats, topics: Floats, proportions: Floats, start: int, stop: int, out: Floats
) -> None:
    """sum_w c_w log(sum_k theta_k topics[w, k]) of each document, in ``out``."""
    k = topics.shape[1]
    for d in range(start, stop):
        total = 0.0
        for p in range(indptr[d], indptr[d + 1]):
            topic = topics[columns[p]]
            mixed = 0.0
            for i in range(k):
                mixed += proportions[d, i] * topic[i]
            total += values[p] * np.log(max(mixed, 1e-300))
        out[d] = total
