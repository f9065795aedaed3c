"""Inference of topic proportions, and the perplexity of held-out words by document completion."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from odeco._random import RandomState, as_generator

Floats = NDArray[np.floating]

# A proportion that moves by less than this no longer changes a perplexity in its fourth digit.
_TOLERANCE = 1e-4
_MOST_ITERATIONS = 200


@dataclass(frozen=True)
class Completion:
    """Held-out words scored: ``perplexity = exp(-log_likelihood / n_words)``."""

    perplexity: float
    log_likelihood: float
    n_words: float


def infer_proportions(
    counts: sparse.csr_array, topics: ArrayLike, alpha: ArrayLike, *, tol: float = _TOLERANCE
) -> NDArray[np.float64]:
    """Topic proportions of each document by itself: rows (n, k) that sum to 1.

    EM with the topics fixed, theta_k proportional to alpha_k + sum_w c_w phi_wk, until no proportion moves by more than
    `tol`. A document without words has the proportions of the prior.
    """
    from odeco.kernels.inference import infer_rows
    from odeco.kernels.threads import balanced_parts, map_parts, thread_count

    words = np.ascontiguousarray(np.asarray(topics).T, dtype=np.float32)
    prior = np.asarray(alpha, dtype=np.float32)
    parts = csr_parts(counts)
    lengths = np.asarray(counts.sum(axis=1)).ravel().astype(np.float32)
    strengths = np.ascontiguousarray(prior + lengths[:, None] / np.float32(prior.size), dtype=np.float32)
    bounds = balanced_parts(parts[0], thread_count())

    def work(part: int) -> None:
        infer_rows(*parts, words, prior, bounds[part], bounds[part + 1], _MOST_ITERATIONS, tol, strengths)

    map_parts(work, thread_count())
    result = strengths.astype(np.float64)
    return np.asarray(result / result.sum(axis=1, keepdims=True))


def completion(
    counts: sparse.csr_array,
    topics: ArrayLike,
    alpha: ArrayLike | None = None,
    *,
    smoothing: float = 1e-3,
    random_state: RandomState = 0,
) -> Completion:
    """Document completion: infer proportions from one half of each document's words, score the other half.

    A fair coin of the given seed sends every word to the half that is seen or to the half that is scored. Topics are
    mixed with `smoothing` of the uniform distribution; `alpha` is 1/k each by default.
    """
    scores, words = completed_documents(counts, topics, alpha, smoothing=smoothing, random_state=random_state)
    total, n_words = float(scores.sum()), float(words.sum())
    return Completion(float(np.exp(-total / n_words)) if n_words else float("nan"), total, n_words)


def completed_documents(
    counts: sparse.csr_array,
    topics: ArrayLike,
    alpha: ArrayLike | None = None,
    *,
    smoothing: float = 1e-3,
    random_state: RandomState = 0,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The same of each document: log-likelihoods (n,) of its words that are scored, and how many they are (n,)."""
    seen, scored = split_words(counts, as_generator(random_state))
    rows = np.asarray(topics, dtype=np.float64)
    k, d = rows.shape
    rows = (1 - smoothing) * rows / rows.sum(axis=1, keepdims=True) + smoothing / d
    prior = np.full(k, 1.0 / k) if alpha is None else np.asarray(alpha, dtype=np.float64)
    proportions = infer_proportions(seen, rows, prior)
    words = np.asarray(scored.sum(axis=1), dtype=np.float64).ravel()
    return log_likelihood(scored, rows, proportions), words


def split_words(counts: sparse.csr_array, rng: np.random.Generator) -> tuple[sparse.csr_array, sparse.csr_array]:
    """Each word to one of two halves by a fair coin; fractional counts are cut in halves."""
    values = counts.data.astype(np.float64)
    whole = np.floor(values)
    seen = rng.binomial(whole.astype(np.int64), 0.5) + (values - whole) / 2
    return _with_values(counts, seen), _with_values(counts, values - seen)


def log_likelihood(counts: sparse.csr_array, topics: Floats, proportions: Floats) -> NDArray[np.float64]:
    """``sum_w c_w log(sum_k theta_k topics[k, w])`` of each document."""
    from odeco.kernels.inference import log_likelihood_rows
    from odeco.kernels.threads import balanced_parts, map_parts, thread_count

    words = np.ascontiguousarray(topics.T, dtype=np.float64)
    mixing = np.ascontiguousarray(proportions, dtype=np.float64)
    parts = csr_parts(counts)
    out = np.zeros(counts.shape[0])
    bounds = balanced_parts(parts[0], thread_count())

    def work(part: int) -> None:
        log_likelihood_rows(*parts, words, mixing, bounds[part], bounds[part + 1], out)

    map_parts(work, thread_count())
    return out


def csr_parts(counts: Any) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32]]:
    """The arrays of a CSR matrix as the kernels want them."""
    return (
        counts.indptr.astype(np.int64, copy=False),
        counts.indices.astype(np.int32, copy=False),
        counts.data.astype(np.float32, copy=False),
    )


def _with_values(counts: sparse.csr_array, values: NDArray[np.float64]) -> sparse.csr_array:
    # All copied: eliminate_zeros works in place.
    result = sparse.csr_array((values.copy(), counts.indices.copy(), counts.indptr.copy()), shape=counts.shape)
    result.eliminate_zeros()
    return result
