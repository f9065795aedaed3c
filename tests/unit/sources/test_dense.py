from __future__ import annotations

import numpy as np
import pytest

from odeco.sources.dense import DenseBatch, as_dense_source, as_rows, is_matrix


def rows_of(source):
    return np.concatenate([batch.rows for batch in source])


@pytest.fixture
def matrix():
    return np.arange(60.0).reshape(20, 3)


def test_whatever_the_chunks_batches_are_the_same(matrix):
    forms = [
        matrix,
        [matrix[:3], matrix[3:4], matrix[4:]],
        lambda: (matrix[i : i + 7] for i in range(0, 20, 7)),
        iter([matrix[:11], matrix[11:]]),
    ]
    for form in forms:
        source = as_dense_source(form, batch_size=8)
        assert source.n_features == 3
        batches = list(source)
        assert [len(batch) for batch in batches] == [8, 8, 4]
        np.testing.assert_array_equal(np.concatenate([batch.rows for batch in batches]), matrix)


def test_one_array_is_shared_and_keeps_its_type(matrix):
    single = matrix.astype(np.float32)
    for batch in as_dense_source(single, batch_size=8):
        assert batch.rows.dtype == np.float32
        assert np.shares_memory(batch.rows, single)
    assert as_rows([[1, 2], [3, 4]]).dtype == np.float64


def test_weights_travel_with_their_rows(matrix):
    weights = np.arange(20.0)
    by_argument = as_dense_source([matrix[:13], matrix[13:]], batch_size=8, sample_weight=weights)
    by_pairs = as_dense_source([(matrix[:13], weights[:13]), (matrix[13:], weights[13:])], batch_size=8)
    for source in (by_argument, by_pairs):
        np.testing.assert_array_equal(np.concatenate([batch.weights for batch in source]), weights)


def test_a_source_is_read_again_unless_it_is_an_iterator(matrix):
    source = as_dense_source(lambda: iter([matrix]))
    np.testing.assert_array_equal(rows_of(source), rows_of(source))
    once = as_dense_source(iter([matrix]))
    assert not once.reiterable
    rows_of(once)
    with pytest.raises(ValueError, match="has been read"):
        rows_of(once)


def test_what_is_one_matrix(matrix):
    assert is_matrix(matrix)
    assert is_matrix(matrix.tolist())
    assert not is_matrix([matrix, matrix])
    assert not is_matrix([DenseBatch(matrix)])
    assert not is_matrix(lambda: iter([matrix]))


@pytest.mark.parametrize(
    ("bad", "match"),
    [
        (np.zeros(3), "two-dimensional"),
        (np.zeros((3, 0)), "no columns"),
        (np.array([[1.0, np.nan]]), "NaN or infinity in 1 rows"),
        (np.array([["a", "b"]], dtype=object), "numbers"),
        (np.array([[1j]]), "real"),
        ([np.zeros((2, 3)), np.zeros((2, 2))], "differ in their number of columns"),
        (lambda: iter([]), "empty"),
        ("text", "got str"),
    ],
)
def test_bad_rows_are_named(bad, match):
    with pytest.raises(ValueError, match=match):
        list(as_dense_source(bad))


def test_a_source_that_changes_is_noticed(matrix):
    lengths = iter([20, 12])
    source = as_dense_source(lambda: iter([matrix[: next(lengths)]]))
    list(source)
    with pytest.raises(ValueError, match="gave 12 rows, 20 in an earlier pass"):
        list(source)
    with pytest.raises(ValueError, match="sample_weight"):
        list(as_dense_source(matrix, sample_weight=np.ones(5)))
