"""Components that explain nothing, exchanged for ones that the moments did not show.

What a component is worth is what the log-likelihood loses without it. Candidates from `find_lost` are added to all the
others, a few EM steps settle who owns which rows, and as many are dropped as were added, those worth least. The
exchange is kept if it is likelier. EM runs on rows projected on all these means.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from odeco.models.gaussian_mixture.data import Problem, limits, project_on, reduced_points, whole_points
from odeco.models.gaussian_mixture.lost import find_lost
from odeco.refinement.gaussian_mixture import (
    GaussianParameters,
    Points,
    over_batches,
    posteriors_of,
    refine_gaussian_mixture,
)
from odeco.refinement.loop import StoppingRule
from odeco.sources.dense import DenseBatch

Floats = NDArray[np.float64]

# Rounds at most, and EM steps with and without the components to be dropped.
_ROUNDS, _STEPS = 3, 3
# Worth of a component, in units of what as many free parameters gain by chance (AIC), below which it explains nothing.
_USELESS = 2.0
# Worth per unit of weight below which a component shares its rows. Where two are alike, that of the lighter one is at
# most 2 log 2 - 1 = 0.39; those with rows of their own had 0.68 or more at separation 3.5.
_SHARED = 0.6
# Gains in the same units: of a candidate that is more than noise, which gained up to 0.8, and of an exchange worth it.
_STANDS_OUT, _GAIN = 0.85, 0.25
# Rows per free parameter below which residuals say nothing of directions.
_LEAST_ROWS = 20


@dataclass(frozen=True, eq=False)
class Repaired:
    """Parameters, the number of exchanges, and of components that explain nothing all the same."""

    parameters: GaussianParameters
    n_exchanges: int = 0
    n_useless: int = 0


def repair(problem: Problem, state: GaussianParameters) -> Repaired:
    """Exchange components while that is likelier.

    As long as each of k components has a cluster of its own none of k clusters is lost. So nothing is looked for unless
    some component explains nothing, or shares its rows with another one.
    """
    by_chance = _by_chance(problem)
    if by_chance > 1 / _LEAST_ROWS:
        return Repaired(state)
    n_exchanges = 0
    while True:
        points = whole_points(problem, state)
        worth, value = component_worth(points, state)
        useless = worth < _USELESS * by_chance
        n_useless = int(np.count_nonzero(useless))
        if n_exchanges == _ROUNDS or not (useless | (worth < _SHARED * state.weights)).any():
            return Repaired(state, n_exchanges, n_useless)
        exchanged = _exchange(problem, points, state, ~useless | useless.all())
        if exchanged is None or exchanged[1] <= value + _GAIN * by_chance:
            return Repaired(state, n_exchanges, n_useless)
        state = exchanged[0]
        n_exchanges += 1


def _by_chance(problem: Problem) -> float:
    """What a component's free parameters gain of the mean log-likelihood by chance (AIC)."""
    return (problem.description.dimension + 2) / problem.description.weight


def component_worth(points: Points, state: GaussianParameters) -> tuple[Floats, float]:
    """Loss of the mean log-likelihood without each component, the others as they are (k,); and the likelihood."""
    shares_of = posteriors_of(points, state)

    def part(batch: DenseBatch, first: int) -> tuple[Floats, Floats]:
        lost, totals = np.zeros(state.weights.size), np.zeros(2)
        for shares, values, weights in shares_of(batch, first):
            ones = np.ones(len(values)) if weights is None else weights
            lost += np.log(np.maximum(1 - shares, 1e-30)).astype(np.float64) @ ones
            totals += (float(values.astype(np.float64) @ ones), float(ones.sum()))
        return lost, totals

    parts = over_batches(points, part)
    lost, totals = (np.sum([piece[i] for piece in parts], axis=0) for i in range(2))
    worth = np.log1p(-np.minimum(state.weights, 1 - 1e-12)) - lost / totals[1]
    return worth, float(totals[0] / totals[1])


def _exchange(
    problem: Problem, points: Points, state: GaussianParameters, known: NDArray[np.bool_]
) -> tuple[GaussianParameters, float] | None:
    """Add candidates, let EM settle, drop as many components as were added; the parameters and their likelihood.

    Candidates are what the `known` components leave out: the rows of one that explains nothing are not its own.
    """
    least = _STANDS_OUT * _by_chance(problem)
    found = [lost for lost in find_lost(points, _subset(state, known)) if lost.gain > least]
    if not found:
        return None
    means = np.vstack([state.means, [lost.mean for lost in found]])
    directions = np.linalg.qr(means.T)[0] if len(means) < means.shape[1] else np.eye(means.shape[1])
    rows = project_on(problem, directions)
    points, r = reduced_points(replace(problem, rows=rows)), len(found)
    weights = np.append(state.weights, [lost.weight for lost in found])
    covariances = state.covariances
    if state.covariance_type == "spherical":
        covariances = np.append(covariances, [lost.variance for lost in found])
    everyone = GaussianParameters(weights / weights.sum(), means @ directions, covariances, state.covariance_type)
    rule = StoppingRule(_STEPS, 0.0)
    settled = refine_gaussian_mixture(points, everyone, rule, **limits(problem, state)).parameters
    for _ in range(r):  # one by one: of two that share their rows each is worth little, both are not
        worth, _ = component_worth(points, settled)
        settled = _subset(settled, np.arange(worth.size) != int(np.argmin(worth)))
    done = refine_gaussian_mixture(points, settled, rule, **limits(problem, state))
    lifted = replace(done.parameters, means=done.parameters.means @ directions.T)
    return lifted, float(done.trace.values[-1])


def _subset(state: GaussianParameters, kept: NDArray[np.bool_]) -> GaussianParameters:
    weights = state.weights[kept]
    covariances = state.covariances if state.covariance_type == "tied_spherical" else state.covariances[kept]
    return replace(state, weights=weights / weights.sum(), means=state.means[kept], covariances=covariances)
