"""Loops over the nonzeros of documents whose topics are known: proportions and likelihoods.

The functions work on the rows ``start`` to ``stop`` of a CSR matrix and release the GIL. Topics are stored word by
word, (d, k): one nonzero reads one row.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from odeco.kernels.compiling import njit

Ints = NDArray[np.integer]
Floats = NDArray[np.floating]

_OPTIONS = {"cache": True, "nogil": True, "fastmath": True, "error_model": "numpy"}

# A mixture density below this is taken for it: words that no topic has keep their documents finite.
_SMALLEST = 1e-30


@njit(inline="always", **_OPTIONS)
def add_shares(
    columns: Ints, values: Floats, topics: Floats, weights: Floats, first: int, last: int, sums: Floats
) -> None:
    """``sums += sum_p values[p] topics[w] / <weights, topics[w]>`` over the words w = columns[p], first <= p < last.

    Four words at a time: their rows are fetched side by side, and their divisions do not wait for one another.
    """
    k, zero, least = sums.shape[0], topics.dtype.type(0), topics.dtype.type(_SMALLEST)
    p = first
    while p + 4 <= last:
        t0, t1, t2, t3 = topics[columns[p]], topics[columns[p + 1]], topics[columns[p + 2]], topics[columns[p + 3]]
        s0, s1, s2, s3 = zero, zero, zero, zero
        for i in range(k):
            s0 += weights[i] * t0[i]
            s1 += weights[i] * t1[i]
            s2 += weights[i] * t2[i]
            s3 += weights[i] * t3[i]
        s0, s1 = values[p] / max(s0, least), values[p + 1] / max(s1, least)
        s2, s3 = values[p + 2] / max(s2, least), values[p + 3] / max(s3, least)
        for i in range(k):
            sums[i] += (s0 * t0[i] + s1 * t1[i]) + (s2 * t2[i] + s3 * t3[i])
        p += 4
    while p < last:
        t0, s0 = topics[columns[p]], zero
        for i in range(k):
            s0 += weights[i] * t0[i]
        s0 = values[p] / max(s0, least)
        for i in range(k):
            sums[i] += s0 * t0[i]
        p += 1


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
            add_shares(columns, values, topics, row, indptr[d], indptr[d + 1], sums)
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
