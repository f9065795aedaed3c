"""Baum-Welch: monotone, at a fixed point of EM, and the acceleration never loses what plain steps reach."""

from __future__ import annotations

import numpy as np
import pytest

from odeco.refinement.acceleration import Accelerated
from odeco.refinement.categorical_emission import CategoricalEmission
from odeco.refinement.emissions import HMMParameters
from odeco.refinement.forward_backward import ForwardBackward
from odeco.refinement.hmm import Smoothing, baum_welch, maximize, pack, unpack
from odeco.refinement.loop import StoppingRule, run_refinement
from odeco.simulate import categorical_hmm, random_chain
from tests.unit.refinement.test_forward_backward import sequences


@pytest.fixture(scope="module")
def data():
    transmat, emissions = random_chain(3, 8, random_state=3)
    return sequences(categorical_hmm(4_000, transmat, emissions, random_state=4).observations[:, 0], 8)


def random_start(seed, smoothing=0.0):
    rng = np.random.default_rng(seed)
    emission = CategoricalEmission(rng.dirichlet(np.full(8, 2.0), size=3), smoothing)
    return HMMParameters(np.full(3, 1 / 3), rng.dirichlet(np.ones(3), size=3), emission)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("smoothing", [0.0, 0.5])
def test_the_objective_never_falls(data, seed, smoothing):
    refined = baum_welch(data, random_start(seed, smoothing), smoothing=Smoothing(0.0, smoothing), max_iter=60, tol=0.0)
    values = refined.trace.values
    assert len(values) > 10
    assert np.diff(values).min() >= -1e-12  # rounding of a mean of logarithms


def test_it_ends_at_a_fixed_point_of_em(data):
    refined = baum_welch(data, random_start(0), max_iter=500, tol=1e-12)
    assert refined.trace.converged
    state = refined.state
    again = maximize(state, ForwardBackward(data).expectations(state))
    # tol 1e-12 per step: the distance of a step from its fixed point is of the order of the root of what it gains.
    np.testing.assert_allclose(again.transmat, state.transmat, atol=1e-4)
    np.testing.assert_allclose(again.emission.probabilities, state.emission.probabilities, atol=1e-4)


def test_acceleration_needs_fewer_passes(data):
    recursions = ForwardBackward(data)
    plain, state = [], random_start(1)
    for _ in range(40):
        expected = recursions.expectations(state)
        plain.append(expected.log_likelihood / len(data))
        state = maximize(state, expected)
    fast = baum_welch(data, random_start(1), max_iter=40, tol=0.0).trace.values
    assert fast[-1] >= plain[-1]


def test_packing_is_undone_by_unpacking_and_any_vector_is_valid(data):
    start = random_start(2)
    back = unpack(pack(start), start)
    np.testing.assert_allclose(back.transmat, start.transmat, rtol=1e-12)
    np.testing.assert_allclose(back.emission.probabilities, start.emission.probabilities, rtol=1e-12)
    odd = unpack(np.random.default_rng(0).standard_normal(pack(start).size) * 100, start)
    for rows in (odd.startprob, odd.transmat, odd.emission.probabilities):
        assert (rows >= 0).all()
        np.testing.assert_allclose(rows.sum(axis=-1), 1.0, rtol=1e-12)


def test_states_that_never_occur_keep_their_parameters(data):
    start = random_start(3)
    alone = HMMParameters(np.array([1.0, 0, 0]), np.array([[1.0, 0, 0], [0, 0.5, 0.5], [0, 0.3, 0.7]]), start.emission)
    new = maximize(alone, ForwardBackward(data).expectations(alone))
    np.testing.assert_array_equal(new.transmat[1:], alone.transmat[1:])
    np.testing.assert_array_equal(new.emission.probabilities[1:], alone.emission.probabilities[1:])


def test_accelerated_rejects_what_overshoots():
    # The map halves the distance to 0 near it; mixed far steps of a kinked map overshoot, and must be taken back.
    def step(x):
        return np.where(np.abs(x) > 1, x * 0.9, x * 0.5), -float(np.abs(x).sum())

    refined = run_refinement(
        Accelerated(step, lambda x: x, lambda x: x), np.array([50.0, -3.0]), StoppingRule(200, 0.0, 3)
    )
    assert np.diff(refined.trace.values).min() >= 0
    assert np.abs(refined.state).max() < 1e-6
