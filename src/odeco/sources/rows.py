"""Kinds of rows: how chunks of each are joined, cut and copied, whatever comes of them."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from odeco.sources import arrays, dense
from odeco.sources.base import Batch
from odeco.sources.chunks import join_weights
from odeco.sources.dense import DenseBatch
from odeco.sources.sequences import Sequences, first_steps, followed_by
from odeco.sources.views import ViewBatch
from odeco.sources.votes import VoteBatch

Chunk = TypeVar("Chunk")


@dataclass(frozen=True)
class RowKind(Generic[Chunk]):
    """What chunks of one kind can do.

    Attributes
    ----------
    join : function
        Several chunks under one another.
    cut : function
        The samples from one place to another.
    copy : function
        A chunk that shares no memory with the caller's.
    size : function
        The number of samples.
    """

    join: Callable[[list[Chunk]], Chunk]
    cut: Callable[[Chunk, int, int], Chunk]
    copy: Callable[[Chunk], Chunk]
    size: Callable[[Any], int] = len


def _copied(weights: NDArray[np.float64] | None) -> NDArray[np.float64] | None:
    return None if weights is None else weights.copy()


def cut_counts(batch: Batch, start: int, stop: int) -> Batch:
    """Documents start to stop of a batch."""
    weights = None if batch.weights is None else batch.weights[start:stop]
    return Batch(arrays.row_slice(batch.counts, start, stop), batch.lengths[start:stop], weights)


def _cut_dense(batch: DenseBatch, start: int, stop: int) -> DenseBatch:
    return batch.take(slice(start, stop))


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


def _join_sequences(chunks: list[Sequences]) -> Sequences:
    joined = chunks[0]
    for chunk in chunks[1:]:
        joined = followed_by(joined, chunk)
    return joined


def _cut_steps(data: Sequences, start: int, stop: int) -> Sequences:
    """The first steps: the last sequence among them is cut short, and what follows cannot stand by itself."""
    if start:
        raise ValueError("sequences can be cut off at the end alone.")
    return first_steps(data, stop)


@dataclass(frozen=True, eq=False)
class TablePiece:
    """Rows of a table as they came, an array or DataFrame, or as a schema has `read` them; their weights."""

    rows: Any = field(repr=False)
    weights: NDArray[np.float64] | None = field(default=None, repr=False)
    read: bool = False

    def __len__(self) -> int:
        return int(self.rows.shape[0])

    def cut(self, start: int, stop: int) -> TablePiece:
        """Some of the rows."""
        rows = self.rows.iloc[start:stop] if hasattr(self.rows, "iloc") else self.rows[start:stop]
        return TablePiece(rows, None if self.weights is None else self.weights[start:stop], self.read)


@dataclass(frozen=True, eq=False)
class TableChunk:
    """Rows whose columns are not known yet, in the pieces that they came in: joined they might change their types."""

    pieces: tuple[TablePiece, ...] = field(repr=False)

    def __len__(self) -> int:
        return sum(map(len, self.pieces))

    def cut(self, start: int, stop: int) -> TableChunk:
        """The rows start to stop."""
        found, first = [], 0
        for piece in self.pieces:
            low, high = max(start - first, 0), min(stop - first, len(piece))
            if low < high:
                found.append(piece.cut(low, high))
            first += len(piece)
        return TableChunk(tuple(found))

    def copy(self) -> TableChunk:
        """The same rows in memory of their own."""
        return TableChunk(
            tuple(TablePiece(deepcopy(piece.rows), _copied(piece.weights), piece.read) for piece in self.pieces)
        )


def _join_tables(chunks: list[TableChunk]) -> TableChunk:
    return TableChunk(tuple(piece for chunk in chunks for piece in chunk.pieces))


COUNTS: RowKind[Batch] = RowKind(
    arrays.join_batches,
    cut_counts,
    lambda batch: Batch(batch.counts.copy(), batch.lengths.copy(), _copied(batch.weights)),
)
VECTORS: RowKind[DenseBatch] = RowKind(
    dense.join_batches, _cut_dense, lambda batch: DenseBatch(batch.rows.copy(), _copied(batch.weights))
)
VIEWS: RowKind[ViewBatch] = RowKind(
    join_views,
    ViewBatch.cut,
    lambda batch: ViewBatch(tuple(block.copy() for block in batch.blocks), _copied(batch.weights)),
)
TABLES: RowKind[TableChunk] = RowKind(_join_tables, TableChunk.cut, TableChunk.copy)
VOTES: RowKind[VoteBatch] = RowKind(
    lambda batches: VoteBatch(arrays.stack_rows([b.votes for b in batches]), join_weights(batches)),
    lambda batch, start, stop: batch.take(slice(start, stop)),
    lambda batch: VoteBatch(batch.votes.copy(), _copied(batch.weights)),
)
SEQUENCES: RowKind[Sequences] = RowKind(_join_sequences, _cut_steps, lambda data: first_steps(data, len(data)))
