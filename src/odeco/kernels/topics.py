"""Loops over the nonzeros of documents for the refinement of topics.

All functions work on the rows ``start`` to ``stop`` of a CSR matrix and release the GIL; what they scatter goes to an
output of their own. Topics are stored word by word, (d, k): one nonzero reads one row. A document depends on nothing
but its own rows, the topics and the prior.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from odeco.kernels.compiling import njit
from odeco.kernels.inference import add_shares

Ints = NDArray[np.integer]
Floats = NDArray[np.floating]

# No infinities or NaN arise: topics and priors are positive wherever a document has a word.
_OPTIONS = {"cache": True, "nogil": True, "fastmath": True, "error_model": "numpy"}

# Words of a document that are worked on together; bounds the scratch space whatever the longest document.
_CHUNK = 256

# Share of the mixture density that is left at least when a word's own counts are taken out of it.
_FLOOR = 0.1

# An echo is worth at most 1 / this many times the counts it comes from.
_LEAST_REST = 0.2


@njit(**_OPTIONS)
def _exp_digamma(x: float) -> float:
    """exp(digamma(x)) to 1e-10 relative: recurrence up to 6, then the asymptotic series."""
    shift = 0.0
    while x < 6.0:
        shift += 1.0 / x
        x += 1.0
    f = 1.0 / (x * x)
    return math.exp(math.log(x) - 0.5 / x - f * (1 / 12 - f * (1 / 120 - f * (1 / 252 - f / 240))) - shift)


@njit(**_OPTIONS)
def em_rows(
    indptr: Ints, columns: Ints, values: Floats, topics: Floats, alpha: Floats, start: int, stop: int,
    n_iter: int, variational: bool, row_weights: Floats, strengths: Floats, word_counts: Floats,
) -> float:  # fmt: skip
    """`n_iter` EM (or variational) steps for the proportions of each document, topics fixed.

    A step takes r_wk proportional to t_k topics[w, k], t = N + alpha (or exp(digamma(N + alpha))), and N_k = sum_w c_w
    r_wk, in ``strengths``. The last step's c_w r_wk, times the weight of the document, are added to ``word_counts``.
    Returned is the likelihood part of the objective before that step: the sum of c_w log(sum_k t_k topics[w, k]).
    """
    k = topics.shape[1]
    weights = np.empty(k, topics.dtype)
    sums = np.empty(k, topics.dtype)
    log_likelihood = 0.0
    for d in range(start, stop):
        first, last = indptr[d], indptr[d + 1]
        for step in range(n_iter):
            for i in range(k):
                total = strengths[d, i] + alpha[i]
                weights[i] = _exp_digamma(total) if variational else total
                sums[i] = 0
            if step < n_iter - 1:
                add_shares(columns, values, topics, weights, first, last, sums)
            else:
                log_likelihood += _scatter_shares(
                    columns, values, topics, weights, row_weights[d], first, last, sums, word_counts
                )  # fmt: skip
            for i in range(k):
                strengths[d, i] = sums[i] * weights[i]
    return log_likelihood


@njit(inline="always", **_OPTIONS)
def _scatter_shares(
    columns: Ints, values: Floats, topics: Floats, weights: Floats, row_weight: float, first: int, last: int,
    sums: Floats, word_counts: Floats,
) -> float:  # fmt: skip
    """`add_shares`, with c_w r_wk times ``row_weight`` added to ``word_counts``; returns the weighted likelihood."""
    log_likelihood = 0.0
    for p in range(first, last):
        topic, target = topics[columns[p]], word_counts[columns[p]]
        norm = topics.dtype.type(0)
        for i in range(sums.shape[0]):
            norm += weights[i] * topic[i]
        share = values[p] / norm
        for i in range(sums.shape[0]):
            part = share * topic[i]
            sums[i] += part
            target[i] += row_weight * part * weights[i]
        log_likelihood += values[p] * math.log(norm)
    return row_weight * log_likelihood


@njit(inline="always", **_OPTIONS)
def em_steps(
    indptr: Ints, columns: Ints, values: Floats, topics: Floats, alpha: Floats, d: int, n_iter: int,
    strengths: Floats, weights: Floats, sums: Floats,
) -> None:  # fmt: skip
    """Steps of EM for the proportions of document d; ``weights`` and ``sums`` are scratch."""
    for _ in range(n_iter):
        for i in range(sums.shape[0]):
            weights[i] = strengths[d, i] + alpha[i]
            sums[i] = 0
        add_shares(columns, values, topics, weights, indptr[d], indptr[d + 1], sums)
        for i in range(sums.shape[0]):
            strengths[d, i] = sums[i] * weights[i]


@njit(**_OPTIONS)
def infer_steps(
    indptr: Ints, columns: Ints, values: Floats, topics: Floats, alpha: Floats, start: int, stop: int, n_iter: int,
    strengths: Floats,
) -> None:  # fmt: skip
    """`n_iter` EM steps for the proportions of each document, and nothing else."""
    weights, sums = np.empty(topics.shape[1], topics.dtype), np.empty(topics.shape[1], topics.dtype)
    for d in range(start, stop):
        em_steps(indptr, columns, values, topics, alpha, d, n_iter, strengths, weights, sums)


@njit(**_OPTIONS)
def _mixture_densities(
    columns: Ints, values: Floats, topics: Floats, strengths: Floats, own_row: Floats, own_word: Floats, first: int,
    last: int, out: Floats,
) -> None:  # fmt: skip
    """sum_k N_k phi_wk of each word, less what its own counts contribute to it (to first order)."""
    floor = topics.dtype.type(_FLOOR)
    for p in range(first, last):
        topic = topics[columns[p]]
        norm = topics.dtype.type(0)
        own = topics.dtype.type(0)
        for i in range(topics.shape[1]):
            product = strengths[i] * topic[i]
            norm += product
            own += product * (own_row[i] * topic[i] + own_word[i])
        out[p - first] = max(norm - values[p] * own / norm, floor * norm)


@njit(**_OPTIONS)
def _left_out_responsibilities(
    columns: Ints, values: Floats, topics: Floats, strengths: Floats, own_row: Floats, own_word: Floats, first: int,
    last: int, densities: Floats, out: Floats,
) -> None:  # fmt: skip
    """Unnormalized responsibilities of each word; ``densities`` become the factors that normalize them."""
    for p in range(first, last):
        topic, mine = topics[columns[p]], out[p - first]
        density, count = densities[p - first], values[p]
        norm = topics.dtype.type(0)
        for i in range(topics.shape[1]):
            value = strengths[i] * topic[i] / (density + count * (own_row[i] * topic[i] + own_word[i]))
            mine[i] = value
            norm += value
        densities[p - first] = topics.dtype.type(1) / norm


@njit(**_OPTIONS)
def _collect(
    columns: Ints, values: Floats, responsibilities: Floats, factors: Floats, first: int, last: int, sums: Floats,
    squares: Floats, scatter: bool, row_weight: float, word_counts: Floats,
) -> None:  # fmt: skip
    """Add c_w r_wk to ``sums`` (and, weighted, to the words where asked), and c_w r_wk^2 to ``squares``."""
    for p in range(first, last):
        mine, factor = responsibilities[p - first], factors[p - first]
        scale = values[p] * factor
        for i in range(sums.shape[0]):
            part = scale * mine[i]
            sums[i] += part
            squares[i] += part * mine[i] * factor
        if scatter:
            target = word_counts[columns[p]]
            for i in range(sums.shape[0]):
                target[i] += row_weight * scale * mine[i]


@njit(**_OPTIONS)
def cvb0_rows(
    indptr: Ints, columns: Ints, values: Floats, topics: Floats, own_word: Floats, alpha: Floats, start: int,
    stop: int, n_em: int, n_iter: int, echo: bool, row_weights: Floats, strengths: Floats, spreads: Floats,
    word_counts: Floats,
) -> None:  # fmt: skip
    """`n_em` steps of EM, then `n_iter` of CVB0: responsibilities from counts that leave the word's own counts out.

    With N = strengths + alpha and phi = topics, r_k = (N_k - m_k c r_k) (phi_k - c r_k own_word_k) / Z, solved for r to
    first order: r_k proportional to N_k phi_k / (Z + c (m_k phi_k + N_k own_word_k)). No responsibility is stored, so
    nothing grows with the nonzeros.

    m_k = 1 takes out the word's own counts, as CVB0 does. The other words of the document have moved with them, by a
    share chi_k = sum_w c_w r_wk (1 - r_wk) / N_k, those again by chi_k, and so on: with `echo` m_k = 1 / (1 - chi_k)
    takes all this out too. A few steps are meant: settled to the end, documents of few words become too flat.
    ``spreads`` hold the sums of c r (1 - r).
    ``own_word`` is 1 / (n_k + d eta), or 0 where the documents have no part in the topics.
    """
    k = topics.shape[1]
    one, least = topics.dtype.type(1), topics.dtype.type(_LEAST_REST)
    totals, own_row, own = np.empty(k, topics.dtype), np.empty(k, topics.dtype), np.empty(k, topics.dtype)
    sums, squares = np.empty(k, topics.dtype), np.empty(k, topics.dtype)
    responsibilities, densities = np.empty((_CHUNK, k), topics.dtype), np.empty(_CHUNK, topics.dtype)
    for d in range(start, stop):
        em_steps(indptr, columns, values, topics, alpha, d, n_em, strengths, totals, sums)
        for step in range(n_iter):
            for i in range(k):
                totals[i] = strengths[d, i] + alpha[i]
                rest = one - spreads[d, i] / totals[i] if echo else one
                own_row[i] = one / max(rest, least)
                own[i] = totals[i] * own_word[i] * row_weights[d]
                sums[i] = 0
                squares[i] = 0
            for first in range(indptr[d], indptr[d + 1], _CHUNK):
                last = min(first + _CHUNK, indptr[d + 1])
                _mixture_densities(columns, values, topics, totals, own_row, own, first, last, densities)
                _left_out_responsibilities(
                    columns, values, topics, totals, own_row, own, first, last, densities, responsibilities
                )
                _collect(
                    columns, values, responsibilities, densities, first, last, sums, squares, step == n_iter - 1,
                    row_weights[d], word_counts,
                )  # fmt: skip
            for i in range(k):
                strengths[d, i] = sums[i]
                spreads[d, i] = max(sums[i] - squares[i], topics.dtype.type(0))


@njit(**_OPTIONS)
def smoothed_log_likelihood(
    indptr: Ints, columns: Ints, values: Floats, word_counts: Floats, mixing: Floats, eta: float
) -> float:  # fmt: skip
    """sum c_dw log(sum_k mixing[d, k] (word_counts[w, k] + eta)) over all nonzeros."""
    total = 0.0
    for d in range(indptr.shape[0] - 1):
        mine = mixing[d]
        rest = mixing.dtype.type(0)
        for i in range(mine.shape[0]):
            rest += mine[i]
        for p in range(indptr[d], indptr[d + 1]):
            counts = word_counts[columns[p]]
            density = mixing.dtype.type(0)
            for i in range(mine.shape[0]):
                density += mine[i] * counts[i]
            total += values[p] * math.log(density + eta * rest)
    return total


@njit(**_OPTIONS)
def gibbs_rows(
    indptr: Ints, columns: Ints, values: Floats, topics: Floats, alpha: Floats, uniforms: Floats, assignments: Ints,
    strengths: Floats,
) -> None:  # fmt: skip
    """One Gibbs sweep over tokens with the topics fixed: a new topic for each, given all others of its document.

    A token at position p weighs ``values[p]``; an assignment below 0 has not been made yet.
    """
    k = topics.shape[1]
    cumulative = np.empty(k, topics.dtype)
    for d in range(indptr.shape[0] - 1):
        mine = strengths[d]
        for p in range(indptr[d], indptr[d + 1]):
            topic, old = topics[columns[p]], assignments[p]
            if old >= 0:
                mine[old] = max(mine[old] - values[p], 0.0)
            total = 0.0
            for i in range(k):
                total += topic[i] * (mine[i] + alpha[i])
                cumulative[i] = total
            level, new = uniforms[p] * total, 0
            while new < k - 1 and cumulative[new] < level:
                new += 1
            assignments[p] = new
            mine[new] += values[p]
