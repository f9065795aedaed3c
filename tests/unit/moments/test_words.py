"""Word moments against their definition, and what is said when they are not defined."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from odeco.moments import ImplicitTriples, WordFrequencies, WordPairs, WordTriples
from odeco.sources import as_source
from tests.oracles.word_moments import mean_frequencies, mean_pairs, mean_triples, project

ROUNDING = {np.float64: 1e-12, np.float32: 2e-5}  # eps times the cancellation between the terms of a document


def corpus(seed=0, n=15, d=6):
    """Documents of lengths 0, 1, 2 and more, with repeated words."""
    rng = np.random.default_rng(seed)
    X = rng.poisson(0.7, (n, d))
    X[0], X[1], X[2] = 0, np.eye(d, dtype=int)[3], 2 * np.eye(d, dtype=int)[1]
    X[3] = np.eye(d, dtype=int)[0] + np.eye(d, dtype=int)[5]
    return X, rng.uniform(0.2, 2.0, n)


def basis(dtype, d=6, k=3):
    return np.random.default_rng(9).standard_normal((d, k)).astype(dtype)


def assert_close(found, expected, dtype):
    np.testing.assert_allclose(found, expected, atol=ROUNDING[dtype] * np.abs(expected).max(), rtol=0)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_moments_equal_loops_over_ordered_tuples(weighted, dtype):
    X, w = corpus()
    weights = w if weighted else None
    W = basis(dtype)
    source = as_source(X, sample_weight=weights)
    M1, M2, M3 = (f(X, weights) for f in (mean_frequencies, mean_pairs, mean_triples))
    assert_close(WordFrequencies(6).update_all(source).mean, M1, np.float64)
    pairs = WordPairs(W).update_all(source)
    assert_close(pairs.product, M2 @ W, dtype)
    assert_close(pairs.projected, W.T @ M2 @ W, dtype)
    found = WordTriples(W).update_all(source).read()
    assert_close(found.first, W.T @ M1, dtype)
    assert_close(found.pairs, W.T @ M2 @ W, dtype)
    assert_close(found.triples, project(M3, W), dtype)


@pytest.mark.parametrize("k", [1, 2, 9, 10, 23, 41])
def test_blocks_of_coordinates(k):
    X, _ = corpus(n=8)
    W = basis(np.float64, k=k)
    found = WordTriples(W).update_all(as_source(X)).triples
    assert_close(found, project(mean_triples(X), W), np.float64)
    for axes in [(0, 2, 1), (2, 1, 0), (1, 2, 0)]:
        np.testing.assert_allclose(found, found.transpose(axes), atol=1e-13)


def test_more_documents_than_a_block_and_threads(monkeypatch):
    """Several threads and many blocks of rows against dense formulas of all documents at once."""
    monkeypatch.setenv("ODECO_NUM_THREADS", "3")
    rng = np.random.default_rng(2)
    X = rng.poisson(0.5, (6000, 20)).astype(float)  # 23,000 nonzeros a batch: enough for threads
    W = rng.standard_normal((20, 4))
    length = X.sum(axis=1)
    Y = X @ W

    def scaled(order):
        n_tuples = np.prod([length - taken for taken in range(order)], axis=0)
        kept = length >= order
        return np.where(kept, 1 / np.where(kept, n_tuples, 1), 0) / kept.sum()

    w2, w3 = scaled(2), scaled(3)
    M2 = (X.T * w2) @ X - np.diag(X.T @ w2)
    cubes = np.einsum("n,na,nb,nc->abc", w3, Y, Y, Y) + 2 * np.einsum("i,ia,ib,ic->abc", X.T @ w3, W, W, W)
    mixed = np.einsum("ia,ib,ic->abc", W, W, X.T @ (w3[:, None] * Y))
    cubes -= mixed + mixed.transpose(0, 2, 1) + mixed.transpose(2, 1, 0)
    source = as_source(X, batch_size=3000)
    assert_close(WordPairs(W).update_all(source).product, M2 @ W, np.float64)
    moments = WordTriples(W).update_all(source)
    assert len(moments._parts) == 3
    assert_close(moments.triples, cubes, np.float64)
    V = rng.standard_normal((4, 7))
    implicit = ImplicitTriples(source, W)
    assert_close(implicit.power_map(V), np.einsum("abc,bj,cj->aj", cubes, V, V), np.float64)


@pytest.mark.parametrize("most_bytes", [2**20, 100])  # projected documents kept, and read again each time
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_implicit_triples_contract_like_the_tensor(most_bytes, dtype):
    X, w = corpus()
    W = basis(dtype)
    T = project(mean_triples(X, w), W)
    implicit = ImplicitTriples(as_source(X, 4, w), W, most_bytes=most_bytes)
    V = np.random.default_rng(1).standard_normal((3, 5))
    assert (implicit.order, implicit.dimension) == (3, 3)
    assert_close(implicit.power_map(V), np.einsum("abc,bj,cj->aj", T, V, V), dtype)
    assert_close(implicit.matrix(V[:, 0]), T @ V[:, 0], dtype)


def test_implicit_triples_need_a_source_that_can_be_read_again():
    X, _ = corpus()
    ImplicitTriples(as_source(iter([X])), basis(np.float64))  # kept in memory: one pass is enough
    with pytest.raises(ValueError, match="only once"):
        ImplicitTriples(as_source(iter([X])), basis(np.float64), most_bytes=10)


def test_lengths_are_counted():
    X, _ = corpus()
    found = WordFrequencies(6).update_all(as_source(X, 4))
    lengths = X.sum(axis=1)
    assert found.n == len(X)
    assert found.n_at_least.tolist() == [int((lengths >= p).sum()) for p in (1, 2, 3)]
    assert found.n_words == lengths.sum()
    assert found.longest == lengths.max()
    assert "n=15" in repr(found)


def test_short_documents_enter_what_they_can():
    X = np.array([[1, 0, 0], [1, 1, 0], [2, 1, 1]])
    W = np.eye(3)
    found = WordTriples(W).update_all(as_source(X)).read()
    np.testing.assert_allclose(found.first, mean_frequencies(X), atol=1e-15)
    np.testing.assert_allclose(found.pairs, mean_pairs(X[1:]), atol=1e-15)
    np.testing.assert_allclose(found.triples, mean_triples(X[2:]), atol=1e-15)


def test_fractional_counts_follow_the_closed_form():
    c = np.array([0.5, 2.0, 1.25])
    length = c.sum()
    moments = WordTriples(np.eye(3)).update_all(as_source([c, [0.3, 0.3, 0.3]]))
    np.testing.assert_allclose(moments.first, (c / length + 1 / 3) / 2)
    np.testing.assert_allclose(moments.pairs, (np.outer(c, c) - np.diag(c)) / (length * (length - 1)))
    assert moments.triples.sum() == pytest.approx(1.0)


def test_one_giant_document():
    X = sparse.csr_array(np.array([[10**6, 3, 10**6], [1, 1, 1]]))
    triples = WordTriples(np.eye(3, dtype=np.float32)).update_all(as_source(X)).triples
    assert triples.sum() == pytest.approx(1.0, rel=1e-5)  # float32 work


@pytest.mark.parametrize(
    ("X", "moments", "message"),
    [
        ([[0, 0]], lambda: WordFrequencies(2), "no document has 1 word or more"),
        ([[1, 0]], lambda: WordPairs(np.eye(2)), "no document has 2 words or more"),
    ],
)
def test_documents_that_are_too_short(X, moments, message):
    read = moments().update_all(as_source(X))
    with pytest.raises(ValueError, match=message):
        _ = read.mean if isinstance(read, WordFrequencies) else read.product


def test_triples_of_short_documents_are_not_defined():
    moments = WordTriples(np.eye(2)).update_all(as_source([[1, 1], [2, 0]]))
    assert moments.pairs.sum() == pytest.approx(1.0)
    with pytest.raises(ValueError, match="no document has 3 words.*join short ones"):
        _ = moments.triples
    with pytest.raises(ValueError, match="no document has 3 words"):
        ImplicitTriples(as_source([[1, 1], [2, 0]]), np.eye(2))


def test_wrong_shapes():
    with pytest.raises(ValueError, match="basis must have shape"):
        WordPairs(np.ones(3))
    with pytest.raises(ValueError, match="5 columns, the moments 6"):
        WordPairs(basis(np.float64)).update_all(as_source(np.ones((2, 5))))
