"""EM for mixtures of several views: every view has a likelihood of its own, linear in x (and x^2 for Gaussians).

The log densities of samples under all components are a matrix product with natural parameters, and the sums of the M
step are one more: dense views side by side in one compiled loop, sparse products for sparse ones, a thread for each
batch of samples.
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
from odeco.families.responsibilities import DenseBlock, Expected, expected_of_rows, normalize
from odeco.families.simplex import proportions
from odeco.kernels.columns import centred_columns
from odeco.moments.base import Additive
from odeco.refinement.loop import StoppingRule, Trace, run_refinement
from odeco.sources.views import Block, ViewBatch

Floats = NDArray[np.float64]

COUNTS = {"bernoulli": BERNOULLI, "multinomial": CATEGORICAL, "poisson": POISSON}
LIKELIHOODS = ("gaussian", *COUNTS)
# Probabilities and rates below this are taken for it: what was never seen stays possible, at 18 nats.
_FLOOR = 1e-8
# Features up to which the compiled loop holds a block of samples in cache; beyond, BLAS is quicker.
_LOOPED = 512


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


@dataclass(frozen=True, eq=False)
class ViewFeatures:
    """What the densities of some samples are linear in: their values, and squares after them for Gaussian views.

    Attributes
    ----------
    columns : (p, n)
        Of all dense views, a row for each feature: values about the centers in Gaussian views.
    places : one slice of these rows per view, None for sparse ones
    thin : sparse views (n, d) or (n, 2 d), values as they are
    """

    columns: Floats = field(repr=False)
    places: tuple[slice | None, ...]
    thin: dict[int, sparse.csr_array] = field(repr=False)

    @classmethod
    def of(cls, blocks: Sequence[Block], model: ViewModel) -> ViewFeatures:
        """Those of some samples in all their views."""
        places = places_of(blocks, model)
        columns = np.empty((max((place.stop for place in places if place), default=0), blocks[0].shape[0]))
        thin = {}
        for t, (block, place, center) in enumerate(zip(blocks, places, model.centers, strict=True)):
            squared = model.likelihoods[t] == "gaussian"
            if place is None:
                thin[t] = sparse.csr_array(sparse.hstack([block, block * block])) if squared else block
                continue
            values = columns[place][: center.size]
            centred_columns(block, values, center if squared else None)
            np.square(values, out=columns[place][center.size :]) if squared else None
        return cls(columns, places, thin)

    def view(self, t: int) -> Any:
        """The features of one view, (n, d) or (n, 2 d)."""
        place = self.places[t]
        return self.thin[t] if place is None else self.columns[place].T


def places_of(blocks: Sequence[Block], model: ViewModel) -> tuple[slice | None, ...]:
    """Where the features of each dense view stand, squares of Gaussian ones after values; None for sparse ones."""
    places: list[slice | None] = []
    first = 0
    for block, likelihood in zip(blocks, model.likelihoods, strict=True):
        size = 0 if sparse.issparse(block) else block.shape[1] * (1 + (likelihood == "gaussian"))
        places.append(None if sparse.issparse(block) else slice(first, first + size))
        first += size
    return tuple(places)


class ViewDensities:
    """Log densities of all views, linear in their features."""

    def __init__(self, parameters: ViewParameters, model: ViewModel) -> None:
        self._parameters, self._model = parameters, model
        self._natural: dict[tuple[int, bool], tuple[Floats, Floats]] = {}
        with np.errstate(divide="ignore"):
            self._log_weights = np.log(parameters.weights)

    def features(self, blocks: Sequence[Block]) -> ViewFeatures:
        """What the densities are linear in."""
        return ViewFeatures.of(blocks, self._model)

    def joint(self, features: ViewFeatures) -> Floats:
        """log weight plus the log densities of all views, (k, n), less what no parameter enters (`base`)."""
        slopes, offsets = self._dense(features)
        joint = slopes @ features.columns + offsets[:, None]
        for t, block in features.thin.items():
            slope, constant = self._coefficients(t, True)
            joint += np.asarray(block @ slope.T).T + constant[:, None]
        return joint

    def expected(self, blocks: Sequence[NDArray[np.floating]], weights: Floats | None) -> Expected:
        """The E step where all views are dense, in one compiled loop."""
        views = zip(blocks, self._model.likelihoods, self._model.centers, strict=True)
        made = [DenseBlock(b, center, True) if name == "gaussian" else DenseBlock(b) for b, name, center in views]
        return expected_of_rows(made, *self._slopes(range(len(blocks))), weights)

    def base(self, blocks: Sequence[Block]) -> Floats | float:
        """What no parameter enters, (n,); multinomial views are without their coefficient."""
        names = self._model.likelihoods
        return sum((POISSON.base(b) for b, name in zip(blocks, names, strict=True) if name == "poisson"), start=0.0)

    def _dense(self, features: ViewFeatures) -> tuple[Floats, Floats]:
        """Slopes (k, p) of all dense views, and log weights with their constants (k,)."""
        return self._slopes([t for t, place in enumerate(features.places) if place is not None])

    def _slopes(self, views: Sequence[int]) -> tuple[Floats, Floats]:
        """Those of some views, as dense ones have them."""
        parts = [self._coefficients(t, False) for t in views]
        slopes = [slope for slope, _ in parts] or [np.empty((self._log_weights.size, 0))]
        offsets = sum((constant for _, constant in parts), start=self._log_weights)
        return np.hstack(slopes), np.asarray(offsets)

    def _coefficients(self, t: int, thin: bool) -> tuple[Floats, Floats]:
        if (t, thin) not in self._natural:
            name, mean = self._model.likelihoods[t], self._parameters.means[t]
            center = self._model.centers[t] if name == "gaussian" and not thin else 0.0
            self._natural[t, thin] = _natural_parameters(name, mean - center, self._parameters.variances[t])
        return self._natural[t, thin]


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
    return np.asarray((densities.joint(densities.features(blocks)) + densities.base(blocks)).T)


def refine_views(
    read: Callable[[], Iterable[ViewBatch]],
    start: ViewParameters,
    model: ViewModel,
    *,
    max_iter: int = 100,
    tol: float = 1e-5,
    value: float = -np.inf,
) -> ViewRefinement:
    """EM to the mode of the posterior; `tol` is a gain per sample, `read` starts a new pass over the samples.

    `value` is the objective before the start, where it is known.
    """

    def step(state: ViewParameters, iteration: int) -> tuple[ViewParameters, float]:
        return _em_step(read(), state, model)

    refined = run_refinement(step, start, StoppingRule(max_iter, tol), value=value)
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
        if any(map(sparse.issparse, batch.blocks)) or sum(batch.widths) > _LOOPED:
            for piece in batch.pieces():
                features = self.densities.features(piece.blocks)
                shares, values = normalize(self.densities.joint(features))
                self.add(features, shares * piece.row_weights())
                self._add_likelihood(piece, values)
        else:
            found = self.densities.expected(batch.blocks, batch.weights)
            self._add_dense(places_of(batch.blocks, self.model), found.features, found.totals)
            self._add_likelihood(batch, found.values[0])

    def _add_likelihood(self, batch: ViewBatch, values: Floats) -> None:
        self.log_likelihood += float(batch.row_weights() @ (values + self.densities.base(batch.blocks)))

    def add(self, features: ViewFeatures, shares: Floats) -> None:
        """Add samples that belong to the components with these shares, times their weights, (k, n)."""
        totals = shares.sum(axis=1)
        self._add_dense(features.places, shares @ features.columns.T, totals)
        for t, block in features.thin.items():
            sums, second, center = np.asarray(block.T @ shares.T).T, self.second[t], self.model.centers[t]
            values = sums[:, : center.size]
            self.first[t] += values
            if second is not None:  # as they are: squares go about the center here
                second += sums[:, center.size :] - 2 * center * values + np.outer(totals, center**2)

    def _add_dense(self, places: Sequence[slice | None], sums: Floats, totals: Floats) -> None:
        self.totals += totals
        for t, place in enumerate(places):
            if place is None:
                continue
            part, second, center = sums[:, place], self.second[t], self.model.centers[t]
            self.first[t] += part[:, : center.size]
            if second is not None:
                self.first[t] += np.outer(totals, center)
                second += part[:, center.size :]


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
