"""EM for mixtures of several views: every view has a likelihood of its own, linear in x (and x^2 for Gaussians).

The log density of a sample under all components is a matrix product per view with natural parameters, and the sums of
the M step are one more: BLAS for dense views, sparse products for sparse ones, a thread for each batch of samples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from odeco.moments.base import Additive
from odeco.refinement.loop import StoppingRule, Trace, run_refinement
from odeco.sources.views import Block, ViewBatch

Floats = NDArray[np.float64]

LIKELIHOODS = ("gaussian", "bernoulli", "multinomial", "poisson")
# Probabilities and rates below this are taken for it: what was never seen stays possible, at 18 nats.
_FLOOR = 1e-8
_EMPTY = 1e-8  # samples of a component below which it keeps its parameters


def n_parameters(likelihoods: Sequence[str], widths: Sequence[int], k: int) -> int:
    """Free parameters of k components in views of so many columns."""
    each = sum(
        {"gaussian": 2 * width, "multinomial": width - 1}.get(likelihood, width)
        for likelihood, width in zip(likelihoods, widths, strict=True)
    )
    return int(k - 1 + k * each)


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


class ViewDensities:
    """Log densities of all views as matrix products: ``features @ slopes + constant``.

    Features are the values themselves, and their squares beside them for Gaussians: about the centers in dense views,
    as they are in sparse ones.
    """

    def __init__(self, parameters: ViewParameters, model: ViewModel) -> None:
        self._parameters, self._model = parameters, model
        self._natural: dict[tuple[int, bool], tuple[Floats, Floats]] = {}
        with np.errstate(divide="ignore"):
            self._log_weights = np.log(parameters.weights)

    def features(self, blocks: Sequence[Block]) -> list[Any]:
        """One block (n, d) or, for Gaussians, (n, 2 d) per view."""
        names, centers = self._model.likelihoods, self._model.centers
        return [
            _with_squares(block, center) if name == "gaussian" else block
            for block, name, center in zip(blocks, names, centers, strict=True)
        ]

    def joint(self, blocks: Sequence[Block], features: Sequence[Any]) -> Floats:
        """log weight plus the log densities of all views, (n, k); multinomial views without their coefficient."""
        joint = np.tile(self._log_weights, (blocks[0].shape[0], 1))
        for t, block in enumerate(features):
            slopes, constant = self._coefficients(t, bool(sparse.issparse(block)))
            joint += np.asarray(block @ slopes)
            joint += constant
            if self._model.likelihoods[t] == "poisson":
                joint -= _log_factorials(block)[:, None]
        return joint

    def _coefficients(self, t: int, thin: bool) -> tuple[Floats, Floats]:
        if (t, thin) not in self._natural:
            name, mean = self._model.likelihoods[t], self._parameters.means[t]
            center = self._model.centers[t] if name == "gaussian" and not thin else 0.0
            slopes, constant = _natural_parameters(name, mean - center, self._parameters.variances[t])
            self._natural[t, thin] = np.ascontiguousarray(slopes.T), constant
        return self._natural[t, thin]


def _with_squares(block: Block, center: Floats) -> Any:
    if sparse.issparse(block):
        return sparse.csr_array(sparse.hstack([block, block * block], format="csr"))
    n, d = block.shape
    features = np.empty((n, 2 * d))
    np.subtract(block, center, out=features[:, :d])
    np.square(features[:, :d], out=features[:, d:])
    return features


def _natural_parameters(likelihood: str, mean: Floats, variance: Floats | None) -> tuple[Floats, Floats]:
    """Slopes (k, number of features) and constants (k,) of the log density."""
    if likelihood == "gaussian":
        assert variance is not None
        constant = -0.5 * (np.log(2 * np.pi * variance) + mean**2 / variance).sum(axis=1)
        return np.hstack([mean / variance, -0.5 / variance]), constant
    if likelihood == "multinomial":
        return np.log(_shares(mean)), np.zeros(len(mean))
    if likelihood == "bernoulli":
        p = np.clip(mean, _FLOOR, 1 - _FLOOR)
        return np.log(p) - np.log1p(-p), np.log1p(-p).sum(axis=1)
    rate = np.maximum(mean, _FLOOR)
    return np.log(rate), -rate.sum(axis=1)


def _shares(mean: Floats) -> Floats:
    """Word probabilities of expected counts."""
    totals = mean.sum(axis=1, keepdims=True)
    even = np.full_like(mean, 1 / mean.shape[1])
    return np.maximum(np.where(totals > 0, mean / np.where(totals > 0, totals, 1.0), even), _FLOOR)


def _log_factorials(block: Block) -> Floats:
    from scipy.special import gammaln  # slow to import

    if not sparse.issparse(block):
        return np.asarray(gammaln(block + 1.0).sum(axis=1))
    logs: Any = block.copy()
    logs.data = gammaln(logs.data + 1.0)
    return np.asarray(logs.sum(axis=1)).ravel()


def views_log_joint(blocks: Sequence[Block], parameters: ViewParameters, model: ViewModel) -> Floats:
    """log weight plus the log densities of all views, (n, k)."""
    densities = ViewDensities(parameters, model)
    return densities.joint(blocks, densities.features(blocks))


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
    densities = ViewDensities(state, model)
    sums = PosteriorSums(state, model, densities).update_all(batches)
    objective = (sums.log_likelihood + _log_prior(state, model)) / float(sums.totals.sum())
    return maximize(sums.totals, sums.first, sums.second, model, state), objective


class PosteriorSums(Additive):
    """What the M step needs of the samples.

    Attributes
    ----------
    totals : (k,)
        Samples of each component.
    first : one array (k, d_t) per view
        Sums of the values.
    second : one array (k, d_t) per Gaussian view, None for the others
        Sums of squares about the centers.
    """

    _sums: ClassVar[tuple[str, ...]] = ("totals", "log_likelihood", "first", "second")
    _on: ClassVar[tuple[str, ...]] = ("shape", "model", "densities")
    _by_threads: ClassVar[bool] = True

    def __init__(self, shape: ViewParameters, model: ViewModel, densities: ViewDensities) -> None:
        self.shape, self.model, self.densities = shape, model, densities
        self.totals, self.log_likelihood = np.zeros(shape.weights.size), 0.0
        self.first = [np.zeros_like(mean) for mean in shape.means]
        self.second = [None if v is None else np.zeros_like(v) for v in shape.variances]

    def update(self, batch: ViewBatch) -> None:
        """The E step on a batch."""
        features = self.densities.features(batch.blocks)
        joint = self.densities.joint(batch.blocks, features)
        highest = joint.max(axis=1, keepdims=True)
        joint -= highest
        shares = np.exp(joint, out=joint)
        norms = shares.sum(axis=1, keepdims=True)
        weights = batch.row_weights()
        shares *= weights[:, None] / norms
        self.log_likelihood += float(weights @ (highest + np.log(norms))[:, 0])
        self.add(features, shares)

    def add(self, features: Sequence[Any], shares: Floats) -> None:
        """Add samples that belong to the components with these shares, times their weights, (n, k)."""
        totals = shares.sum(axis=0)
        self.totals += totals
        for t, block in enumerate(features):
            sums, second = np.asarray(block.T @ shares).T, self.second[t]
            if second is None:
                self.first[t] += sums
                continue
            values, squares = np.split(sums, 2, axis=1)
            center = self.model.centers[t]
            if sparse.issparse(block):  # as they are: squares go about the center here
                self.first[t] += values
                second += squares - 2 * center * values + np.outer(totals, center**2)
            else:
                self.first[t] += values + np.outer(totals, center)
                second += squares


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


def expected_likelihood(totals: Floats, sums: list[Floats], squares: list[Floats | None], model: ViewModel) -> Floats:
    """Largest expected log-likelihood of components with these sums, up to what mergers leave as it is, (m,)."""
    best = maximize(totals, sums, squares, model, None)
    values = totals * np.log(np.maximum(totals, np.finfo(float).tiny))
    for t, likelihood in enumerate(model.likelihoods):
        square, center = squares[t], model.centers[t]
        shift = center if square is not None else 0.0
        slopes, constant = _natural_parameters(likelihood, best.means[t] - shift, best.variances[t])
        features = sums[t] if square is None else np.hstack([sums[t] - np.outer(totals, center), square])
        values = values + np.einsum("ip,ip->i", slopes, features) + constant * totals
    return np.asarray(values)


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
    counts = lengths + s * sums.shape[1]
    return (lengths / totals) * (sums + s) / np.where(counts > 0, counts, 1.0), None


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
