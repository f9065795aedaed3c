"""Topics to start a refinement from where the moments give none: documents that differ from each other."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from odeco.models.topics.policy import POLICY
from odeco.sources import Source

Floats = NDArray[np.float64]


def documents_as_topics(source: Source, n_components: int, rng: np.random.Generator) -> Floats:
    """`n_components` documents chosen as k-means++ chooses seeds (by angle), each half mixed with all words: (k, d)."""
    batch = source.sample(POLICY.sample)
    counts = batch.counts[batch.lengths > 0].astype(np.float64)
    if counts.shape[0] == 0:
        raise ValueError("X has no words: every document is empty.")
    overall = np.asarray(counts.sum(axis=0)).ravel()
    overall = overall / overall.sum()
    norms = np.sqrt(np.asarray(counts.power(2).sum(axis=1)).ravel())
    chosen = [int(rng.integers(counts.shape[0]))]
    nearest = np.zeros(counts.shape[0])
    while len(chosen) < n_components:
        last = counts[[chosen[-1]]]
        cosine = np.asarray((counts @ last.T).todense()).ravel() / (norms * norms[chosen[-1]])
        nearest = np.maximum(nearest, cosine)
        distance = np.maximum(1.0 - nearest, 0.0)
        total = distance.sum()
        chosen.append(int(rng.choice(distance.size, p=distance / total) if total > 0 else rng.integers(distance.size)))
    rows = np.asarray(counts[chosen].todense())
    rows = rows / rows.sum(axis=1, keepdims=True)
    # A little noise tells topics apart that were drawn from equal documents.
    jitter = rng.random(rows.shape) * overall
    mixed = 0.5 * rows + 0.4 * overall + 0.2 * jitter
    return np.asarray(mixed / mixed.sum(axis=1, keepdims=True))
