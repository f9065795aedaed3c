"""Topics from expected word counts (d, width): mixed, added up and smoothed in runs of words that threads share.

The runs depend on the shape alone, and so does every bit of the sums over them, whatever the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from odeco.kernels.threads import map_parts
from odeco.kernels.topics import mix_rows, smooth_rows

Floats = NDArray[np.floating]
Result = TypeVar("Result")

_MOST_RUNS = 8
_LEAST_BYTES = 2**20  # of a run: with fewer, handing it to a thread takes as long as the work


def smoothed_topics(word_counts: Floats, eta: float) -> Floats:
    """Posterior mean of the topics, word by word: ``(n_wk + eta) / (n_k + d eta)``; padding stays 0."""
    out = np.empty_like(word_counts)
    smooth(word_counts, eta, inverse_totals(topic_totals(word_counts), len(word_counts), eta), out)
    return out


def mixed_topics(fresh: Floats, old: Floats, share: np.float32, eta: float, out: Floats) -> Floats:
    """Write the topics of the word counts ``fresh + share old`` to `out`; returns one over the total of each topic."""

    def mix(run: slice) -> Floats:
        totals = np.zeros(out.shape[1])
        mix_rows(fresh[run], old[run], float(share), out[run], totals)
        return totals

    inverse = inverse_totals(_sum(_over_runs(mix, out)).astype(out.dtype), len(out), eta)
    smooth(out, eta, inverse, out)
    return inverse


def smooth(word_counts: Floats, eta: float, inverse: Floats, out: Floats) -> None:
    """``(word_counts + eta) inverse`` to `out`, which may be the word counts themselves."""
    _over_runs(lambda run: smooth_rows(word_counts[run], eta, inverse, out[run]), out)


def topic_totals(word_counts: Floats) -> Floats:
    """Sums over all words (width,)."""
    # A product with ones adds up rows in blocks: as exact as needed, and far faster than a sum in double precision.
    ones = np.ones(len(word_counts), word_counts.dtype)
    return _sum(_over_runs(lambda run: np.asarray(ones[run] @ word_counts[run]), word_counts))


def inverse_totals(totals: Floats, n_words: int, eta: float) -> Floats:
    """``1 / (n_k + d eta)``, and 0 for a topic without any words: padding."""
    inverse = np.where(totals > 0, 1.0 / (totals + n_words * eta), 0.0)
    return np.asarray(inverse.astype(totals.dtype))


def _over_runs(work: Callable[[slice], Result], rows: Floats) -> list[Result]:
    n_runs = int(min(max(rows.nbytes // _LEAST_BYTES, 1), _MOST_RUNS))
    edges = np.linspace(0, len(rows), n_runs + 1).astype(int).tolist()
    return map_parts(lambda index: work(slice(edges[index], edges[index + 1])), n_runs)


def _sum(parts: list[Floats]) -> Floats:
    return np.asarray(sum(parts[1:], start=parts[0]))
