"""Normal densities of every covariance type: formulas against scipy, M steps against averages, floors, draws."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from odeco.families.gaussian import COVARIANCES, floored, natural, scatter_about, standardizing

K, D = 3, 4
FORMS = {"spherical": (K,), "tied_spherical": (), "diag": (K, D), "tied": (D, D), "full": (K, D, D)}


def covariances(kind: str, rng: np.random.Generator) -> np.ndarray:
    factors = rng.standard_normal((K, D, D))
    full = factors @ factors.transpose(0, 2, 1) + 0.5 * np.eye(D)
    variances = rng.uniform(0.5, 2.0, (K, D))
    return np.asarray(
        {
            "spherical": variances[:, 0],
            "tied_spherical": variances[0, 0],
            "diag": variances,
            "tied": full[0],
            "full": full,
        }[kind]
    )


def as_matrices(kind: str, given: np.ndarray) -> np.ndarray:
    """(k, d, d), whatever the type."""
    if COVARIANCES[kind].order == 2:
        return np.broadcast_to(given, (K, D, D))
    return np.broadcast_to(given, (K,) if given.ndim == 0 else given.shape).reshape(K, -1, 1) * np.eye(D)


def test_coefficients_are_those_of_scipys_densities():
    rng = np.random.default_rng(0)
    means, variances, y = rng.standard_normal((2, D)), rng.uniform(0.1, 3.0, (2, D)), rng.standard_normal((2, D))
    linear, square, constant = natural(means, variances)
    expected = stats.norm(means, np.sqrt(variances)).logpdf(y)
    np.testing.assert_allclose(linear * y + square * y * y + constant, expected, rtol=1e-12)


@pytest.mark.parametrize("kind", ["tied", "full"])
def test_standard_coordinates_give_scipys_densities(kind):
    rng = np.random.default_rng(1)
    means, given, y = rng.standard_normal((K, D)), covariances(kind, rng), rng.standard_normal(D)
    turns, shifts, constants = standardizing(means, given)
    found = np.broadcast_to(constants, K) - 0.5 * ((y @ turns + shifts) ** 2).sum(axis=1)
    pairs = zip(means, as_matrices(kind, given), strict=True)
    np.testing.assert_allclose(found, [stats.multivariate_normal(m, c).logpdf(y) for m, c in pairs], rtol=1e-12)


@pytest.mark.parametrize("kind", COVARIANCES)
@pytest.mark.parametrize("added", [0.0, 2.0])
def test_the_m_step_is_an_average_of_squares_about_the_means(kind, added):
    """As matrices: shared ones are the average over components, with the prior counted once."""
    rng = np.random.default_rng(2)
    y, shares = rng.standard_normal((60, D)) * [1.0, 2.0, 0.5, 1.0], rng.dirichlet(np.ones(K), 60)
    totals = shares.sum(axis=0)
    means, second = shares.T @ y / totals[:, None], np.einsum("nk,na,nb->kab", shares, y, y)
    prior = added * np.arange(1.0, D + 1)
    matrices = np.array([((y - m).T * s) @ (y - m) for m, s in zip(means, shares.T, strict=True)])
    expected, mass = matrices, totals[:, None, None]
    if COVARIANCES[kind].shared:
        expected, mass = expected.sum(axis=0, keepdims=True), mass.sum()
    expected = np.broadcast_to((expected + np.diag(prior)) / mass, (K, D, D))
    if COVARIANCES[kind].order == 1:
        expected, second = expected * np.eye(D), np.diagonal(second, axis1=1, axis2=2)
    elif COVARIANCES[kind].order == 0:
        expected = np.trace(expected, axis1=1, axis2=2)[:, None, None] * np.eye(D) / D
        second = np.trace(second, axis1=1, axis2=2)
        totals = D * totals
    weights = totals / D if second.ndim == 1 else totals
    scatter = scatter_about(means, weights, second)
    found = COVARIANCES[kind].estimate(scatter, totals, np.nan, np.full(D, 1e-9), added=prior)
    assert np.shape(found) == FORMS[kind]
    np.testing.assert_allclose(as_matrices(kind, found), expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("kind", COVARIANCES)
def test_determinants_and_least_variances_are_those_of_the_matrices(kind):
    given, units = covariances(kind, np.random.default_rng(3)), np.array([1.0, 2.0, 0.5, 3.0])
    matrices = as_matrices(kind, given)
    scaled = matrices / np.sqrt(units[:, None] * units)
    least, logs = COVARIANCES[kind].least(given, units), COVARIANCES[kind].log_determinants(given, D)
    np.testing.assert_allclose(np.broadcast_to(least, K), np.linalg.eigvalsh(scaled)[:, 0], rtol=1e-12)
    np.testing.assert_allclose(np.broadcast_to(logs, K), np.linalg.slogdet(matrices)[1], rtol=1e-12)
    np.testing.assert_array_equal(
        as_matrices(kind, COVARIANCES[kind].units(K, D)), np.broadcast_to(np.eye(D), (K, D, D))
    )


@pytest.mark.parametrize("kind", COVARIANCES)
def test_drawn_rows_have_the_moments(kind):
    rng = np.random.default_rng(9)
    means, given = rng.standard_normal((K, D)), covariances(kind, rng)
    x = COVARIANCES[kind].draw(means, given, np.full(40_000, 1), rng)
    # Standard errors: 1 / sqrt(n) = 0.005 in units of the deviations (at most 4 here); four of them.
    np.testing.assert_allclose(x.mean(axis=0), means[1], atol=0.08)
    np.testing.assert_allclose(np.cov(x.T), as_matrices(kind, given)[1], atol=0.6)


def test_components_without_weight_keep_their_covariances():
    before = covariances("full", np.random.default_rng(4))
    found = COVARIANCES["full"].estimate(np.ones((K, D, D)), np.zeros(K), before, np.full(D, 1e-9))
    np.testing.assert_allclose(found, before, rtol=1e-14)


def test_the_floor_is_the_constrained_maximum() -> None:
    rng = np.random.default_rng(8)
    scatter = np.diag([4.0, 1e-9, 1.0])
    floor = np.array([0.1, 0.2, 0.3])

    def value(c: np.ndarray) -> float:
        return -float(np.linalg.slogdet(c)[1] + np.trace(np.linalg.solve(c, scatter)))

    best = floored(scatter, floor)
    assert np.linalg.eigvalsh(best - np.diag(floor)).min() > -1e-12
    for _ in range(100):
        other = best + 0.05 * (lambda a: a + a.T)(rng.standard_normal((3, 3)))
        if np.linalg.eigvalsh(other - np.diag(floor)).min() >= 0:
            assert value(other) <= value(best) + 1e-12


def test_floored_covariances_are_definite_in_spite_of_rounding():
    direction = np.array([1.0, 1.0, 1.0])[:, None]
    found = floored(1e20 * direction @ direction.T, np.ones(3))
    np.linalg.cholesky(found)
    np.testing.assert_allclose(found, 1e20, rtol=1e-12)
