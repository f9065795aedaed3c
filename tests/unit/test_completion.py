from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from odeco.completion import completion, infer_proportions, log_likelihood, split_words
from tests.oracles import lda_inference as oracle


@pytest.fixture(scope="module")
def documents():
    rng = np.random.default_rng(0)
    topics = rng.dirichlet(np.full(30, 0.2), size=3)
    words = rng.dirichlet(np.full(3, 0.5), size=80) @ topics
    return sparse.csr_array(np.array([rng.multinomial(25, row) for row in words]).astype(float)), topics


def test_proportions_match_the_loops_at_convergence(documents):
    counts, topics = documents
    alpha = np.array([0.5, 0.2, 0.1])
    expected = oracle.em_proportions(counts[:20].toarray(), topics, alpha, 1000)
    found = infer_proportions(counts[:20], topics, alpha, tol=1e-6)
    # A step of 1e-6 at a contraction of 0.99 or better, in single precision.
    np.testing.assert_allclose(found, expected, atol=1e-3)
    np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-12)


def test_documents_do_not_depend_on_their_batch_mates(documents):
    counts, topics = documents
    alpha = np.full(3, 1 / 3)
    together = infer_proportions(counts, topics, alpha)
    alone = np.vstack([infer_proportions(counts[[i]], topics, alpha) for i in range(counts.shape[0])])
    np.testing.assert_array_equal(together, alone)


def test_a_document_without_words_has_the_prior(documents):
    _, topics = documents
    alpha = np.array([0.5, 0.3, 0.2])
    np.testing.assert_allclose(infer_proportions(sparse.csr_array((1, 30)), topics, alpha)[0], alpha, rtol=1e-6)


def test_halves_are_fair_whole_and_seeded(documents):
    counts, _ = documents
    seen, scored = split_words(counts, np.random.default_rng(1))
    np.testing.assert_array_equal((seen + scored).toarray(), counts.toarray())
    assert np.all(seen.data == np.floor(seen.data))
    total = counts.sum()
    assert abs(seen.sum() - total / 2) < 4 * np.sqrt(total / 4)  # four standard deviations of fair coins
    again, _ = split_words(counts, np.random.default_rng(1))
    np.testing.assert_array_equal(seen.toarray(), again.toarray())


def test_perplexity_is_that_of_its_definition(documents):
    counts, topics = documents
    halves = split_words(counts, np.random.default_rng(3))
    expected = oracle.completion_perplexity(halves[0].toarray(), halves[1].toarray(), topics, 1e-3, 500)
    found = completion(counts, topics, random_state=3)
    assert found.perplexity == pytest.approx(expected, rel=1e-3)  # the tolerance of the proportions
    assert found.n_words == halves[1].sum()
    assert found.perplexity == pytest.approx(np.exp(-found.log_likelihood / found.n_words))


def test_true_topics_beat_shuffled_words(documents):
    counts, topics = documents
    shuffled = topics[:, np.random.default_rng(0).permutation(topics.shape[1])]
    assert completion(counts, topics).perplexity < 0.5 * completion(counts, shuffled).perplexity


def test_uniform_topics_have_the_perplexity_of_the_vocabulary(documents):
    counts, topics = documents
    uniform = np.full_like(topics, 1 / topics.shape[1])
    assert completion(counts, uniform).perplexity == pytest.approx(topics.shape[1], rel=1e-5)  # single precision


def test_log_likelihood_matches_the_dense_product(documents):
    counts, topics = documents
    proportions = np.random.default_rng(0).dirichlet(np.ones(3), size=counts.shape[0])
    expected = (counts.toarray() * np.log(proportions @ topics)).sum(axis=1)
    np.testing.assert_allclose(log_likelihood(counts, topics, proportions), expected, rtol=1e-6)


@pytest.mark.parametrize("count", [3.0, 1e6, 1e12])  # the last leaves the range of single precision on the way
def test_words_that_no_topic_has_say_nothing(count):
    topics = np.array([[0.8, 0.2, 0.0], [0.1, 0.9, 0.0]])
    counts = sparse.csr_array(np.array([[5.0, 1.0, 0.0], [5.0, 1.0, count], [0.0, 0.0, count]]))
    found = infer_proportions(counts, topics, np.array([0.5, 0.5]), tol=0.0)
    np.testing.assert_allclose(found[1], found[0], atol=1e-6)
    np.testing.assert_allclose(found[2], [0.5, 0.5])
