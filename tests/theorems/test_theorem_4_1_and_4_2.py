"""Theorems 4.1 and 4.2: the robust eigenvectors, and the isolated local maximizers, are the v_i and nothing else.

The paper states them at order 3 and says that they extend; here they hold at order 4 too, up to the sign of v_i and
for T or -T by the sign of lambda_i.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from odeco.tensors import ExplicitTensor
from odeco.theory import eigenvector_residual, is_isolated_maximizer, is_robust_eigenvector, rayleigh_quotient
from tests.cases import CLEAN, case_id

SMALL = [case for case in CLEAN if case.n**case.order <= 10_000]
SEVERAL = [case for case in SMALL if case.rank > 1]
# Rounding of sums of n^2 or n^3 <= 6000 products, relative to the largest eigenvalue.
ROUNDING = 1e-13


def spurious_eigenvectors(sample, order, limit=12):
    """sum over S of |lambda_i|^(-1 / (p - 2)) v_i for subsets S, |S| >= 2, of components of one sign, with the sign."""
    found = []
    for sign in (1.0, -1.0):
        of_sign = np.flatnonzero(np.sign(sample.eigenvalues) == sign)
        for size in range(2, of_sign.size + 1):
            for subset in list(combinations(of_sign, size))[: limit // 3]:
                chosen = list(subset)
                weights = np.abs(sample.eigenvalues[chosen]) ** (-1 / (order - 2))
                vector = sample.eigenvectors[:, chosen] @ weights
                found.append((vector / np.linalg.norm(vector), sign))
    return found


@pytest.mark.parametrize("case", CLEAN, ids=case_id)
def test_random_starts_converge_to_the_component_that_lemma_5_1_names(case):
    """Part 1 of Theorem 4.1: to v_i with the largest |lambda_i (v_i' theta)^(p - 2)|, for almost every start."""
    sample = case.draw()
    tensor = ExplicitTensor(sample.tensor)
    theta = np.random.default_rng(3).standard_normal((case.n, 30))
    strength = np.abs(sample.eigenvalues[:, None]) * np.abs(sample.eigenvectors.T @ theta) ** (case.order - 2)
    expected = sample.eigenvectors[:, np.argmax(strength, axis=0)]
    # The rival's share is squared by every step: 40 steps leave nothing of one that is behind by a factor 1 - 1e-10.
    for _ in range(40):
        theta = tensor.power_map(theta)
        theta = theta / np.linalg.norm(theta, axis=0)
    if case.order == 4:
        theta = theta * np.sign(np.sum(theta * expected, axis=0))
    assert np.abs(theta - expected).max() <= ROUNDING


@pytest.mark.parametrize("case", SMALL, ids=case_id)
def test_every_component_is_a_robust_eigenvector(case):
    sample = case.draw()
    for value, vector in zip(sample.eigenvalues, sample.eigenvectors.T, strict=True):
        assert eigenvector_residual(sample.tensor, vector) <= ROUNDING * np.abs(sample.eigenvalues).max()
        assert rayleigh_quotient(sample.tensor, vector) == pytest.approx(value, rel=ROUNDING, abs=ROUNDING)
        assert is_robust_eigenvector(sample.tensor, vector, random_state=0)


@pytest.mark.parametrize("case", SEVERAL, ids=case_id)
def test_spurious_eigenvectors_are_eigenvectors_but_not_robust(case):
    sample = case.draw()
    spurious = spurious_eigenvectors(sample, case.order)
    assert spurious
    for vector, _ in spurious:
        assert eigenvector_residual(sample.tensor, vector) <= ROUNDING * np.abs(sample.eigenvalues).max()
        assert not is_robust_eigenvector(sample.tensor, vector, random_state=0)


@pytest.mark.parametrize("case", SMALL, ids=case_id)
def test_exactly_the_components_are_isolated_maximizers(case):
    sample = case.draw()
    for value, vector in zip(sample.eigenvalues, sample.eigenvectors.T, strict=True):
        assert is_isolated_maximizer(np.sign(value) * sample.tensor, vector)
        assert not is_isolated_maximizer(-np.sign(value) * sample.tensor, vector)
    for vector, sign in spurious_eigenvectors(sample, case.order):
        assert rayleigh_quotient(sign * sample.tensor, vector) > 0  # it is the second derivative that fails
        assert not is_isolated_maximizer(sign * sample.tensor, vector)


@pytest.mark.parametrize("case", SMALL, ids=case_id)
def test_the_second_derivative_test_agrees_with_the_values_around_a_point(case):
    """What the test decides by the Hessian is seen by walking: no neighbour of v_i is higher, some of the others is."""
    sample = case.draw()
    rng = np.random.default_rng(4)
    points = [(vector, np.sign(value)) for value, vector in zip(sample.eigenvalues, sample.eigenvectors.T, strict=True)]
    for vector, sign in points[:3] + spurious_eigenvectors(sample, case.order)[:6]:
        tensor = ExplicitTensor(sign * sample.tensor)
        directions = rng.standard_normal((case.n, 200))
        # Few random directions leave a saddle upwards in many dimensions: add those towards the components.
        directions = np.column_stack([directions, sample.eigenvectors, -sample.eigenvectors])
        directions -= np.outer(vector, vector @ directions)
        norms = np.linalg.norm(directions, axis=0)
        directions = directions[:, norms > 1e-6] / norms[norms > 1e-6]
        if not directions.size:
            continue  # one dimension has no neighbours
        around = vector[:, None] + 1e-3 * directions
        heights = tensor.values(around / np.linalg.norm(around, axis=0))
        highest = heights.max() - tensor.values(vector[:, None])[0]
        assert (highest < 0) == is_isolated_maximizer(tensor, vector)


@pytest.mark.parametrize("case", [case for case in SMALL if case.order == 3], ids=case_id)
def test_the_opposite_of_a_component_is_neither(case):
    sample = case.draw()
    for vector in sample.eigenvectors.T:
        assert eigenvector_residual(sample.tensor, -vector) <= ROUNDING * sample.eigenvalues.max()
        assert not is_robust_eigenvector(sample.tensor, -vector, random_state=0)
        assert not is_isolated_maximizer(sample.tensor, -vector)


def test_directions_that_the_tensor_does_not_see_are_neither():
    sample = next(case for case in SMALL if case.name == "rank deficient").draw()
    unseen = np.linalg.qr(np.column_stack([sample.eigenvectors, np.eye(15)]))[0][:, 4]
    assert eigenvector_residual(sample.tensor, unseen) <= ROUNDING
    assert not is_robust_eigenvector(sample.tensor, unseen, random_state=0)
    assert not is_isolated_maximizer(sample.tensor, unseen)


def test_equal_eigenvalues_do_not_make_combinations_eigenvectors():
    """Unlike for matrices: section 4.2.1, the first of the subtle differences."""
    sample = next(case for case in SMALL if case.name == "clean repeated").draw()
    mixture = sample.eigenvectors[:, 0] * 0.6 + sample.eigenvectors[:, 1] * 0.8
    # T(I,u,u) = 2 (0.36 v_0 + 0.64 v_1), T(u,u,u) = 2 (0.216 + 0.512) = 1.456, and their distance follows.
    expected = np.hypot(0.72 - 1.456 * 0.6, 1.28 - 1.456 * 0.8)
    assert eigenvector_residual(sample.tensor, mixture) == pytest.approx(expected)
