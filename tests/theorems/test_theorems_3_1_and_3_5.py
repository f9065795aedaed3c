"""Theorems 3.1 (single topic) and 3.5 (LDA): population moments give the topics back to rounding."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from odeco.decomposition import Decomposer
from odeco.metrics import match_components
from odeco.models.topics.theorem import BasisMoments, search_alpha0, to_simplex, topics_at
from odeco.moments import ProjectedMoments
from odeco.tensors import multilinear, rank_one_sum, symmetrize
from odeco.whitening import whiten

K, D = 5, 12
# Whitening and lifting multiply rounding (1e-16) by the condition of M2, here below 1e4.
ROUNDING = 1e-10


def truth(seed: int = 0, k: int = K, d: int = D) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.full(d, 0.3), size=k), np.sort(rng.dirichlet(np.full(k, 3.0)))[::-1]


def population(topics: np.ndarray, weights: np.ndarray, alpha0: float) -> BasisMoments:
    """E[x1], E[x1 (x) x2], E[x1 (x) x2 (x) x3] of the model itself, from the moments of the Dirichlet distribution."""
    columns, k = topics.T, len(weights)
    if alpha0 == 0:  # h is a unit vector
        second, third = np.diag(weights), rank_one_sum(weights, np.eye(k))
    else:
        alpha = alpha0 * weights
        second = (np.outer(alpha, alpha) + np.diag(alpha)) / (alpha0 * (alpha0 + 1))
        third = np.multiply.outer(np.outer(alpha, alpha), alpha)
        for i in range(k):
            for j in range(k):
                # E[h_i h_i h_j]: one of the rising factorials (a)(a + 1) replaces a^2, for each pair of equal indices
                for where in {(i, i, j), (i, j, i), (j, i, i)}:
                    third[where] = alpha[i] * (alpha[i] + 1) * (alpha[j] if j != i else alpha[i] + 2)
        third = third / (alpha0 * (alpha0 + 1) * (alpha0 + 2))
    pairs = columns @ second @ columns.T
    whitener = whiten(pairs, k)
    w = whitener.matrix
    moments = ProjectedMoments(w.T @ columns @ weights, w.T @ pairs @ w, multilinear(third, *[(w.T @ columns).T] * 3))
    return BasisMoments(whitener, moments, whitener.spectrum)


@pytest.mark.parametrize("alpha0", [0.0, 0.01, 0.1, 0.5, 1.0, 5.0, 50.0])
@pytest.mark.parametrize("method", ["auto", "power", "joint"])
def test_population_moments_give_topics_and_weights_back(alpha0, method):
    topics, weights = truth()
    found = topics_at(population(topics, weights, alpha0), alpha0, np.random.default_rng(0), Decomposer(method))
    matching = match_components(found.topics.T, topics.T)
    assert matching.largest <= ROUNDING * max(alpha0, 1) ** 2
    assert np.abs(found.weights[matching.permutation] - weights).max() <= ROUNDING * max(alpha0, 1) ** 2
    assert np.array_equal(matching.permutation, np.arange(K))  # largest weight first, topics with their own weights
    assert found.raw_total == pytest.approx(1.0, rel=1e-8)
    assert found.clipped_mass.max() <= ROUNDING * max(alpha0, 1) ** 2


def test_a_wrong_alpha0_shows_in_the_residual_and_in_the_sum_of_the_weights():
    topics, weights = truth()
    basis = population(topics, weights, 0.5)
    right = topics_at(basis, 0.5, np.random.default_rng(0))
    for wrong in (0.1, 2.0):
        found = topics_at(basis, wrong, np.random.default_rng(0))
        assert found.decomposition.residual > 100 * max(right.decomposition.residual, 1e-6)
        assert abs(found.raw_total - 1) > 0.01


@pytest.mark.parametrize("alpha0", [0.1, 0.5, 2.0, 5.0])
@pytest.mark.parametrize(("k", "d"), [(K, D), (40, 90)])  # large ones are decomposed in single precision on the way
def test_the_search_finds_alpha0(alpha0, k, d):
    topics, weights = truth(1, k, d)
    search = search_alpha0(population(topics, weights, alpha0))
    assert search.identified
    # Parabolas; in single precision the smallest residual is lost in rounding.
    assert abs(np.log(search.alpha0 / alpha0)) <= (0.03 if k == K else 0.1)
    assert np.all(np.diff(search.curve[:, 0]) > 0)
    lowest = search.curve[np.argmin(search.curve[:, 1]), 0]
    assert abs(np.log(search.alpha0 / lowest)) <= 0.13  # the last points are an eighth apart


def test_the_search_ends_at_its_bounds():
    """The smallest alpha0 of the grid for single topics; and where M2 turns indefinite, it goes down."""
    assert search_alpha0(population(*truth(1), 0.0)).alpha0 == pytest.approx(0.01, rel=0.5)
    assert 10 < search_alpha0(population(*truth(1), 29.0)).alpha0 <= 30 * (1 + 1e-12)


@pytest.mark.parametrize(("k", "d"), [(K, D), (40, 90)])
def test_rounding_of_the_moments_hardly_moves_alpha0(k, d):
    """Sums in another order differ by 1e-7 in single precision: alpha0 may not jump from one flat point to another."""
    rng = np.random.default_rng(0)
    basis = population(*truth(1, k, d), 0.5)
    noisy = [multiplied(basis, 1 + 1e-3 * rng.standard_normal((k, k, k)))]
    noisy += [multiplied(noisy[0], 1 + 1e-7 * rng.standard_normal((k, k, k))) for _ in range(5)]
    found = [search_alpha0(some).alpha0 for some in noisy]
    assert np.ptp(found) <= 1e-3 * found[0]


def multiplied(basis: BasisMoments, factors: np.ndarray) -> BasisMoments:
    """The same with its triples disturbed."""
    return replace(basis, moments=replace(basis.moments, triples=symmetrize(basis.moments.triples * factors)))


def test_to_simplex_turns_clips_and_measures():
    rows, clipped = to_simplex(np.array([[0.5, 0.6, -0.1], [-0.9, -0.1, 0.0], [0.0, 0.0, 0.0]]))
    assert np.allclose(rows, [[5 / 11, 6 / 11, 0], [0.9, 0.1, 0], [1 / 3, 1 / 3, 1 / 3]])
    assert np.allclose(clipped, [1 / 11, 0, 0])
