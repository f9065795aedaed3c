"""Smoothing-spline scores against densities whose scores are known, and their grid against plain sums."""

from __future__ import annotations

import numpy as np
import pytest

from odeco.refinement import scores as module
from odeco.refinement.scores import Counts, Samples, fit_scores, split_in_halves


def in_runs(n, length):
    return ((np.arange(n) // length) % 2).astype(np.int8)


def fitted(samples, weights=None):
    samples = np.atleast_2d(samples).astype(np.float32)
    halves = in_runs(samples.shape[1], 500)
    counts = counted(samples, weights, halves)
    found = fit_scores(counts, np.zeros(len(samples)), samples.shape[1])
    return found, evaluated(found, samples, halves)


def counted(samples, weights, halves):
    turn = np.eye(len(samples), dtype=samples.dtype)
    return Counts(len(samples)).add(Samples.of(samples, weights, halves), slice(0, samples.shape[1]), turn)


def evaluated(found, samples, halves):
    """Between the nodes of the tables, one for each half."""
    tables = found.tables.reshape(len(samples), 2, -1)
    each = [[np.interp(row, module._GRID, half) for half in of] for row, of in zip(samples, tables, strict=True)]
    return np.array([np.where(halves, second, first) for first, second in each])


def test_a_gaussian_has_a_straight_line():
    samples = np.random.default_rng(0).standard_normal(50_000)
    found, values = fitted(samples)
    # E[(phi - y)^2] is the number of effective parameters, about ten for the roughest that may be chosen, over n / 2.
    assert np.mean((values[0] - samples) ** 2) < 20 / 25_000
    assert found.slopes[0, 0] == pytest.approx(1.0, abs=0.02)  # Fisher information of a unit Gaussian


def test_the_score_of_a_laplace_variable():
    """phi = sqrt(2) sign(y), Fisher information 2; a spline with 50,000 samples resolves its jump to about 0.1."""
    samples = np.random.default_rng(1).laplace(size=100_000) / np.sqrt(2)
    found, values = fitted(samples)
    away = (np.abs(samples) > 0.3) & (np.abs(samples) < 3)
    assert np.mean((values[0] - np.sqrt(2) * np.sign(samples))[away] ** 2) < 0.02
    assert 1.8 < found.slopes[0, 0] < 2.1


@pytest.mark.parametrize("weighted", [False, True])
def test_counts_are_those_of_a_loop(weighted):
    rng = np.random.default_rng(2)
    samples = 3 * rng.standard_normal((2, 700)).astype(np.float32)
    weights = rng.random(700) if weighted else None
    counts = counted(samples, weights, in_runs(700, 100))
    nodes, cells = counts.shares()
    expected = np.zeros((2, 2, 2, module._CELLS))
    for i in range(2):
        for t in range(700):
            place = np.clip((float(samples[i, t]) - module._LOW) / module._STEP, 0, module._CELLS - 1.001)
            cell, half = int(place), (t // 100) % 2
            weight = 1.0 if weights is None else weights[t]
            expected[0, half, i, cell] += weight * (1 - (place - cell))
            expected[0, half, i, cell + 1] += weight * (place - cell)
            expected[1, half, i, cell] += weight
    expected /= expected[1].sum(axis=2, keepdims=True)
    np.testing.assert_allclose(nodes, expected[0], atol=1e-5)  # places are in single precision
    np.testing.assert_allclose(cells, expected[1], atol=3 / 300)  # a sample on a boundary may fall to either side


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("dtype", "k"), [(np.float32, 3), (np.float64, 6)])
def test_products_are_those_of_scores_and_outputs(weighted, dtype, k):
    rng = np.random.default_rng(6)
    rows, turn = rng.laplace(size=(6, 2500)).astype(dtype), (0.4 * rng.standard_normal((k, 6))).astype(dtype)
    weights, halves, part = rng.random(2500) if weighted else None, in_runs(2500, 100), slice(7, 2490)
    samples, outputs = Samples.of(rows, weights, halves), turn @ rows
    whole = Counts(k).add(samples, slice(0, 1100), turn)
    whole.merge(Counts(k).add(samples, slice(1100, 2500), turn))
    np.testing.assert_allclose(whole.shares(), counted(outputs, weights, halves).shares(), atol=3 / 1000)  # boundaries
    scores = fit_scores(whole, np.zeros(k), 2500)
    functions = np.vstack([outputs, evaluated(scores, outputs, halves), np.ones((1, 2500))])[:, part]
    expected = (functions[k:] * (1.0 if weights is None else weights[part])) @ functions.T
    size = np.linalg.norm(functions, axis=1)
    # Places are in single precision: 2^-24 times the 400 cells, within one of which a score may turn.
    found = scores.products(samples, part, turn) / np.outer(size[k:], size)
    np.testing.assert_allclose(found, expected / np.outer(size[k:], size), atol=400 * 2.0**-24)


def test_splines_solve_their_equations():
    from odeco.kernels.scores import smoothing_splines

    rng = np.random.default_rng(3)
    masses, right, penalties = rng.random((2, 12)), rng.standard_normal((2, 12)), np.array([1e-3, 1.0, 1e4])
    out = np.empty((3, 2, 12))
    smoothing_splines(masses, right, penalties, out)
    differences = np.diff(np.eye(12), 2, axis=0)
    for level, penalty in enumerate(penalties):
        for i in range(2):
            expected = np.linalg.solve(np.diag(masses[i]) + penalty * differences.T @ differences, right[i])
            np.testing.assert_allclose(out[level, i], expected, rtol=1e-8, atol=1e-10)  # condition about 1e6


def test_the_score_of_a_half_comes_from_the_other():
    """A value that only one half has: the other half's score, which is used there, knows nothing of its spike."""
    rng = np.random.default_rng(4)
    samples = rng.standard_normal((1, 20_000)).astype(np.float32)
    samples[0, np.flatnonzero(in_runs(20_000, 500) == 0)[:4000]] = 1.5
    found, _ = fitted(samples)
    middle = int((1.5 - module._LOW) / module._STEP)
    jumps = np.abs(np.diff(found.tables.reshape(2, -1)[:, middle - 3 : middle + 4], axis=1)).max(axis=1)
    assert jumps[1] > 5 * jumps[0]


def test_halves_are_runs_and_weights_are_repetitions():
    rng = np.random.default_rng(5)
    rows, weights = rng.standard_normal((2, 20_000)), rng.integers(0, 4, 20_000)
    halves = split_in_halves(rows, None)
    assert 0.3 < halves.mean() < 0.7
    assert 100 < np.count_nonzero(np.diff(halves)) < 400  # about 200 runs
    repeated = split_in_halves(np.repeat(rows, weights, axis=1), None)
    np.testing.assert_array_equal(np.repeat(split_in_halves(rows, weights.astype(float)), weights), repeated)
    assert split_in_halves(np.ones((2, 10)), None).mean() == 0.5
