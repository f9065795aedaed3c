"""A source over one matrix in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from odeco.sources.base import Batch, Source, thin
from odeco.sources.counts import as_batch, check_weights


class ArraySource(Source):
    """Row slices of one matrix, checked once; the slices share its memory."""

    def __init__(self, X: Any, batch_size: int, sample_weight: ArrayLike | None = None) -> None:
        batch = X if isinstance(X, Batch) else as_batch(X)
        self._counts, self._lengths = batch.counts, batch.lengths
        self._weights = batch.weights if sample_weight is None else check_weights(sample_weight, len(batch))
        self._batch_size = batch_size

    @property
    def n_features(self) -> int:
        return int(self._counts.shape[1])

    @property
    def n_samples(self) -> int:
        """The number of rows."""
        return int(self._counts.shape[0])

    def whole(self) -> Batch:
        """All rows as one batch."""
        return Batch(self._counts, self._lengths, self._weights)

    def __iter__(self) -> Iterator[Batch]:
        for start in range(0, self.n_samples, self._batch_size):
            stop = min(start + self._batch_size, self.n_samples)
            weights = None if self._weights is None else self._weights[start:stop]
            yield Batch(row_slice(self._counts, start, stop), self._lengths[start:stop], weights)

    def sample(self, size: int) -> Batch:
        return thin(self.whole(), size)

    def map(self, function: Callable[[Batch], Batch]) -> Source:
        """Applied once and for all, rather than at every pass."""
        return ArraySource(function(self.whole()), self._batch_size)


def row_slice(counts: sparse.csr_array, start: int, stop: int) -> sparse.csr_array:
    """``counts[start:stop]`` without copying the nonzeros, which scipy's own slicing and constructor do."""
    if start == 0 and stop == counts.shape[0]:
        return counts
    first, last = counts.indptr[start], counts.indptr[stop]
    rows = sparse.csr_array((stop - start, counts.shape[1]), dtype=counts.dtype)
    rows.data, rows.indices = counts.data[first:last], counts.indices[first:last]
    rows.indptr = counts.indptr[start : stop + 1] - first
    rows.has_canonical_format = True  # checked for the whole matrix; without it scipy would look again
    return rows


def stack_rows(blocks: list[sparse.csr_array]) -> sparse.csr_array:
    """Blocks under one another."""
    if len(blocks) == 1:
        return blocks[0]
    dtype = np.result_type(*(block.dtype for block in blocks))
    return sparse.csr_array(sparse.vstack(blocks, format="csr", dtype=dtype))


def join_batches(parts: list[Batch]) -> Batch:
    """Several batches as one."""
    if len(parts) == 1:
        return parts[0]
    return Batch(
        stack_rows([part.counts for part in parts]),
        np.concatenate([part.lengths for part in parts]),
        np.concatenate([part.row_weights() for part in parts]),
    )
