"""Cells: what is missing, what a symbol is called, and what is refused."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from odeco.sources.values import is_missing, number_array, number_block, plain_array, plain_column, symbol_of


@pytest.mark.parametrize("value", [None, np.nan, np.float32("nan"), pd.NA, pd.NaT, np.ma.masked, Decimal("NaN")])
def test_every_kind_of_nothing(value):
    assert is_missing(value)


@pytest.mark.parametrize("value", [0, "", "nan", False, [], np.array([np.nan, 1.0]), {"a": 1}])
def test_what_is_something(value):
    assert not is_missing(value)


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (7, "7"),
        (7.0, "7"),
        (np.float64(10_000_001), "10000001"),
        (np.int64(2**62), str(2**62)),
        (0.1234567, "0.1234567"),
        (1e300, "1e+300"),
        ("007", "007"),
        (True, "True"),
    ],
)
def test_names_of_symbols(value, name):
    assert symbol_of(value) == name


def test_other_values_have_other_names():
    numbers = [*np.linspace(1e7, 1e7 + 3, 7), *np.nextafter(1.0, [0.0, 2.0]), 2.0**53, 2.0**53 + 2, 1e22]
    assert len({symbol_of(value) for value in numbers}) == len(numbers)


def test_plain_numbers_are_not_copied():
    X = np.ones((3, 2))
    assert number_array(X) is X
    assert np.shares_memory(number_array(X.view(np.matrix)), X)
    assert type(plain_array(X.view(np.matrix))) is np.ndarray


def test_masked_rows_in_a_list():
    rows = [np.ma.masked_array([1.0, 2.0], [False, True]), np.ma.masked_array([3.0, 4.0], [True, False])]
    np.testing.assert_array_equal(number_array(rows), [[1.0, np.nan], [np.nan, 4.0]])


def test_numbers_of_any_library():
    objects = np.array([[Decimal("1.5"), True], [np.int8(3), None]], dtype=object)
    np.testing.assert_array_equal(number_array(objects), [[1.5, 1.0], [3.0, np.nan]])


@pytest.mark.parametrize("column", [[2**53 + 1, None], pd.array([2**53 + 1, None], dtype="Int64")])
def test_integers_that_floats_cannot_tell_apart(column):
    with pytest.raises(ValueError, match=r"'code' has the whole number 9007199254740993, beyond 2\*\*53"):
        plain_column(pd.Series(column, dtype=getattr(column, "dtype", object)), "'code'")


def test_numbers_beside_text_are_not_one_or_the_other():
    with pytest.raises(ValueError, match="'code' mixes numbers and text"):
        plain_column(np.array([7, "7", None], dtype=object), "'code'")
    assert plain_column(np.array(["007", "7", np.nan], dtype=object), "'code'").tolist()[:2] == ["007", "7"]


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (pd.period_range("2020", periods=2, freq="M"), r"dates or times \(period\[M\]\)"),
        (pd.interval_range(0, 2), r"intervals \(interval\[int64, right\]\)"),
        ([pd.Timestamp("2020"), None], r"dates or times \(Timestamp\)"),
        ([np.datetime64("2020"), 1.0], r"dates or times \(datetime64\)"),
    ],
)
def test_columns_of_other_kinds(column, message):
    frame = pd.DataFrame({"when": pd.Series(column, dtype=object if isinstance(column, list) else None)})
    with pytest.raises(ValueError, match=message):
        number_block(frame)


def test_ragged_lists_are_named():
    with pytest.raises(ValueError, match="X must have one shape of observation"):
        plain_array([[1, 2], [3]])
