"""Greedy EM of a lost component: it finds its rows, tells what it gains, and noise gains little."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from odeco.models.gaussian_mixture.growth import Lost, grown
from odeco.models.gaussian_mixture.repair import component_worth
from odeco.refinement.gaussian_mixture import GaussianParameters, Points
from odeco.sources.dense import as_dense_source

D, N = 20, 20_000
WEIGHTS = np.array([0.6, 0.37, 0.03])
VARIANCES = np.array([1.0, 0.8, 1.2])


def draw(seed=0):
    rng = np.random.default_rng(seed)
    means = 4 / np.sqrt(2 * D) * rng.standard_normal((3, D))
    labels = rng.choice(3, N, p=WEIGHTS)
    rows = means[labels] + np.sqrt(VARIANCES[labels])[:, None] * rng.standard_normal((N, D))
    known = GaussianParameters(WEIGHTS[:2] / WEIGHTS[:2].sum(), means[:2], VARIANCES[:2], "spherical")
    return rows, means, known, rng


def log_likelihood(rows, weights, means, variances):
    parts = zip(weights, means, variances, strict=True)
    joint = [np.log(w) + multivariate_normal(m, v * np.eye(D)).logpdf(rows) for w, m, v in parts]
    return np.logaddexp.reduce(joint, axis=0)


def points_of(rows, sample_weight=None):
    return Points(as_dense_source(rows, sample_weight=sample_weight), None, np.float64, D)


def test_a_rough_direction_grows_to_the_component_and_noise_does_not():
    rows, means, known, rng = draw()
    off = rng.standard_normal(D)
    rough = means[2] + 2 * off / np.linalg.norm(off)  # half as far from the truth as the known means are
    (found,) = grown(points_of(rows), known, [Lost(rough, 1.0, 0.0)])
    # 600 rows in 20 dimensions know a mean to 0.2; EM has not ended after so few steps.
    assert np.linalg.norm(found.mean - means[2]) < 0.6
    assert found.weight == pytest.approx(WEIGHTS[2], rel=0.3)
    assert found.variance == pytest.approx(VARIANCES[2], rel=0.1)
    by_chance = (D + 2) / N
    assert found.gain > 5 * by_chance
    everyone = GaussianParameters(WEIGHTS, means, VARIANCES, "spherical")
    (noise,) = grown(points_of(rows), everyone, [Lost(rough, 1.0, 0.0)])  # nothing is lost
    assert noise.gain < by_chance


def test_the_gain_is_that_of_the_likelihood_and_weights_are_repetitions():
    rows, means, known, rng = draw()
    repeats = rng.integers(0, 3, N)
    candidates = [Lost(means[2], 1.0, 0.0)]
    (found,) = grown(points_of(rows, repeats), known, candidates)
    (again,) = grown(points_of(np.repeat(rows, repeats, axis=0)), known, candidates)
    np.testing.assert_allclose(again.mean, found.mean, atol=1e-10)
    assert again.gain == pytest.approx(found.gain, rel=1e-8)
    weights = np.append((1 - found.weight) * known.weights, found.weight)
    both = log_likelihood(rows, weights, np.vstack([known.means, found.mean]), np.append(VARIANCES[:2], found.variance))
    before = log_likelihood(rows, known.weights, known.means, known.covariances)
    assert found.gain == pytest.approx(np.average(both - before, weights=repeats), rel=1e-8)


def test_a_shared_variance_stays():
    rows, means, known, _ = draw()
    tied = GaussianParameters(known.weights, known.means, 1.0, "tied_spherical")
    (found,) = grown(points_of(rows), tied, [Lost(means[2], 1.0, 0.0)])
    assert found.variance == 1.0


def test_of_two_components_that_share_their_rows_one_is_worth_little():
    rows, means, _, _ = draw()
    halves = np.array([0.3, 0.37, 0.03, 0.3])
    doubled = GaussianParameters(halves, np.vstack([means, means[0]]), np.append(VARIANCES, VARIANCES[0]), "spherical")
    worth, value = component_worth(points_of(rows), doubled)
    alone = log_likelihood(rows, WEIGHTS, means, VARIANCES).mean()
    assert value == pytest.approx(alone, rel=1e-10)
    per_weight = worth / doubled.weights
    # 2 log 2 - 1 = 0.39 less what the rows of the others add; the others have rows of their own.
    assert (per_weight[[0, 3]] < 0.45).all()
    assert (per_weight[[1, 2]] > 1).all()
