"""The affine reduction: weights and means from moments about the mean, to rounding; what it says of bad input."""

from __future__ import annotations

import numpy as np
import pytest

import odeco
from odeco.decomposition import METHODS
from odeco.exceptions import MomentError
from odeco.reduction import decompose_affine, recover_affine, reduce_affine

WEIGHTS = np.array([0.4, 0.3, 0.2, 0.1])
K = WEIGHTS.size
# Each method stops at a change of 1e-6 at most; the condition of the covariances is below 1e3.
STOPPING = 1e-6


def means_of(d, seed=0):
    return 2 * np.random.default_rng(seed).standard_normal((K, d))


def about_the_mean(means):
    """Mean, covariance and third central moment of the means, by loops over the components."""
    mean = WEIGHTS @ means
    offsets = means - mean
    covariance = sum(w * np.outer(a, a) for w, a in zip(WEIGHTS, offsets, strict=True))
    third = sum(w * np.multiply.outer(np.outer(a, a), a) for w, a in zip(WEIGHTS, offsets, strict=True))
    return mean, covariance, third


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("d", [K - 1, K, 7])
def test_weights_and_means_come_back(d, method):
    means = means_of(d)
    found = decompose_affine(*about_the_mean(means), K, method=method, random_state=0)
    order = np.argsort(-found.weights)
    np.testing.assert_allclose(found.weights[order], WEIGHTS, atol=STOPPING)
    np.testing.assert_allclose(found.vectors[order], means, atol=10 * STOPPING)
    assert np.abs(found.vectors[order[::-1]] - means).max() > 0.1  # shuffled components are seen
    assert found.whitener.n_components == K - 1
    assert found.decomposition.rank == K


def test_means_need_not_be_linearly_independent():
    means = means_of(K - 1, seed=1)
    means[0] = 0.0
    moments = about_the_mean(means)
    found = decompose_affine(*moments, K, random_state=0)
    np.testing.assert_allclose(found.vectors[np.argsort(-found.weights)], means, atol=10 * STOPPING)
    raw = np.einsum("i,ia,ib->ab", WEIGHTS, means, means)
    with pytest.raises(ValueError, match="n_components=4 is larger than the number of features 3"):
        odeco.decompose_moments(raw, moments[2], K)


def test_the_steps_are_the_whole():
    mean, covariance, third = about_the_mean(means_of(5))
    reduced = reduce_affine(covariance, third, K)
    eigen = odeco.decompose(reduced.tensor, K, random_state=0)
    parts = recover_affine(reduced.whitener, eigen.eigenvectors, mean)
    whole = decompose_affine(mean, covariance, third, K, random_state=0)
    np.testing.assert_array_equal(parts.weights, whole.weights)
    np.testing.assert_array_equal(parts.vectors, whole.vectors)


def test_the_sign_of_an_eigenvector_says_nothing():
    mean, covariance, third = about_the_mean(means_of(5))
    reduced = reduce_affine(covariance, third, K)
    vectors = odeco.decompose(reduced.tensor, K, random_state=0).eigenvectors
    one, other = (recover_affine(reduced.whitener, signs * vectors, mean) for signs in ([1, 1, 1, 1], [1, -1, -1, 1]))
    np.testing.assert_array_equal(one.vectors, other.vectors)


def test_bad_arguments_are_named():
    mean, covariance, third = about_the_mean(means_of(5))
    with pytest.raises(ValueError, match="third must be of order 3, got shape"):
        reduce_affine(covariance, covariance, K)
    with pytest.raises(ValueError, match=r"third and covariance .* got shapes \(5, 5, 5\) and \(4, 4\)"):
        reduce_affine(covariance[:4, :4], third, K)
    with pytest.raises(ValueError, match="third must be symmetric"):
        reduce_affine(covariance, third + np.arange(5.0), K)
    with pytest.raises(ValueError, match="third must be finite, got 1 NaN"):
        reduce_affine(covariance, np.where(np.arange(125).reshape(5, 5, 5) == 0, np.nan, third), K)
    for count in (1, True, 2.0):
        with pytest.raises(ValueError, match="n_components must be an integer of at least 2"):
            reduce_affine(covariance, third, count)
    with pytest.raises(ValueError, match="Lower n_components to 6 or less"):
        reduce_affine(covariance, third, 7)
    with pytest.raises(ValueError, match=r"mean must be finite of shape \(5,\), got shape \(2,\)"):
        decompose_affine(mean[:2], covariance, third, K, random_state=0)
    with pytest.raises(MomentError, match="5 components have means that span 4 dimensions.*M2 has rank 3"):
        decompose_affine(mean, covariance, third, K + 1)
    reduced = reduce_affine(covariance, third, K)
    with pytest.raises(ValueError, match=r"eigenvectors must be finite of shape \(4, 3\), got shape \(3, 3\)"):
        recover_affine(reduced.whitener, np.eye(3), mean)
    with pytest.raises(MomentError, match="component 0 of the moments has no weight"):
        recover_affine(reduced.whitener, np.eye(K), mean)
