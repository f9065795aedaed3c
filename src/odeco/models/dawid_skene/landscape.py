"""The posterior of a crowd's labels, as the search for a start sees it: climbed, merged, split."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from odeco.families.responsibilities import shares_of
from odeco.families.simplex import proportions
from odeco.fitting.landscape import RowLandscape, Sums
from odeco.refinement.dawid_skene import CrowdParameters, crowd_log_joint, maximize, refine_crowd
from odeco.sources.votes import VoteBatch

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class CrowdLandscape(RowLandscape[CrowdParameters]):
    """Items in memory, and `n_labels` that each worker may give."""

    batch: VoteBatch = field(repr=False)
    n_labels: int
    smoothing: float

    @property
    def weight(self) -> float:
        return float(self.batch.row_weights().sum())

    def n_parameters(self, state: CrowdParameters) -> int:
        return state.n_parameters

    def size(self, state: CrowdParameters) -> int:
        return state.weights.size

    def climb(self, state: CrowdParameters, n_steps: int, tol: float) -> tuple[CrowdParameters, float]:
        done = refine_crowd([self.batch], [state], smoothing=self.smoothing, max_iter=n_steps, tol=tol)[0]
        return done.parameters, done.objective

    def posterior(self, state: CrowdParameters) -> tuple[Floats, Floats]:
        return shares_of(crowd_log_joint(self.batch.votes, state), self.batch.weights)

    def degenerate(self, state: CrowdParameters) -> bool:
        """Never: pseudo-counts keep every probability away from 0."""
        return False

    def sums(self, shares: Floats) -> Sums:
        """Items, and labels of each worker, (k, W L), of each class."""
        return shares.sum(axis=1), np.asarray(self.batch.votes.T @ shares.T).T

    def maximized(self, sums: Sums) -> CrowdParameters:
        return maximize(sums[0], self._by_worker(sums[1]).transpose(1, 0, 2), self.smoothing)

    def expected(self, sums: Sums, state: CrowdParameters) -> Floats:
        counts = self._by_worker(sums[1])
        return np.asarray(np.einsum("iwl,iwl->i", counts, np.log(proportions(counts, self.smoothing))))

    def _by_worker(self, counts: Floats) -> Floats:
        """(k, W, L)."""
        return counts.reshape(len(counts), -1, self.n_labels)

    @cached_property
    def features(self) -> Floats:
        """Votes less how often each worker gives each label, (n, W L); nothing where there is no vote."""
        votes = self.batch.votes
        asked = votes @ sparse.csr_array(np.kron(np.eye(votes.shape[1] // self.n_labels), np.ones((self.n_labels, 1))))
        given = np.asarray(votes.T @ self.batch.row_weights()).reshape(-1, self.n_labels)
        shares = given / np.maximum(given.sum(axis=1, keepdims=True), np.finfo(float).tiny)
        expected = np.repeat(asked.toarray(), self.n_labels, axis=1) * shares.ravel()
        return np.asarray(votes.toarray() - expected)
