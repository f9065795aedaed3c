"""Proposition 3.4 for features of real observations: population moments give conditional means and transitions."""

from __future__ import annotations

import numpy as np
import pytest

from odeco.models.hmm.feature_chain import recover_chain

Array = np.ndarray


def population(k: int, seed: int) -> tuple[Array, Array, Array, Array]:
    """Conditional means of z (first row 1), the joint distribution of two states, and E[z z'], E[z (x) z (x) z]."""
    rng = np.random.default_rng(seed)
    transmat = 0.4 * np.eye(k) + 0.6 * rng.dirichlet(np.full(k, 0.5), k)
    weights = np.linalg.matrix_power(transmat, 500)[0]
    vectors = np.vstack([np.ones(k), rng.standard_normal((k - 1, k))])
    joint = weights[:, None] * transmat
    third = np.einsum("ij,jl->ijl", joint, transmat)
    pairs = vectors @ joint @ vectors.T
    return vectors, joint, pairs, np.einsum("ijl,ai,bj,cl->abc", third, vectors, vectors, vectors)


def match(found: Array, truth: Array) -> Array:
    distance = np.abs(found[:, :, None] - truth[:, None, :]).sum(axis=0)
    order = distance.argmin(axis=0)
    assert sorted(order) == list(range(len(order)))
    return order


@pytest.mark.parametrize("k", [2, 3, 5, 8])
def test_population_moments_give_the_parameters(k: int) -> None:
    vectors, joint, pairs, triples = population(k, seed=k)
    chain = recover_chain(pairs, triples, np.random.default_rng(0), ridge=0.0, damping=0.0)
    order = match(chain.vectors, vectors)
    # Rounding times the condition of the pairs (up to 1e4 here) squared, by its inverse and by the fit of J.
    np.testing.assert_allclose(chain.vectors[:, order], vectors, atol=1e-7)
    np.testing.assert_allclose(chain.joint[np.ix_(order, order)], joint, atol=1e-5)
    assert chain.residual < 1e-9
    assert chain.clipped < 1e-6
