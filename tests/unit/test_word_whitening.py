"""Randomized whitening of word pairs (section 6.1.2) against the exact one."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from odeco.sources import as_source
from odeco.whitening import whiten, whiten_words, word_range
from odeco.whitening.randomized import frequency_scale, orthonormalize
from tests.oracles.word_moments import mean_frequencies, mean_pairs


def documents(n=3000, d=800, k=4, seed=0, length=25):
    """Counts of a single topic model with k topics over disjoint-ish words."""
    rng = np.random.default_rng(seed)
    topics = rng.dirichlet(np.full(d, 0.05), size=k)
    labels = rng.integers(0, k, n)
    words = np.concatenate([rng.choice(d, length, p=topics[label]) for label in labels])
    return sparse.csr_array((np.ones(n * length), (np.repeat(np.arange(n), length), words)), shape=(n, d))


def dense_pairs(X):
    """E[x1 (x) x2] of documents of one length."""
    length = X.sum(axis=1)[0]
    M2 = (X.T @ X).toarray() - np.diag(X.sum(axis=0))
    return M2 / (X.shape[0] * length * (length - 1))


@pytest.mark.parametrize("word_scale", [0.0, 0.25, 0.5])
def test_whitens_the_word_pairs_and_lifts_back(word_scale):
    X = documents()
    M2 = dense_pairs(X)
    whitener = whiten_words(X, 4, word_scale=word_scale, dtype=np.float64, random_state=0)
    W, B = whitener.matrix, whitener.lift
    np.testing.assert_allclose(W.T @ M2 @ W, np.eye(4), atol=1e-9)
    np.testing.assert_allclose(W.T @ B, np.eye(4), atol=1e-9)
    np.testing.assert_allclose(B, M2 @ W, atol=1e-9 * np.abs(B).max())


def test_three_products_find_the_exact_directions():
    X = documents()
    M2 = dense_pairs(X)
    found = word_range(X, 4, word_scale=0.5, random_state=0)
    exact = whiten(M2, 4, scale=found.scale)
    # Measured at the gap of 0.96 here: 1e-5 for the eigenvalues and 6e-6 for the cosines; two products give 1e-2.
    np.testing.assert_allclose(found.spectrum[:4], exact.spectrum[:4], rtol=1e-4)
    _, vectors = np.linalg.eigh(M2 * found.scale[:, None] * found.scale)
    cosines = np.linalg.svd(vectors[:, -4:].T @ found.directions(4), compute_uv=False)
    np.testing.assert_allclose(cosines, 1, atol=1e-4)
    assert found.whitener(4).gap > 0.5
    assert found.n_passes == 3
    assert found.directions().shape[1] == 28  # (k + 10) columns of two blocks: slack beyond k


def test_single_precision_is_close_to_double():
    X = documents()
    single, double = (whiten_words(X, 4, dtype=dtype, random_state=0) for dtype in (np.float32, np.float64))
    np.testing.assert_allclose(single.spectrum[:4], double.spectrum[:4], rtol=1e-5)


def test_small_vocabularies_are_exact_in_one_pass():
    rng = np.random.default_rng(0)
    X = rng.poisson(0.8, (40, 6))
    found = word_range(X, 2, word_scale=0.5)
    scale = frequency_scale(mean_frequencies(X), 0.5)
    exact = np.linalg.eigvalsh(mean_pairs(X) * scale[:, None] * scale)[::-1]
    assert found.n_passes == 1
    np.testing.assert_allclose(found.spectrum, exact, atol=1e-12)


def test_same_seed_same_result():
    X = documents(n=500)
    first, second, other = (word_range(X, 3, random_state=seed).directions() for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, second)
    assert not np.array_equal(first, other)


def test_a_source_of_batches_gives_the_same():
    X = documents(n=500)
    whole = whiten_words(X, 3, random_state=0)
    parts = whiten_words(lambda: (X[i : i + 70] for i in range(0, 500, 70)), 3, random_state=0)
    np.testing.assert_allclose(np.abs(whole.matrix.T @ parts.lift), np.eye(3), atol=1e-4)  # float32 work


def test_words_that_never_occur_are_left_out():
    X = documents(n=500).tolil()
    X[:, 17] = 0
    found = word_range(X.tocsr(), 3, random_state=0)
    whitener = found.whitener(3)
    assert found.scale[17] == 0
    assert not whitener.matrix[17].any()
    assert not whitener.lift[17].any()
    assert np.isfinite(whitener.matrix).all()


def test_any_number_of_components_within_the_slack():
    found = word_range(documents(n=500), 3, random_state=0)
    np.testing.assert_allclose(found.whitener(2).matrix, found.whitener(3).matrix[:, :2], rtol=1e-9)
    np.testing.assert_array_equal(found.basis(5), found.scale[:, None] * found.directions(5))
    with pytest.raises(ValueError, match="larger than the 26 directions found"):
        found.whitener(27)


def test_rank_below_the_components_prints_the_spectrum():
    X = np.zeros((4, 5))
    X[:, 0] = 3  # one word only: rank 1
    with pytest.raises(ValueError, match="rank 1, below n_components=2.*Spectrum"):
        whiten_words(X, 2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"word_scale": -0.1}, "word_scale"),
        ({"word_scale": 1.1}, "word_scale"),
        ({"n_oversamples": -1}, "n_oversamples"),
        ({"n_products": 1}, "n_products"),
        ({"dtype": np.int32}, "dtype"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ValueError, match=message):
        word_range(np.ones((3, 4)), 1, **options)


def test_bad_data():
    with pytest.raises(ValueError, match="n_components=5 is larger"):
        word_range(np.ones((3, 4)), 5)
    with pytest.raises(ValueError, match="no document has 2 words"):
        word_range(np.eye(4), 1)
    with pytest.raises(ValueError, match="2 passes"):
        word_range(iter([documents(n=50)]), 1)


def test_orthonormal_basis_of_a_deficient_block():
    rng = np.random.default_rng(0)
    block = rng.standard_normal((50, 4)) @ rng.standard_normal((4, 6)) * np.geomspace(1, 1e-3, 6)
    basis = orthonormalize(block)
    assert basis.shape == (50, 4)
    np.testing.assert_allclose(basis.T @ basis, np.eye(4), atol=1e-13)
    np.testing.assert_allclose(basis @ (basis.T @ block), block, atol=1e-12)


def test_scale_of_frequencies():
    np.testing.assert_allclose(frequency_scale(np.array([0.5, 0.5, 0.0]), 0.5), [(0.5 + 0.1 / 3) ** -0.5] * 2 + [0])


def test_input_is_not_modified():
    X = documents(n=200)
    before = X.copy()
    whiten_words(as_source(X), 2, random_state=0)
    for part in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(X, part), getattr(before, part))
