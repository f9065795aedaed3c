"""The sums of `MultiViewMixture.partial_fit`: a basis from the first samples, then moments on it and nothing else."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from odeco.models._view_likelihoods import ViewKinds
from odeco.models._view_moments import BasisSearch, ViewSolution, find_basis, read_solution, solve_columns
from odeco.moments.views import ColumnSums, ViewMoments
from odeco.sources.views import ViewBatch, ViewSource

_SLACK = 10  # directions beyond 2 k: the first samples need not find the range exactly


class ViewStream:
    """Samples that arrive in chunks and are not kept, but for the first `basis_size` of them."""

    def __init__(self, widths: tuple[int, ...], n_components: int, basis_size: int, seed: int) -> None:
        self.widths, self.n_components, self.basis_size, self._seed = widths, n_components, basis_size, seed
        self.columns, self.kinds = ColumnSums(widths), ViewKinds(len(widths))
        self._held: list[ViewBatch] = []
        self._moments: ViewMoments | None = None
        self._search: BasisSearch | None = None

    def update(self, batch: ViewBatch) -> None:
        """Add the samples of a chunk."""
        for piece in batch.pieces():
            self.columns.update(piece)
            self.kinds.update(piece)
        if self._moments is not None:
            self._moments.update(batch)
            return
        self._held.append(_copied(batch))
        if self.columns.n < self.basis_size:
            return
        whole = join_views(self._held)
        self._search = self._basis(whole.cut(0, self.basis_size))
        self._moments, self._held = ViewMoments(self._search.basis).update(whole), []

    def _basis(self, first: ViewBatch) -> BasisSearch:
        columns, kinds = ColumnSums(self.widths), ViewKinds(len(self.widths))
        for piece in first.pieces():
            columns.update(piece)
            kinds.update(piece)
        rng = np.random.default_rng(self._seed)
        rank = 2 * self.n_components + _SLACK
        return find_basis(ViewSource(lambda: [first]), columns, self.n_components, rng, kinds.whole.tolist(), rank)

    def read(self, method: str, *, polish: bool) -> ViewSolution:
        """The estimate from all samples so far."""
        rng = np.random.default_rng(self._seed)
        if self._moments is None or self._search is None:
            held = join_views(self._held)
            source, counts = ViewSource(lambda: [held]), self.kinds.whole.tolist()
            return solve_columns(
                source, self.columns, self.n_components, rng, method=method, counts=counts, polish=polish
            )
        return read_solution(self.columns, self._moments, self._search, self.n_components, rng, method, polish=polish)


def join_views(batches: list[ViewBatch]) -> ViewBatch:
    """Batches under one another."""
    if len(batches) == 1:
        return batches[0]
    blocks = []
    for parts in zip(*(batch.blocks for batch in batches), strict=True):
        if any(sparse.issparse(part) for part in parts):
            blocks.append(sparse.csr_array(sparse.vstack([sparse.csr_array(part) for part in parts], format="csr")))
        else:
            blocks.append(np.concatenate(parts))
    weights: NDArray[np.float64] | None = None
    if any(batch.weights is not None for batch in batches):
        weights = np.concatenate([batch.row_weights() for batch in batches])
    return ViewBatch(tuple(blocks), weights)


def _copied(batch: ViewBatch) -> ViewBatch:
    """The caller may reuse his arrays."""
    weights = None if batch.weights is None else batch.weights.copy()
    return ViewBatch(tuple(block.copy() for block in batch.blocks), weights)
