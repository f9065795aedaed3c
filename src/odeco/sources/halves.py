"""Two halves of a source that share no sample: what one half has taught is judged by the other.

Samples go to a half by lot: whole documents, rows, items and sequences, and where there are few sequences, stretches of
steps. The lot is drawn from the place of a row in its batch; where rows may be cut into other batches on the way
(documents, and rows elsewhere) from what is in the row, so that it stays in its half whatever happens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from odeco.sources.arrays import ArraySource, join_batches
from odeco.sources.base import Batch
from odeco.sources.chains import ChainSource
from odeco.sources.dense import DenseBatch, DenseSource, OutOfCoreRows
from odeco.sources.partitions import Partitioned, PartitionedCounts
from odeco.sources.sequences import Sequences, cut_offsets
from odeco.sources.tables import OutOfCoreTable, TableSource
from odeco.sources.views import ViewSource
from odeco.sources.votes import VoteSource

# Fewer sequences than this are cut into as many stretches.
_STRETCHES = 16


@dataclass(frozen=True)
class Half:
    """The samples of one half (0 or 1) of a batch, or, of `n_parts` equal parts, the first or the second.

    `by_content`: drawn from what is in a row, not from its place.
    """

    index: int
    seed: int
    n_parts: int = 2
    by_content: bool = False

    def __call__(self, batch: Any) -> Any:
        """Those of the batch's samples that belong to this half."""
        if isinstance(batch, DenseBatch):
            return self._rows(batch)
        content = batch.counts if isinstance(batch, Batch) else None
        return batch.take(self._chosen(len(batch), content))

    def _rows(self, batch: DenseBatch) -> DenseBatch:
        weights = batch.weights
        if weights is not None and (weights > 1).any() and (weights == np.floor(weights)).all():
            return self._repeated(batch.rows, weights)
        return batch.take(self._chosen(len(batch), batch.rows if self.by_content else None))

    def _repeated(self, rows: Any, weights: NDArray[np.float64]) -> DenseBatch:
        """Of rows that stand for several equal ones, some of these."""
        rng, whole = self._generator(len(rows)), weights.astype(np.int64)
        mine = rng.binomial(whole, 1 / self.n_parts)
        if self.index:
            mine = rng.binomial(whole - mine, 1 / (self.n_parts - 1))
        return DenseBatch(rows[mine > 0], mine[mine > 0].astype(np.float64))

    def _chosen(self, n: int, content: Any) -> NDArray[np.intp]:
        if content is None:
            return np.sort(self._generator(n).permutation(n)[self.index :: self.n_parts])
        keys = np.random.default_rng(self.seed).standard_normal(content.shape[1])
        marks = np.asarray(content @ keys, dtype=np.float64)
        bits = marks.view(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        return np.flatnonzero((bits >> np.uint64(40)) % np.uint64(self.n_parts) == self.index)

    def _generator(self, n: int) -> np.random.Generator:
        return np.random.default_rng([self.seed, n])


def halves_of(source: Any, seed: int, n_parts: int = 2, *, small: bool = False) -> tuple[Any, Any] | None:
    """Both halves, or two of `n_parts` parts, each a source of the same kind; None for sequences elsewhere: they
    cannot be cut there. Documents elsewhere are brought here where their parts are `small`.
    """
    if isinstance(source, ChainSource):
        return None
    first, second = (_half_of(source, index, seed, n_parts) for index in (0, 1))
    if small and isinstance(source, PartitionedCounts):
        first, second = (ArraySource(join_batches(half.collect()), source.batch_size) for half in (first, second))
    return first, second


def _half_of(source: Any, index: int, seed: int, n_parts: int) -> Any:
    if isinstance(source, Sequences):
        return _half_of_sequences(source, index, seed, n_parts)
    if isinstance(source, Partitioned):
        return source.map(Half(index, seed, n_parts, by_content=not hasattr(source, "schema")))
    half = Half(index, seed, n_parts)
    if isinstance(source, DenseSource):
        return _half_of_rows(source, half)
    if isinstance(source, ViewSource):
        return ViewSource(_reading(source, half))
    if isinstance(source, VoteSource):
        return VoteSource(_reading(source, half), source.names)
    return source.map(half)


def _half_of_rows(source: DenseSource, half: Half) -> DenseSource:
    read = _reading(source, half)
    if isinstance(source, OutOfCoreRows):
        schema = getattr(source, "schema", None)
        return OutOfCoreRows(read) if schema is None else OutOfCoreTable(schema, read)
    kept = list(read())  # chosen once, rather than at every pass
    if isinstance(source, TableSource):
        return TableSource(source.schema, lambda: kept)
    return DenseSource(lambda: kept)


def _reading(source: Any, half: Half) -> Callable[[], Iterator[Any]]:
    """A function that reads the half; batches of which nothing is left are left out."""
    return lambda: (kept for kept in map(half, source) if len(kept))


def _half_of_sequences(data: Sequences, index: int, seed: int, n_parts: int) -> Sequences:
    """Half of the sequences, or, where they are few, of the stretches of all steps."""
    n = len(data)
    bounds = data.offsets if data.n_sequences >= _STRETCHES else np.linspace(0, n, _STRETCHES + 1).astype(np.int64)
    lots = np.random.default_rng([seed, n]).permutation(bounds.size - 1)
    chosen = np.repeat(lots % n_parts == index, np.diff(bounds))
    steps = np.flatnonzero(chosen)
    offsets, weights = cut_offsets(data.offsets, data.weights, steps)
    if data.codes is None:
        return Sequences(data.values[steps], None, offsets, weights)
    return Sequences(data.values, data.codes[steps], offsets, weights)
