"""The state of `partial_fit`: the first steps as they are, and moments of everything on a basis learned from them."""

from __future__ import annotations

from odeco.models._hmm_starts import FeatureMoments, feature_bases, steps_of
from odeco.models._hmm_stream import HeadStream
from odeco.moments.sequence_features import update_triples
from odeco.sources.sequences import Sequences


class FeatureStream(HeadStream):
    """`moments` is None while the head holds everything."""

    def __init__(self, n_components: int, *, correlated: bool) -> None:
        self.n_components, self.correlated = n_components, correlated
        self.moments: FeatureMoments | None = None

    @property
    def full(self) -> bool:
        return self.moments is not None

    def _learn(self, head: Sequences) -> None:
        self.moments = feature_bases(head, self.n_components, correlated=self.correlated)

    def _add(self, data: Sequences) -> None:
        assert self.moments is not None
        update_triples(self.moments.triples, len(data), lambda block: steps_of(data, block.start, block.stop))
