"""The state of `partial_fit`: the first steps as they are, and moments of everything on a basis learned from them."""

from __future__ import annotations

from typing import Self

from odeco.models._hmm_starts import FeatureMoments, feature_bases, steps_of
from odeco.moments.sequence_features import update_triples
from odeco.sources.sequences import Sequences, first_steps, followed_by

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
        joined = data if self._head is None else followed_by(self._head, data)
        self._head = first_steps(joined, HEAD_STEPS)
        if len(joined) > HEAD_STEPS:
            self.moments = feature_bases(self._head, self.n_components, correlated=self.correlated)
            self._add(joined)
        return self

    def _add(self, data: Sequences) -> None:
        update_triples(() if self.moments is None else self.moments.triples, *steps_of(data))
