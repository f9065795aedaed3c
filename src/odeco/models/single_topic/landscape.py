"""The likelihood of documents of one topic each, as the search for a start sees it: climbed, merged, split."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import xlogy

from odeco.fitting.candidates import RowLandscape, cheapest_pairs, merging, pair_costs
from odeco.refinement.multinomial_mixture import Mixture, posterior, refine_multinomial_mixture

Floats = NDArray[np.float64]

# Directions that documents are told apart by, and entries of joined word counts that are formed at a time.
_DIRECTIONS, _ENTRIES = 40, 2**22


@dataclass(frozen=True, eq=False)
class DocumentLandscape(RowLandscape[Mixture]):
    """Counts (n, d) in memory. Log-likelihoods are per word: documents differ in length."""

    counts: sparse.csr_array = field(repr=False)
    weights: Floats | None = field(repr=False)
    smoothing: float

    @cached_property
    def features(self) -> Floats:
        """Leading principal components of the square roots of word shares: Hellinger distances between documents."""
        shares = self.counts.astype(np.float64)
        totals = np.maximum(np.asarray(shares.sum(axis=1)).ravel(), 1.0)
        roots = (sparse.diags_array(1 / totals) @ shares).sqrt()
        width = min(_DIRECTIONS, *roots.shape)
        basis = np.linalg.qr(roots.T @ (roots @ np.random.default_rng(0).standard_normal((roots.shape[1], width))))[0]
        return np.asarray(roots @ np.linalg.qr(roots.T @ (roots @ basis))[0])

    @cached_property
    def weight(self) -> float:
        lengths = np.asarray(self.counts.sum(axis=1), dtype=np.float64).ravel()
        return float(lengths.sum() if self.weights is None else self.weights @ lengths)

    @cached_property
    def length(self) -> float:
        """Words of a document, on average."""
        return self.weight / float(self.counts.shape[0] if self.weights is None else self.weights.sum())

    def size(self, state: Mixture) -> int:
        return state.weights.size

    def n_parameters(self, state: Mixture) -> int:
        k = self.size(state)
        return k - 1 + k * (int(self.counts.shape[1]) - 1)

    def climb(self, state: Mixture, n_steps: int, tol: float) -> tuple[Mixture, float]:
        done = refine_multinomial_mixture(
            self.counts,
            state.weights,
            state.topics,
            sample_weight=self.weights,
            smoothing=self.smoothing,
            max_iter=n_steps,
            tol=tol * self.length,
        )
        return Mixture(done.weights, done.topics), float(done.trace.best) / self.length

    def posterior(self, state: Mixture) -> tuple[Floats, Floats]:
        shares, densities = posterior(self.counts, state.weights, state.topics)
        return np.ascontiguousarray((shares if self.weights is None else shares * self.weights[:, None]).T), densities

    def of_shares(self, shares: Floats) -> Mixture:
        return self._maximize(shares.sum(axis=1), np.asarray(shares @ self.counts))

    def merge(self, state: Mixture, n_pairs: int) -> Mixture:
        shares = self.posterior(state)[0]
        totals, words = shares.sum(axis=1), np.asarray(shares @ self.counts)
        step = max(1, _ENTRIES // words.shape[1])

        def joined(i: NDArray[np.intp], j: NDArray[np.intp]) -> Floats:
            parts = [slice(low, low + step) for low in range(0, len(i), step)]
            return np.concatenate([_expected(totals[i[p]] + totals[j[p]], words[i[p]] + words[j[p]]) for p in parts])

        adding = merging(len(totals), cheapest_pairs(pair_costs(_expected(totals, words), joined), n_pairs))
        return self._maximize(adding @ totals, adding @ words)

    def degenerate(self, state: Mixture) -> bool:
        return False

    def _maximize(self, totals: Floats, words: Floats) -> Mixture:
        totals, words = totals + self.smoothing, words + self.smoothing
        return Mixture(totals / totals.sum(), words / words.sum(axis=1, keepdims=True))


def _expected(totals: Floats, words: Floats) -> Floats:
    """Largest expected log-likelihood of topics with these numbers of documents (m,) and of words (m, d)."""
    length = words.sum(axis=1)
    return np.asarray(xlogy(totals, totals) + xlogy(words, words).sum(axis=1) - xlogy(length, length))
