"""Steps of a sample of sequences: whole windows, spread evenly, none of them twice; what sequences span."""

from __future__ import annotations

import numpy as np
import pytest

from odeco.sources.sequences import WINDOW, Sequences, column_bounds, spread_steps


@pytest.mark.parametrize(
    ("n", "n_steps"),
    [
        (10, 5),
        (WINDOW, WINDOW - 1),
        (5 * WINDOW, 3 * WINDOW),
        (5 * WINDOW, 2 * WINDOW + 7),
        (3 * WINDOW - 1, 3 * WINDOW - 2),
        (3 * WINDOW + 1, 3 * WINDOW),
        (100 * WINDOW, 99 * WINDOW),
    ],
)
def test_windows_are_spread_evenly_and_overlap_once(n, n_steps):
    starts = np.linspace(0, n - WINDOW, max(1, n_steps // WINDOW)).astype(int)
    expected = {start + step for start in starts.tolist() for step in range(min(WINDOW, n))}
    assert spread_steps(n, n_steps).tolist() == sorted(expected)


@pytest.mark.parametrize("shape", [(1, 3), (7, 600), (200, 3), (1025, 1)])
def test_bounds_of_columns_are_those_of_numpy(shape):
    values = np.random.default_rng(0).standard_normal(shape)
    values[values > 1] = np.nan
    values[:, 0] = np.nan
    for found, of in zip(column_bounds(values), (np.fmin, np.fmax), strict=True):
        np.testing.assert_array_equal(found, of.reduce(values, axis=0))


def test_distinct_observations_have_the_extent_of_the_steps():
    values = np.array([[0.0, 5.0], [2.0, np.nan], [np.nan, np.nan], [9.0, 9.0]])
    codes, offsets = np.array([0, 1, 2, 1, 2], dtype=np.uint8), np.array([0, 3, 5])
    weights = np.array([2.0, 0.5])
    found = Sequences(values, codes, offsets, weights).extent
    expected = Sequences(values[codes], None, offsets, weights).extent
    for name in ("n_steps", "n_sequences", "weight", "n_seen", "smallest", "largest"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), err_msg=name)
    assert found.n_seen == 3
