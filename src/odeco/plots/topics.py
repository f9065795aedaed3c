"""Figures of topics: relevance of words, distances between topics, a map of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from odeco.models.topics.words import DEFAULT_RELEVANCE as DEFAULT_RELEVANCE
from odeco.models.topics.words import relevance as relevance
from odeco.models.topics.words import top_words as top_words
from odeco.models.topics.words import word_frequencies as word_frequencies
from odeco.plots.names import check_suits

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

# Distances look at this many words, the most frequent ones, and at all others as if they were one word.
_MOST_WORDS = 10_000


@dataclass(frozen=True, eq=False)
class TopicMap:
    """Topics in the plane.

    Attributes
    ----------
    positions : (k, 2)
        By classical scaling of the distances; largest spread first.
    shares : (k,)
        The areas of the circles.
    distances : (k, k)
        Jensen-Shannon distances, between 0 (equal) and 1 (no common word).
    kept : float
        Share of the spread between the topics that two dimensions show.
    """

    positions: Floats = field(repr=False)
    shares: Floats
    distances: Floats = field(repr=False)
    kept: float


def topic_shares(model: Any) -> Floats:
    """Share of each topic: what the model expects of a document, ``alpha_ / alpha_.sum()`` or ``weights_`` (k,).

    What a topic has of the words of some data is its prevalence, `topic_use(model, data).shares`.
    """
    check_suits(model, "topic_shares")
    weights = np.asarray(model.alpha_ if hasattr(model, "alpha_") else model.weights_, dtype=np.float64)
    return np.asarray(weights / weights.sum())


def candidate_words(components: Floats, frequencies: Floats, n_words: int, weights: Floats) -> list[Indices]:
    """For each topic all words that are among its `n_words` most relevant at one of the weights."""
    rankings = [top_words(relevance(components, frequencies, float(w)), n_words) for w in weights]
    return [np.unique(np.concatenate([ranking[i] for ranking in rankings])) for i in range(len(components))]


def topic_distances(components: Floats) -> Floats:
    """Jensen-Shannon distances of the topics (k, k): square roots of the divergence in bits, 0 to 1, a metric.

    Words beyond the 10,000 most frequent are pooled into one: that can only shorten a distance.
    """
    from scipy.spatial.distance import pdist, squareform

    topics = np.asarray(components, dtype=np.float64)
    if topics.shape[1] > _MOST_WORDS:
        common = np.argpartition(-topics.sum(axis=0), _MOST_WORDS)
        rest = topics[:, common[_MOST_WORDS:]].sum(axis=1, keepdims=True)
        topics = np.hstack([topics[:, common[:_MOST_WORDS]], rest])
    if len(topics) < 2:
        return np.zeros((len(topics), len(topics)))
    return np.asarray(squareform(np.clip(pdist(topics, "jensenshannon") / np.sqrt(np.log(2)), 0, 1)))


def topic_map(components: Floats, shares: Floats) -> TopicMap:
    """Topics in the plane, by classical scaling of their Jensen-Shannon distances.

    The square root of the Jensen-Shannon divergence is a Euclidean distance, so the scaling loses nothing but the
    dimensions beyond two; `kept` says how much those are.
    """
    distances = topic_distances(components)
    k = len(distances)
    centring = np.eye(k) - 1 / k
    values, vectors = np.linalg.eigh(-0.5 * centring @ distances**2 @ centring)
    values, vectors = np.maximum(values[::-1][:2], 0), vectors[:, ::-1][:, :2]
    positions = np.zeros((k, 2))
    positions[:, : values.size] = vectors * np.sqrt(values)
    # Signs of eigenvectors mean nothing: the largest coordinate of each axis is made positive, here and everywhere.
    largest = positions[np.argmax(np.abs(positions), axis=0), [0, 1]]
    positions *= np.where(largest < 0, -1.0, 1.0)
    spread = 0.5 * float((distances**2).sum()) / k
    return TopicMap(positions, np.asarray(shares), distances, float(values.sum() / spread) if spread > 0 else 1.0)
