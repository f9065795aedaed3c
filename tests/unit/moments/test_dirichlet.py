"""Theorem 3.5 on population moments, explicit and implicit."""

from __future__ import annotations

import numpy as np
import pytest

from odeco.moments import DirichletTensor, ImplicitTriples, WordTriples, dirichlet_moments
from odeco.sources import as_source
from odeco.tensors import ExplicitTensor

ROUNDING = 1e-14  # all entries are probabilities


def population(alpha, mu):
    """E[x1], E[x1 (x) x2], E[x1 (x) x2 (x) x3] from the moments of the Dirichlet distribution, term by term."""
    alpha0, k = alpha.sum(), len(alpha)
    eye = np.eye(k)
    second = (np.outer(alpha, alpha) + np.diag(alpha)) / (alpha0 * (alpha0 + 1))
    third = np.einsum("a,b,c->abc", alpha, alpha, alpha)
    for pattern in ("ab,b,c->abc", "ac,b,a->abc", "bc,a,b->abc"):
        third = third + np.einsum(pattern, eye, alpha, alpha)
    third = third + 2 * np.einsum("ab,bc,c->abc", eye, eye, alpha)
    third /= alpha0 * (alpha0 + 1) * (alpha0 + 2)
    return mu.T @ alpha / alpha0, mu.T @ second @ mu, np.einsum("abc,ai,bj,cl->ijl", third, mu, mu, mu)


@pytest.mark.parametrize("alpha0", [0.01, 0.5, 2.0, 30.0])
def test_theorem_3_5(alpha0):
    rng = np.random.default_rng(0)
    mu, alpha = rng.dirichlet(np.ones(6), size=3), alpha0 * np.array([0.5, 0.3, 0.2])
    found = dirichlet_moments(*population(alpha, mu), alpha0)
    a = alpha / ((alpha0 + 1) * alpha0)
    np.testing.assert_allclose(found.second, np.einsum("i,ia,ib->ab", a, mu, mu), atol=ROUNDING)
    b = 2 * a / (alpha0 + 2)
    np.testing.assert_allclose(found.third, np.einsum("i,ia,ib,ic->abc", b, mu, mu, mu), atol=ROUNDING)
    wrong = dirichlet_moments(*population(alpha, mu), alpha0 * 1.5)
    assert np.abs(wrong.third - found.third).max() > 1e3 * ROUNDING


def test_alpha0_of_zero_is_the_single_topic_model():
    rng = np.random.default_rng(0)
    raw = rng.random(3), rng.random((3, 3)), rng.random((3, 3, 3))
    found = dirichlet_moments(*raw, 0)
    np.testing.assert_array_equal(found.second, raw[1])
    np.testing.assert_array_equal(found.third, raw[2])


def test_implicit_equals_explicit():
    rng = np.random.default_rng(1)
    X, W, A = rng.poisson(1.0, (40, 7)), rng.standard_normal((7, 4)), rng.standard_normal((4, 3))
    source = as_source(X)
    raw = WordTriples(W).update_all(source).read()
    explicit = np.einsum("abc,ai,bj,cl->ijl", dirichlet_moments(raw.first, raw.pairs, raw.triples, 1.7).third, A, A, A)
    V = rng.standard_normal((3, 5))
    expected = np.einsum("abc,bj,cj->aj", explicit, V, V)
    for triples in (ImplicitTriples(source, W), ExplicitTensor(raw.triples)):
        implicit = DirichletTensor(triples, raw.first, raw.pairs, 1.7, A)
        assert (implicit.order, implicit.dimension) == (3, 3)
        np.testing.assert_allclose(implicit.power_map(V), expected, atol=1e-11 * np.abs(expected).max())


@pytest.mark.parametrize("alpha0", [-0.1, np.inf, np.nan, "1", True])
def test_bad_alpha0(alpha0):
    with pytest.raises(ValueError, match="alpha0 must be a finite number of at least 0"):
        dirichlet_moments(np.ones(2), np.eye(2), np.ones((2, 2, 2)), alpha0)


def test_bad_shapes():
    with pytest.raises(ValueError, match=r"got \(2,\), \(3, 3\) and \(2, 2, 2\)"):
        dirichlet_moments(np.ones(2), np.eye(3), np.ones((2, 2, 2)), 1.0)
