"""The state of `partial_fit`: the first steps as they are, and moments of everything on a basis learned from them."""

from __future__ import annotations

from typing import Self

import numpy as np

from odeco.models._hmm_starts import FeatureMoments, feature_bases, steps_of
from odeco.moments.sequence_features import update_triples
from odeco.sources.sequences import Sequences

HEAD_STEPS = 50_000


class FeatureStream:
    """Sequences that arrive in any division; memory stays bounded.

    `head` are the first `HEAD_STEPS` steps, `moments` is None while they are all there is.
    """

    def __init__(self, n_components: int, *, correlated: bool) -> None:
        self.n_components, self.correlated = n_components, correlated
        self._head: Sequences | None = None
        self.moments: FeatureMoments | None = None

    @property
    def head(self) -> Sequences:
        """The steps that are kept."""
        if self._head is None:
            raise ValueError("nothing has been added yet.")
        return self._head

    def update(self, data: Sequences) -> Self:
        """Add whole sequences."""
        if self.moments is not None:
            self._add(data)
            return self
        joined = data if self._head is None else _join(self._head, data)
        self._head = _cut(joined, HEAD_STEPS)
        if len(joined) > HEAD_STEPS:
            self.moments = feature_bases(self._head, self.n_components, correlated=self.correlated)
            self._add(joined)
        return self

    def _add(self, data: Sequences) -> None:
        update_triples(() if self.moments is None else self.moments.triples, *steps_of(data))


def _join(first: Sequences, second: Sequences) -> Sequences:
    offsets = np.concatenate([first.offsets, first.offsets[-1] + second.offsets[1:]])
    weights = None
    if first.weights is not None or second.weights is not None:
        parts = [np.ones(part.n_sequences) if part.weights is None else part.weights for part in (first, second)]
        weights = np.concatenate(parts)
    return Sequences(np.concatenate([first.values, second.values]), None, offsets, weights)


def _cut(data: Sequences, n_steps: int) -> Sequences:
    """The first steps, the last sequence among them cut short."""
    if len(data) <= n_steps:
        return data
    n_sequences = int(np.searchsorted(data.offsets, n_steps))  # the one that ends at or beyond the cut is the last
    offsets = np.append(data.offsets[:n_sequences], n_steps)
    weights = None if data.weights is None else data.weights[:n_sequences]
    return Sequences(data.values[:n_steps].copy(), None, offsets, weights)
