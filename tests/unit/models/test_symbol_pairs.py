"""EM on the pairs of symbols: its step by loops, and how well a fitted `CategoricalHMM` agrees with them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from odeco import CategoricalHMM
from odeco.models.hmm.symbol_chain import fit_pairs
from odeco.simulate import categorical_hmm, random_chain

K, D, N = 3, 8, 50_000


def stationary(transmat):
    values, vectors = np.linalg.eig(transmat.T)
    weights = np.real(vectors[:, np.argmax(values.real)])
    return weights / weights.sum()


@pytest.mark.parametrize("seed", range(3))
def test_pairs_are_fitted_to_sampling_error(seed):
    """Twice the log-likelihood ratio against the table of pairs has an expectation near its degrees of freedom."""
    transmat, emissions = random_chain(K, D, sparsity=0.5, random_state=seed)
    x = categorical_hmm(N, transmat, emissions, random_state=seed + 10).observations.ravel()
    model = CategoricalHMM(K, random_state=0).fit(x)
    table = np.zeros((D, D))
    np.add.at(table, (x[:-1], x[1:]), 1.0)
    joint = stationary(model.transmat_)[:, None] * model.transmat_
    fitted = (N - 1) * model.emissionprob_.T @ joint @ model.emissionprob_
    ratio = 2 * np.sum(table * np.log(np.maximum(table, 1e-300) / fitted), where=table > 0)
    # Cells less parameters: 64 - 1 - (K (D - 1) + K (K - 1)); pairs of a chain overlap, which changes it little.
    freedom = D * D - 1 - (K * (D - 1) + K * (K - 1))
    assert ratio < 2.5 * freedom


@pytest.mark.parametrize("thin", [False, True])
def test_a_step_on_the_pairs_is_that_of_the_loops(thin):
    rng = np.random.default_rng(0)
    pairs = rng.dirichlet(np.full(16, 0.5)).reshape(4, 4)
    emissions, chain = rng.dirichlet(np.ones(4), 2), rng.dirichlet(np.ones(4)).reshape(2, 2)
    symbols, states = np.zeros((2, 4)), np.zeros((2, 2))
    for x, y in np.ndindex(4, 4):
        share = emissions[:, x, None] * chain * emissions[:, y]  # of the two states behind the pair
        share *= pairs[x, y] / share.sum()
        states += share
        symbols[:, x] += share.sum(axis=1)
        symbols[:, y] += share.sum(axis=0)
    found, joint = fit_pairs(sparse.csr_array(pairs) if thin else pairs, emissions, chain, 1)
    np.testing.assert_allclose(found, symbols / symbols.sum(axis=1, keepdims=True), rtol=1e-12)
    np.testing.assert_allclose(joint, states, rtol=1e-12)
