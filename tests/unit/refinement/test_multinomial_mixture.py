from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from odeco.refinement import multinomial_mixture as module
from odeco.refinement.multinomial_mixture import log_joint, posterior, refine_multinomial_mixture

WEIGHTS = np.array([0.5, 0.3, 0.2])


@pytest.fixture(scope="module")
def documents():
    rng = np.random.default_rng(0)
    topics = rng.dirichlet(np.full(40, 0.3), size=3)
    labels = rng.choice(3, size=600, p=WEIGHTS)
    counts = np.array([rng.multinomial(15, topics[label]) for label in labels])
    return sparse.csr_array(counts.astype(float)), topics, labels


def start_from(topics, seed=1):
    return 0.5 * topics + 0.5 * np.random.default_rng(seed).dirichlet(np.ones(topics.shape[1]), size=len(topics))


def test_posterior_matches_the_loops(documents):
    counts, topics, _ = documents
    dense = counts.toarray()
    resp, log_likelihood = posterior(counts, WEIGHTS, topics)
    for i in (0, 5, 17):
        joint = WEIGHTS * np.array([np.prod(topic ** dense[i]) for topic in topics])
        np.testing.assert_allclose(resp[i], joint / joint.sum(), rtol=1e-9)  # rounding
        assert log_likelihood[i] == pytest.approx(np.log(joint.sum()), rel=1e-9)


def test_impossible_words():
    topics = np.array([[0.0, 1.0], [0.5, 0.5]])
    counts = sparse.csr_array([[1.0, 1.0], [0.0, 2.0]])
    joint = log_joint(counts, np.array([0.5, 0.5]), topics)
    assert joint[0, 0] == -np.inf
    assert np.isfinite(joint[1]).all()
    resp, log_likelihood = posterior(sparse.csr_array([[1.0, 0.0]]), np.array([0.3, 0.7]), topics[[0, 0]])
    np.testing.assert_allclose(resp[0], [0.3, 0.7])
    assert log_likelihood[0] == -np.inf


def test_log_posterior_never_falls_and_topics_come_back(documents):
    counts, topics, _ = documents
    refined = refine_multinomial_mixture(counts, np.full(3, 1 / 3), start_from(topics), tol=0.0, max_iter=40)
    values = refined.trace.values
    assert np.diff(values).min() > -1e-10  # rounding
    # 1,800 words or more for each topic of 40 words: an L1 error of some sqrt(40 / 1,800) = 0.15.
    assert np.abs(refined.topics - topics).sum(axis=1).max() < 0.3
    assert np.abs(refined.topics[[1, 2, 0]] - topics).sum(axis=1).min() > 0.5  # the test sees a wrong order
    np.testing.assert_allclose(refined.weights, WEIGHTS, atol=0.06)  # three standard errors


def test_sample_weights_are_repetitions(documents):
    counts, topics, _ = documents
    repeats = np.random.default_rng(0).integers(0, 3, counts.shape[0])
    weighted = refine_multinomial_mixture(counts, WEIGHTS, topics, sample_weight=repeats, max_iter=5)
    repeated = refine_multinomial_mixture(
        counts[np.repeat(np.arange(len(repeats)), repeats)], WEIGHTS, topics, max_iter=5
    )
    # The starts differ by the word frequencies mixed in, which weights do not enter.
    np.testing.assert_allclose(weighted.topics, repeated.topics, atol=2e-3)
    np.testing.assert_allclose(weighted.weights, repeated.weights, atol=2e-3)


def test_batches_and_chunks_do_not_matter(documents, monkeypatch):
    counts, topics, _ = documents
    whole = refine_multinomial_mixture(counts, WEIGHTS, start_from(topics), max_iter=5)
    monkeypatch.setattr(module, "_CHUNK", 7)
    batches = [(counts[:100], None), (counts[100:], None)]
    parts = refine_multinomial_mixture(batches, WEIGHTS, start_from(topics), max_iter=5)
    np.testing.assert_allclose(parts.topics, whole.topics, rtol=1e-9)  # rounding
    np.testing.assert_allclose(parts.trace.values, whole.trace.values, rtol=1e-12)


def test_one_step(documents):
    counts, topics, _ = documents
    refined = refine_multinomial_mixture(counts, WEIGHTS, start_from(topics), max_iter=1)
    assert refined.n_iter == 1
    start = np.abs(start_from(topics) - topics).sum()
    assert np.abs(refined.topics - topics).sum() < 0.6 * start


def test_no_documents_and_no_steps(documents):
    _, topics, _ = documents
    empty = sparse.csr_array((0, 40))
    refined = refine_multinomial_mixture(empty, WEIGHTS, topics, max_iter=2)
    np.testing.assert_allclose(refined.topics.sum(axis=1), 1.0)
    kept = refine_multinomial_mixture(empty, WEIGHTS, topics, max_iter=0)
    np.testing.assert_allclose(kept.weights, WEIGHTS)


def test_errors_name_the_argument(documents):
    counts, topics, _ = documents
    with pytest.raises(ValueError, match="smoothing"):
        refine_multinomial_mixture(counts, WEIGHTS, topics, smoothing=0.0)
    with pytest.raises(ValueError, match="sample_weight"):
        refine_multinomial_mixture(counts, WEIGHTS, topics, sample_weight=[1.0])
    with pytest.raises(ValueError, match="sample_weight"):
        refine_multinomial_mixture([(counts, None)], WEIGHTS, topics, sample_weight=[1.0])
