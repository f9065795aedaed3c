"""The law of the moments: any chunking, any merge order, any container give the same statistics."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse

from odeco.moments import FrequenciesAndPairs, WordFrequencies, WordPairs, WordTriples
from odeco.sources import as_batch, as_source
from tests.oracles.word_moments import mean_frequencies, mean_pairs, mean_triples, project

D, K = 5, 3
BASIS = np.random.default_rng(0).standard_normal((D, K))
KINDS = {
    "frequencies": (lambda: WordFrequencies(D), lambda m: m.mean),
    "pairs": (lambda: WordPairs(BASIS), lambda m: m.product),
    "both": (lambda: FrequenciesAndPairs(BASIS), lambda m: np.column_stack([m.frequencies.mean, m.pairs.product])),
    "triples": (lambda: WordTriples(BASIS), lambda m: m.triples),
}
# Sums in another order differ by eps times the sum of absolute values; entries here are of order 1.
ROUNDING = 1e-12

counts = hnp.arrays(np.int64, st.tuples(st.integers(1, 12), st.just(D)), elements=st.integers(0, 3)).filter(
    lambda X: X.sum(axis=1).max() >= 3
)


def whole(kind, X, weights):
    make, read = KINDS[kind]
    return read(make().update(as_batch(X, weights)))


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=30, deadline=None)
@given(X=counts, data=st.data())
def test_any_chunking_and_any_merge_order(kind, X, data):
    weights = data.draw(hnp.arrays(np.float64, len(X), elements=st.floats(0.1, 2.0)))
    make, read = KINDS[kind]
    cuts = sorted(data.draw(st.sets(st.integers(1, len(X) - 1)))) if len(X) > 1 else []
    pieces = [make().update(as_batch(*part)) for part in zip(np.split(X, cuts), np.split(weights, cuts), strict=True)]
    while len(pieces) > 1:
        first = pieces.pop(data.draw(st.integers(0, len(pieces) - 1)))
        pieces.insert(0, first.merge(pieces.pop(data.draw(st.integers(0, len(pieces) - 1)))))
    assert pieces[0].n == len(X)
    np.testing.assert_allclose(read(pieces[0]), whole(kind, X, weights), atol=ROUNDING)


@settings(max_examples=30, deadline=None)
@given(X=counts)
def test_equal_to_loops_over_ordered_tuples(X):
    np.testing.assert_allclose(whole("pairs", X, None), mean_pairs(X) @ BASIS, atol=ROUNDING)
    both = np.column_stack([mean_frequencies(X), mean_pairs(X) @ BASIS])
    np.testing.assert_allclose(whole("both", X, None), both, atol=ROUNDING)
    np.testing.assert_allclose(whole("triples", X, None), project(mean_triples(X), BASIS), atol=ROUNDING)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=10, deadline=None)
@given(X=counts)
def test_any_container(kind, X):
    make, read = KINDS[kind]
    expected = whole(kind, X, None)
    for convert in (sparse.csr_array, sparse.csc_matrix, sparse.coo_array, np.asfortranarray, np.ndarray.tolist):
        source = as_source(convert(X), batch_size=3)
        np.testing.assert_allclose(read(make().update_all(source)), expected, atol=ROUNDING)


@pytest.mark.parametrize("kind", KINDS)
def test_updates_after_reading_count(kind):
    """New samples can keep coming after the moments were read, and merging leaves the other side as it was."""
    make, read = KINDS[kind]
    X = np.random.default_rng(1).poisson(1.0, (20, D))
    moments = make().update(as_batch(X[:8]))
    other = make().update(as_batch(X[8:]))
    read(moments)
    before = read(other).copy()
    moments.merge(other)
    np.testing.assert_array_equal(read(other), before)
    np.testing.assert_allclose(read(moments), whole(kind, X, None), atol=ROUNDING)
    other.update(as_batch(X[:1]))
    np.testing.assert_allclose(read(moments), whole(kind, X, None), atol=ROUNDING)


@pytest.mark.parametrize("kind", ["pairs", "triples"])
def test_different_bases_do_not_merge(kind):
    make, _ = KINDS[kind]
    cls = type(make())
    cls(BASIS).merge(cls(BASIS.copy()))
    with pytest.raises(ValueError, match="different bases"):
        cls(BASIS).merge(cls(2 * BASIS))
    with pytest.raises(ValueError, match="different bases"):
        cls(BASIS).merge(cls(BASIS[:, :2]))
    with pytest.raises(ValueError, match="cannot merge WordFrequencies"):
        cls(BASIS).merge(WordFrequencies(D))


def test_weights_are_repetitions():
    X = np.random.default_rng(2).poisson(1.0, (10, D))
    repeats = np.arange(10) % 3
    for kind in KINDS:
        np.testing.assert_allclose(
            whole(kind, X, repeats.astype(float)), whole(kind, np.repeat(X, repeats, axis=0), None), atol=ROUNDING
        )


@pytest.mark.parametrize("kind", KINDS)
def test_chunks_of_a_stream_do_not_even_change_the_rounding(kind):
    make, read = KINDS[kind]
    X = np.random.default_rng(3).poisson(1.0, (40, D))
    found = [
        read(make().update_all(as_source(lambda size=size: (X[i : i + size] for i in range(0, 40, size)), 7)))
        for size in (1, 3, 40)
    ]
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])
