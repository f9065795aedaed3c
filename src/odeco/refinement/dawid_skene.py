"""EM for the model of Dawid and Skene (1979), as sparse products: an item is a row of votes."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from odeco.refinement.loop import StoppingRule, Trace, run_refinement

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class CrowdParameters:
    """Class probabilities (k,), and ``confusion[w, i, l]``: how worker w labels items of class i, (W, k, L)."""

    weights: Floats
    confusion: Floats = field(repr=False)


@dataclass(frozen=True, eq=False)
class CrowdRefinement:
    """Refined parameters and how they were reached."""

    parameters: CrowdParameters
    trace: Trace

    @property
    def objective(self) -> float:
        """Log posterior per item at the end."""
        return float(self.trace.values.max(initial=-np.inf))


def crowd_log_joint(votes: sparse.csr_array, parameters: CrowdParameters) -> Floats:
    """``log w_i + sum over the labels of an item of log confusion[worker, i, label]``, (n, k)."""
    n_workers, k, n_labels = parameters.confusion.shape
    logs = np.log(parameters.confusion).transpose(0, 2, 1).reshape(n_workers * n_labels, k)
    return np.asarray(votes @ logs) + np.log(parameters.weights)


def refine_crowd(
    votes: sparse.csr_array,
    start: CrowdParameters,
    *,
    sample_weight: Floats | None = None,
    smoothing: float = 0.5,
    max_iter: int = 200,
    tol: float = 1e-6,
) -> CrowdRefinement:
    """EM to the posterior mode, with `smoothing` pseudo-counts of each label of each worker in each class."""
    n = float(votes.shape[0] if sample_weight is None else sample_weight.sum())
    reverse = votes.T.tocsr()

    def step(state: CrowdParameters, iteration: int) -> tuple[CrowdParameters, float]:
        joint = crowd_log_joint(votes, state)
        highest = joint.max(axis=1, keepdims=True)
        shares = np.exp(joint - highest)
        totals = shares.sum(axis=1, keepdims=True)
        shares /= totals
        scores = (highest + np.log(totals))[:, 0]
        if sample_weight is not None:
            shares *= sample_weight[:, None]
            scores = scores * sample_weight
        prior = smoothing * float(np.log(state.confusion).sum() + np.log(state.weights).sum())
        return crowd_parameters(reverse, shares, state.confusion.shape, smoothing), (float(scores.sum()) + prior) / n

    refined = run_refinement(step, start, StoppingRule(max_iter, tol))
    return CrowdRefinement(refined.state, refined.trace)


def crowd_parameters(
    reverse: sparse.csr_array, shares: Floats, shape: tuple[int, ...], smoothing: float
) -> CrowdParameters:
    """The M step: parameters of items whose classes are known with probabilities `shares` (n, k)."""
    n_workers, k, n_labels = shape
    counts = np.asarray(reverse @ shares).reshape(n_workers, n_labels, k).transpose(0, 2, 1) + smoothing
    weights = shares.sum(axis=0) + smoothing
    return CrowdParameters(weights / weights.sum(), counts / counts.sum(axis=2, keepdims=True))
