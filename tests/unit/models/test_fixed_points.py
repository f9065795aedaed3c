"""Where EM ends: the parameters are those that the M step reads off the posteriors, priors and floors included.

Posteriors come from `predict_proba` of the fitted model, so that the M step of every family is seen through the
estimator. A fit that ran to the end moves no further: the equations hold to the root of rounding.
"""

from __future__ import annotations

import numpy as np
import pytest

from odeco import CategoricalHMM, GaussianHMM, GaussianMixture, MomentWarning, MultiViewMixture, PoissonHMM

N = 2000
TO_THE_END = {"effort": "quick", "tol": 1e-14, "max_iter": 2000, "random_state": 0}
KINDS = ("spherical", "diag", "full", "tied")


@pytest.fixture(scope="module")
def states():
    """Two states that last ten steps."""
    return np.repeat(np.random.default_rng(0).integers(2, size=N // 10), 10)


@pytest.mark.parametrize("missing", [False, True])
def test_poisson_rates_are_mean_counts(states, missing):
    rng = np.random.default_rng(1)
    x = rng.poisson(np.array([[2.0, 5.0], [9.0, 1.0]])[states]).astype(float)
    if missing:
        x[rng.random(x.shape) < 0.2] = np.nan
    model = PoissonHMM(2, **TO_THE_END).fit(x)
    shares = model.predict_proba(x)
    np.testing.assert_allclose(model.lambdas_, (shares.T @ np.nan_to_num(x)) / (shares.T @ ~np.isnan(x)), rtol=1e-6)


@pytest.mark.parametrize("shift", [0, 3])
def test_a_state_without_counts_has_a_rate_near_zero_and_excludes_nothing(states, shift):
    x = np.where(states == 1, np.random.default_rng(1).poisson(6.0, N) + 1, 0)[:, None]
    model = PoissonHMM(2, random_state=0).fit(x)
    assert 0 < model.lambdas_.min() < 1e-6
    assert np.isfinite(model.score(x + shift))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("prior", [0.0, 50.0])
def test_gaussian_states_have_the_moments_of_their_steps_and_the_prior(states, kind, prior):
    """Sums of squares are those of the steps, and `prior` times a variance of each column that no state changes."""
    x = np.random.default_rng(1).standard_normal((N, 2)) * [1.0, 0.5] + 4.0 * states[:, None]
    model = GaussianHMM(2, covariance_type=kind, covars_prior=prior, **TO_THE_END).fit(x)
    assert model.covars_.shape == {"spherical": (2,), "diag": (2, 2), "full": (2, 2, 2), "tied": (2, 2)}[kind]
    shares = model.predict_proba(x)
    totals = shares.sum(axis=0)
    np.testing.assert_allclose(model.means_, shares.T @ x / totals[:, None], rtol=1e-6)
    squares = np.array(
        [((x - mean).T * share) @ (x - mean) for mean, share in zip(model.means_, shares.T, strict=True)]
    )
    added = model.covariance_matrices() * totals[:, None, None] - squares
    # The unit is the variance within clusters, known to a tenth here: 1 and 1/4.
    unit = np.array([1.0, 0.25])
    if kind == "spherical":  # one number for both columns
        added, unit = np.trace(added, axis1=1, axis2=2)[:, None], unit.sum(keepdims=True)
    elif kind == "diag":
        added = np.diagonal(added, axis1=1, axis2=2)
    else:
        added = added.sum(axis=0, keepdims=True) if kind == "tied" else added
        unit = np.diag(unit)
    np.testing.assert_allclose(added, np.broadcast_to(prior * unit, added.shape), rtol=0.1, atol=1e-6 * N)


@pytest.mark.parametrize("smoothing", [0.01, 3.0])
def test_symbols_and_transitions_are_counted_with_pseudo_counts(states, smoothing):
    rng = np.random.default_rng(1)
    x = np.where(rng.random(N) < 0.8, states, 2 + rng.integers(3, size=N))
    model = CategoricalHMM(2, n_features=6, smoothing=smoothing, **TO_THE_END).fit(x)
    counts = np.array([[share[x == symbol].sum() for symbol in range(6)] for share in model.predict_proba(x).T])
    expected = (counts + smoothing) / (counts + smoothing).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.emissionprob_, expected, rtol=1e-5)
    # Steps that leave a state are its visits but the last one: transitions are counted among as many.
    first, last = model.predict_proba(x)[[0, -1]]
    visits = counts.sum(axis=1) - last + 2 * smoothing
    arrivals = counts.sum(axis=1) - first + 2 * smoothing
    np.testing.assert_allclose(visits @ model.transmat_, arrivals, rtol=1e-5)


def floors(kind, columns, share):
    return share * (columns.mean() if kind == "spherical" else columns)


@pytest.mark.parametrize("kind", ["spherical", "diag", "full"])
@pytest.mark.parametrize("share", [1e-6, 1e-3])
def test_a_component_on_one_point_has_the_least_variance(kind, share):
    rng = np.random.default_rng(0)
    x = np.vstack([np.zeros((50, 3)), rng.standard_normal((50, 3)) * [1, 2, 3] + 5])
    model = GaussianMixture(2, covariance_type=kind, variance_floor=share, random_state=0).fit(x)
    smallest = min(model.covariances_, key=np.sum)
    found = np.diag(smallest) if kind == "full" else smallest
    np.testing.assert_allclose(found, floors(kind, x.var(axis=0), share), rtol=1e-4)


@pytest.mark.parametrize("share", [1e-3, 1e-2])
def test_a_state_on_one_value_has_the_least_variance(states, share):
    noise = np.random.default_rng(1).standard_normal((N, 1))
    x = np.where(states[:, None] == 1, 3.0, noise)
    model = GaussianHMM(2, min_covar=share, covars_prior=0.0, random_state=0)
    with pytest.warns(MomentWarning, match="least variance"):
        model.fit(x)
    # In units of the variance within clusters of the data, of which half are one value: 0.2 to 0.6 of the noise's.
    assert 0.2 * share < model.covars_.min() < 0.6 * share


def test_views_have_the_moments_of_their_samples(states):
    rng = np.random.default_rng(1)
    views = [
        4.0 * states[:, None] + rng.standard_normal((N, 2)) * [1.0, 2.0],
        rng.poisson(np.array([[2.0, 5.0], [9.0, 1.0]])[states]),
        np.eye(4)[np.where(rng.random(N) < 0.7, states, rng.integers(4, size=N))],
    ]
    model = MultiViewMixture(2, smoothing=0.0, **TO_THE_END).fit(views)
    assert model.likelihoods_ == ("gaussian", "poisson", "multinomial")
    shares = model.predict_proba(views)
    totals = shares.sum(axis=0)[:, None]
    np.testing.assert_allclose(model.weights_, totals[:, 0] / N, rtol=1e-6)
    for mean, view in zip(model.means_, views, strict=True):
        np.testing.assert_allclose(mean, shares.T @ view / totals, rtol=1e-6)
    squares = shares.T @ views[0] ** 2 / totals - model.means_[0] ** 2
    np.testing.assert_allclose(model.variances_[0], squares, rtol=1e-5)
