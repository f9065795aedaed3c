"""EM for mixtures of several views: every view has a likelihood of its own, linear in x (and x^2 for Gaussians).

The log density of a sample under all components is a matrix product per view with natural parameters, and the sums of
the M step are one more: BLAS for dense views, sparse products for sparse ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from odeco.refinement.loop import StoppingRule, Trace, run_refinement
from odeco.sources.views import Block, ViewBatch

Floats = NDArray[np.float64]

LIKELIHOODS = ("gaussian", "bernoulli", "multinomial", "poisson")
# Probabilities and rates below this are taken for it: what was never seen stays possible, at 18 nats.
_FLOOR = 1e-8
_EMPTY = 1e-8  # samples of a component below which it keeps its parameters


@dataclass(frozen=True, eq=False)
class ViewParameters:
    """Parameters of all views.

    Attributes
    ----------
    weights : (k,)
    means : one array (k, d_t) per view
        Conditional means, for counts the expected counts.
    variances : one array (k, d_t) per Gaussian view, None for the others
    """

    weights: Floats
    means: tuple[Floats, ...] = field(repr=False)
    variances: tuple[Floats | None, ...] = field(repr=False)

    def ordered(self, order: NDArray[np.intp]) -> ViewParameters:
        """The components in another order."""
        variances = tuple(None if v is None else v[order] for v in self.variances)
        return ViewParameters(self.weights[order], tuple(mean[order] for mean in self.means), variances)


@dataclass(frozen=True, eq=False)
class ViewModel:
    """What is known of the views besides their parameters.

    Attributes
    ----------
    likelihoods : one of `LIKELIHOODS` per view
    centers : one array (d_t,) per view
        Column means: dense Gaussian views are centred, so that squares lose no digits, and priors use them.
    floors : one array (d_t,) per view
        Least variance of a Gaussian column.
    smoothing : float
        Pseudo-count of each word, of each outcome of a Bernoulli column, of each event; for every component.
    """

    likelihoods: tuple[str, ...]
    centers: tuple[Floats, ...] = field(repr=False)
    floors: tuple[Floats, ...] = field(repr=False)
    smoothing: float = 0.01


@dataclass(frozen=True, eq=False)
class ViewRefinement:
    """Refined parameters and how they were reached."""

    parameters: ViewParameters
    trace: Trace


def views_log_joint(blocks: Sequence[Block], parameters: ViewParameters, model: ViewModel) -> Floats:
    """log weight plus the log densities of all views, (n, k); multinomial views without their coefficient."""
    with np.errstate(divide="ignore"):
        joint = np.tile(np.log(parameters.weights), (blocks[0].shape[0], 1))
    for t, block in enumerate(blocks):
        joint += _log_density(
            block, model.likelihoods[t], parameters.means[t], parameters.variances[t], model.centers[t]
        )
    return joint


def _log_density(block: Block, likelihood: str, mean: Floats, variance: Floats | None, center: Floats) -> Floats:
    """Log density of a view under all components, (n, k)."""
    if likelihood == "gaussian":
        assert variance is not None
        rows, middle = (block, mean) if sparse.issparse(block) else (block - center, mean - center)
        constant = -0.5 * (np.log(2 * np.pi * variance) + middle**2 / variance).sum(axis=1)
        return np.asarray(rows @ (middle / variance).T - 0.5 * (_squared(rows) @ (1 / variance).T) + constant)
    if likelihood == "multinomial":
        return np.asarray(block @ np.log(_shares(mean)).T)
    if likelihood == "bernoulli":
        p = np.clip(mean, _FLOOR, 1 - _FLOOR)
        return np.asarray(block @ (np.log(p) - np.log1p(-p)).T + np.log1p(-p).sum(axis=1))
    rate = np.maximum(mean, _FLOOR)
    return np.asarray(block @ np.log(rate).T - rate.sum(axis=1)) - _log_factorials(block)[:, None]


def _shares(mean: Floats) -> Floats:
    """Word probabilities of expected counts."""
    totals = mean.sum(axis=1, keepdims=True)
    even = np.full_like(mean, 1 / mean.shape[1])
    return np.maximum(np.where(totals > 0, mean / np.where(totals > 0, totals, 1.0), even), _FLOOR)


def _squared(rows: Any) -> Any:
    return rows * rows


def _log_factorials(block: Block) -> Floats:
    from scipy.special import gammaln  # slow to import

    if not sparse.issparse(block):
        return np.asarray(gammaln(block + 1.0).sum(axis=1))
    logs: Any = block.copy()
    logs.data = gammaln(logs.data + 1.0)
    return np.asarray(logs.sum(axis=1)).ravel()


def refine_views(
    read: Callable[[], Iterable[ViewBatch]],
    start: ViewParameters,
    model: ViewModel,
    *,
    max_iter: int = 100,
    tol: float = 1e-5,
) -> ViewRefinement:
    """EM to the mode of the posterior; `tol` is a gain per sample, `read` starts a new pass over the samples."""

    def step(state: ViewParameters, iteration: int) -> tuple[ViewParameters, float]:
        return _em_step(read(), state, model)

    refined = run_refinement(step, start, StoppingRule(max_iter, tol))
    return ViewRefinement(refined.state, refined.trace)


def _em_step(batches: Iterable[ViewBatch], state: ViewParameters, model: ViewModel) -> tuple[ViewParameters, float]:
    """One step, and the log posterior per sample before it."""
    k = state.weights.size
    totals, likelihood = np.zeros(k), 0.0
    sums = [np.zeros_like(mean) for mean in state.means]
    squares = [None if v is None else np.zeros_like(v) for v in state.variances]
    for batch in batches:
        joint = views_log_joint(batch.blocks, state, model)
        highest = joint.max(axis=1, keepdims=True)
        shares = np.exp(joint - highest)
        norms = shares.sum(axis=1, keepdims=True)
        weights = batch.row_weights()
        shares *= weights[:, None] / norms
        likelihood += float(weights @ (highest + np.log(norms))[:, 0])
        totals += shares.sum(axis=0)
        for t, block in enumerate(batch.blocks):
            second = squares[t]
            first, added = block_sums(block, shares, model.centers[t], squares=second is not None)
            sums[t] += first
            if second is not None and added is not None:
                second += added
    objective = (likelihood + _log_prior(state, model)) / float(totals.sum())
    return maximize(totals, sums, squares, model, state), objective


def block_sums(block: Block, shares: Floats, center: Floats, *, squares: bool) -> tuple[Floats, Floats | None]:
    """``sum_n r_n x_n`` and, where asked for, ``sum_n r_n (x_n - center)^2``, (k, d)."""
    totals = shares.sum(axis=0)
    if not squares:
        return np.asarray(block.T @ shares).T, None
    if sparse.issparse(block):
        first = np.asarray(block.T @ shares).T
        return first, np.asarray(_squared(block).T @ shares).T - 2 * center * first + np.outer(totals, center**2)
    rows = block - center
    return (rows.T @ shares).T + np.outer(totals, center), (_squared(rows).T @ shares).T


def maximize(
    totals: Floats, sums: list[Floats], squares: list[Floats | None], model: ViewModel, old: ViewParameters | None
) -> ViewParameters:
    """The M step, from the numbers of samples (k,), their sums, and their squares about the centers."""
    seen = totals > _EMPTY
    safe = np.where(seen, totals, 1.0)[:, None]
    means: list[Floats] = []
    variances: list[Floats | None] = []
    for t, likelihood in enumerate(model.likelihoods):
        mean, variance = _maximize_view(safe, sums[t], squares[t], likelihood, t, model)
        if old is not None:
            mean = np.where(seen[:, None], mean, old.means[t])
            previous = old.variances[t]
            if variance is not None and previous is not None:
                variance = np.where(seen[:, None], variance, previous)
        means.append(mean)
        variances.append(variance)
    return ViewParameters(totals / totals.sum(), tuple(means), tuple(variances))


def _maximize_view(
    totals: Floats, sums: Floats, squares: Floats | None, likelihood: str, view: int, model: ViewModel
) -> tuple[Floats, Floats | None]:
    s, center = model.smoothing, model.centers[view]
    if likelihood == "gaussian":
        assert squares is not None
        mean = sums / totals
        return mean, np.maximum(squares / totals - (mean - center) ** 2, model.floors[view])
    if likelihood == "bernoulli":
        return (sums + s) / (totals + 2 * s), None
    if likelihood == "poisson":
        return (sums + s) / (totals + s / _prior_rate(center)), None
    lengths = sums.sum(axis=1, keepdims=True)
    return (lengths / totals) * (sums + s) / (lengths + s * sums.shape[1]), None


def _prior_rate(center: Floats) -> Floats:
    return np.maximum(center, _FLOOR)


def _log_prior(state: ViewParameters, model: ViewModel) -> float:
    """What the pseudo-counts add to the log-likelihood."""
    total = 0.0
    for likelihood, mean, center in zip(model.likelihoods, state.means, model.centers, strict=True):
        if likelihood == "multinomial":
            total += float(np.log(_shares(mean)).sum())
        elif likelihood == "bernoulli":
            p = np.clip(mean, _FLOOR, 1 - _FLOOR)
            total += float(np.log(p).sum() + np.log1p(-p).sum())
        elif likelihood == "poisson":
            rate = np.maximum(mean, _FLOOR)
            total += float((np.log(rate) - rate / _prior_rate(center)).sum())
    return model.smoothing * total
