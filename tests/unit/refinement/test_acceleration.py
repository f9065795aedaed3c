"""Accelerated EM on maps whose fixed points are known."""

from __future__ import annotations

import numpy as np
import pytest

from odeco.refinement.acceleration import Accelerated
from odeco.refinement.loop import StoppingRule, run_refinement


def ascent(gradient, objective, rate):
    """Gradient steps that are short enough to rise, as a map like that of EM."""
    return lambda x: (x + rate * gradient(x), objective(x))


def evaluations(step, start, target, most=5_000):
    """How often the map is evaluated until the objective is above the target."""
    refined = run_refinement(step, start, StoppingRule(most, tol=0.0, patience=most))
    reached = [record.iteration for record in refined.trace.records if record.value >= target]
    assert np.all(np.diff(refined.trace.values) >= -1e-15)  # rounding of sums below 1, at the very end
    return reached[0]


def plain(em_step):
    return lambda state, iteration: em_step(state)


def accelerated(em_step):
    return Accelerated(em_step, lambda x: x, lambda x: x)


def test_a_linear_map_is_solved_in_as_many_steps_as_it_has_directions():
    # Anderson's method is GMRES on linear maps: three directions, three differences, and two points to begin with.
    curvature = np.array([1.0, 0.1, 0.01])
    em_step = ascent(lambda x: -curvature * x, lambda x: -0.5 * float(x @ (curvature * x)), 0.9)
    assert evaluations(accelerated(em_step), np.array([1.0, -2.0, 3.0]), -1e-12) <= 7
    assert evaluations(plain(em_step), np.array([1.0, -2.0, 3.0]), -1e-12) > 500


@pytest.mark.parametrize("away", [1e-3, 1e-6])
def test_the_way_out_of_a_saddle_is_shortened(away):
    """f = y^2 / 2 - y^4 / 4 - x^2 / 2 has a saddle at 0, where growing steps mix to, and maxima at y = +-1."""
    em_step = ascent(
        lambda z: np.array([-z[0], z[1] - z[1] ** 3]),
        lambda z: float(0.5 * z[1] ** 2 - 0.25 * z[1] ** 4 - 0.5 * z[0] ** 2),
        0.05,
    )
    start = np.array([0.5, away])
    with_stretching = evaluations(accelerated(em_step), start, 0.25 - 1e-9)
    # Growth by 1.05 a step takes log(1 / away) / log(1.05) of them; stretched four times and more, a third at most.
    assert with_stretching < np.log(1 / away) / np.log(1.05) / 3
    assert evaluations(plain(em_step), start, 0.25 - 1e-9) > np.log(1 / away) / np.log(1.05)
