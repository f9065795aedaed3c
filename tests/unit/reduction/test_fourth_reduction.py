"""Reductions of fourth order: the paper's M4(I, I, u, v), and slices where the weights have both signs."""

from __future__ import annotations

import numpy as np
import pytest

import odeco
from odeco.exceptions import MomentError
from odeco.metrics import match_components
from odeco.reduction import contract_fourth, recover_fourth, reduce_fourth
from odeco.tensors import RankOneSum, rank_one_sum

KURTOSIS = np.array([6.0, 3.0, 1.5])
MIXED = np.array([6.0, -2.0, -1.2])
VECTORS = np.array([[1.0, 0.6, 0.0], [0.2, 0.8, 0.5], [0.0, 0.3, 1.0], [0.4, 0.0, 0.3]])
VECTORS /= np.linalg.norm(VECTORS, axis=0)
STOPPING = 1e-6  # of every method; the condition of the vectors is below 10


def check(vectors, weights, truth):
    matching = match_components(vectors.T, VECTORS, up_to_sign=True)
    assert matching.largest < STOPPING
    np.testing.assert_allclose(weights[matching.permutation], truth, rtol=10 * STOPPING)


def test_contractions_are_the_sums_of_section_3_2_3():
    u, v = np.random.default_rng(0).standard_normal((2, 4))
    M2, M3 = contract_fourth(rank_one_sum(MIXED, VECTORS, 4), u, v)
    along_u, along_v = u @ VECTORS, v @ VECTORS
    np.testing.assert_allclose(M2, np.einsum("i,ai,bi->ab", MIXED * along_u * along_v, VECTORS, VECTORS), atol=1e-12)
    np.testing.assert_allclose(M3, rank_one_sum(MIXED * along_v, VECTORS, 3), atol=1e-12)


def test_one_slice_serves_where_all_weights_are_positive():
    M4, u = rank_one_sum(KURTOSIS, VECTORS, 4), np.ones(4)
    found = odeco.decompose_moments(*contract_fourth(M4, u, u), 3, scale="unit-norm", random_state=0)
    check(found.vectors, found.third_weights / (found.vectors @ u), KURTOSIS)


def test_one_slice_of_mixed_signs_is_refused_and_all_of_m4_is_not():
    M4, u = rank_one_sum(MIXED, VECTORS, 4), np.ones(4)
    with pytest.raises(MomentError, match="M2"):
        odeco.decompose_moments(*contract_fourth(M4, u, u), 3, scale="unit-norm")
    found = odeco.decompose_fourth(M4, 3, random_state=0)
    check(found.vectors, found.weights, MIXED)


@pytest.mark.parametrize("method", ["auto", "power", "jennrich", "joint"])
@pytest.mark.parametrize("weights", [KURTOSIS, MIXED, -KURTOSIS], ids=["positive", "mixed", "negative"])
def test_steps_with_any_method(weights, method):
    rng = np.random.default_rng(1)
    reduced = reduce_fourth(rank_one_sum(weights, VECTORS, 4), 3, rng.standard_normal((4, 5)))
    eigen = odeco.decompose(reduced.tensor, 3, method=method, random_state=0)
    np.testing.assert_array_equal(np.sort(np.sign(eigen.eigenvalues)), np.sort(np.sign(weights)))
    parts = recover_fourth(reduced.whitener, eigen.eigenvalues, eigen.eigenvectors)
    check(parts.vectors, parts.weights, weights)


def test_an_implicit_tensor_is_not_formed():
    reduced = reduce_fourth(RankOneSum(MIXED, VECTORS, 4), 3, VECTORS)
    eigen = odeco.decompose(reduced.tensor, 3, random_state=0)
    parts = recover_fourth(reduced.whitener, eigen.eigenvalues, eigen.eigenvectors)
    check(parts.vectors, parts.weights, MIXED)


def test_bad_arguments_are_named():
    M4 = rank_one_sum(MIXED, VECTORS, 4)
    with pytest.raises(ValueError, match="M4 must be of order 4, got order 3"):
        contract_fourth(np.ones((2, 2, 2)), np.ones(2), np.ones(2))
    with pytest.raises(ValueError, match="M4 must be symmetric"):
        reduce_fourth(M4 + np.arange(4.0), 3, VECTORS)
    with pytest.raises(ValueError, match=r"v must be finite of shape \(4,\), got shape \(4,\) with 1 NaN"):
        contract_fourth(M4, np.ones(4), [1.0, np.nan, 0.0, 0.0])
    with pytest.raises(ValueError, match=r"u must be finite of shape \(4,\), got shape \(3,\)"):
        contract_fourth(M4, np.ones(3), np.ones(4))
    with pytest.raises(ValueError, match="M4 must be an explicit array"):
        contract_fourth(RankOneSum(MIXED, VECTORS, 4), np.ones(4), np.ones(4))
    with pytest.raises(ValueError, match="n_components=5 is larger"):
        reduce_fourth(M4, 5, VECTORS)
    with pytest.raises(MomentError, match="Lower their number"):
        reduce_fourth(M4, 4, np.eye(4))
    whitener = odeco.whiten(np.eye(3), 3)
    with pytest.raises(ValueError, match=r"\(3, r\), got \(2,\) and \(3, 3\)"):
        recover_fourth(whitener, np.ones(2), np.eye(3))
    with pytest.raises(ValueError, match="component 1 lifts to a vector of length 0"):
        recover_fourth(whitener, np.ones(3), np.diag([1.0, 0.0, 1.0]))
