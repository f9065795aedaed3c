"""The compiled densities and sums of full covariances against naive ones, and what they refuse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from odeco.kernels.gaussian import full_rows, full_sums

LEAST = -50.0


@pytest.mark.parametrize(("n", "d", "k"), [(1, 1, 1), (64, 3, 2), (130, 4, 6), (70, 9, 5), (5, 0, 3)])
def test_densities_are_those_of_the_formula(n: int, d: int, k: int) -> None:
    rng = np.random.default_rng(n)
    values, center = rng.standard_normal((n, d)) * 3 + 100.0, np.full(d, 100.0)
    triangles, shifts = np.tril(rng.standard_normal((k, d, d))), rng.standard_normal((k, d))
    constants = rng.standard_normal(k)
    rows, scales = np.empty((n, k)), np.empty(n)
    full_rows(values, center, triangles, shifts, constants, LEAST, rows, scales)
    turned = np.einsum("jab,tb->tja", triangles, values - center) + shifts
    logs = constants - 0.5 * (turned**2).sum(axis=2)
    np.testing.assert_allclose(scales, logs.max(axis=1), rtol=1e-12, atol=1e-12)
    expected = np.exp(np.maximum(logs - logs.max(axis=1, keepdims=True), LEAST))
    np.testing.assert_allclose(rows, expected, rtol=1e-10)  # logarithms of a few hundred, to rounding


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize(("n", "d", "k"), [(1, 1, 1), (64, 3, 2), (1100, 4, 6), (600, 9, 5)])
def test_sums_are_added_and_those_of_a_loop(n: int, d: int, k: int, missing: bool) -> None:
    rng = np.random.default_rng(n)
    values, center, weights = rng.standard_normal((n, d)) + 2.0, np.full(d, 2.0), rng.random((n, k))
    if missing:
        values[rng.random(values.shape) < 0.2] = np.nan
    totals, first, second = np.ones(k), np.ones((k, d)), np.ones((k, d, d))
    full_sums(values, center, weights, totals, first, second)
    for t in range(n):
        row = np.nan_to_num(values[t] - center)
        totals -= weights[t]
        first -= weights[t][:, None] * row
        second -= weights[t][:, None, None] * np.outer(row, row)
    # What is left is the ones that were there: a thousand additions and subtractions of numbers up to a thousand.
    for left in (totals, first, second):
        np.testing.assert_allclose(left, 1.0, atol=1e-10)


def arguments(kernel: Any) -> list[Any]:
    n, d, k = 5, 2, 3
    if kernel is full_rows:
        coefficients = [np.zeros((k, d, d)), np.zeros((k, d)), np.zeros(k)]
        return [np.zeros((n, d)), np.zeros(d), *coefficients, LEAST, np.zeros((n, k)), np.zeros(n)]
    return [np.zeros((n, d)), np.zeros(d), np.zeros((n, k)), np.zeros(k), np.zeros((k, d)), np.zeros((k, d, d))]


@pytest.mark.parametrize("kernel", [full_rows, full_sums])
def test_arrays_of_other_shapes_are_errors(kernel: Any) -> None:
    given = arguments(kernel)
    kernel(*given)
    for place, argument in enumerate(given):
        for axis in range(np.ndim(argument)):
            shape = list(argument.shape)
            shape[axis] += 1
            with pytest.raises(ValueError, match="must have size"):
                kernel(*given[:place], np.zeros(shape), *given[place + 1 :])
