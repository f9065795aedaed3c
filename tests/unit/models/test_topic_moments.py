"""What enters the moments of the topic models, seen through the estimators: lengths of documents, and alpha0."""

from __future__ import annotations

import numpy as np
import pytest

from odeco import LatentDirichletAllocation, MomentWarning, SingleTopicModel
from odeco.simulate import lda_documents, zipf_topics

TOPICS = np.array([[0.7, 0.2, 0.1], [0.1, 0.2, 0.7]])
LENGTHS = np.array([100, 300])  # of the documents of either topic


@pytest.fixture(scope="module")
def documents():
    """As many documents of one topic as of the other, of different lengths."""
    rng = np.random.default_rng(0)
    return np.array([rng.multinomial(LENGTHS[i % 2], TOPICS[i % 2]) for i in range(2000)])


@pytest.mark.parametrize("streamed", [False, True])
def test_documents_weigh_by_their_lengths(documents, streamed):
    model = SingleTopicModel(2, refine=None, document_weights="length", random_state=0)
    model = model.partial_fit(documents) if streamed else model.fit(documents)
    shares = (LENGTHS / (LENGTHS + 100)) ** 2
    # Weights are ratios of moments of 1000 documents of 100 words and more: 0.003 is three of their standard errors.
    np.testing.assert_allclose(model.weights_, np.sort(shares / shares.sum())[::-1], atol=0.003)
    assert np.abs(model.weights_ - 0.5).min() > 0.1  # equal weights are far


@pytest.mark.parametrize("streamed", [False, True])
def test_sample_weights_multiply_those_of_the_lengths(documents, streamed):
    undone = np.tile(((LENGTHS + 100) / LENGTHS) ** 2, len(documents) // 2)
    model = SingleTopicModel(2, refine=None, document_weights="length", random_state=0)
    fit = model.partial_fit if streamed else model.fit
    np.testing.assert_allclose(fit(documents, sample_weight=undone).weights_, 0.5, atol=0.004)


def test_an_alpha0_that_the_moments_do_not_show_is_said_and_taken_to_be_one():
    """300 documents of 20 words for 8 topics: the residual varies by 5 % over the whole grid."""
    drawn = lda_documents(300, zipf_topics(8, 400, random_state=0), np.full(8, 0.1), mean_length=20, random_state=1)
    model = LatentDirichletAllocation(8, refine=None, random_state=0)
    with pytest.warns(MomentWarning, match="alpha0 is not identified"):
        model.fit(drawn.counts)
    assert model.alpha0_ == 1.0
    assert not model.diagnostics_.details["alpha0_identified"]


def test_an_alpha0_that_the_moments_show_is_called_identified():
    drawn = lda_documents(3000, zipf_topics(4, 100, random_state=0), np.full(4, 0.1), mean_length=60, random_state=1)
    model = LatentDirichletAllocation(4, refine=None, random_state=0).fit(drawn.counts)
    assert model.diagnostics_.details["alpha0_identified"]
    assert 0.2 < model.alpha0_ < 0.8  # the truth is 0.4
