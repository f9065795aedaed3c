"""The words of topics: how telling each is, and which are the most telling. Models, figures and reports ask here."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

# The weight that readers of topics liked best in the study of Sievert and Shirley (2014), who proposed the measure.
DEFAULT_RELEVANCE = 0.6


def relevance(components: Floats, frequencies: Floats, weight: float = DEFAULT_RELEVANCE) -> Floats:
    """How telling each word is of each topic: ``weight * log phi + (1 - weight) * log(phi / frequency)``, (k, d).

    Sievert and Shirley (2014). At 1 words are in the order of their probability in the topic, at 0 in that of their
    lift; words that a topic does not have are at minus infinity.
    """
    if not 0 <= weight <= 1:
        raise ValueError(f"weight of the relevance must be between 0 and 1, got {weight!r}.")
    phi = np.asarray(components, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.log(phi) - (1 - weight) * np.log(frequencies)
    return np.where(phi > 0, found, -np.inf)


def word_frequencies(components: Floats, shares: Floats) -> Floats:
    """Probability of each word in the corpus, as the model sees it: topics weighed by their shares (d,)."""
    return np.asarray(shares @ components)


def top_words(scores: Floats, n_words: int) -> list[Indices]:
    """For each topic the words of the highest scores, best first; ties in the order of the columns."""
    n = min(int(n_words), scores.shape[1])
    chosen = []
    for row in scores:
        largest = np.flatnonzero(row >= np.partition(row, -n)[-n]) if n else np.empty(0, dtype=np.intp)
        order = largest[np.argsort(-row[largest], kind="stable")][:n]
        chosen.append(order[np.isfinite(row[order])])
    return chosen
