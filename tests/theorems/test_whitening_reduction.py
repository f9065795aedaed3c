"""Theorem 4.3 and its general case: components come back from M2 and M3 to rounding."""

from __future__ import annotations

import numpy as np
import pytest

from odeco.reduction import decompose_moments, recover
from odeco.whitening import whiten

ROUNDING = 1e-9  # condition of M2 below 1e4 in all cases, times eps, times the cube of the whitening


def moments(a, b, mu):
    """``M2 = sum a_i mu_i mu_i^T``, ``M3 = sum b_i mu_i^(x3)``; rows of mu."""
    return np.einsum("i,ia,ib->ab", a, mu, mu), np.einsum("i,ia,ib,ic->abc", b, mu, mu, mu)


def problem(k=5, d=11, seed=0, kind="simplex"):
    rng = np.random.default_rng(seed)
    a = rng.dirichlet(np.full(k, 3.0))
    if kind == "simplex":
        mu = rng.dirichlet(np.full(d, 0.5), size=k)
    elif kind == "unit":
        mu = rng.standard_normal((k, d)) + 0.5
        mu *= (np.sign(mu.sum(axis=1)) / np.linalg.norm(mu, axis=1))[:, None]
    else:
        mu = rng.standard_normal((k, d))
    return a, mu


def exact_eigenpairs(whitener, a, b, mu):
    """The eigenpairs that the theorem states, with no decomposition in between."""
    return b * a**-1.5, np.sqrt(a) * (whitener.matrix.T @ mu.T)


def matched(found, truth):
    """The rows of found in the order of truth; fails unless the match is a permutation."""
    distance = np.linalg.norm(found[:, None] - truth[None], axis=2)
    order = distance.argmin(axis=0)
    assert len(set(order)) == len(truth)
    return order


@pytest.mark.parametrize("k", [1, 2, 5])
def test_whitened_vectors_are_orthonormal_eigenvectors(k):
    a, mu = problem(k)
    M2, M3 = moments(a, a, mu)
    whitener = whiten(M2, k)
    T = whitener.whiten_tensor(M3)
    values, V = exact_eigenpairs(whitener, a, a, mu)
    np.testing.assert_allclose(V.T @ V, np.eye(k), atol=ROUNDING)
    np.testing.assert_allclose(np.einsum("abc,bi,ci->ai", T, V, V), V * values, rtol=ROUNDING, atol=ROUNDING)
    np.testing.assert_allclose(values, 1 / np.sqrt(a))


@pytest.mark.parametrize("kind", ["simplex", "free"])
@pytest.mark.parametrize("ratio", [1.0, 2 / 2.5, 0.02, -1.3])
def test_recovery_with_proportional_weights(kind, ratio):
    a, mu = problem(kind=kind)
    M2, _ = moments(a, ratio * a, mu)
    whitener = whiten(M2, 5)
    values, V = exact_eigenpairs(whitener, a, ratio * a, mu)
    for sign in (1.0, -1.0):  # (lambda, v) and (-lambda, -v) are the same term
        found = recover(whitener, sign * values, sign * V, ratio=ratio)
        np.testing.assert_allclose(found.weights, a, rtol=ROUNDING)
        np.testing.assert_allclose(found.vectors, mu, atol=ROUNDING)
        np.testing.assert_allclose(found.third_weights, ratio * a, rtol=ROUNDING)


@pytest.mark.parametrize(("kind", "scale"), [("simplex", "unit-sum"), ("unit", "unit-norm")])
def test_recovery_with_unrelated_weights(kind, scale):
    a, mu = problem(kind=kind)
    b = np.array([0.3, -0.2, 1.0, 0.05, 2.0])
    M2, _ = moments(a, b, mu)
    whitener = whiten(M2, 5)
    values, V = exact_eigenpairs(whitener, a, b, mu)
    signs = np.array([1, -1, -1, 1, 1.0])
    found = recover(whitener, signs * values, signs * V, scale=scale)
    np.testing.assert_allclose(found.weights, a, rtol=ROUNDING)
    np.testing.assert_allclose(found.vectors, mu, atol=ROUNDING)
    np.testing.assert_allclose(found.third_weights, b, rtol=ROUNDING)


def test_recovery_under_a_scale():
    a, mu = problem()
    M2, _ = moments(a, a, mu)
    whitener = whiten(M2, 5, scale=mu.mean(axis=0) ** -0.5)
    found = recover(whitener, *exact_eigenpairs(whitener, a, a, mu))
    np.testing.assert_allclose(found.vectors, mu, atol=ROUNDING)


def test_shuffled_eigenpairs_do_not_recover():
    a, mu = problem()
    whitener = whiten(moments(a, a, mu)[0], 5)
    values, V = exact_eigenpairs(whitener, a, a, mu)
    shuffled = recover(whitener, values[[1, 2, 3, 4, 0]], V)
    assert np.abs(shuffled.vectors - mu).max() > 0.01
    assert np.abs(shuffled.weights - a).max() > 0.01


def test_recovery_errors():
    a, mu = problem()
    whitener = whiten(moments(a, a, mu)[0], 5)
    with pytest.raises(ValueError, match="eigenvalue 2 is 0"):
        recover(whitener, [1.0, 1.0, 0.0, 1.0, 1.0], np.eye(5))
    with pytest.raises(ValueError, match=r"\(5, r\), got \(4,\) and \(5, 5\)"):
        recover(whitener, np.ones(4), np.eye(5))
    with pytest.raises(ValueError, match="scale must be"):
        recover(whitener, np.ones(5), np.eye(5), scale="unit")
    with pytest.raises(ValueError, match="ratio"):
        recover(whitener, np.ones(5), np.eye(5), ratio=0.0)
    with pytest.raises(ValueError, match="finite"):
        recover(whitener, np.full(5, np.nan), np.eye(5))
    with pytest.raises(ValueError, match="component 1 lifts to a vector of length 0"):
        recover(whitener, np.ones(2), np.eye(5)[:, :2] * [1, 0], scale="unit-norm")


@pytest.mark.parametrize("k", [1, 2, 5])
@pytest.mark.parametrize("ratio", [1.0, 0.4])
def test_components_come_back_from_explicit_moments(k, ratio):
    pytest.importorskip("odeco.decomposition")
    a, mu = problem(k)
    found = decompose_moments(*moments(a, ratio * a, mu), k, ratio=ratio, random_state=0)
    order = matched(found.vectors, mu)
    np.testing.assert_allclose(found.vectors[order], mu, atol=1e-6)  # decompose stops at a change of 1e-6
    np.testing.assert_allclose(found.weights[order], a, rtol=1e-5)
    assert found.whitener.n_components == len(found.decomposition.eigenvalues) == k


def test_unrelated_weights_come_back_from_explicit_moments():
    pytest.importorskip("odeco.decomposition")
    a, mu = problem()
    b = np.array([0.3, 0.2, 1.0, 0.1, 2.0])
    found = decompose_moments(*moments(a, b, mu), 5, scale="unit-sum", random_state=0)
    order = matched(found.vectors, mu)
    np.testing.assert_allclose(found.vectors[order], mu, atol=1e-6)
    np.testing.assert_allclose(found.weights[order], a, rtol=1e-5)
    np.testing.assert_allclose(found.third_weights[order], b, rtol=1e-5)


def test_third_moment_of_the_wrong_order():
    with pytest.raises(ValueError, match="order 3"):
        decompose_moments(np.eye(3), np.eye(3), 2)
