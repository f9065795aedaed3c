"""Topics on matplotlib: shares with words, the words of one topic, the map."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from odeco.plots.canvas import axes, colour, number_rows, plain
from odeco.plots.documents import topic_use
from odeco.plots.errors import error_bars
from odeco.plots.names import column_names
from odeco.plots.topics import (
    DEFAULT_RELEVANCE,
    Floats,
    relevance,
    top_words,
    topic_map,
    topic_shares,
    word_frequencies,
)

if TYPE_CHECKING:
    from odeco.uncertainty import Intervals


def plot_topics(
    model: Any,
    *,
    vocabulary: Iterable[Any] | None = None,
    data: Any = None,
    n_words: int = 8,
    weight: float = DEFAULT_RELEVANCE,
    ax: Any = None,
) -> Any:
    """Shares of all topics, or their prevalence in data, each with its most relevant words.

    Parameters
    ----------
    model : a fitted `LatentDirichletAllocation` or `SingleTopicModel`
    vocabulary : words of the columns, optional
    data : counts, optional
        To measure the prevalence in; shares, the model's own expectation, otherwise.
    n_words : int
    weight : float
        Of the relevance: 1 ranks words by probability, 0 by lift.
    ax : matplotlib axes, optional
    """
    components, names, shares = _topics(model, vocabulary)
    best = top_words(relevance(components, word_frequencies(components, shares), weight), n_words)
    shares = shares if data is None else _prevalence(model, data)
    ax = axes(ax)
    ax.barh(range(len(shares)), shares, color=[colour(i) for i in range(len(shares))])
    for i, words in enumerate(best):
        ax.text(shares[i], i, "  " + ", ".join(names[w] for w in words), va="center", fontsize=8, parse_math=False)
    ax.set(
        xlabel="share" if data is None else "prevalence: share of all words",
        ylabel="topic",
        xlim=(0, shares.max() * 3.2),
    )
    return number_rows(ax, [str(i) for i in range(len(shares))])


def plot_words(
    model: Any,
    topic: int,
    *,
    vocabulary: Iterable[Any] | None = None,
    n_words: int = 20,
    weight: float = DEFAULT_RELEVANCE,
    intervals: Intervals | None = None,
    ax: Any = None,
) -> Any:
    """The most relevant words of one topic: their probabilities in it, with intervals if given, and in the corpus."""
    components, names, shares = _topics(model, vocabulary)
    if isinstance(topic, bool) or not isinstance(topic, (int, np.integer)) or not 0 <= topic < len(shares):
        raise ValueError(f"topic must be a number from 0 to {len(shares) - 1}, got {topic!r}.")
    frequencies = word_frequencies(components, shares)
    words = top_words(relevance(components[[topic]], frequencies, weight), n_words)[0]
    ax = axes(ax)
    reach = None
    if intervals is not None:
        intervals.check_model(model)
        reach = np.array([each[topic, words] for each in error_bars(intervals, "components_")])
    ax.barh(range(len(words)), components[topic, words], xerr=reach, color=colour(int(topic)), label="in the topic")
    ax.barh(range(len(words)), frequencies[words], height=0.25, color="0.6", label="in the corpus")
    ax.set(xlabel="probability", title=f"Topic {topic} (relevance {weight:g})")
    ax.legend(frameon=False)
    number_rows(ax, [names[w] for w in words])
    for label in ax.get_yticklabels():
        label.set_parse_math(False)
    return ax


def plot_topic_map(model: Any, *, data: Any = None, ax: Any = None) -> Any:
    """Topics in the plane by their Jensen-Shannon distances; areas are shares, or prevalence in data."""
    components, _, shares = _topics(model, None)
    shares = shares if data is None else _prevalence(model, data)
    found, ax = topic_map(components, shares), axes(ax)
    x, y = found.positions.T
    ax.scatter(x, y, s=9000 * found.shares, c=[colour(i) for i in range(len(x))], alpha=0.35)
    for i in range(len(x)):
        ax.annotate(str(i), (x[i], y[i]), ha="center", va="center")
    ax.set(title=f"Map of topics ({found.kept:.0%} of their differences)", xticks=[], yticks=[])
    ax.set_aspect("equal", adjustable="datalim")
    ax.margins(0.12)
    return plain(ax)


def _topics(model: Any, vocabulary: Iterable[Any] | None) -> tuple[Floats, list[str], Floats]:
    """Topics, words and shares of a fitted topic model."""
    shares = topic_shares(model)
    components = np.asarray(model.components_, dtype=np.float64)
    names = column_names(model, vocabulary, components.shape[1], what="word", argument="vocabulary")
    return components, names, shares


def _prevalence(model: Any, data: Any) -> Floats:
    return topic_use(model, data, n_examples=0).shares
