"""Components that explain nothing, exchanged for ones that the moments did not show.

What a component is worth is what the log-likelihood loses without it. Candidates from `find_lost` are added to all the
others, a few EM steps settle who owns which rows, and as many are dropped as were added, those worth least. The
exchange is kept if it is likelier. EM runs on rows projected on all these means.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from odeco.models._gaussian_data import Problem, limits, project_on, reduced_points, whole_points
from odeco.models._gaussian_lost import find_lost
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
_ROUNDS, _STEPS = 3, 5
# Worth of a component, in units of what as many free parameters gain by chance (AIC), below which it is suspected.
_SUSPECT = 2.0
# Gain in the same units that makes an exchange worth it.
_GAIN = 1.0
# Rows per dimension below which residuals say nothing of directions.
_LEAST_ROWS = 20
# Share of the average weight below which a component is looked at: those that explained nothing had less than 0.2.
_LIGHT = 0.4
# Weight of a candidate, as a share of the average.
_WEIGHT = 0.3


@dataclass(frozen=True, eq=False)
class Repaired:
    """Parameters, the number of exchanges, and of components that explain nothing all the same."""

    parameters: GaussianParameters
    n_exchanges: int = 0
    n_useless: int = 0


def repair(problem: Problem, state: GaussianParameters, suspected: bool) -> Repaired:
    """Exchange components while that is likelier."""
    d, n = problem.description.dimension, problem.description.weight
    light = state.weights.min() < _LIGHT / state.weights.size
    if n < _LEAST_ROWS * d or not (suspected or light):
        return Repaired(state)
    by_chance = (d + 2) / n
    n_exchanges = 0
    while True:
        points = whole_points(problem, state)
        worth, value = component_worth(points, state)
        n_useless = int(np.count_nonzero(worth < _SUSPECT * by_chance))
        if n_exchanges == _ROUNDS or not (suspected or n_useless):
            return Repaired(state, n_exchanges, n_useless)
        suspected = False
        exchanged = _exchange(problem, points, state, worth)
        if exchanged is None or exchanged[1] <= value + _GAIN * by_chance:
            return Repaired(state, n_exchanges, n_useless)
        state = exchanged[0]
        n_exchanges += 1


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
    problem: Problem, points: Points, state: GaussianParameters, worth: Floats
) -> tuple[GaussianParameters, float] | None:
    """Add candidates, let EM settle, drop as many components as were added; the parameters and their likelihood."""
    k = state.weights.size
    kept = np.arange(k) != int(np.argmin(worth))  # the rows of a component that explains nothing are not its own
    found = find_lost(points, _subset(state, kept))
    if not found:
        return None
    means = np.vstack([state.means, [lost.mean for lost in found]])
    directions = np.linalg.qr(means.T)[0] if len(means) < means.shape[1] else np.eye(means.shape[1])
    rows = project_on(problem, directions)
    points, r = reduced_points(replace(problem, rows=rows)), len(found)
    weights = np.append(state.weights, np.full(r, _WEIGHT / k))
    covariances = state.covariances
    if state.covariance_type == "spherical":
        covariances = np.append(covariances, [lost.variance for lost in found])
    everyone = GaussianParameters(weights / weights.sum(), means @ directions, covariances, state.covariance_type)
    rule = StoppingRule(_STEPS, 0.0)
    settled = refine_gaussian_mixture(points, everyone, rule, **limits(problem, state)).parameters
    worth, _ = component_worth(points, settled)
    best = np.zeros(k + r, dtype=bool)
    best[np.argsort(-worth, kind="stable")[:k]] = True
    done = refine_gaussian_mixture(points, _subset(settled, best), rule, **limits(problem, state))
    lifted = replace(done.parameters, means=done.parameters.means @ directions.T)
    return lifted, float(done.trace.values[-1])


def _subset(state: GaussianParameters, kept: NDArray[np.bool_]) -> GaussianParameters:
    weights = state.weights[kept]
    covariances = state.covariances if state.covariance_type == "tied_spherical" else state.covariances[kept]
    return replace(state, weights=weights / weights.sum(), means=state.means[kept], covariances=covariances)
