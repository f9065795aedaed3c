"""What people read of topics: words, documents, coherence; and what they are told where X holds no counts."""

from __future__ import annotations

import re
from itertools import combinations

import numpy as np
import pytest
from scipy import sparse

import odeco
from odeco.metrics import topic_coherence
from odeco.models.topics.words import relevance, word_frequencies

WORDS = ["sea", "ship", "sail", "tax", "bank", "loan"]


@pytest.fixture(scope="module")
def corpus():
    """Documents of the sea (even rows) and of money (odd rows)."""
    rng = np.random.default_rng(0)
    topics = np.array([[0.5, 0.3, 0.14, 0.02, 0.02, 0.02], [0.02, 0.02, 0.02, 0.14, 0.3, 0.5]])
    return np.array([rng.multinomial(20, topics[i % 2]) for i in range(400)])


@pytest.fixture(scope="module", params=["LatentDirichletAllocation", "SingleTopicModel"])
def model(request, corpus):
    return getattr(odeco, request.param)(2, random_state=0).fit(corpus)


def sea(model):
    return int(model.components_[:, 0].argmax())


def test_top_words_are_in_the_order_of_relevance(model):
    words = model.top_words(3, vocabulary=WORDS)
    assert set(words[sea(model)]) == {"sea", "ship", "sail"}
    assert set(words[1 - sea(model)]) == {"tax", "bank", "loan"}
    weights = model.alpha_ if hasattr(model, "alpha_") else model.weights_
    scores = relevance(model.components_, word_frequencies(model.components_, weights / weights.sum()))
    assert model.top_words(6) == [list(row) for row in np.argsort(-scores, axis=1, kind="stable")]
    by_probability = [list(row) for row in np.argsort(-model.components_, axis=1, kind="stable")]
    assert model.top_words(6, relevance_weight=1.0) == by_probability


def test_top_words_know_the_columns_of_a_frame(corpus):
    pandas = pytest.importorskip("pandas")
    model = odeco.SingleTopicModel(2, random_state=0).fit(pandas.DataFrame(corpus, columns=WORDS))
    assert set(model.top_words(3)[sea(model)]) == {"sea", "ship", "sail"}


def test_a_vocabulary_of_another_size_is_refused(model):
    with pytest.raises(ValueError, match="vocabulary must hold 6 words, .* got 2"):
        model.top_words(vocabulary=["sea", "ship"])
    with pytest.raises(ValueError, match="n must be a positive integer, got 0"):
        model.top_words(0)


def test_top_documents_are_those_of_the_largest_share(model, corpus):
    found = model.top_documents(corpus, 5)
    shares = model.transform(corpus) if hasattr(model, "transform") else model.predict_proba(corpus)
    for topic, rows in enumerate(found):
        assert len(rows) == 5
        assert sorted(shares[rows, topic], reverse=True) == shares[rows, topic].tolist()
        assert shares[rows, topic].min() == np.sort(shares[:, topic])[-5]
    assert {row % 2 for row in found[sea(model)]} == {0}


def test_top_documents_leave_out_short_ones_and_count_over_batches(model):
    short, long = [1, 0, 0, 0, 0, 0], [9, 9, 9, 1, 1, 1]
    batches = [sparse.csr_array(np.array([short, long])), sparse.csr_array(np.array([long, [0, 0, 0, 9, 9, 9]]))]
    found = model.top_documents(lambda: iter(batches), 1)
    assert found[1 - sea(model)] == [3]
    assert found[sea(model)] == [1]


def naive_coherence(words, counts):
    """By hand, pair for pair."""
    present, n, values = counts > 0, len(counts), []
    for i, j in combinations(words, 2):
        together = np.count_nonzero(present[:, i] & present[:, j]) / n
        if not present[:, i].any() or not present[:, j].any():
            continue
        chance = np.count_nonzero(present[:, i]) * np.count_nonzero(present[:, j]) / n**2
        values.append(
            -1.0 if together == 0 else 0.0 if together == 1 else np.log(together / chance) / -np.log(together)
        )
    return np.mean(values) if values else np.nan


def test_coherence_is_that_of_the_pairs_one_by_one():
    rng = np.random.default_rng(3)
    counts = rng.poisson(0.4, (60, 12))
    counts[:, 5], counts[:, 6] = 0, 1  # in no document, in all of them
    topics = rng.dirichlet(np.full(12, 0.3), 4)
    best = np.argsort(-topics, axis=1, kind="stable")[:, :5]
    expected = [naive_coherence(words, counts) for words in best]
    np.testing.assert_allclose(topic_coherence(topics, counts, n_words=5), expected)
    batches = [sparse.csr_array(counts[:25]), sparse.csr_array(counts[25:])]
    np.testing.assert_allclose(topic_coherence(topics, batches, n_words=5), expected)


def test_coherence_tells_topics_from_shuffled_ones(model, corpus):
    held_out = corpus[::3]
    mixed = topic_coherence(model.components_[:, [0, 3, 1, 4, 2, 5]], held_out, n_words=3)
    assert model.coherence(held_out, 3).min() > mixed.max() + 0.1


def test_coherence_names_what_does_not_fit():
    with pytest.raises(ValueError, match="n_words=1"):
        topic_coherence(np.eye(3), np.eye(3), n_words=1)
    with pytest.raises(ValueError, match="counts has 2 columns, and topics are over 3 words"):
        topic_coherence(np.eye(3), np.eye(2))
    with pytest.raises(ValueError, match="no documents"):
        topic_coherence(np.eye(3), iter([]))
    assert np.isnan(topic_coherence(np.eye(3), [[0, 0, 0]], n_words=2)).all()


def as_series(texts):
    return pytest.importorskip("pandas").Series(texts)


def as_frame(texts):
    return pytest.importorskip("pandas").DataFrame({"id": [1, 2], "text": texts})


@pytest.mark.parametrize(
    "form", [list, tuple, np.array, as_series, as_frame, lambda texts: [text.split() for text in texts]]
)
def test_texts_are_told_to_be_counted_first(form):
    with pytest.raises(ValueError, match=r"holds the text '.*'.*count the words first, .*Vectorizer"):
        odeco.LatentDirichletAllocation(2).fit(form(["two words", "three more words"]))


def test_one_text_is_told_to_be_counted_first():
    with pytest.raises(ValueError, match="got str: count the words of texts first"):
        odeco.LatentDirichletAllocation(2).fit("two words")


def test_texts_in_the_place_of_counts_to_predict_on(model):
    with pytest.raises(ValueError, match="count the words first"):
        model.top_documents(["two words"])


def test_tf_idf_and_frequencies_are_named(corpus):
    from sklearn.feature_extraction.text import TfidfTransformer

    for rows, name in (
        (TfidfTransformer().fit_transform(corpus), "tf-idf weights, as it seems"),
        (corpus / corpus.sum(axis=1, keepdims=True), "relative frequencies, as it seems"),
        (TfidfTransformer(norm=None).fit_transform(corpus), "fractions such as .*, and topic models need counts"),
    ):
        with pytest.warns(odeco.MomentWarning) as warned:
            odeco.SingleTopicModel(2, random_state=0).fit(rows)
        assert any(re.search(name, str(each.message)) for each in warned)
        assert all(each.filename == __file__ for each in warned)
