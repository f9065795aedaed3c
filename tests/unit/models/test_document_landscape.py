"""Documents of one topic each, as the search for a start sees them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from odeco.fitting.candidates import EFFORTS, Candidate, search
from odeco.models.single_topic.landscape import DocumentLandscape
from odeco.refinement.multinomial_mixture import Mixture
from odeco.simulate import single_topic_documents

K = 4


@pytest.fixture(scope="module")
def documents() -> tuple[sparse.csr_array, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    topics = rng.dirichlet(np.full(30, 0.2), size=K)
    drawn = single_topic_documents(600, topics, np.array([0.4, 0.3, 0.2, 0.1]), mean_length=40, random_state=1)
    return sparse.csr_array(drawn.counts), np.argmax(drawn.proportions, axis=1), topics


def test_a_merger_is_the_cheapest_by_the_expected_likelihood(documents) -> None:
    """Each merger tried by hand: the one taken loses the least of sum log (weight x density) under the labels."""
    counts, labels, _ = documents
    land = DocumentLandscape(counts, None, 1e-9)
    halved = np.where((labels == 0) & (np.arange(600) % 2 == 0), K, labels)
    shares = np.eye(K + 1)[halved].T

    def expected(rows: np.ndarray) -> float:
        totals, words = rows.sum(axis=1), rows @ counts
        logs = np.log(np.maximum(words / words.sum(axis=1, keepdims=True), 1e-300))
        return float((totals * np.log(totals / totals.sum())).sum() + (words * logs).sum())

    joined = {
        (i, j): np.vstack([np.delete(shares, [i, j], axis=0), shares[i] + shares[j]])
        for i in range(K + 1)
        for j in range(i)
    }
    best = max(joined, key=lambda pair: expected(joined[pair]))
    assert best == (K, 0)
    # Documents of 40 words tell their topics: the posterior under the halved state shares topic 0 between its halves.
    merged = land.merge(land.of_shares(shares), 1)
    whole = land.of_shares(np.eye(K)[labels].T.copy())
    order, expect = np.argsort(merged.weights), np.argsort(whole.weights)
    np.testing.assert_allclose(merged.topics[order], whole.topics[expect], atol=0.02)


def test_weights_are_repetitions(documents) -> None:
    counts, labels, _ = documents
    repeats = 1 + np.arange(600) % 3
    once = DocumentLandscape(counts, repeats.astype(float), 0.01)
    often = DocumentLandscape(counts[np.repeat(np.arange(600), repeats)], None, 0.01)
    state = Mixture(np.full(K, 1 / K), once.of_shares(np.eye(K)[(labels + np.arange(600) % 2) % K].T.copy()).topics)
    for one, two in (
        (once.climb(state, 3, 0.0)[0], often.climb(state, 3, 0.0)[0]),
        (once.merge(state, 1), often.merge(state, 1)),
    ):
        np.testing.assert_allclose(one.topics, two.topics, atol=1e-10)
        np.testing.assert_allclose(one.weights, two.weights, atol=1e-10)
    assert once.climb(state, 3, 0.0)[1] == pytest.approx(often.climb(state, 3, 0.0)[1])
    assert once.weight == often.weight


def test_a_stuck_start_is_moved_free(documents) -> None:
    """Two topics in one component, another one twice: EM stays, the search finds all four."""
    counts, labels, topics = documents
    land = DocumentLandscape(counts, None, 0.01)
    wrong = np.where(labels == 3, 2, labels)
    wrong[(labels == 0) & (np.arange(600) % 2 == 0)] = 3
    start = land.of_shares(np.eye(K)[wrong].T.copy())
    stuck, value = land.climb(start, 50, 1e-6)
    found = search(land, [Candidate("wrong", lambda: start)], K, EFFORTS["auto"], np.random.default_rng(0))

    def largest(state: Mixture) -> float:
        return float(max(np.abs(state.topics - topic).sum(axis=1).min() for topic in topics))

    assert largest(stuck) > 0.5
    assert largest(found.best.state) < 0.25  # 60 documents of 40 words over 30 words: 0.1 to 0.15 found
    assert found.best.value > value + 0.1 / 40  # per word
