"""Steps of a sample of sequences: whole windows, spread evenly, none of them twice."""

from __future__ import annotations

import numpy as np
import pytest

from odeco.sources.sequences import WINDOW, spread_steps


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
