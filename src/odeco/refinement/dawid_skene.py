"""EM for the model of Dawid and Skene (1979), as sparse products: an item is a row of votes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from odeco.families.counts import CATEGORICAL
from odeco.families.simplex import log_dirichlet, proportions
from odeco.kernels.sparse import add_posterior_sets
from odeco.moments.base import Additive
from odeco.refinement.loop import StoppingRule, Trace, run_refinements
from odeco.sources.votes import VoteBatch

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class CrowdParameters:
    """Class probabilities (k,), and ``confusion[w, i, l]``: how worker w labels items of class i, (W, k, L)."""

    weights: Floats
    confusion: Floats = field(repr=False)

    @property
    def n_parameters(self) -> int:
        """Free parameters."""
        n_workers, k, n_labels = self.confusion.shape
        return int(k - 1 + n_workers * k * CATEGORICAL.n_free(n_labels))


@dataclass(frozen=True, eq=False)
class CrowdRefinement:
    """Refined parameters and how they were reached."""

    parameters: CrowdParameters
    trace: Trace

    @property
    def objective(self) -> float:
        """Log posterior per item at the end."""
        return float(self.trace.values.max(initial=-np.inf))


class CrowdSums(Additive):
    """What the M step needs of the items, for several sets of parameters at once.

    Attributes
    ----------
    totals : (s, k)
        Items of each class.
    counts : (W * L, s * k)
        Labels of each worker among them.
    log_likelihood : (s,)
    """

    _sums: ClassVar[tuple[str, ...]] = ("totals", "counts", "log_likelihood")
    _by_threads: ClassVar[bool] = True

    def __init__(self, n_sets: int, shape: tuple[int, int, int]) -> None:
        n_workers, k, n_labels = shape
        self.shape = shape
        self.totals, self.log_likelihood = np.zeros((n_sets, k)), np.zeros(n_sets)
        self.counts = np.zeros((n_workers * n_labels, n_sets * k))

    def add(self, votes: sparse.csr_array, shares: Floats) -> None:
        """Add items that are of each class with probabilities `shares` (n, s, k), times their weights."""
        self.totals += shares.sum(axis=0)
        self.counts += votes.T @ shares.reshape(len(shares), -1)

    def maximized(self, smoothing: float) -> list[CrowdParameters]:
        """The M step: one set of parameters for each."""
        n_workers, k, n_labels = self.shape
        by_set = self.counts.reshape(n_workers, n_labels, -1, k).transpose(2, 0, 3, 1)
        return [maximize(*sums, smoothing) for sums in zip(self.totals, by_set, strict=True)]


def maximize(totals: Floats, counts: Floats, smoothing: float) -> CrowdParameters:
    """The M step of one set: items of each class (k,), labels of each worker among them (W, k, L)."""
    return CrowdParameters(proportions(totals, smoothing), proportions(counts, smoothing))


class CrowdPosteriors(CrowdSums):
    """The E step under several sets of parameters, in one loop over the votes."""

    def __init__(self, parameters: Sequence[CrowdParameters]) -> None:
        n_workers, k, n_labels = parameters[0].confusion.shape
        super().__init__(len(parameters), (n_workers, k, n_labels))
        self._slopes = np.ascontiguousarray(np.hstack([_log_confusion(each) for each in parameters]))
        self._constants = np.array([np.log(each.weights) for each in parameters])

    def update(self, batch: VoteBatch) -> None:
        """Add the items of a batch."""
        known, sums = (self._slopes, self._constants), (self.totals, self.counts, self.log_likelihood)
        add_posterior_sets(batch.votes, batch.row_weights(), *known, *sums)


def _log_confusion(parameters: CrowdParameters) -> Floats:
    """Logarithms, one row per column of the votes, (W * L, k)."""
    n_workers, k, n_labels = parameters.confusion.shape
    return np.log(parameters.confusion).transpose(0, 2, 1).reshape(n_workers * n_labels, k)


def crowd_log_joint(votes: sparse.csr_array, parameters: CrowdParameters) -> Floats:
    """``log w_i + sum over the labels of an item of log confusion[worker, i, label]``, (n, k)."""
    return np.asarray(votes @ _log_confusion(parameters)) + np.log(parameters.weights)


def refine_crowd(
    batches: Iterable[VoteBatch],
    starts: Sequence[CrowdParameters],
    *,
    smoothing: float = 0.5,
    max_iter: int = 200,
    tol: float = 1e-6,
) -> list[CrowdRefinement]:
    """EM to the posterior mode from several starts, with `smoothing` pseudo-counts of each label of each worker in each
    class. `batches` can be read again and again; a step reads them once, whatever the number of starts.
    """

    def step(states: Sequence[CrowdParameters], iteration: int) -> list[tuple[CrowdParameters, float]]:
        sums = CrowdPosteriors(states).update_all(batches)
        priors = [
            log_dirichlet(state.confusion, smoothing) + log_dirichlet(state.weights, smoothing) for state in states
        ]
        objectives = (sums.log_likelihood + np.array(priors)) / sums.totals.sum(axis=1)
        return list(zip(sums.maximized(smoothing), objectives.tolist(), strict=True))

    found = run_refinements(step, starts, StoppingRule(max_iter, tol))
    return [CrowdRefinement(refined.state, refined.trace) for refined in found]
