"""Theorems 3.2 and 3.3: spheres from population moments, to rounding; Proposition 3.3: rotated views have full rank."""

from __future__ import annotations

import numpy as np
import pytest

from odeco.exceptions import MomentError
from odeco.models.gaussian_mixture.moments import SphericalMoments, spherical_estimate
from odeco.reduction import decompose_moments

D, K = 9, 4
WEIGHTS = np.array([0.4, 0.3, 0.2, 0.1])


def mixture(tied, seed=0, d=D):
    rng = np.random.default_rng(seed)
    variances = np.full(K, 0.8) if tied else rng.uniform(0.3, 2.0, K)
    return 2 * rng.standard_normal((K, d)), variances


def raw_moments(means, variances):
    """E[x], E[x x], E[x x x] of the mixture, from the moments of a Gaussian."""
    d = means.shape[1]
    identity = np.eye(d)
    first = WEIGHTS @ means
    second = np.einsum("k,ki,kj->ij", WEIGHTS, means, means) + (WEIGHTS @ variances) * identity
    noise = np.einsum("k,ki,jl->ijl", WEIGHTS * variances, means, identity)
    third = np.einsum("k,ki,kj,kl->ijl", WEIGHTS, means, means, means)
    return first, second, third + noise + noise.transpose(1, 0, 2) + noise.transpose(1, 2, 0)


@pytest.mark.parametrize("tied", [True, False])
def test_the_theorem_as_it_stands(tied):
    means, variances = mixture(tied)
    first, second, third = raw_moments(means, variances)
    values, vectors = np.linalg.eigh(second - np.outer(first, first))
    assert values[0] == pytest.approx(WEIGHTS @ variances, abs=1e-12)
    v = vectors[:, 0]
    # M1 = E[x (v'(x - E x))^2], from the same moments.
    centred = np.einsum("ijl,j,l->i", third, v, v) - 2 * (second @ v) * (first @ v) + first * (first @ v) ** 2
    assert np.allclose(centred, (WEIGHTS * variances) @ means, atol=1e-12)
    noise = np.multiply.outer(centred, np.eye(D))
    found = decompose_moments(
        second - values[0] * np.eye(D),
        third - noise - noise.transpose(1, 0, 2) - noise.transpose(1, 2, 0),
        K,
        random_state=0,
    )
    order = np.argsort(-found.weights)
    np.testing.assert_allclose(found.weights[order], WEIGHTS, atol=1e-9)  # the decomposition stops at 1e-10
    np.testing.assert_allclose(found.vectors[order], means, atol=1e-8)


def population(means, variances):
    """The moments about the mean on principal directions, and these directions."""
    d = means.shape[1]
    centre = WEIGHTS @ means
    offsets = means - centre
    covariance = np.einsum("k,ki,kj->ij", WEIGHTS, offsets, offsets) + (WEIGHTS @ variances) * np.eye(d)
    values, vectors = np.linalg.eigh(covariance)
    directions = vectors[:, ::-1][:, : K - 1]
    a = offsets @ directions
    noise = np.multiply.outer((WEIGHTS * variances) @ a, np.eye(K - 1))
    third = np.einsum("k,ki,kj,kl->ijl", WEIGHTS, a, a, a)
    third += noise + noise.transpose(1, 0, 2) + noise.transpose(1, 2, 0)
    # E[z ||y||^2 | i] = a_i (||offset_i||^2 + (d + 2) sigma_i^2)
    lengths = (offsets**2).sum(axis=1) + (d + 2) * variances
    moments = SphericalMoments(values[::-1], third, (WEIGHTS * lengths) @ a, float(values.sum()), d, 1e12)
    return moments, centre, directions


@pytest.mark.parametrize("d", [K, D])
@pytest.mark.parametrize("tied", [True, False])
def test_the_affine_form_from_population_moments(tied, d):
    means, variances = mixture(tied, d=d)
    moments, centre, directions = population(means, variances)
    found = spherical_estimate(moments, tied, np.random.default_rng(0))
    order = np.argsort(-found.weights)
    np.testing.assert_allclose(found.weights[order], WEIGHTS, atol=1e-9)
    np.testing.assert_allclose(centre + found.means[order] @ directions.T, means, atol=1e-8)
    np.testing.assert_allclose(found.variances[order], variances, atol=1e-8)
    assert not found.weak.any()
    assert found.clipped == 0


def test_the_affine_form_needs_no_linear_independence():
    """Means that span K - 1 dimensions about their mean but include the origin: M2 of the theorem is singular."""
    means, variances = mixture(False)
    means[0] = 0.0
    moments, centre, directions = population(means, variances)
    found = spherical_estimate(moments, False, np.random.default_rng(0))
    order = np.argsort(-found.weights)
    np.testing.assert_allclose(centre + found.means[order] @ directions.T, means, atol=1e-8)


def test_collinear_means_are_an_error():
    means, variances = mixture(False)
    moments, _, _ = population(np.outer(np.arange(K), means[0]), variances)
    with pytest.raises(MomentError, match="span 3 dimensions"):
        spherical_estimate(moments, False, np.random.default_rng(0))


def test_proposition_3_3_rotated_views_have_full_rank():
    rng = np.random.default_rng(0)
    d, k = 15, 5
    means = np.eye(d)[:k]  # as coherent as can be: without rotation two views would see nothing
    lowest = [
        np.linalg.svd(part @ means.T, compute_uv=False)[-1]
        for _ in range(200)
        for part in np.array_split(np.linalg.qr(rng.standard_normal((d, d)))[0], 3)
    ]
    assert min(lowest) > 1e-6  # almost surely positive; 600 draws stayed above 1e-4
