"""Relevance, distances and the map of topics against their formulas; how documents use topics against plain loops."""

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import pdist, squareform

from odeco import plots
from odeco.plots.documents import topic_use
from odeco.plots.topics import candidate_words, top_words, topic_distances, word_frequencies
from tests.fitted_models import fitted_model

EPS = np.finfo(float).eps


def draw_topics(k=5, d=12, seed=0):
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.full(d, 0.5), size=k), rng.dirichlet(np.ones(k))


def test_relevance_is_the_formula_of_sievert_and_shirley():
    topics, shares = draw_topics()
    frequencies = word_frequencies(topics, shares)
    found = plots.relevance(topics, frequencies, 0.3)
    for i, topic in enumerate(topics):
        for w, phi in enumerate(topic):
            expected = 0.3 * np.log(phi) + 0.7 * np.log(phi / frequencies[w])
            assert found[i, w] == pytest.approx(expected, rel=1e-13)  # a handful of roundings


def test_relevance_at_its_ends_ranks_by_probability_and_by_lift():
    topics, shares = draw_topics()
    frequencies = word_frequencies(topics, shares)
    by_probability = top_words(plots.relevance(topics, frequencies, 1.0), 12)
    by_lift = top_words(plots.relevance(topics, frequencies, 0.0), 12)
    for i, topic in enumerate(topics):
        assert by_probability[i].tolist() == np.argsort(-topic, kind="stable").tolist()
        assert by_lift[i].tolist() == np.argsort(-topic / frequencies, kind="stable").tolist()


def test_words_that_a_topic_does_not_have_are_never_shown():
    topics = np.array([[0.5, 0.5, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0]])  # word 2 is in no topic
    frequencies = word_frequencies(topics, np.array([0.5, 0.5]))
    for weight in (0.0, 0.5, 1.0):
        scores = plots.relevance(topics, frequencies, weight)
        assert not np.isnan(scores).any()
        assert [words.tolist() for words in top_words(scores, 4)] == [[0, 1], [3]]


@pytest.mark.parametrize("weight", [-0.1, 1.5, float("nan")])
def test_relevance_refuses_weights_outside_of_the_unit_interval(weight):
    topics, shares = draw_topics()
    with pytest.raises(ValueError, match="between 0 and 1"):
        plots.relevance(topics, shares @ topics, weight)


def test_candidates_hold_the_top_words_at_every_weight():
    topics, shares = draw_topics(d=60)
    frequencies = word_frequencies(topics, shares)
    weights = np.linspace(0, 1, 11)
    candidates = candidate_words(topics, frequencies, 5, weights)
    for weight in weights:
        for chosen, words in zip(top_words(plots.relevance(topics, frequencies, weight), 5), candidates, strict=True):
            assert set(chosen) <= set(words)
    assert max(map(len, candidates)) < 60


def test_distances_are_jensen_shannon_in_bits():
    topics, _ = draw_topics()
    found = topic_distances(topics)

    def entropy(p):
        return -np.sum(p[p > 0] * np.log2(p[p > 0]))

    for i in range(5):
        for j in range(5):
            p, q = topics[i], topics[j]
            divergence = entropy((p + q) / 2) - (entropy(p) + entropy(q)) / 2
            # The divergence of equal topics is a difference of entropies: its root is known to the root of epsilon.
            assert found[i, j] == pytest.approx(np.sqrt(max(divergence, 0)), abs=np.sqrt(50 * EPS))


def test_topics_without_a_common_word_are_at_distance_one():
    assert topic_distances(np.eye(3)) == pytest.approx(1 - np.eye(3))


def test_pooling_rare_words_can_only_shorten_distances():
    rng = np.random.default_rng(0)
    topics = rng.dirichlet(np.full(12_000, 0.05), size=3)
    pooled = topic_distances(topics)
    exact = squareform(pdist(topics, "jensenshannon")) / np.sqrt(np.log(2))
    assert (pooled <= exact + 1e-12).all()
    assert pooled == pytest.approx(exact, abs=0.01)  # the words beyond 10,000 hold 1e-3 of these topics' mass


def test_map_keeps_distances_that_fit_into_the_plane():
    topics = np.array([[0.6, 0.2, 0.2], [0.2, 0.6, 0.2], [0.2, 0.2, 0.6]])  # three points always fit
    found = plots.topic_map(topics, np.array([0.5, 0.3, 0.2]))
    distances = squareform(pdist(found.positions))
    assert distances == pytest.approx(found.distances, abs=1e-7)  # root of the rounding of squared distances
    assert found.kept == pytest.approx(1.0)


def test_map_says_how_much_of_the_differences_it_shows():
    found = plots.topic_map(np.eye(6), np.full(6, 1 / 6))  # a regular simplex: all five dimensions are alike
    assert found.kept == pytest.approx(2 / 5)
    assert plots.topic_map(np.ones((1, 3)) / 3, np.ones(1)).positions.tolist() == [[0, 0]]


def test_prevalence_of_documents_is_that_of_plain_loops():
    model, inputs = fitted_model("lda")
    counts = inputs["data"]
    use = topic_use(model, counts)
    proportions, lengths = model.transform(counts), counts.toarray().sum(axis=1)
    assert use.n_documents == counts.shape[0]
    assert use.n_words == lengths.sum()
    assert use.shares == pytest.approx(lengths @ proportions / lengths.sum())
    assert use.main_documents.tolist() == np.bincount(proportions.argmax(axis=1), minlength=3).tolist()
    for first, row in zip(range(0, 300, use.bin_size), use.prevalence, strict=True):
        part = slice(first, first + use.bin_size)
        assert row == pytest.approx(lengths[part] @ proportions[part] / lengths[part].sum())
    for i, examples in enumerate(use.examples):
        long = lengths >= 0.5 * lengths.mean()
        best = np.argsort(-np.where(long, proportions[:, i], -1), kind="stable")[:3]
        assert [e.document for e in examples] == best.tolist()
        assert [e.share for e in examples] == pytest.approx(proportions[best, i].tolist())


def test_documents_may_come_in_batches_of_any_size():
    model, inputs = fitted_model("lda")
    whole = topic_use(model, inputs["data"])
    counts = sparse.csr_array(inputs["data"])
    pieces = topic_use(model, lambda: (counts[i : i + 37] for i in range(0, 300, 37)))
    assert pieces.shares == pytest.approx(whole.shares)
    assert pieces.prevalence == pytest.approx(whole.prevalence)
    assert [[e.document for e in t] for t in pieces.examples] == [[e.document for e in t] for t in whole.examples]


def test_other_models_are_refused():
    model, _ = fitted_model("ica")
    with pytest.raises(ValueError, match="LatentDirichletAllocation, SingleTopicModel, got ICA"):
        plots.topic_shares(model)
