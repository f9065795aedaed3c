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

from odeco.families.averages import LEAST_WEIGHT, averages
from odeco.families.counts import BERNOULLI, CATEGORICAL, POISSON
from odeco.families.gaussian import DIAGONAL, natural, scatter_about
from odeco.families.responsibilities import posterior
from odeco.families.simplex import proportions
from odeco.moments.base import Additive
from odeco.refinement.loop import StoppingRule, Trace, run_refinement
from odeco.sources.views import Block, ViewBatch

Floats = NDArray[np.float64]

COUNTS = {"bernoulli": BERNOULLI, "multinomial": CATEGORICAL, "poisson": POISSON}
LIKELIHOODS = ("gaussian", *COUNTS)
# Probabilities and rates below this are taken for it: what was never seen stays possible, at 18 nats.
_FLOOR = 1e-8


def n_parameters(likelihoods: Sequence[str], widths: Sequence[int], k: int) -> int:
    """Free parameters of k components in views of so many columns."""
    each = sum(
        width + DIAGONAL.n_free(1, width) if likelihood == "gaussian" else COUNTS[likelihood].n_free(width)
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
                joint += POISSON.base(block)[:, None]
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
    if variance is not None:
        linear, square, constants = natural(mean, variance)
        return np.hstack([linear, square]), constants.sum(axis=1)
    family = COUNTS[likelihood]
    slopes, constants = family.natural(family.inside(mean, _FLOOR))
    return slopes, constants.sum(axis=1)


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
        weights = batch.row_weights()
        shares, values = posterior(self.densities.joint(batch.blocks, features), weights)
        self.log_likelihood += float(weights @ values)
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
    views = zip(model.likelihoods, sums, squares, model.centers, model.floors, strict=True)
    means: list[Floats] = []
    variances: list[Floats | None] = []
    for t, (likelihood, first, second, center, floor) in enumerate(views):
        before = (0.0, floor) if old is None else (old.means[t], old.variances[t])
        if second is None:
            means.append(_count_means(likelihood, totals[:, None], first, center, model.smoothing, before[0]))
            variances.append(None)
            continue
        mean = averages(first, totals[:, None], before[0])
        means.append(mean)
        variances.append(DIAGONAL.estimate(scatter_about(mean - center, totals, second), totals, before[1], floor))
    return ViewParameters(totals / totals.sum(), tuple(means), tuple(variances))


def _count_means(
    likelihood: str, totals: Floats, sums: Floats, center: Floats, smoothing: float, otherwise: Floats | float
) -> Floats:
    """Means of a view of counts with its pseudo-counts; of words, their shares of the mean length."""
    if likelihood == "multinomial":
        lengths = sums.sum(axis=1, keepdims=True)
        return averages(lengths * proportions(sums, smoothing), totals, otherwise)
    added, more = COUNTS[likelihood].pseudo(smoothing, center, _FLOOR)
    return averages(sums + added, totals + more * (totals > LEAST_WEIGHT), otherwise)


def expected_likelihood(totals: Floats, sums: list[Floats], squares: list[Floats | None], model: ViewModel) -> Floats:
    """Largest expected log-likelihood of components with these sums, without their weights, (m,)."""
    best = maximize(totals, sums, squares, model, None)
    values = np.zeros_like(totals)
    for t, likelihood in enumerate(model.likelihoods):
        square, center = squares[t], model.centers[t]
        shift = center if square is not None else 0.0
        slopes, constant = _natural_parameters(likelihood, best.means[t] - shift, best.variances[t])
        features = sums[t] if square is None else np.hstack([sums[t] - np.outer(totals, center), square])
        values = values + np.einsum("ip,ip->i", slopes, features) + constant * totals
    return np.asarray(values)


def _log_prior(state: ViewParameters, model: ViewModel) -> float:
    """What the pseudo-counts add to the log-likelihood."""
    total = 0.0
    for likelihood, mean, center in zip(model.likelihoods, state.means, model.centers, strict=True):
        if likelihood != "gaussian":
            family = COUNTS[likelihood]
            slopes, constants = family.natural(family.inside(mean, _FLOOR))
            added, more = family.pseudo(model.smoothing, center, _FLOOR)
            total += float((added * slopes).sum() + (more * constants).sum())
    return total
