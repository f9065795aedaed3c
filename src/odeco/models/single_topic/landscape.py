"""The likelihood of documents of one topic each, as the search for a start sees it: climbed, merged, split."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import xlogy

from odeco.fitting.landscape import RowLandscape, Sums
from odeco.models.single_topic.policy import POLICY
from odeco.refinement.multinomial_mixture import Mixture, maximize, posterior, refine_multinomial_mixture

Floats = NDArray[np.float64]


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
        width = min(POLICY.directions, *roots.shape)
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
        return state.n_parameters

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

    def sums(self, shares: Floats) -> Sums:
        """Documents and words (k, d) of each topic."""
        return shares.sum(axis=1), np.asarray(shares @ self.counts)

    def maximized(self, sums: Sums) -> Mixture:
        return maximize(sums[0], sums[1], self.smoothing)

    def expected(self, sums: Sums, state: Mixture) -> Floats:
        words = sums[1]
        length = words.sum(axis=1)
        logs = np.log(np.maximum(words, np.finfo(float).tiny))
        return np.asarray(np.einsum("ij,ij->i", words, logs) - xlogy(length, length))

    def degenerate(self, state: Mixture) -> bool:
        return False
