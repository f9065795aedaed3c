"""The Dirichlet prior of the proportions, by maximum likelihood given the topics.

Minka's fixed point on the *expected* counts of a variational fit overestimates alpha by an order of magnitude on real
text: expected counts are far smoother than counts. A short Gibbs chain on a sample of documents, topics fixed, gives
real ones.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import digamma

from odeco.kernels.threads import balanced_parts, map_parts
from odeco.sources import Batch

Floats = NDArray[np.float64]

_TOKENS = 20_000  # enough for some 5 % on alpha0
_MOST_DOCUMENTS = 3_000
_BURN_IN = 10
_SWEEPS = 20  # after the burn-in; alpha moves with each
_UNITS = 8  # a word that occurs more often is sampled as this many tokens of larger weight
_PARTS = 4  # of the documents, for threads
_SMALLEST = 1e-5
_LARGEST = 100.0


class Drawable(Protocol):
    """Documents of known lengths and weights, of which some can be taken."""

    @property
    def lengths(self) -> NDArray[np.float64]: ...

    @property
    def weights(self) -> NDArray[np.float64] | None: ...

    def __len__(self) -> int: ...

    def take(self, rows: NDArray[np.intp], /) -> Batch: ...


def sample_documents(batch: Drawable, rng: np.random.Generator) -> sparse.csr_array:
    """Documents with about as many words as a prior can be learned from, drawn by their weights."""
    n = len(batch)
    mean_length = float(batch.lengths.sum()) / max(n, 1)
    wanted = int(min(max(_TOKENS / max(mean_length, 1e-9), 1), _MOST_DOCUMENTS, n))
    if batch.weights is None:
        return batch.take(np.sort(rng.choice(n, size=wanted, replace=False))).counts
    return batch.take(np.sort(rng.choice(n, size=wanted, p=batch.weights / batch.weights.sum()))).counts


class TopicDraws:
    """A Gibbs chain over the topics of all tokens, topics and prior given: proportions are summed out.

    Attributes
    ----------
    columns, values : (tokens,)
        The word of each token, and how much of a count it stands for.
    assignments : (tokens,)
        Its topic; -1 before the first sweep.
    strengths : (n, k)
        Counts of the topics in each document.
    lengths : (n,)
    distinct : two arrays
        The lengths that occur, and how many documents have each.
    """

    def __init__(self, counts: sparse.csr_array, k: int, most_units: int = _UNITS) -> None:
        self.indptr, self.columns, self.values = _tokens(counts, most_units)
        self.assignments = np.full(len(self.columns), -1, dtype=np.int64)
        self.strengths = np.zeros((len(self.indptr) - 1, k))
        ends = np.append(self.values, 0.0)
        self.lengths = np.add.reduceat(ends, self.indptr[:-1]) * (np.diff(self.indptr) > 0)
        self.distinct = np.unique(self.lengths, return_counts=True)
        self._bounds = balanced_parts(self.indptr, _PARTS).tolist()

    def sweep(self, words: Floats, alpha: Floats, rng: np.random.Generator) -> None:
        """Draw a topic for each token given all others of its document; `words` are topics by columns (d, k)."""
        from odeco.kernels.topics import gibbs_rows

        # Before any thread draws: the chain is the same for all numbers of them.
        uniforms = rng.random(len(self.columns))

        def draw(part: int) -> None:
            low, high = self._bounds[part], self._bounds[part + 1]
            ends, strengths = self.indptr[low : high + 1], self.strengths[low:high]
            gibbs_rows(ends, self.columns, self.values, words, alpha, uniforms, self.assignments, strengths)

        map_parts(draw, _PARTS)


def estimate_alpha(counts: sparse.csr_array, topics: Floats, alpha: Floats, rng: np.random.Generator) -> Floats:
    """Maximum likelihood estimate of alpha (k,) for the given documents and topics (k, d), by stochastic EM.

    Starts from `alpha`. Every sweep draws a topic for each token given all others of its document, then moves alpha by
    one step of Minka's fixed point; the mean over the last half is returned.
    """
    draws, words = TopicDraws(counts, alpha.size), np.ascontiguousarray(topics.T)
    current, total, n_kept = np.asarray(alpha, dtype=float), np.zeros(alpha.size), 0
    for sweep in range(_BURN_IN + _SWEEPS):
        draws.sweep(words, current, rng)
        if sweep >= _BURN_IN:
            current = minka_steps(current, draws.strengths, draws.distinct, 5)
        if sweep >= _BURN_IN + _SWEEPS // 2:
            total, n_kept = total + current, n_kept + 1
    return np.asarray(total / n_kept)


def minka_steps(alpha: Floats, strengths: Floats, lengths: tuple[Floats, NDArray[np.integer]], n_steps: int) -> Floats:
    """Steps of Minka's fixed point for the Dirichlet-multinomial likelihood of counts (n, k): it never falls.

    `lengths` are the distinct lengths of the documents, and how many have each.
    """
    rows, topics = np.nonzero(strengths)  # few, in short documents: a count of 0 adds nothing
    counts, n_counts = strengths[rows, topics], np.bincount(topics, minlength=alpha.size)
    for _ in range(n_steps):
        above = np.bincount(topics, digamma(counts + alpha[topics]), alpha.size) - n_counts * digamma(alpha)
        below = lengths[1] @ (digamma(lengths[0] + alpha.sum()) - digamma(alpha.sum()))
        if below <= 0:  # no words at all
            return alpha
        alpha = np.clip(alpha * above / below, _SMALLEST, _LARGEST)
    return alpha


def _tokens(counts: sparse.csr_array, most: int) -> tuple[NDArray[np.int64], NDArray[np.int32], Floats]:
    """CSR parts with a position for every token: an occurrence of a word, or a share of its count."""
    units = np.clip(np.ceil(counts.data), 1, most).astype(np.int64)
    ends = np.concatenate([[0], np.cumsum(units)])
    columns = np.repeat(counts.indices.astype(np.int32, copy=False), units)
    values = np.repeat(counts.data / units, units).astype(np.float64)
    return ends[counts.indptr].astype(np.int64), columns, values
