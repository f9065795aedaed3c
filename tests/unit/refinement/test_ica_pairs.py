"""Separation by scores: what it estimates, what noise does to it, and how well it knows its own errors."""

from __future__ import annotations

import numpy as np
import pytest

from odeco.moments.cumulants import fourth_cumulant
from odeco.refinement.ica import direction_variances, least_squares
from odeco.refinement.ica_likelihood import representative
from odeco.refinement.ica_pairs import Anchor, separate
from odeco.tensors import ExplicitTensor
from tests.unit.refinement.test_ica import orthogonal, sources

NONE = np.zeros((3, 3))


def whitened(rows):
    values, vectors = np.linalg.eigh(rows @ rows.T / rows.shape[1])
    matrix = (vectors / np.sqrt(values)) @ vectors.T
    return matrix @ rows, matrix


def crosstalk(vectors, mixing):
    """Off-diagonal entries of pinv(vectors) @ mixing, columns scaled; sources are in their places."""
    gain = np.linalg.pinv(vectors) @ mixing
    gain = gain / np.diag(gain)
    return gain[~np.eye(gain.shape[0], dtype=bool)]


def run(rows, start, **options):
    given = {"noise": None, "shape": np.eye(len(rows)), "n_iter": 50, "tol": 1e-3} | options
    return separate(rows, given.pop("weights", None), start, rows.shape[1], **given)


def test_without_noise_it_is_as_efficient_as_the_likelihood():
    """For exponential, Laplace and uniform sources 1/n bounds all variances from above by far: Fisher informations of
    1.9 and more give 1 / (1.9 - 1/2) / n at most."""
    errors = []
    for seed in range(8):
        rows, matrix = whitened(orthogonal(3) @ sources(20_000, seed))
        found = run(
            rows, matrix @ orthogonal(3) + 0.05 * np.random.default_rng(seed).standard_normal((3, 3)), noise=NONE
        )
        assert found.converged
        errors.append(crosstalk(found.vectors, matrix @ orthogonal(3)))
    # Mean of 48 squares: relative standard deviation sqrt(2 / 48) = 0.2.
    assert np.mean(np.square(errors)) < 1.0 * (1 / 1.4) / 20_000


@pytest.mark.parametrize("known", [False, True])
def test_noise_does_not_bias_it(known):
    """The likelihood that knows nothing of the noise is off by 0.05 and more, at any number of samples."""
    n = 200_000
    factor = np.array([[0.4, 0.0, 0.0], [0.3, 0.2, 0.0], [-0.3, 0.1, 0.2]])
    clean = orthogonal(3) @ sources(n)
    rows = clean + factor @ np.random.default_rng(1).standard_normal((3, n))
    if known:  # E[y y'] = I + noise
        found = run(rows, orthogonal(3), noise=factor @ factor.T).vectors
        mixing = orthogonal(3)
    else:
        rows, matrix = whitened(rows)
        mixing = matrix @ orthogonal(3)
        found = run(rows, mixing).vectors
    biased = run(rows, mixing, noise=NONE).vectors
    # The standard deviations are below sqrt(5 / n) = 0.005 for this noise.
    assert np.abs(crosstalk(found, mixing)).max() < 5 * np.sqrt(5 / n)
    assert np.abs(crosstalk(biased, mixing)).max() > 0.05
    assert np.abs(crosstalk(found[:, [1, 0, 2]], mixing)).max() > 1  # shuffled: must not pass


def test_isotropic_noise_is_recognized_and_used():
    """That it is isotropic is knowledge: errors are smaller with the right shape than with a wrong one."""
    errors = {"right": [], "wrong": []}
    for seed in range(6):
        rng, n = np.random.default_rng(seed), 50_000
        mixing = orthogonal(6, seed) + 0.15 * rng.standard_normal((6, 6))
        signals = np.vstack([sources(n, seed), sources(n, seed + 100)])
        rows, matrix = whitened(mixing @ signals + 0.3 * rng.standard_normal((6, n)))
        other = rng.standard_normal((6, 6))
        for name, shape in (("right", matrix @ matrix.T), ("wrong", other @ other.T)):
            errors[name].append(np.square(crosstalk(run(rows, matrix @ mixing, shape=shape).vectors, matrix @ mixing)))
    assert np.mean(errors["right"]) < np.mean(errors["wrong"])


def test_weights_are_repetitions():
    rows, matrix = whitened(orthogonal(3) @ sources(4000))
    weights = np.random.default_rng(2).integers(0, 3, 4000)
    repeated = np.repeat(rows, weights, axis=1)
    fits = [
        separate(x, w, matrix @ orthogonal(3), 4000, noise=NONE, shape=np.eye(3), n_iter=3, tol=1e-10).vectors
        for x, w in ((rows, weights.astype(float)), (repeated, None))
    ]
    np.testing.assert_allclose(fits[0], fits[1], atol=1e-5)  # places in the grid are kept in single precision


def test_without_noise_the_statistic_is_one():
    statistics = []
    for seed in range(20):
        rows, matrix = whitened(sources(20_000, seed))
        statistics.append(run(rows, matrix).noise_statistic)
    # A mean of 20 x 3 squares: standard deviation sqrt(2 / 60) = 0.18; variances are known to some tens of per cent.
    assert np.mean(statistics) == pytest.approx(1.0, abs=0.5)


def test_the_cumulants_fit_knows_its_sampling_variance():
    ratios = []
    for seed in range(20):
        rows, matrix = whitened(sources(20_000, seed))
        fit = least_squares(ExplicitTensor(fourth_cumulant(rows.T)), np.array([6.0, 3.0, -1.2]), np.eye(3), 20_000)
        expected = direction_variances(fit.vectors, *representative(rows, None), 20_000)
        gain = np.linalg.inv(fit.vectors) @ matrix
        gain = gain / np.diag(gain)
        ratios.append((gain**2 - np.eye(3)).sum(axis=0) / 2 / expected)
    # Means of 40 squares each, of statistics with heavy tails (sixth moments of exponentials): a factor of 2.5.
    assert np.all(np.abs(np.log(np.mean(ratios, axis=0))) < np.log(2.5))


def test_a_certain_anchor_holds():
    rows, matrix = whitened(sources(5000))
    held = matrix + 0.05 * np.random.default_rng(0).standard_normal((3, 3))
    found = run(rows, matrix, anchor=Anchor(held, np.full(3, 1e-12)))
    np.testing.assert_allclose(crosstalk(found.vectors, held), 0, atol=1e-3)
    free = run(rows, matrix, anchor=Anchor(held, np.full(3, 1e6)))
    assert np.abs(crosstalk(free.vectors, held)).max() > 0.02


def test_one_source_and_gaussian_sources_are_left_alone():
    rng = np.random.default_rng(0)
    alone = rng.laplace(size=(1, 3000))
    alone /= alone.std()
    np.testing.assert_allclose(np.abs(run(alone - alone.mean(), np.eye(1)).vectors), 1, atol=1e-6)
    rows, _ = whitened(rng.standard_normal((3, 3000)))
    assert np.isfinite(run(rows, np.eye(3)).vectors).all()


def test_few_samples_of_many_may_have_weight():
    """The evenly spaced samples of the first steps may miss all of them."""
    rows, matrix = whitened(sources(2000))
    spread = np.zeros((3, 40_000))
    weights = np.zeros(40_000)
    places = np.arange(1, 40_000, 20)
    spread[:, places], weights[places] = rows, 1.0
    found = separate(spread, weights, matrix, 2000, noise=NONE, shape=np.eye(3), n_iter=20, tol=1e-2)
    alone = separate(rows, None, matrix, 2000, noise=NONE, shape=np.eye(3), n_iter=20, tol=1e-2)
    np.testing.assert_allclose(found.vectors, alone.vectors, atol=1e-5)
