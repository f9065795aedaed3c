"""Laws of the moments of sequences: naive loops, boundaries, merging, and order."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odeco.exceptions import MomentError
from odeco.moments.sequences import SymbolPairs, SymbolTriples
from odeco.sources.sequences import Sequences
from tests.oracles.hidden_markov import pair_counts, triple_counts

D = 4
symbols = st.lists(st.lists(st.integers(-1, D - 1), min_size=1, max_size=12), min_size=1, max_size=5)


def as_data(parts, weights=None):
    joined = np.concatenate([np.asarray(part) for part in parts])
    offsets = np.concatenate([[0], np.cumsum([len(part) for part in parts])]).astype(np.int64)
    codes = np.where(joined < 0, D, joined).astype(np.int32)
    return Sequences(np.append(np.arange(D), -1), codes, offsets, None if weights is None else np.asarray(weights))


def triples_of(data, basis):
    sums = SymbolTriples(basis).update(data)
    return sums._core, sums._weight


BASIS = np.random.default_rng(0).standard_normal((D, 3))


@given(symbols)
def test_pairs_and_triples_are_those_of_the_loops(parts):
    weights = np.arange(1.0, len(parts) + 1)
    data = as_data(parts, weights)
    pairs = SymbolPairs(D).update(data)
    np.testing.assert_allclose(pairs._counts, pair_counts(parts, D, weights))
    core, weight = triples_of(data, BASIS)
    counts = triple_counts(parts, D, weights)
    assert weight == pytest.approx(counts.sum())
    expected = np.einsum("xyz,xa,yb,zc->abc", counts, BASIS, BASIS, BASIS)
    np.testing.assert_allclose(core, expected, atol=1e-12 * (1 + counts.sum()))


@given(st.lists(st.integers(0, D - 1), min_size=2, max_size=20), st.integers(1, 19))
def test_splitting_a_sequence_changes_exactly_what_crosses(sequence, place):
    cut = min(place, len(sequence) - 1)
    whole, split = as_data([sequence]), as_data([sequence[:cut], sequence[cut:]])
    crossing = [sequence[t : t + 3] for t in range(max(cut - 2, 0), min(cut, len(sequence) - 2))]
    lost = triple_counts(crossing, D)
    difference = triples_of(whole, np.eye(D))[0] - triples_of(split, np.eye(D))[0]
    np.testing.assert_array_equal(difference, lost)
    pairs = SymbolPairs(D).update(whole)._counts - SymbolPairs(D).update(split)._counts
    np.testing.assert_array_equal(pairs, pair_counts([sequence[cut - 1 : cut + 1]], D))


@given(symbols, st.integers(0, 4))
def test_any_division_into_batches_and_any_merge_gives_the_same(parts, place):
    cut = min(place, len(parts))
    whole = as_data(parts)
    first, second = (SymbolTriples(BASIS) for _ in range(2))
    left, right = SymbolPairs(D), SymbolPairs(D)
    for sums, some in ((first, parts[:cut]), (second, parts[cut:])):
        if some:
            sums.update(as_data(some))
    for sums, some in ((left, parts[:cut]), (right, parts[cut:])):
        if some:
            sums.update(as_data(some))
    core, weight = triples_of(whole, BASIS)
    merged = second.merge(first)
    np.testing.assert_allclose(merged._core, core, atol=1e-12 * (1 + weight))
    np.testing.assert_allclose(right.merge(left)._counts, SymbolPairs(D).update(whole)._counts)
    np.testing.assert_allclose(right.first, SymbolPairs(D).update(whole).first)


def test_large_alphabets_are_sparse_and_the_same():
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 1500, 5_000).astype(np.int32)
    data = Sequences(np.arange(1501), codes, np.array([0, 2_000, 5_000]), None)
    pairs = SymbolPairs(1500).update(data)
    assert pairs.joint.nnz <= 4_998
    expected = pair_counts([codes[:2000], codes[2000:]], 1500)
    np.testing.assert_allclose(pairs.joint.toarray() * pairs.weight, expected)


def test_moments_of_different_bases_or_without_data_are_errors():
    with pytest.raises(ValueError, match="different bases"):
        SymbolTriples(BASIS).merge(SymbolTriples(BASIS + 1.0))
    with pytest.raises(MomentError, match="three consecutive"):
        _ = SymbolTriples(BASIS).core
    with pytest.raises(MomentError, match="two consecutive"):
        _ = SymbolPairs(D).update(as_data([[1], [2]])).joint
