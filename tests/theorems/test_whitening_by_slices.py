"""Sections 3.2.3 and 4.3: a fourth-order tensor whitens itself, whatever the signs of its weights."""

from __future__ import annotations

import numpy as np
import pytest

import odeco
from odeco.decomposition import METHODS
from odeco.exceptions import MomentError
from odeco.metrics import match_components
from odeco.tensors import ExplicitTensor, Mapped, RankOneSum, rank_one_sum
from odeco.whitening import definite_combination, whiten_fourth

KURTOSIS = np.array([6.0, 3.0, -2.0, -1.2])
FOURTH_ORDER = [name for name, taken in METHODS.items() if 4 in taken.orders]


def unit_columns(d, seed, k=KURTOSIS.size):
    columns = np.random.default_rng(seed).standard_normal((d, k))
    return columns / np.linalg.norm(columns, axis=0)


@pytest.mark.parametrize("method", FOURTH_ORDER)
@pytest.mark.parametrize("d", [4, 7])
def test_vectors_that_are_not_orthogonal_come_back_to_rounding(d, method):
    vectors = unit_columns(d, seed=d)
    found = odeco.decompose_fourth(rank_one_sum(KURTOSIS, vectors, 4), 4, method=method, random_state=0)
    matching = match_components(found.vectors.T, vectors, up_to_sign=True)
    assert matching.largest < 1e-8  # condition of the vectors, below 100, times machine epsilon, with a margin
    np.testing.assert_allclose(found.weights[matching.permutation], KURTOSIS, rtol=1e-7)
    shuffled = np.roll(found.weights[matching.permutation], 1)
    assert np.abs(shuffled - KURTOSIS).max() > 1


@pytest.mark.parametrize("seed", range(20))
def test_almost_any_directions_serve(seed):
    """Vectors and directions at random."""
    rng = np.random.default_rng(seed)
    k = 6
    vectors, weights = unit_columns(k, seed, k), rng.choice([-2.0, -1.2, 1.0, 3.0, 6.0], k)
    tensor = ExplicitTensor(rank_one_sum(weights, vectors, 4))
    whitener = whiten_fourth(tensor, k, rng.standard_normal((k, k)))
    white = whitener.whiten(vectors.T)
    white /= np.linalg.norm(white, axis=1)[:, None]
    # Rounding times the condition of the vectors squared.
    np.testing.assert_allclose(white @ white.T, np.eye(k), atol=1e-12 * np.linalg.cond(vectors) ** 2)
    np.testing.assert_allclose(whitener.matrix.T @ whitener.lift, np.eye(k), atol=1e-8)


def test_one_slice_of_mixed_signs_is_indefinite_and_a_combination_is_not():
    tensor = ExplicitTensor(rank_one_sum(KURTOSIS, unit_columns(4, 0), 4))
    slices = tensor.matrices(np.eye(4))
    for matrix in slices:
        values = np.linalg.eigvalsh(matrix)
        assert values[0] < 0 < values[-1]
    assert np.linalg.eigvalsh(definite_combination(slices))[0] > 0


def test_fewer_components_than_asked_for_are_an_error():
    tensor = rank_one_sum(KURTOSIS[:2], unit_columns(4, 1)[:, :2], 4)
    with pytest.raises(MomentError, match="Lower their number"):
        whiten_fourth(tensor, 4, np.eye(4))
    with pytest.raises(MomentError, match="2 matrices of side 2"):
        definite_combination([np.diag([1.0, -1.0]), np.diag([-1.0, 1.0])])


def test_implicit_tensors_are_mapped_without_being_formed():
    vectors, rng = unit_columns(5, 2), np.random.default_rng(0)
    formed, implicit = ExplicitTensor(rank_one_sum(KURTOSIS, vectors, 4)), RankOneSum(KURTOSIS, vectors, 4)
    matrix, columns = rng.standard_normal((5, 3)), rng.standard_normal((3, 2))
    mapped = implicit.through(matrix)
    assert isinstance(mapped, Mapped)
    np.testing.assert_allclose(mapped.power_map(columns), formed.through(matrix).power_map(columns))
    np.testing.assert_allclose(mapped.matrix(columns[:, 0]), formed.through(matrix).matrix(columns[:, 0]))
    whiteners = [whiten_fourth(tensor, 4, vectors).matrix for tensor in (formed, implicit)]
    np.testing.assert_allclose(*whiteners, atol=1e-9)


def test_bad_arguments_are_named():
    tensor = rank_one_sum(KURTOSIS, unit_columns(4, 0), 4)
    with pytest.raises(ValueError, match="M4 must be of order 4, got order 3"):
        odeco.decompose_fourth(np.zeros((2, 2, 2)) + 1, 2)
    with pytest.raises(ValueError, match="tensor must be of order 4"):
        whiten_fourth(np.ones((2, 2, 2)), 2, np.eye(2))
    with pytest.raises(ValueError, match=r"directions must be finite of shape \(4, m\), got shape \(3, 3\)"):
        whiten_fourth(tensor, 4, np.eye(3))
    with pytest.raises(ValueError, match="larger than the number of features 4"):
        odeco.decompose_fourth(tensor, 5)
    with pytest.raises(ValueError, match=r"matrices must have shape \(m, n, n\), got \(2, 2\)"):
        definite_combination(np.eye(2))
