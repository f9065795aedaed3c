"""Means, deviations and products of columns against NumPy's, missing entries included."""

from __future__ import annotations

import numpy as np
import pytest

from odeco.moments import columns
from odeco.moments.columns import Columns, covariance_about


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_columns_are_those_of_numpy(missing: bool, offset: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "_ROWS", 70)
    rng = np.random.default_rng(0)
    values = rng.standard_normal((300, 3)) * [1.0, 5.0, 0.1] + offset
    if missing:
        values[rng.random(values.shape) < 0.3] = np.nan
    found = Columns.of(values)
    # An offset costs the digits that the values themselves have lost.
    np.testing.assert_allclose(found.mean, np.nanmean(values, axis=0), rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(found.deviation, np.nanstd(values, axis=0), rtol=1e-8 if offset else 1e-12)
    np.testing.assert_array_equal(found.seen, (~np.isnan(values)).sum(axis=0))
    centred = np.nan_to_num(values - found.mean)
    np.testing.assert_allclose(covariance_about(values, found.mean), centred.T @ centred / 300, rtol=1e-9, atol=1e-9)


def test_a_column_without_entries_has_no_deviation() -> None:
    found = Columns.of(np.array([[1.0, np.nan], [3.0, np.nan]]))
    np.testing.assert_allclose([found.mean, found.deviation], [[2.0, 0.0], [1.0, 0.0]])


def test_the_number_of_threads_changes_no_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "_ROWS", 7)
    values, found = np.random.default_rng(1).standard_normal((100, 2)), []
    for n_threads in ("1", "3"):
        monkeypatch.setenv("ODECO_NUM_THREADS", n_threads)
        found.append(Columns.of(values))
    np.testing.assert_array_equal(*(np.array([f.mean, f.deviation]) for f in found))
