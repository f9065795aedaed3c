"""Gaussian and Poisson emissions against scipy, one observation at a time."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from odeco.refinement.emissions_gaussian import FAMILIES, GaussianEmission
from odeco.refinement.emissions_poisson import PoissonEmission

K, D = 3, 4


def make(kind: str, rng: np.random.Generator, *, offset: float = 0.0, prior: float = 0.0) -> GaussianEmission:
    factors = rng.standard_normal((K, D, D))
    full = factors @ factors.transpose(0, 2, 1) + 0.5 * np.eye(D)
    shapes = {
        "spherical": rng.uniform(0.5, 2, K),
        "diag": rng.uniform(0.5, 2, (K, D)),
        "full": full,
        "tied": full[0],
    }
    means = rng.standard_normal((K, D)) + offset
    return FAMILIES[kind](means, shapes[kind], means.mean(axis=0), np.ones(D), 1e-6, prior)


def matrices(emission: GaussianEmission, kind: str) -> np.ndarray:
    """Covariances (k, d, d), whatever the family."""
    covars = emission.covars
    if kind == "spherical":
        return covars[:, None, None] * np.eye(D)
    if kind == "diag":
        return covars[:, :, None] * np.eye(D)
    return covars if kind == "full" else np.broadcast_to(covars, (K, D, D))


def log_density(x: np.ndarray, mean: np.ndarray, covariance: np.ndarray) -> float:
    """The marginal of what is there; 0 where nothing is."""
    seen = ~np.isnan(x)
    if not seen.any():
        return 0.0
    return float(stats.multivariate_normal(mean[seen], covariance[np.ix_(seen, seen)]).logpdf(x[seen]))


@pytest.mark.parametrize("kind", FAMILIES)
@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("offset", [0.0, 1e6])  # an offset may cost no digits beyond those of the data themselves
def test_the_likelihood_is_that_of_scipy(kind: str, missing: bool, offset: float) -> None:
    rng = np.random.default_rng(0)
    emission = make(kind, rng, offset=offset)
    x = emission.draw(rng.integers(K, size=30), rng)
    if missing:
        x[rng.random(x.shape) < 0.3] = np.nan
        x[5] = np.nan
    rows, scales = emission.likelihood(x)
    found = np.log(rows) + scales[:, None]
    expected = [
        [log_density(row, m, c) for m, c in zip(emission.means, matrices(emission, kind), strict=True)] for row in x
    ]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10 + 1e-14 * offset * 100)
    assert rows.max(axis=1) == pytest.approx(1.0)


@pytest.mark.parametrize("kind", FAMILIES)
@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("prior", [0.0, 5.0])
def test_the_m_step_raises_the_expected_likelihood_of_what_was_seen(kind: str, missing: bool, prior: float) -> None:
    rng = np.random.default_rng(1)
    emission = make(kind, rng, prior=prior)
    x = emission.draw(rng.integers(K, size=200), rng)
    if missing:
        x[rng.random(x.shape) < 0.2] = np.nan
    weights = rng.dirichlet(np.ones(K), len(x))

    def value(candidate: GaussianEmission) -> float:
        rows, scales = candidate.likelihood(x)
        return float((weights * (np.log(rows) + scales[:, None])).sum()) + candidate.log_prior()

    best = emission
    values = [value(best)]
    for _ in range(1 if not missing else 60):  # entries that are missing make it an EM of its own
        best = best.maximize(best.statistics(x, weights))
        values.append(value(best))
    assert np.all(np.diff(values) >= -1e-9 * abs(values[-1]))
    # At the maximum every direction of the packed parameters goes down (the gradient is 0: second order falls only).
    for direction in rng.standard_normal((10, best.pack().size)):
        for sign in (-1e-2, 1e-2):
            assert value(best.unpack(best.pack() + sign * direction)) < value(best) + 1e-6


@pytest.mark.parametrize("kind", FAMILIES)
def test_statistics_add_up_over_slices(kind: str) -> None:
    rng = np.random.default_rng(2)
    emission = make(kind, rng)
    x, weights = emission.draw(rng.integers(K, size=50), rng), rng.random((50, K))
    x[rng.random(x.shape) < 0.1] = np.nan
    whole = emission.statistics(x, weights)
    parts = zip(emission.statistics(x[:20], weights[:20]), emission.statistics(x[20:], weights[20:]), strict=True)
    for sums, (first, second) in zip(whole, parts, strict=True):
        np.testing.assert_allclose(sums, first + second, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("kind", FAMILIES)
def test_pack_and_unpack_are_inverse_and_every_vector_is_valid(kind: str) -> None:
    rng = np.random.default_rng(3)
    emission = make(kind, rng)
    again = emission.unpack(emission.pack())
    np.testing.assert_allclose(again.means, emission.means, atol=1e-12)
    np.testing.assert_allclose(again.covars, emission.covars, atol=1e-10)
    wild = emission.unpack(emission.pack() + 50 * rng.standard_normal(emission.pack().size))
    rows, scales = wild.likelihood(emission.means)
    assert np.isfinite(rows).all()
    assert np.isfinite(scales).all()


@pytest.mark.parametrize(("kind", "free"), [("spherical", 3), ("diag", 12), ("full", 30), ("tied", 10)])
def test_free_parameters(kind: str, free: int) -> None:
    assert make(kind, np.random.default_rng(0)).n_parameters == K * D + free


@pytest.mark.parametrize("kind", FAMILIES)
def test_permuted_states_have_permuted_likelihoods(kind: str) -> None:
    rng = np.random.default_rng(4)
    emission = make(kind, rng)
    x = rng.standard_normal((10, D))
    order = np.array([2, 0, 1])
    np.testing.assert_allclose(emission.permute(order).likelihood(x)[0], emission.likelihood(x)[0][:, order])


@pytest.mark.parametrize("kind", FAMILIES)
def test_identical_observations_meet_the_floor_and_nothing_worse(kind: str) -> None:
    emission = make(kind, np.random.default_rng(5))
    x = np.ones((20, D))
    found = emission.maximize(emission.statistics(x, np.full((20, K), 1 / K)))
    np.testing.assert_allclose(matrices(found, kind), 1e-6 * np.eye(D) * np.ones((K, 1, 1)), rtol=1e-6, atol=1e-18)
    assert np.isfinite(found.likelihood(x)[1]).all()


def test_a_state_without_weight_keeps_what_it_has() -> None:
    emission = make("full", np.random.default_rng(6))
    x = np.random.default_rng(7).standard_normal((50, D))
    weights = np.zeros((50, K))
    weights[:, 0] = 1.0
    found = emission.maximize(emission.statistics(x, weights))
    np.testing.assert_allclose(found.means[1:], emission.means[1:])
    np.testing.assert_allclose(found.covars[1:], emission.covars[1:], rtol=1e-10)
    np.testing.assert_allclose(found.means[0], x.mean(axis=0))


@pytest.mark.parametrize("missing", [False, True])
def test_poisson_is_that_of_scipy(missing: bool) -> None:
    rng = np.random.default_rng(10)
    emission = PoissonEmission(rng.uniform(0.1, 20, (K, 2)))
    x = emission.draw(rng.integers(K, size=40), rng).astype(float)
    if missing:
        x[rng.random(x.shape) < 0.3] = np.nan
    rows, scales = emission.likelihood(x)
    expected = np.nansum(stats.poisson.logpmf(x[:, None, :], emission.rates), axis=2)
    np.testing.assert_allclose(np.log(rows) + scales[:, None], expected, atol=1e-11)
    weights = rng.random((40, K))
    found = emission.maximize(emission.statistics(x, weights))
    for j in range(K):
        for c in range(2):
            seen = ~np.isnan(x[:, c])
            assert found.rates[j, c] == pytest.approx(np.average(x[seen, c], weights=weights[seen, j]))
    np.testing.assert_allclose(found.unpack(found.pack()).rates, found.rates)


def test_rates_of_columns_without_events_are_the_floor() -> None:
    emission = PoissonEmission(np.ones((K, 2)), floor=1e-7)
    x = np.column_stack([np.zeros(30), np.full(30, 2.0)])
    found = emission.maximize(emission.statistics(x, np.ones((30, K))))
    np.testing.assert_array_equal(found.rates, np.tile([1e-7, 2.0], (K, 1)))
