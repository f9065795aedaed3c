"""Held-out words: what watches a refinement that has no objective of its own."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from odeco.completion import split_words
from odeco.refinement.documents import Documents, Workspace
from odeco.refinement.topic_rows import inverse_totals, smoothed_topics, topic_totals

Floats = NDArray[np.floating]

_FEWEST_DOCUMENTS = 200  # with fewer, holding any out costs more than it tells
_MOST_WATCHED = 1000
_STEPS = 5  # of EM per look: the proportions go on from where the last look left them
_ETA_RANGE = (1e-3, 1.0)
_WORTH_MOVING = 5e-4  # nats per word: eta stays where held-out words hardly care


def watched_rows(n_documents: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """A mask of the documents to hold out: one in twenty, at most 1,000; none of a small corpus."""
    mask = np.zeros(n_documents, dtype=bool)
    if n_documents >= _FEWEST_DOCUMENTS:
        n_watched = min(n_documents // 20, _MOST_WATCHED)
        mask[rng.choice(n_documents, size=n_watched, replace=False)] = True
    return mask


@dataclass(frozen=True)
class Look:
    """Mean log probability of a held-out word, and the eta that it is best at."""

    value: float
    eta: float


class WatchedWords:
    """Documents kept out of the sweeps: half of their words give their proportions, the other half are scored."""

    def __init__(self, counts: sparse.csr_array, alpha: Floats, rng: np.random.Generator, workspace: Workspace) -> None:
        seen, scored = split_words(counts, rng)
        self._alpha = alpha
        self._seen = Documents(seen, alpha.size, np.float32, workspace)
        self._scored = Documents(scored, alpha.size, np.float32, workspace)

    def look(self, word_counts: Floats, eta: float, *, choose_eta: bool) -> Look:
        """Score the topics ``(word_counts + eta)``; where asked, also at half and twice the eta."""
        self._seen.infer(smoothed_topics(word_counts, eta), self._alpha, _STEPS)
        strengths, totals = self._seen.strengths + self._alpha, topic_totals(word_counts)
        proportions = strengths / strengths.sum(axis=1, keepdims=True)
        looks = [self._score(word_counts, totals, proportions, eta)]
        if choose_eta:
            others = (eta / 2, eta * 2)
            looks += [self._score(word_counts, totals, proportions, other) for other in others if _inside(other)]
        best = max(looks, key=lambda look: look.value)
        return best if best.value > looks[0].value + _WORTH_MOVING else looks[0]

    def _score(self, word_counts: Floats, totals: Floats, proportions: Floats, eta: float) -> Look:
        from odeco.kernels.topics import smoothed_log_likelihood

        scored = self._scored
        mixing = proportions * inverse_totals(totals, len(word_counts), eta)
        total = smoothed_log_likelihood(scored.indptr, scored.columns, scored.values, word_counts, mixing, eta)
        return Look(total / max(scored.n_tokens, 1.0), eta)


def _inside(eta: float) -> bool:
    return _ETA_RANGE[0] <= eta <= _ETA_RANGE[1]
