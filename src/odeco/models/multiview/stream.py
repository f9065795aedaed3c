"""The sums of `MultiViewMixture.partial_fit`: a basis from the first samples, then moments on it and nothing else."""

from __future__ import annotations

from typing import ClassVar, Self

import numpy as np

from odeco.fitting.stream import StreamPlan
from odeco.models.multiview.likelihoods import ViewLook
from odeco.models.multiview.moments import BasisSearch, basis_passes
from odeco.models.multiview.policy import POLICY
from odeco.moments.base import Together
from odeco.moments.passes import run_passes
from odeco.moments.views import ViewMoments
from odeco.sources.rows import VIEWS
from odeco.sources.views import ViewBatch, ViewSource


class StreamedViews(Together):
    """Columns and kinds of the views, and moments on a basis."""

    _parts: ClassVar[tuple[str, ...]] = ("look", "moments")
    _on: ClassVar[tuple[str, ...]] = ("search",)

    def __init__(self, search: BasisSearch) -> None:
        self.search = search
        origin = ViewBatch(tuple(shift[None] for shift in search.basis.shifts))  # the same for all that is merged
        self.look, self.moments = ViewLook(search.basis.widths, origin), ViewMoments(search.basis)

    def update(self, batch: ViewBatch) -> Self:
        """Add the samples of a batch."""
        self.look.update(batch)
        self.moments.update(batch)
        return self


def look_at(batch: ViewBatch) -> ViewLook:
    """Columns and kinds of some samples."""
    look = ViewLook(batch.widths)
    look.update(batch)
    return look


def view_plan(n_components: int, basis_size: int) -> StreamPlan[ViewBatch, StreamedViews]:
    """How samples in several views are taken in chunks."""

    def learn(first: ViewBatch, rng: np.random.Generator) -> StreamedViews:
        look, source = look_at(first), ViewSource(lambda: [first])
        rank = 2 * n_components + POLICY.slack
        passes = basis_passes(look.columns, n_components, rng, look.kinds.whole.tolist(), rank)
        return StreamedViews(run_passes(passes, source))

    return StreamPlan(VIEWS, basis_size, learn)
