"""Proposition 3.4: transitions and emissions of a hidden Markov model from its population moments, to rounding."""

from __future__ import annotations

import numpy as np
import pytest

from odeco.metrics import match_components
from odeco.models.hmm.base import stationary_distribution
from odeco.models.hmm.symbol_chain import chain_from_core
from odeco.simulate import random_chain


def population(k, d, seed):
    """w, rows of transitions, emissions (k, d), the basis, E[y1 y2'] and E[y1 (x) y2 (x) y3] on it."""
    rng = np.random.default_rng(seed)
    transmat, emissions = random_chain(k, d, sparsity=0.5, random_state=rng)
    w = stationary_distribution(transmat)
    joint = w[:, None] * transmat
    pairs = emissions.T @ joint @ emissions
    roots = np.sqrt(w @ emissions)
    scaled = pairs / np.outer(roots, roots)
    left = np.linalg.svd(np.hstack([scaled, scaled.T]) - np.outer(roots, np.tile(roots, 2)))[0]
    basis = np.column_stack([roots, left[:, : k - 1]]) / roots[:, None]
    means = basis.T @ emissions.T  # E[y | h]
    past, future = means @ joint / w, means @ transmat.T  # E[y1 | h2], E[y3 | h2]
    core = np.einsum("h,ah,bh,ch->abc", w, past, means, future)
    return w, transmat, emissions, basis, basis.T @ pairs @ basis, core


@pytest.mark.parametrize(("k", "d", "seed"), [(2, 2, 0), (3, 5, 1), (5, 12, 2), (10, 40, 3)])
def test_the_views_are_those_of_the_proposition(k, d, seed):
    # E[x1 x2'] = O diag(pi) T' O' and the three conditional means, against sums over all pairs and triples of states.
    w, transmat, emissions, basis, second, core = population(k, d, seed)
    means = basis.T @ emissions.T
    expected = np.zeros((k, k, k))
    for i in range(k):
        for j in range(k):
            for m in range(k):
                weight = w[i] * transmat[i, j] * transmat[j, m]
                expected += weight * np.einsum("a,b,c->abc", means[:, i], means[:, j], means[:, m])
    np.testing.assert_allclose(core, expected, atol=1e-12)
    np.testing.assert_allclose(second, core[:, :, 0], atol=1e-12)  # the first direction of the basis is 1


@pytest.mark.parametrize(("k", "d", "seed"), [(2, 2, 0), (3, 5, 1), (5, 12, 2), (10, 40, 3)])
def test_the_model_comes_back_from_population_moments(k, d, seed):
    w, transmat, emissions, basis, second, core = population(k, d, seed)
    chain = chain_from_core(second, core, ridge=0.0, rng=np.random.default_rng(0), floor=0.0)
    matching = match_components(chain.means, basis.T @ emissions.T)
    order = matching.permutation
    # Rounding times the condition of E[y1 y2'] (twice inverted) and of the whitened tensor: measured below 1e-9.
    tolerance = 1e-7
    assert matching.largest < tolerance
    np.testing.assert_allclose(chain.joint[np.ix_(order, order)], w[:, None] * transmat, atol=tolerance)
    assert np.abs(chain.joint - w[:, None] * transmat).max() > 1e-3 or k == 1 or np.array_equal(order, np.arange(k))
