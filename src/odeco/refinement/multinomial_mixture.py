"""EM for a mixture of multinomials: the single topic model (Theorem 3.1) refined from its moment estimate."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from odeco.families import responsibilities
from odeco.families.counts import CATEGORICAL
from odeco.families.simplex import log_dirichlet, proportions
from odeco.kernels.products import by_rows
from odeco.kernels.sparse import add_posteriors, sparse_product
from odeco.moments.base import Additive, PackedSums
from odeco.moments.scatter import CsrParts
from odeco.moments.words import column_sums
from odeco.refinement.loop import StoppingRule, Trace, run_refinement
from odeco.sources import Batch as Documents
from odeco.sources.arrays import row_slice

Floats = NDArray[np.float64]
Batch = tuple[sparse.csr_array, Floats | None]

_CHUNK = 4096  # documents whose posterior is formed at a time
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

    @property
    def n_parameters(self) -> int:
        """Free parameters."""
        k, d = self.topics.shape
        return int(k - 1 + k * CATEGORICAL.n_free(d))


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
        Steps at most.
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


class LogTopics:
    """The logarithms of a mixture, taken once for all its documents."""

    def __init__(self, weights: Floats, topics: Floats) -> None:
        self.weights, self._topics, self._impossible = weights, topics, None
        possible = topics > 0
        if not possible.all():
            self._impossible = np.ascontiguousarray((~possible).T, dtype=np.float64)
            topics = np.where(possible, topics, 1.0)
        self.words = np.log(topics.T, order="C")  # word by word, (d, k)

    def __reduce__(self) -> tuple[type[LogTopics], tuple[Floats, Floats]]:
        """Logarithms do not travel: they are taken again."""
        return LogTopics, (self.weights, self._topics)

    def joint(self, counts: sparse.csr_array) -> Floats:
        """``log w_j + sum_w c_w log topics[j, w]`` (n, k): log joint probability, without the multinomial coefficient.

        A word that a topic cannot have makes the topic impossible, -inf; 0 log 0 is 0.
        """
        joint = sparse_product(counts, self.words)
        joint += np.log(self.weights)
        if self._impossible is not None:
            joint[sparse_product(counts, self._impossible) > 0] = -np.inf
        return joint

    def posterior(self, counts: sparse.csr_array) -> tuple[Floats, Floats]:
        """Posterior of the topic of each document (n, k), and the log-likelihood of each document (n,)."""
        joint = self.joint(counts)
        shares, values = responsibilities.posterior(joint)
        if self._impossible is not None:
            lost = np.isneginf(joint.max(axis=1))
            shares[lost], values[lost] = self.weights, -np.inf  # no topic can have produced it: the data say nothing
        return shares, values


def log_joint(counts: sparse.csr_array, weights: Floats, topics: Floats) -> Floats:
    """`LogTopics.joint` of documents that are seen once."""
    return LogTopics(weights, topics).joint(counts)


def posterior(counts: sparse.csr_array, weights: Floats, topics: Floats) -> tuple[Floats, Floats]:
    """`LogTopics.posterior` of documents that are seen once."""
    return LogTopics(weights, topics).posterior(counts)


class _Posteriors(Additive):
    """Expected sums under the posteriors of a mixture, and its log-likelihood: what an M step needs."""

    _sums = ("word_counts", "shares", "log_likelihood", "total")
    _on = ("state", "logs")

    def __init__(self, state: Mixture, logs: LogTopics) -> None:
        self.state, self.logs = state, logs
        self.word_counts, self.shares = np.zeros(state.topics.shape[::-1]), np.zeros(state.weights.shape)
        self.log_likelihood, self.total = 0.0, 0.0
        self._by_thread: list[tuple[Floats, Floats]] = []  # shares and word counts that are not in these yet

    def update(self, batch: Documents | Batch) -> None:
        """The E step on a batch of documents."""
        counts, weights = (batch.counts, batch.weights) if isinstance(batch, Documents) else batch
        rows, prior = np.ones(counts.shape[0]) if weights is None else weights, np.log(self.state.weights)
        self.log_likelihood += add_posteriors(counts, rows, self.logs.words, prior, self._by_thread)
        self.total += float(rows.sum())

    def update_all(self, batches: Any) -> Self:
        return super().update_all(batches)._gathered()

    def pack(self) -> PackedSums:
        self._gathered()
        return super().pack()

    def _gathered(self) -> Self:
        """With the sums of all threads as one."""
        pending, self._by_thread = self._by_thread, []

        def add(part: slice) -> None:
            for _, words in pending:
                self.word_counts[part] += words[part]

        by_rows(add, self.word_counts)
        self.shares += sum(shares for shares, _ in pending)
        return self


def _em_step(read: Callable[[], Iterable[Any]], state: Mixture, smoothing: float) -> tuple[Mixture, float]:
    """One step, and the log posterior per document before it."""
    logs = LogTopics(state.weights, state.topics)
    sums = _Posteriors(state, logs).update_all(read())
    prior = smoothing * float(logs.words.sum()) + log_dirichlet(state.weights, smoothing)
    return maximize(sums.shares, sums.word_counts.T, smoothing), (sums.log_likelihood + prior) / max(sums.total, 1e-300)


def maximize(totals: Floats, words: Floats, smoothing: float) -> Mixture:
    """The M step, from the numbers of documents (k,) and of words (k, d) of each topic."""
    topics = words + smoothing  # no row is without any weight
    topics /= topics.sum(axis=1, keepdims=True)
    return Mixture(proportions(totals, smoothing), topics)


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


def document_chunks(batch: Documents | Batch) -> Iterator[Batch]:
    """The documents of a batch and their weights, few enough at a time for their posteriors."""
    counts, weights = (batch.counts, batch.weights) if isinstance(batch, Documents) else batch
    for start in range(0, counts.shape[0], _CHUNK):
        stop = min(start + _CHUNK, counts.shape[0])
        yield row_slice(counts, start, stop), None if weights is None else weights[start:stop]


class _Frequencies(Additive):
    """Weighted sums of the counts."""

    _sums = ("total",)

    def __init__(self, n_words: int) -> None:
        self.total = np.zeros(n_words)

    def update(self, batch: Documents | Batch) -> None:
        counts, weights = (batch.counts, batch.weights) if isinstance(batch, Documents) else batch
        rows = np.ones(counts.shape[0]) if weights is None else weights
        self.total += column_sums(CsrParts.of_counts(counts, counts.dtype), rows, self.total.size)


def word_frequencies(documents: Iterable[Any], n_words: int) -> Floats:
    """Shares of the words in all documents (d,); those that never occur get a hundredth of an occurrence."""
    frequencies = 1e-2 + _Frequencies(n_words).update_all(documents).total
    return np.asarray(frequencies / frequencies.sum())


def _without_zeros(topics: Floats, read: Callable[[], Iterable[Any]]) -> Floats:
    """Topics with a small share of the word frequencies mixed in; of the uniform too, for words that never occur."""
    return np.asarray((1 - _START_SMOOTHING) * topics + _START_SMOOTHING * word_frequencies(read(), topics.shape[1]))
