"""The sums of `DawidSkene.partial_fit`: moments of several groupings of the annotators, which need no basis."""

from __future__ import annotations

from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from odeco.fitting.stream import StreamPlan
from odeco.moments.base import Additive
from odeco.moments.crowd import CrowdMoments, draw_groups
from odeco.sources.rows import VOTES
from odeco.sources.votes import VoteBatch


class StreamedVotes(Additive):
    """Moments of votes for each of several `groups` (W,) of the annotators."""

    _sums: ClassVar[tuple[str, ...]] = ("groupings",)
    _on: ClassVar[tuple[str, ...]] = ("groups", "n_labels")

    def __init__(self, groups: tuple[NDArray[np.intp], ...], n_labels: int) -> None:
        self.groups, self.n_labels = groups, n_labels
        self.groupings = [CrowdMoments(group, n_labels) for group in groups]

    def update(self, batch: VoteBatch) -> Self:
        """Add the votes on some items."""
        for moments in self.groupings:
            moments.update(batch.votes, batch.weights)
        return self

    def merge(self, other: Self) -> Self:
        for moments, more in zip(self.groupings, other.groupings, strict=True):
            moments.merge(more)
        return self

    @property
    def label_counts(self) -> NDArray[np.float64]:
        """How often each worker gave each label, (W, L)."""
        return self.groupings[0].label_counts


def vote_plan(n_annotators: int, n_labels: int, n_groupings: int) -> StreamPlan[VoteBatch, StreamedVotes]:
    """How items are taken in chunks: the groupings are drawn before the first of them is seen."""

    def learn(first: VoteBatch, rng: np.random.Generator) -> StreamedVotes:
        return StreamedVotes(tuple(draw_groups(n_annotators, rng) for _ in range(n_groupings)), n_labels)

    return StreamPlan(VOTES, 0, learn, block=None)
