"""Sources: every container gives the same batches, bad counts are named, the caller's arrays stay as they were."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import odeco
from odeco.sources import ArraySource, Batch, StreamSource, as_batch, as_source, require_passes
from odeco.sources.views import as_view_batch

X = np.array([[1, 0, 2], [0, 0, 0], [3, 1, 0], [0, 0, 1], [2, 2, 2]])


class Frame:
    """As much of a DataFrame as a source looks at; no DataFrame library is a dependency."""

    def __init__(self, values):
        self._values = values

    def to_numpy(self):
        return self._values


class SparseFrame:
    """A pandas DataFrame of sparse columns, as far as a source looks at it."""

    class SparseDtype:
        pass

    def __init__(self, values):
        self.dtypes = [self.SparseDtype() for _ in range(values.shape[1])]
        self.sparse = self
        self._values = values

    def to_coo(self):
        return sparse.coo_matrix(self._values)

    def to_numpy(self):
        raise AssertionError("sparse columns must not be made dense")


def rows_of(source):
    return np.vstack([batch.counts.toarray() for batch in source])


CONTAINERS = {
    "dense": X,
    "fortran": np.asfortranarray(X),
    "lists": X.tolist(),
    "rows": list(X),
    "csr_array": sparse.csr_array(X),
    "csr_matrix": sparse.csr_matrix(X),
    "csc": sparse.csc_array(X),
    "coo": sparse.coo_matrix(X),
    "lil": sparse.lil_matrix(X),
    "frame": Frame(X),
    "sparse frame": SparseFrame(X),
    "object": X.astype(object),
    "list of batches": [X[:2], sparse.csr_array(X[2:4]), Frame(X[4:])],
    "pairs": [(X[:2], np.ones(2)), (X[2:], np.ones(3))],
    "function": lambda: iter([X[:1], X[1:]]),
    "iterator": None,  # made below: it can be read only once
    "batches": [as_batch(X[:3]), as_batch(X[3:])],
}


@pytest.mark.parametrize("name", CONTAINERS)
@pytest.mark.parametrize("batch_size", [1, 2, 5, 100])
def test_every_container_gives_the_same_batches(name, batch_size):
    given = CONTAINERS[name] if name != "iterator" else iter([X[:4], X[4:]])
    source = as_source(given, batch_size)
    assert source.n_features == 3
    batches = list(source)
    assert [len(batch) for batch in batches] == [len(X[i : i + batch_size]) for i in range(0, 5, batch_size)]
    np.testing.assert_array_equal(np.vstack([batch.counts.toarray() for batch in batches]), X)
    np.testing.assert_array_equal(np.concatenate([batch.lengths for batch in batches]), X.sum(axis=1))
    if source.reiterable:
        np.testing.assert_array_equal(rows_of(source), X)
    assert all(batch.counts.has_canonical_format for batch in batches)


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [
        (bool, np.float32),
        (np.uint8, np.float32),
        (np.int64, np.float32),
        (np.float16, np.float32),
        (np.float32, np.float32),
        (np.float64, np.float64),
        (np.longdouble, np.float64),
    ],
)
def test_dtypes(dtype, expected):
    batch = as_batch(X.astype(dtype))
    assert batch.counts.dtype == expected
    np.testing.assert_array_equal(batch.counts.toarray(), X.astype(dtype).astype(float))


def test_integers_beyond_float32_become_float64():
    big = np.array([[2**24 + 1, 1]])
    assert as_batch(big).counts.dtype == np.float64
    np.testing.assert_array_equal(as_batch(big).counts.toarray(), big)


def test_duplicates_and_unsorted_columns():
    parts = (np.array([1.0, 2.0, 4.0]), np.array([2, 0, 2]), np.array([0, 3]))
    messy = sparse.csr_matrix(parts, shape=(1, 3))
    kept = [part.copy() for part in parts]
    np.testing.assert_array_equal(as_batch(messy).counts.toarray(), [[2.0, 0.0, 5.0]])
    for part, before in zip((messy.data, messy.indices, messy.indptr), kept, strict=True):
        np.testing.assert_array_equal(part, before)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_canonical_floats_are_shared_not_copied(dtype):
    given = sparse.csr_array(X.astype(dtype))
    batches = list(as_source(given, 2))
    assert all(np.shares_memory(batch.counts.data, given.data) for batch in batches if batch.counts.nnz)


def test_streams_look_at_the_first_batch_without_losing_it():
    source = as_source(iter([X[:2], X[2:]]))
    assert source.n_features == 3
    np.testing.assert_array_equal(rows_of(source), X)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([[1, -2]], "Negative values in data: the smallest count in X is -2"),
        ([[1, np.nan]], "NaN or infinite"),
        ([[1, np.inf]], "NaN or infinite"),
        (sparse.csr_array([[1.0, np.nan]]), "NaN or infinite"),
        (np.zeros((0, 3)), "empty: found 0 sample"),
        (np.zeros((3, 0)), "empty"),
        (np.ones(3), r"two-dimensional.*got shape \(3,\).*reshape"),
        (np.ones((2, 2, 2)), "two-dimensional"),
        (np.array([[1, 2j]]), "Complex data not supported"),
        (np.array([["a", "b"]]), "X must hold numbers, and holds the text 'a'"),
        (np.array([["a", 1]], dtype=object), "must hold numbers"),
        ("words", "matrix of counts or batches of one, got str"),
        (3, "got int"),
        ({"a": 1}, "got dict"),
    ],
)
def test_bad_counts_are_named(given, message):
    with pytest.raises(ValueError, match=message):
        as_source(given)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([], "X is empty"),
        (lambda: iter([]), "X is empty"),
        ([X, X[:, :2]], "number of columns: 3, then 2"),
        ([X, -X], "Negative values"),
    ],
)
def test_bad_batches_are_named_when_read(given, message):
    with pytest.raises(ValueError, match=message):
        list(as_source(given))


def test_sources_pass_through():
    source = as_source(X)
    assert as_source(source) is source
    with pytest.raises(ValueError, match="sample_weight cannot be added"):
        as_source(source, sample_weight=np.ones(5))


@pytest.mark.parametrize("batch_size", [0, -1, 2.5, True])
def test_bad_batch_size(batch_size):
    with pytest.raises(ValueError, match="batch_size must be a positive integer"):
        as_source(X, batch_size)


@pytest.mark.parametrize("given", [X, [X[:2], X[2:]]], ids=["array", "batches"])
def test_weights_follow_their_rows(given):
    weights = np.arange(5.0)
    source = as_source(given, 2, sample_weight=weights)
    assert isinstance(source, (ArraySource, StreamSource))
    np.testing.assert_array_equal(np.concatenate([batch.row_weights() for batch in source]), weights)


def test_weights_of_single_batches():
    source = as_source([(X[:2], [1.0, 2.0]), X[2:]], 5)
    (batch,) = source
    np.testing.assert_array_equal(batch.weights, [1, 2, 1, 1, 1])
    assert next(iter(as_source(X))).weights is None


@pytest.mark.parametrize(
    ("given", "weights", "message"),
    [
        (X, np.ones(4), r"shape \(5,\), got \(4,\)"),
        (X, -np.ones(5), "non-negative"),
        (X, np.full(5, np.nan), "finite"),
        ([X], np.ones(4), r"shape \(4,\), the source has at least 5 rows"),
        ([X], np.ones(6), r"shape \(5,\), got \(6,\)"),
        ([(X, np.ones(5))], np.ones(5), "given twice"),
    ],
)
def test_bad_weights(given, weights, message):
    with pytest.raises(ValueError, match=message):
        list(as_source(given, sample_weight=weights))


def test_an_iterator_cannot_be_read_twice():
    source = as_source(iter([X]))
    with pytest.raises(ValueError, match="2 passes.*function that returns a new iterator"):
        require_passes(source, 2)
    require_passes(source, 1)
    list(source)
    with pytest.raises(ValueError, match="has been read"):
        list(source)
    require_passes(as_source(X), 5)


def test_a_function_that_returns_a_used_iterator_is_told():
    used = iter([X])
    source = as_source(lambda: used)
    list(source)
    with pytest.raises(ValueError, match="gave 0 rows, 5 in an earlier pass"):
        list(source)


def test_map_keeps_what_a_source_is():
    def double(batch):
        return Batch(batch.counts * 2, batch.lengths * 2, batch.weights)

    for given in (X, [X], lambda: iter([X])):
        mapped = as_source(given, 2).map(double)
        assert mapped.n_features == 3
        assert mapped.reiterable
        np.testing.assert_array_equal(rows_of(mapped), 2 * X)
        np.testing.assert_array_equal(rows_of(mapped), 2 * X)
    assert not as_source(iter([X])).map(double).reiterable


def broken(indices=None, indptr=None, kind=sparse.csr_array):
    """A sparse matrix (4, 5) of which scipy believes the indices."""
    X = kind(np.eye(4, 5))
    X.indices = X.indices if indices is None else np.array(indices)
    X.indptr = X.indptr if indptr is None else np.array(indptr)
    return X


def broken_coordinates():
    X = sparse.coo_array(np.eye(4, 5))
    X.coords = (X.coords[0], X.coords[1] + 2)
    return X


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (broken([0, 1, 2, 5]), "has the index 5, and 0 to 4 are possible"),
        (broken([0, 1, -7, 3]), "has the index -7"),
        (broken([0, 1, 2, 10**8]), "has the index 100000000"),
        (broken([0.0, 1.0, 2.0, 3.0]), "its indices are float64"),
        (broken(indptr=[0, 3, 1, 3, 4]), "indptr does not rise"),
        (broken(indptr=[1, 2, 3, 3, 4]), "indptr does not rise from 0"),
        (broken(indptr=[0, 1, 2, 3]), "indptr does not rise from 0 over 4"),
        (broken(indptr=[0, 1, 2, 3, 9]), "ends at 9, and it holds 4 indices and 4 values"),
        (broken([0, 1, 2, 9], kind=sparse.csc_array), "has the index 9, and 0 to 3 are possible"),
        (broken([0, 1, 2, 9], kind=lambda X: sparse.bsr_array(X, blocksize=(1, 1))), "has the index 9"),
        (broken_coordinates(), "has the index 5, and 0 to 4 are possible"),
    ],
)
def test_indices_are_not_believed(given, message):
    with pytest.raises(ValueError, match=f"X is not a valid sparse matrix: .*{message}"):
        as_batch(given)
    with pytest.raises(ValueError, match=f"view 0 is not a valid sparse matrix: .*{message}"):
        as_view_batch([given] * 3)


@pytest.mark.filterwarnings("ignore::odeco.exceptions.MomentWarning")  # noise has no topics
def test_every_method_looks_at_indices():
    rng = np.random.default_rng(0)
    counts = sparse.csr_array(rng.poisson(1.0, (50, 5)))
    model = odeco.LatentDirichletAllocation(2, refine=None, random_state=0).fit(counts)
    wrong = broken([0, 1, 2, 10**9])
    for method in (model.fit, model.partial_fit, model.transform, model.perplexity):
        with pytest.raises(ValueError, match="has the index 1000000000"):
            method(wrong)
