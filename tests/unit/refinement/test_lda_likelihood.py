"""The likelihood of topics by draws, against sums over all topics of all tokens of tiny documents."""

from __future__ import annotations

from itertools import product

import numpy as np
from scipy import sparse
from scipy.special import gammaln

from odeco import simulate
from odeco.refinement.lda_likelihood import (
    TopicMaximum,
    document_scores,
    likelihood_maximum,
    score_products,
)
from odeco.refinement.priors import TopicDraws

TOPICS = np.array([[0.6, 0.3, 0.1], [0.1, 0.2, 0.7]])
ALPHA = np.array([0.5, 0.8])


def exact_log_likelihood(words, topics, alpha):
    """Of one document: all topics of all its tokens, proportions summed out."""
    total = 0.0
    for chosen in product(range(len(alpha)), repeat=len(words)):
        counts = np.bincount(chosen, minlength=len(alpha))
        prior = gammaln(alpha.sum()) - gammaln(len(words) + alpha.sum())
        prior += (gammaln(counts + alpha) - gammaln(alpha)).sum()
        total += np.exp(prior) * np.prod([topics[j, w] for j, w in zip(chosen, words, strict=True)])
    return np.log(total)


def exact_score(words):
    """By differences in the logarithms of the prior, then of the topics, each topic with its sum kept."""
    step, found = 1e-5, []
    for j in range(2):
        moved = [exact_log_likelihood(words, TOPICS, ALPHA * np.exp(s * (np.arange(2) == j))) for s in (step, -step)]
        found.append((moved[0] - moved[1]) / (2 * step))
    for j, w in product(range(2), range(3)):
        values = []
        for s in (step, -step):
            topics = TOPICS.copy()
            topics[j, w] *= np.exp(s)
            values.append(exact_log_likelihood(words, topics / topics.sum(axis=1, keepdims=True), ALPHA))
        found.append((values[0] - values[1]) / (2 * step))
    return np.array(found)


def test_scores_of_documents_are_those_of_the_likelihood():
    """The same document 400 times: the mean over 2 x 60 sweeps of each is known to a few thousandths."""
    words = [0, 0, 1, 2, 2]
    counts = sparse.csr_array(np.tile([2.0, 1.0, 2.0], (400, 1)))
    at = TopicMaximum(TOPICS, ALPHA, np.ones(2))
    first, second = document_scores(TopicDraws(counts, 2, 10), at, np.random.default_rng(0))
    found = np.concatenate([first, second]).mean(axis=0)
    np.testing.assert_allclose(found, exact_score(words), atol=0.02)


def test_products_of_scores_of_two_chains_do_not_count_their_errors():
    rng = np.random.default_rng(0)
    scores = rng.standard_normal((5000, 2))
    first, second = (scores + 2 * rng.standard_normal(scores.shape) for _ in range(2))
    # 5,000 products of variance 25 + 1
    np.testing.assert_allclose(score_products(first, second) / 5000, np.eye(2), atol=4 * np.sqrt(26 / 5000))


def test_the_maximum_is_found_from_a_biased_start():
    """Scores sum to nothing there: each coordinate is within its error of the maximum of a sharp likelihood."""
    topics = np.kron(np.eye(3), np.full(4, 0.2)) + 1 / 60
    topics /= topics.sum(axis=1, keepdims=True)
    drawn = simulate.lda_documents(300, topics, np.array([0.5, 0.3, 0.2]), mean_length=40, random_state=0)
    start = 0.7 * topics + 0.3 / 12
    best, draws = likelihood_maximum(drawn.counts.astype(float), start, np.full(3, 0.1), 0.05, np.random.default_rng(0))
    first, second = document_scores(draws, best, np.random.default_rng(1))
    scores = (first + second) / 2
    left = scores.sum(axis=0) / np.sqrt((scores**2).sum(axis=0))
    assert np.abs(left).max() < 0.6  # the start is 5 and more away
    assert np.abs(best.topics - topics).max() < 0.03
