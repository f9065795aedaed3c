"""The posterior of a crowd's labels, as the search for a start sees it: climbed, merged, split."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from odeco.fitting.candidates import RowLandscape, cheapest_pairs, merging, pair_costs
from odeco.refinement.dawid_skene import CrowdParameters, CrowdPosteriors, crowd_log_joint, maximize, refine_crowd
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
        k = self.size(state)
        n_workers = self.batch.votes.shape[1] // self.n_labels
        return int(k - 1 + n_workers * k * (self.n_labels - 1))

    def size(self, state: CrowdParameters) -> int:
        return state.weights.size

    def climb(self, state: CrowdParameters, n_steps: int, tol: float) -> tuple[CrowdParameters, float]:
        done = refine_crowd([self.batch], [state], smoothing=self.smoothing, max_iter=n_steps, tol=tol)[0]
        return done.parameters, done.objective

    def merge(self, state: CrowdParameters, n_pairs: int) -> CrowdParameters:
        found = CrowdPosteriors([state])
        found.update(self.batch)
        counts, totals = found.counts.T, found.totals[0]

        def joined(i: NDArray[np.intp], j: NDArray[np.intp]) -> Floats:
            return self._expected(counts[i] + counts[j], totals[i] + totals[j])

        costs = pair_costs(self._expected(counts, totals), joined)
        adding = merging(len(costs), cheapest_pairs(costs, n_pairs))
        return self._maximized(adding @ counts, adding @ totals)

    def posterior(self, state: CrowdParameters) -> tuple[Floats, Floats]:
        joint = crowd_log_joint(self.batch.votes, state).T
        highest = joint.max(axis=0)
        shares = np.exp(joint - highest)
        totals = shares.sum(axis=0)
        return shares * (self.batch.row_weights() / totals), highest + np.log(totals)

    def degenerate(self, state: CrowdParameters) -> bool:
        """Never: pseudo-counts keep every probability away from 0."""
        return False

    def of_shares(self, shares: Floats) -> CrowdParameters:
        """The parameters of responsibilities times weights, (k, n)."""
        return self._maximized(np.asarray(self.batch.votes.T @ shares.T).T, shares.sum(axis=1))

    @cached_property
    def features(self) -> Floats:
        """Votes less how often each worker gives each label, (n, W L); nothing where there is no vote."""
        votes = self.batch.votes
        asked = votes @ sparse.csr_array(np.kron(np.eye(votes.shape[1] // self.n_labels), np.ones((self.n_labels, 1))))
        given = np.asarray(votes.T @ self.batch.row_weights()).reshape(-1, self.n_labels)
        shares = given / np.maximum(given.sum(axis=1, keepdims=True), np.finfo(float).tiny)
        expected = np.repeat(asked.toarray(), self.n_labels, axis=1) * shares.ravel()
        return np.asarray(votes.toarray() - expected)

    def _maximized(self, counts: Floats, totals: Floats) -> CrowdParameters:
        by_worker = counts.reshape(len(totals), -1, self.n_labels).transpose(1, 0, 2)
        return maximize(totals, by_worker, self.smoothing)

    def _expected(self, counts: Floats, totals: Floats) -> Floats:
        """Largest expected log posterior of classes with these sums, up to what mergers leave as it is, (m,)."""
        smoothed = counts.reshape(len(counts), -1, self.n_labels) + self.smoothing
        shares = smoothed / smoothed.sum(axis=2, keepdims=True)
        own = np.einsum("iwl,iwl->i", counts.reshape(smoothed.shape), np.log(shares))
        return np.asarray(own + totals * np.log(np.maximum(totals, np.finfo(float).tiny)))
