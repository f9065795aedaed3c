"""Lemma 5.1: the power map converges to v_1 at a quadratic rate, with the lemma's own constant at every step."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from odeco.tensors import ExplicitTensor
from odeco.theory import quadratic_convergence_bound
from tests.cases import CLEAN, case_id

ORDER_3 = [case for case in CLEAN if case.order == 3]
SPREAD = [case for case in ORDER_3 if len(set(case.eigenvalues)) > 1]
# A start that overlaps its winner by c keeps rounding of 1e-16 / c^2 after one step; the least c here is 1e-2. Squared.
ROUNDING = 1e-24
STEPS = 12
STARTS = 20


def paths(sample, seed):
    """Random starts (n, m) and their images after 0, 1, ..., STEPS normalised power steps."""
    tensor = ExplicitTensor(sample.tensor)
    theta = np.random.default_rng(seed).standard_normal((tensor.dimension, STARTS))
    theta /= np.linalg.norm(theta, axis=0)
    images = [theta]
    for _ in range(STEPS):
        theta = tensor.power_map(theta)
        theta = theta / np.linalg.norm(theta, axis=0)
        images.append(theta)
    return images


def excess(sample, eigenvalues, seed=0):
    """The largest ||v_1 - theta_t||^2 - bound over starts and steps, where the bound is told `eigenvalues`."""
    images = paths(sample, seed)
    overlaps = sample.eigenvectors.T @ images[0]
    worst = -np.inf
    for j in range(STARTS):
        first = np.argmax(np.abs(eigenvalues * overlaps[:, j]))
        for t in range(1, STEPS + 1):
            error = np.sum((sample.eigenvectors[:, first] - images[t][:, j]) ** 2)
            worst = max(worst, error - quadratic_convergence_bound(eigenvalues, overlaps[:, j], t))
    return worst


@pytest.mark.parametrize("case", ORDER_3, ids=case_id)
def test_the_bound_holds_at_every_step(case):
    sample = case.draw()
    assert excess(sample, sample.eigenvalues) <= ROUNDING


@pytest.mark.parametrize("case", SPREAD, ids=case_id)
def test_the_bound_fails_when_eigenvalues_are_shuffled_against_eigenvectors(case):
    sample = case.draw()
    assert excess(sample, np.roll(sample.eigenvalues, 1)) > 1e-3


@pytest.mark.parametrize("case", ORDER_3, ids=case_id)
def test_after_t_steps_the_iterate_is_the_closed_form_of_the_proof(case):
    """theta_t is proportional to sum_i lambda_i^(2^t - 1) c_i^(2^t) v_i, c_i = v_i' theta_0."""
    sample = case.draw()
    images = paths(sample, 1)
    overlaps = sample.eigenvectors.T @ images[0]
    for t in range(1, 6):
        logs = (2**t - 1) * np.log(sample.eigenvalues)[:, None] + 2**t * np.log(np.abs(overlaps))
        expected = sample.eigenvectors @ np.exp(logs - logs.max(axis=0))
        expected /= np.linalg.norm(expected, axis=0)
        # Rounding 1e-16 of a start grows by a factor 2 each step; 70 terms: 2^5 * 70 * 1e-16 < 1e-12.
        assert np.abs(images[t] - expected).max() <= 1e-12


def test_the_rate_is_quadratic():
    """The digits double: the strongest rival over the winner, lambda_2 c_2 / lambda_1 c_1, squares at every step."""
    sample = ORDER_3[0].draw()
    images = paths(sample, 2)
    for before, after in pairwise(images[:5]):
        ratios = []
        for theta in (before, after):
            strength = np.sort(np.abs(sample.eigenvalues[:, None] * (sample.eigenvectors.T @ theta)), axis=0)
            ratios.append(strength[-2] / strength[-1])
        large = ratios[1] > 1e-6  # below that the rival has lost its digits to rounding: 1e-16 / 1e-6
        assert large.any()
        assert np.allclose(ratios[1][large], ratios[0][large] ** 2, rtol=1e-8)
