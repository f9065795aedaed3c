"""Topic models on real text: paragraphs of the State of the Union addresses."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import sparse

from odeco import LatentDirichletAllocation, MomentWarning
from odeco.completion import completion

pytestmark = pytest.mark.real

# Words that a reader would put together. Over twelve fits, six seeds on either half of the paragraphs, all sets were
# among the twelve most distinctive words of one topic in ten; in two of them rounding decides about one set.
ANCHORS = {
    "money": {"gold", "silver", "currency", "bank"},
    "diplomacy": {"treaty", "mexico", "relations"},
    "forces": {"navy", "naval", "ships"},
    "peace": {"world", "peace", "nations", "freedom"},
    "accounts": {"fiscal", "treasury", "expenditures", "receipts"},
    "today": {"america", "americans"},
}


@pytest.fixture(scope="module")
def union(real_data):
    """Every other paragraph: counts to fit, a tenth held out, their decades, the vocabulary."""
    data = real_data("sotu")
    parts = (data["counts_data"], data["counts_indices"], data["counts_indptr"])
    counts = sparse.csr_array(parts, shape=tuple(data["counts_shape"]))[::2]
    held_out = np.arange(counts.shape[0]) % 10 == 0
    decades = np.char.rstrip(data["y_names"], "s").astype(int)[data["y"][::2]]
    return counts[~held_out], counts[held_out], decades[~held_out], data["vocab"]


@pytest.fixture(scope="module")
def model(union):
    return fitted(union[0])


def fitted(counts, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MomentWarning)  # real text does not follow the model, and it is said
        return LatentDirichletAllocation(10, random_state=2, **options).fit(counts)


def topics_with_anchors(model, vocabulary):
    """For each name the topics that have all its anchors among their twelve most distinctive words."""
    mean = model.alpha_ @ model.components_ / model.alpha0_
    order = np.argsort(-model.components_ * np.log(model.components_ / mean), axis=1)
    words = [set(vocabulary[row[:12]].tolist()) for row in order]
    return {name: [topic for topic, top in enumerate(words) if anchors <= top] for name, anchors in ANCHORS.items()}


def test_refined_topics_predict_words_better_than_moments_and_frequencies(union, model):
    counts, held_out, _, _ = union
    frequencies = completion(held_out, counts.sum(axis=0)[None, :]).perplexity
    moments = completion(held_out, fitted(counts, refine=None).components_).perplexity
    refined = completion(held_out, model.components_).perplexity
    assert refined < 0.75 * frequencies  # measured: 0.68 to 0.70 over the eight fits
    assert refined < 0.98 * moments  # measured: 0.92 to 0.96
    assert moments < 0.85 * frequencies  # measured: 0.71 to 0.76
    assert model.perplexity(held_out) == pytest.approx(refined, rel=0.02)  # its own prior for 1/k; measured: 0.002


def test_a_reader_recognises_the_topics(union, model):
    found = topics_with_anchors(model, union[3])
    assert all(len(topics) == 1 for topics in found.values()), found
    assert len({topics[0] for topics in found.values()}) == len(ANCHORS)  # a topic each


def test_topics_belong_to_their_time(union, model):
    counts, _, decades, vocabulary = union
    proportions, topics = model.transform(counts), topics_with_anchors(model, vocabulary)
    lengths = counts.sum(axis=1)

    def share(name, first, last):
        chosen = (decades >= first) & (decades <= last)
        return np.average(proportions[chosen][:, topics[name][0]], weights=lengths[chosen])

    # Shares of all words, here and there; measured: 6 to 48 times as large.
    assert share("money", 1830, 1890) > 4 * share("money", 1940, 2020)
    assert share("diplomacy", 1840, 1890) > 4 * share("diplomacy", 1960, 2020)
    assert share("peace", 1940, 1980) > 4 * share("peace", 1820, 1900)
    assert share("today", 1990, 2020) > 4 * share("today", 1790, 1940)
