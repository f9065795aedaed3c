"""Counts that come in batches one after the other: lists, functions that return iterators, iterators."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from odeco.sources.arrays import row_slice, stack_rows
from odeco.sources.base import Batch, Source
from odeco.sources.chunks import Rechunked, join_weights, refuse_two_weights
from odeco.sources.counts import as_batch, check_weights


class StreamSource(Rechunked[Batch], Source):
    """Batches of counts from a function that returns a new iterator at each call."""

    def _check(self, item: Any) -> Batch:
        if isinstance(item, Batch):
            return item
        if isinstance(item, tuple) and len(item) == 2:
            chunk = as_batch(item[0])
            return replace(chunk, weights=check_weights(item[1], len(chunk)))
        return as_batch(item)

    def _width(self, chunk: Batch) -> int:
        return int(chunk.counts.shape[1])

    def _weigh(self, chunk: Batch, weights: NDArray[np.float64]) -> Batch:
        refuse_two_weights(chunk)
        return replace(chunk, weights=weights)

    def _cut(self, chunk: Batch, start: int, stop: int) -> Batch:
        weights = None if chunk.weights is None else chunk.weights[start:stop]
        return Batch(row_slice(chunk.counts, start, stop), chunk.lengths[start:stop], weights)

    def _join(self, chunks: list[Batch]) -> Batch:
        if len(chunks) == 1:
            return chunks[0]
        lengths = np.concatenate([chunk.lengths for chunk in chunks])
        return Batch(stack_rows([chunk.counts for chunk in chunks]), lengths, join_weights(chunks))
