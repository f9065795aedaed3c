"""Signals by covariances of stretches: what they tell, what noise does to them, and when they tell nothing."""

from __future__ import annotations

import numpy as np
import pytest

from odeco.refinement.ica_likelihood import crosstalk_variances, likelihood_rotation, representative
from odeco.refinement.ica_pairs import Anchor
from odeco.refinement.ica_stretches import separate_signals, stretch_covariances
from tests.unit.refinement.test_ica import orthogonal, sources
from tests.unit.refinement.test_ica_pairs import crosstalk, whitened

NONE = np.zeros((3, 3))


def bursts(n, seed=0, length=200):
    """Three Gaussian signals (3, n) of unit variance, each as loud as it likes for 200 samples at a time."""
    rng = np.random.default_rng(seed)
    loudness = np.repeat(rng.gamma(0.5, size=(3, n // length)), length, axis=1)
    rows = loudness * rng.standard_normal((3, n))
    return rows / rows.std(axis=1, keepdims=True)


def run(rows, start, *, noise=None, variance=1.0, weights=None):
    anchor = Anchor(start, np.full((start.shape[1],) * 2, variance))
    return separate_signals(rows, weights, anchor, noise=noise, shape=np.eye(len(rows)), n_iter=50, tol=1e-4)


def test_covariances_are_those_of_every_stretch():
    rng = np.random.default_rng(0)
    rows, weights = rng.standard_normal((2, 1000)), rng.integers(0, 3, 1000).astype(float)
    weights[50:100] = 0.0  # a stretch that is not there
    covariances, totals = stretch_covariances(rows, weights)
    naive = [
        sum(w * np.outer(y, y) for w, y in zip(weights[low : low + 50], rows[:, low : low + 50].T, strict=True))
        for low in (0, *range(100, 1000, 50))
    ]
    np.testing.assert_allclose(covariances * totals[:, None, None], naive, atol=1e-12)
    assert totals.sum() == weights.sum()


def test_gaussian_signals_are_separated_by_their_loudness():
    """No cumulant, no score knows them: only the times at which they are loud."""
    for seed in range(3):
        rows, matrix = whitened(orthogonal(3) @ bursts(20_000, seed))
        mixing = matrix @ orthogonal(3)
        start = mixing @ (np.eye(3) + 0.2 * np.random.default_rng(seed).standard_normal((3, 3)))
        found = run(rows, start)
        assert found.converged
        # A pair is told by its loudness' contrast, of order 1: standard deviations of about n^(-1/2).
        assert np.abs(crosstalk(found.vectors, mixing)).max() < 5 / np.sqrt(20_000)
        assert np.abs(crosstalk(found.vectors[:, [1, 0, 2]], mixing)).max() > 1  # shuffled: must not pass


@pytest.mark.parametrize("known", [False, True])
def test_stationary_noise_does_not_bias_it(known):
    n = 100_000
    factor = np.array([[0.4, 0.0, 0.0], [0.3, 0.2, 0.0], [-0.3, 0.1, 0.2]])
    rows = orthogonal(3) @ bursts(n) + factor @ np.random.default_rng(1).standard_normal((3, n))
    mixing, noise = orthogonal(3), factor @ factor.T
    if not known:
        rows, matrix = whitened(rows)
        mixing, noise = matrix @ mixing, None
    found = run(rows, mixing, noise=noise)
    assert np.abs(crosstalk(found.vectors, mixing)).max() < 5 * np.sqrt(5 / n)
    biased = run(rows, mixing, noise=NONE)
    assert np.abs(crosstalk(biased.vectors, mixing)).max() > 0.03


@pytest.mark.parametrize("kind", ["stationary", "in common", "few samples"])
def test_where_loudness_does_not_tell_nothing_is_said(kind):
    n = 400 if kind == "few samples" else 20_000
    rows = bursts(n, length=20) if kind == "few samples" else sources(n)
    if kind == "in common":
        rows = rows * np.repeat(np.random.default_rng(0).gamma(2.0, size=n // 200), 200)
    assert run(whitened(rows)[0], np.eye(3)) is None


def test_an_anchor_is_believed_as_far_as_it_agrees():
    rows, matrix = whitened(bursts(2000, 4, length=100))
    alone = np.abs(crosstalk(run(rows, matrix).vectors, matrix)).max()
    held = np.abs(crosstalk(run(rows, matrix, variance=1e-4).vectors, matrix)).max()
    assert held < alone
    wrong = matrix @ (np.eye(3) + 0.2 * (np.ones((3, 3)) - np.eye(3)))  # twenty of its standard deviations
    assert np.abs(crosstalk(run(rows, wrong, variance=1e-4).vectors, matrix)).max() < 0.1


def test_the_variance_of_a_likelihood_fit_is_what_is_found():
    errors, expected = [], []
    for seed in range(30):
        rows, matrix = whitened(sources(4000, seed))
        found = likelihood_rotation(rows, None, np.eye(3), None, n_iter=50, tol=1e-6).frame
        errors.append(crosstalk(found, matrix) ** 2)
        variances = crosstalk_variances(*representative(rows, None), found, None) / rows.shape[1]
        expected.append(variances[~np.eye(3, dtype=bool)])
    # Each of six mean squares of 30 varies by sqrt(2 / 30) = 0.26 of itself.
    ratios = np.mean(errors, axis=0) / np.mean(expected, axis=0)
    assert ratios.min() > 1 - 2.5 * 0.26
    assert ratios.max() < 1 + 2.5 * 0.26
