"""Propositions 3.2 (random partitions of incoherent means) and 3.3 (random rotations), as probabilities."""

from __future__ import annotations

from math import log, sqrt

import numpy as np
import pytest
from scipy.linalg import hadamard
from scipy.stats import ortho_group

from odeco.theory import coherence, incoherence_limit, partition_probability


def smallest(matrix: np.ndarray, k: int) -> float:
    """The k-th singular value."""
    values = np.linalg.svd(matrix, compute_uv=False)
    return float(values[k - 1]) if values.size >= k else 0.0


def share_of_good_partitions(means: np.ndarray, epsilon: float, n_trials: int, seed: int) -> float:
    """How often a random partition keeps all three k-th singular values above the bound of Proposition 3.2."""
    rng = np.random.default_rng(seed)
    k, d = means.shape
    bound = sqrt((1 - epsilon) / 3) * smallest(means, k)
    good = 0
    for _ in range(n_trials):
        groups = rng.integers(3, size=d)
        good += all(smallest(means[:, groups == t], k) >= bound for t in range(3))
    return good / n_trials


def test_coherence_between_its_bounds():
    k, d = 4, 64
    assert coherence(hadamard(d)[:k]) == pytest.approx(k / d)  # the paper's example of the least
    assert coherence(np.eye(d)[:k]) == pytest.approx(1.0)  # and of the most
    means = np.random.default_rng(0).standard_normal((k, d))
    assert k / d < coherence(means) < 1
    assert coherence(3.0 * means[::-1]) == pytest.approx(coherence(means))  # a matter of the range alone
    assert coherence(np.vstack([means, means[0]])) == pytest.approx(coherence(means))  # of its rank, not of k


@pytest.mark.parametrize("means", [np.zeros((0, 3)), np.zeros(3), np.array([[np.nan, 1.0]])])
def test_coherence_wants_a_matrix(means):
    with pytest.raises(ValueError, match="means must be a finite matrix"):
        coherence(means)


def test_limit_and_probability_solve_the_same_condition():
    assert incoherence_limit(5, epsilon=0.6, delta=0.1) == pytest.approx(0.36 / 6 / log(150))
    means = np.random.default_rng(1).standard_normal((2, 3000))
    probability = partition_probability(means, epsilon=0.9)
    assert 0.5 < probability < 1
    assert incoherence_limit(2, epsilon=0.9, delta=1 - probability) == pytest.approx(coherence(means))
    assert partition_probability(np.eye(3), epsilon=0.5) == 0.0
    with pytest.raises(ValueError, match="epsilon"):
        incoherence_limit(2, epsilon=1.5, delta=0.1)


@pytest.mark.parametrize("seed", range(3))
def test_proposition_3_2_holds_with_the_probability_it_states(seed):
    epsilon, n_trials = 0.9, 200
    means = np.random.default_rng(seed).standard_normal((3, 1500)) * [[1.0], [5.0], [0.3]]
    promised = partition_probability(means, epsilon=epsilon)
    assert promised > 0.3
    # Four standard deviations of a share of n_trials below what is promised: never seen by chance.
    slack = 4 * sqrt(promised * (1 - promised) / n_trials)
    assert share_of_good_partitions(means, epsilon, n_trials, seed) >= promised - slack


def test_aligned_means_break_the_partition():
    """The paper's counterexample mu_i = e_i: some group always lacks some component."""
    assert share_of_good_partitions(np.eye(4, 40), 0.9, 50, 0) == 0.0
    assert partition_probability(np.eye(4, 40), epsilon=0.9) == 0.0


@pytest.mark.parametrize("seed", range(5))
def test_proposition_3_3_rotated_means_have_full_rank_in_every_third(seed):
    k, d = 4, 12  # the least that the proposition allows: d = 3 k
    rotation = ortho_group.rvs(d, random_state=np.random.default_rng(seed))
    parts = np.split(np.eye(k, d) @ rotation.T, 3, axis=1)  # aligned means, which no partition alone can serve
    # Full rank with probability 1; a 4 x 4 part of a rotation has a singular value below 1e-4 about once in 1e4 draws.
    assert min(smallest(part, k) for part in parts) > 1e-4
