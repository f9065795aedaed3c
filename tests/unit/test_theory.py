"""The theory helpers against hand calculations and against the conditions that they solve."""

from __future__ import annotations

from math import exp, log, log2, sqrt

import numpy as np
import pytest

from odeco.simulate import odeco_tensor
from odeco.tensors import RankOneSum, rank_one_sum
from odeco.theory import (
    eigenvector_residual,
    is_isolated_maximizer,
    is_robust_eigenvector,
    iterations_needed,
    largest_noise,
    perturbation_bounds,
    quadratic_convergence_bound,
    rayleigh_quotient,
    restarts_needed,
)


def test_perturbation_bounds_are_8_5_and_55():
    bounds = perturbation_bounds([2.0, 0.5], 0.1)
    assert bounds.eigenvectors == pytest.approx([0.4, 1.6])
    assert bounds.eigenvalues == pytest.approx(0.5)
    assert bounds.tensor == pytest.approx(5.5)


def test_largest_noise_is_a_share_of_the_smallest_eigenvalue():
    assert largest_noise([3.0, 2.0, 0.6, 1.0], c1=0.5) == pytest.approx(0.5 * 0.6 / 4)


def test_iterations_needed():
    # C2 (log k + log log ratio) with ratio = e^e: log log = 1.
    assert iterations_needed(1, exp(exp(1)) * 1.0001, c2=3.0) == 4
    assert iterations_needed(10, 1e6, c2=2.0) == int(np.ceil(2 * (log(10) + log(log(1e6)))))
    assert iterations_needed(1, exp(1.0000001), c2=1.0) == 1  # at least one
    with pytest.raises(ValueError, match="ratio = lambda_max / epsilon must exceed e, got 2.0"):
        iterations_needed(10, 2.0, c2=1.0)


def condition_holds(restarts, k, eta, c3):
    """The condition on L in Theorem 5.1 as it is printed."""
    x = log(restarts / log2(k / eta))
    left = sqrt(x / log(k)) * (1 - (log(x) + c3) / (4 * x) - sqrt(log(8) / x))
    return left >= 1.02 * (1 + sqrt(log(4) / log(k)))


@pytest.mark.parametrize("k", [2, 10, 100, 1000])
@pytest.mark.parametrize(("eta", "c3"), [(0.1, 0.0), (0.01, 1.0), (0.5, 5.0)])
def test_restarts_needed_is_the_smallest_that_meets_the_condition(k, eta, c3):
    restarts = restarts_needed(k, eta, c3=c3)
    assert condition_holds((1 + 1e-9) * restarts, k, eta, c3)  # a root of ln(L) found to 2e-12
    assert not condition_holds(0.999 * restarts, k, eta, c3)


def test_restarts_needed_grows_with_k_and_with_certainty():
    assert restarts_needed(100, 0.1, c3=0.0) > restarts_needed(10, 0.1, c3=0.0)
    # L is proportional to log2(k / eta) at fixed k.
    ratio = restarts_needed(10, 0.001, c3=0.0) / restarts_needed(10, 0.1, c3=0.0)
    assert ratio == pytest.approx(log2(10 / 0.001) / log2(10 / 0.1), rel=1e-3)
    assert restarts_needed(1, 0.1, c3=0.0) == 1.0
    # "for large k, the required bound on L is very close to linear in k": the exponent falls towards 1.02^2.
    exponents = [
        log(restarts_needed(10 * k, 0.1, c3=0.0) / restarts_needed(k, 0.1, c3=0.0), 10) for k in (10, 10**4, 10**50)
    ]
    assert exponents[0] > exponents[1] > exponents[2] > 1.0
    for k, eta in ((0, 0.1), (10, 0.0), (10, 1.0)):
        with pytest.raises(ValueError, match="k must be at least 1 and eta between 0 and 1"):
            restarts_needed(k, eta, c3=0.0)


def test_quadratic_convergence_bound_by_hand():
    # lambda c = 1.2, 0.5, 0.3: the first and second of the lemma are 0 and 2; 2 * 2^2 * (1/1^2 + 1/0.5^2) = 40.
    eigenvalues, overlaps = [2.0, 1.0, 0.5], [-0.6, 0.3, 1.0]
    for t in (1, 2, 3):
        expected = 40 * (0.5 / 1.2) ** (2 ** (t + 1))
        assert quadratic_convergence_bound(eigenvalues, overlaps, t) == pytest.approx(expected)
    assert quadratic_convergence_bound([3.0], [0.1], 1) == 0.0
    assert quadratic_convergence_bound(eigenvalues, overlaps, 2000) == 0.0
    with pytest.raises(ValueError, match="unique largest"):
        quadratic_convergence_bound([1.0, 2.0], [0.4, -0.2], 1)


@pytest.mark.parametrize("order", [3, 4])
def test_the_rayleigh_quotient_does_not_depend_on_length(order):
    tensor = rank_one_sum([2.0, 1.0], np.eye(3)[:, :2], order)
    direction = np.array([0.6, 0.8, 0.0])
    expected = 2 * 0.6**order + 0.8**order
    assert rayleigh_quotient(tensor, direction) == pytest.approx(expected)
    assert rayleigh_quotient(tensor, 7 * direction) == pytest.approx(expected)
    assert rayleigh_quotient(RankOneSum([2.0, 1.0], np.eye(3)[:, :2], order), direction) == pytest.approx(expected)


def test_eigenvector_residual_by_hand():
    tensor = rank_one_sum([2.0, 1.0], np.eye(2))
    # T(I,u,u) = (0.72, 0.64), T(u,u,u) = 0.944.
    assert eigenvector_residual(tensor, [3.0, 4.0]) == pytest.approx(np.hypot(0.72 - 0.944 * 0.6, 0.64 - 0.944 * 0.8))
    assert eigenvector_residual(tensor, [0.0, -5.0]) == 0.0


def test_an_isolated_maximizer_must_be_an_eigenvector_to_the_tolerance():
    tensor = rank_one_sum([2.0, 1.0], np.eye(2))
    near = [1.0, 1e-5]
    assert not is_isolated_maximizer(tensor, near)
    assert is_isolated_maximizer(tensor, near, tol=1e-4)
    assert is_isolated_maximizer(np.full((1, 1, 1), 3.0), [1.0])
    assert not is_isolated_maximizer(np.full((1, 1, 1), 3.0), [-1.0])
    assert is_isolated_maximizer(RankOneSum([2.0, 1.0], np.eye(2)), [1.0, 0.0])


def test_robustness_is_decided_within_the_radius():
    """The basin of v_2 in the plane ends where 2 c_1 = c_2, at distance 0.46 of it."""
    tensor = rank_one_sum([2.0, 1.0], np.eye(2))
    weak = [0.0, 1.0]
    assert is_robust_eigenvector(tensor, weak, radius=0.3, random_state=0)
    assert not is_robust_eigenvector(tensor, weak, radius=0.9, n_probes=50, random_state=0)
    slow = rank_one_sum([1.0, 1.0], np.eye(2))
    assert not is_robust_eigenvector(slow, [1.0, 0.0], radius=0.5, n_iter=1, random_state=0)
    assert is_robust_eigenvector(slow, [1.0, 0.0], radius=0.5, n_iter=1, tol=0.5, random_state=0)


def test_robustness_at_order_4_is_up_to_sign():
    """The map turns an eigenvector of negative eigenvalue over at every step."""
    tensor = rank_one_sum([-2.0, 1.0], np.eye(2), 4)
    for n_iter in (20, 21):
        assert is_robust_eigenvector(tensor, [1.0, 0.0], n_iter=n_iter, random_state=0)
        assert is_robust_eigenvector(tensor, [0.0, -1.0], n_iter=n_iter, random_state=0)


def test_robustness_of_what_is_no_eigenvector():
    sample = odeco_tensor(5, random_state=0)
    assert not is_robust_eigenvector(sample.tensor, np.ones(5), random_state=0)
    assert not is_robust_eigenvector(np.zeros((2, 2, 2)), [1.0, 0.0], random_state=0)


@pytest.mark.parametrize("function", [rayleigh_quotient, eigenvector_residual, is_isolated_maximizer])
@pytest.mark.parametrize("vector", [[0.0, 0.0], [1.0, 2.0, 3.0], [np.nan, 1.0], [np.inf, 1.0], [[1.0], [0.0]]])
def test_bad_vectors_are_refused(function, vector):
    with pytest.raises(ValueError, match="vector must be a non-zero vector of length 2"):
        function(rank_one_sum([2.0, 1.0], np.eye(2)), vector)
