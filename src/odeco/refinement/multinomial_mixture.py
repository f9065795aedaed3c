"""EM for a mixture of multinomials: the single topic model (Theorem 3.1) refined from its moment estimate."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.special import logsumexp

from odeco.moments.base import Additive
from odeco.refinement.loop import StoppingRule, Trace, run_refinement
from odeco.sources import Batch as Documents

Floats = NDArray[np.float64]
Batch = tuple[sparse.csr_array, Floats | None]

_CHUNK = 8192  # documents whose posterior is formed at a time
_START_SMOOTHING = 0.01  # share of the word frequencies mixed into the start: no word is impossible


@dataclass(frozen=True, eq=False)
class MixtureRefinement:
    """A mixture of multinomials after refinement.

    Attributes
    ----------
    weights : (k,)
    topics : (k, d)
        Rows on the simplex.
    trace : Trace
        Log posterior per document before each step; it never falls.
    """

    weights: Floats
    topics: Floats = field(repr=False)
    trace: Trace = field(repr=False)

    @property
    def n_iter(self) -> int:
        """Steps taken."""
        return self.trace.n_iter


@dataclass(frozen=True, eq=False)
class Mixture:
    """Weights (k,) and topics (k, d)."""

    weights: Floats
    topics: Floats = field(repr=False)


def refine_multinomial_mixture(
    counts: sparse.csr_array | Iterable[Batch],
    weights: ArrayLike,
    topics: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    smoothing: float = 0.01,
    max_iter: int = 100,
    tol: float = 1e-4,
) -> MixtureRefinement:
    """EM for the posterior mode of a mixture of multinomials.

    Parameters
    ----------
    counts : CSR array (n, d), a Source, or batches (counts, weights or None) that can be iterated over again and again
    weights, topics : (k,), (k, d)
        Where to start.
    sample_weight : (n,), optional
        How often each document counts; only with a matrix.
    smoothing : float
        Pseudo-count of each word in each topic, and of each topic: the log posterior has Dirichlet(1 + smoothing)
        priors on the topics and on the weights.
    max_iter : int
        Steps at most; 1 is the "one-step" estimate of the paper's introduction.
    tol : float
        Gain of the log posterior per document, in nats, below which the steps end.
    """
    if not 0 < smoothing < np.inf:
        raise ValueError(f"smoothing must be a positive number, got {smoothing!r}.")
    read = _reader(counts, sample_weight)
    start = np.asarray(topics, dtype=np.float64)
    shares = np.asarray(weights, dtype=np.float64) + 1e-12

    def step(state: Mixture, iteration: int) -> tuple[Mixture, float]:
        return _em_step(read, state, smoothing)

    first = Mixture(shares / shares.sum(), _without_zeros(start, read))
    refined = run_refinement(step, first, StoppingRule(max_iter, tol))
    return MixtureRefinement(refined.state.weights, refined.state.topics, refined.trace)


def log_joint(counts: sparse.csr_array, weights: Floats, topics: Floats) -> Floats:
    """``log w_j + sum_w c_w log topics[j, w]`` (n, k): log joint probability, without the multinomial coefficient.

    A word that a topic cannot have makes the topic impossible, -inf; 0 log 0 is 0.
    """
    possible = topics > 0
    logs = np.log(np.where(possible, topics, 1.0))
    joint = np.asarray(counts @ logs.T) + np.log(weights)
    if not possible.all():
        joint[np.asarray(counts @ (~possible).T.astype(np.float64)) > 0] = -np.inf
    return joint


def posterior(counts: sparse.csr_array, weights: Floats, topics: Floats) -> tuple[Floats, Floats]:
    """Posterior of the topic of each document (n, k), and the log-likelihood of each document (n,)."""
    joint = log_joint(counts, weights, topics)
    totals = logsumexp(joint, axis=1)
    safe = np.where(np.isfinite(totals), totals, 0.0)
    resp = np.exp(joint - safe[:, None])
    resp[~np.isfinite(totals)] = weights  # no topic can have produced it: the data say nothing
    return resp, np.asarray(totals)


class _Posteriors(Additive):
    """Expected sums under the posteriors of a mixture, and its log-likelihood: what an M step needs."""

    _sums = ("word_counts", "shares", "log_likelihood", "total")

    def __init__(self, state: Mixture) -> None:
        self.state = state
        self.word_counts, self.shares = np.zeros(state.topics.shape), np.zeros(state.weights.shape)
        self.log_likelihood, self.total = 0.0, 0.0

    def update(self, batch: Documents | Batch) -> None:
        """The E step on a batch of documents."""
        counts, weights = (batch.counts, batch.weights) if isinstance(batch, Documents) else batch
        for rows, sample_weight in _chunks(counts, weights):
            self._add(rows, sample_weight)

    def _add(self, counts: sparse.csr_array, sample_weight: Floats | None) -> None:
        resp, log_likelihood = posterior(counts, self.state.weights, self.state.topics)
        if sample_weight is not None:
            resp *= sample_weight[:, None]
            log_likelihood = log_likelihood * sample_weight
        self.log_likelihood += float(log_likelihood.sum())
        self.word_counts += np.asarray(counts.T @ resp).T
        self.shares += resp.sum(axis=0)
        self.total += float(len(resp) if sample_weight is None else sample_weight.sum())


def _em_step(read: Callable[[], Iterable[Any]], state: Mixture, smoothing: float) -> tuple[Mixture, float]:
    """One step, and the log posterior per document before it."""
    sums = _Posteriors(state).update_all(read())
    objective = smoothing * float(np.log(state.topics).sum() + np.log(state.weights).sum()) + sums.log_likelihood
    word_counts, shares = sums.word_counts + smoothing, sums.shares + smoothing
    new = Mixture(shares / shares.sum(), word_counts / word_counts.sum(axis=1, keepdims=True))
    return new, objective / max(sums.total, 1e-300)


def _reader(counts: sparse.csr_array | Iterable[Batch], sample_weight: ArrayLike | None) -> Callable[[], Iterable[Any]]:
    """A function that starts a new pass over the documents."""
    if not sparse.issparse(counts):
        if sample_weight is not None:
            raise ValueError("sample_weight goes with a matrix: give batches as pairs (counts, weights).")
        return lambda: counts
    matrix: sparse.csr_array = counts
    n = int(matrix.shape[0])
    weights = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    if weights is not None and weights.shape != (n,):
        raise ValueError(f"sample_weight must have shape ({n},), got {weights.shape}.")
    return lambda: [(matrix, weights)]


def _chunks(counts: sparse.csr_array, sample_weight: Floats | None) -> Iterator[Batch]:
    for start in range(0, counts.shape[0], _CHUNK):
        rows = slice(start, start + _CHUNK)
        yield counts[rows], None if sample_weight is None else sample_weight[rows]


class _Frequencies(Additive):
    """Weighted sums of the counts."""

    _sums = ("total",)

    def __init__(self, n_words: int) -> None:
        self.total = np.zeros(n_words)

    def update(self, batch: Documents | Batch) -> None:
        counts, weights = (batch.counts, batch.weights) if isinstance(batch, Documents) else batch
        self.total += np.asarray((np.ones(counts.shape[0]) if weights is None else weights) @ counts)


def _without_zeros(topics: Floats, read: Callable[[], Iterable[Any]]) -> Floats:
    """Topics with a small share of the word frequencies mixed in; of the uniform too, for words that never occur."""
    frequencies = 1e-2 + _Frequencies(topics.shape[1]).update_all(read()).total
    return np.asarray((1 - _START_SMOOTHING) * topics + _START_SMOOTHING * frequencies / frequencies.sum())
