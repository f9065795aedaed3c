"""Tables: families guessed and given, categories, missing values, errors that name the column."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from odeco.sources.tables import infer_schema, open_table


@pytest.mark.parametrize(
    ("column", "family", "missing"),
    [
        ([0.5, 1.5, -2.0], "gaussian", False),
        ([0, 1, 1], "bernoulli", False),
        ([True, False, True], "bernoulli", False),
        ([0.0, 1.0, np.nan], "bernoulli", True),
        ([0, 1, -1], "bernoulli", True),
        ([0, 3, 2], "categorical", False),
        ([1, 2, -1], "categorical", True),
        ([0, 30, 2], "poisson", False),
        ([0, 30, -1], "poisson", True),
        ([-5, 3, 2], "gaussian", False),
        (["a", "b", "a"], "categorical", False),
        (["a", None, "a"], "categorical", True),
        (pd.Categorical(["x", "y", None]), "categorical", True),
        (pd.array([1, None, 3], dtype="Int64"), "categorical", True),
    ],
)
def test_guesses(column, family, missing):
    schema = infer_schema([pd.DataFrame({"c": column})], "auto")
    assert schema.columns[0].family == family
    assert schema.columns[0].missing is missing


def test_codes_follow_the_categories():
    frame = pd.DataFrame(
        {
            "answer": ["no", "yes", None, "no"],
            "grade": pd.Categorical(["B", "A", "B", None], categories=["C", "B", "A"]),
        }
    )
    source = open_table(frame)
    assert source.schema.columns[0].categories == ("no", "yes")
    assert source.schema.columns[1].categories == ("C", "B", "A")
    values = next(iter(source)).rows
    np.testing.assert_array_equal(values, [[0, 1], [1, 2], [np.nan, 1], [0, np.nan]])


def test_codes_need_not_start_at_zero():
    source = open_table(np.array([[1, 10], [3, 20], [-1, 10]]), "categorical")
    assert source.schema.columns[0].categories == (1, 3)
    np.testing.assert_array_equal(next(iter(source)).rows, [[0, 0], [1, 1], [np.nan, 0]])


def test_batches_share_one_schema():
    batches = [np.array([[0, 5]]), np.array([[1, 40]]), np.array([[-1, 7]])]
    source = open_table(batches)
    assert source.schema.families == ("bernoulli", "poisson")
    assert sum(len(batch) for batch in source) == 3
    again = open_table(lambda: iter(batches))
    assert again.schema.families == source.schema.families


@pytest.mark.parametrize(
    ("X", "family", "message"),
    [
        ([[0.5], [1.0]], "bernoulli", "x0.*Bernoulli.*0.5"),
        ([[0.5], [1.0]], "poisson", "x0.*Poisson"),
        ([[-3], [1]], "poisson", "x0.*Poisson"),
        ([["a"], ["b"]], "gaussian", "x0.*labels"),
        ([[np.nan], [np.nan]], "categorical", "no values"),
        ([[1.0], [2.0]], "normal", "'normal'"),
        ([[1.0], [2.0]], ["gaussian", "gaussian"], "length 2.*1 columns"),
        ([[1.0], [2.0]], None, "family must be"),
        (np.arange(3000.0)[:, None] / 7, "categorical", "1000 categories"),
    ],
)
def test_errors_name_the_column(X, family, message):
    with pytest.raises(ValueError, match=message):
        infer_schema([np.array(X)], family)


def test_new_values_that_do_not_fit():
    schema = infer_schema([np.array([[0, 1], [2, 0], [1, 1]])], ["categorical", "bernoulli"])
    with pytest.raises(ValueError, match="x0.*category.*7.*not seen"):
        schema.read(np.array([[7, 1]]))
    with pytest.raises(ValueError, match="x1.*bernoulli.*row 1 has 3"):
        schema.read(np.array([[0, 1], [0, 3]]))
    with pytest.raises(ValueError, match="infinity"):
        infer_schema([np.eye(2)], "gaussian").read(np.array([[np.inf, 0.0]]))
    with pytest.raises(ValueError, match="3 features"):
        schema.read(np.zeros((1, 3)))


def test_the_callers_table_is_not_changed():
    X = np.array([[0.0, -1.0], [1.0, 1.0]])
    kept = X.copy()
    open_table(X, "bernoulli")
    np.testing.assert_array_equal(X, kept)


def test_an_iterator_cannot_be_read_twice():
    with pytest.raises(ValueError, match="only once"):
        open_table(iter([np.eye(2)]))
