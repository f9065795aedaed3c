"""The door to partitions elsewhere: Dask and Spark collections as sources of counts or of dense rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from odeco.sources.base import Batch
from odeco.sources.counts import as_batch, check_weights
from odeco.sources.dask import open_dask, open_views
from odeco.sources.dense import DENSE_BATCH_SIZE, DenseBatch, as_rows
from odeco.sources.kinds import SparkColumn, are_dask, is_dask
from odeco.sources.partitions import (
    Partitioned,
    PartitionedCounts,
    PartitionedRows,
    Partitions,
    Read,
    Rows,
    n_rows_of,
)
from odeco.sources.spark import open_spark
from odeco.sources.tables import ColumnSummary, Family, Schema, summarize_columns
from odeco.sources.views import ViewBatch, ViewSource


def remote_counts(X: Any, batch_size: int, sample_weight: ArrayLike | None = None) -> PartitionedCounts:
    """A Dask array, DataFrame or Bag, or a Spark DataFrame, as a source of counts."""
    partitions, width, _ = open_remote(X, sample_weight)
    n_features = width or _first(partitions, check_counts).n_features
    return PartitionedCounts(partitions, n_features, batch_size, check=check_counts)


def remote_rows(X: Any, batch_size: int = DENSE_BATCH_SIZE, sample_weight: ArrayLike | None = None) -> PartitionedRows:
    """The same as a source of dense rows."""
    partitions, width, dtype = open_remote(X, sample_weight)
    if width is None or dtype is None:
        first = _first(partitions, check_rows)
        width, dtype = first.n_features, first.rows.dtype
    kept = np.dtype(dtype) if np.dtype(dtype) in (np.dtype(np.float32), np.dtype(np.float64)) else np.dtype(np.float64)
    return PartitionedRows(partitions, width, kept, batch_size, check=check_rows)


class PartitionedViews(Partitioned, ViewSource):
    """Views of samples in partitions."""

    def __init__(self, partitions: Partitions) -> None:
        ViewSource.__init__(self, self._fetch)
        self.partitions, self.pieces, self.functions = partitions, None, ()

    @property
    def head(self) -> ViewBatch:
        if self._head is None:
            self._head = _first(self.partitions, partial(_check_views, None))
        return self._head

    def _reader(self) -> Read:
        return ReadViews(partial(_check_views, self.widths), ViewBatch.take, sum(self.widths), self.functions)


class ReadViews(Read):
    """Makes batches of views of a partition, few enough samples in each."""

    def batches(self, partition: Any, rows: Rows) -> Iterator[ViewBatch]:
        for batch in super().batches(partition, rows):
            yield from batch.pieces()


def _check_views(widths: tuple[int, ...] | None, partition: Any) -> ViewBatch:
    views, weights = partition if isinstance(partition, tuple) else (partition, None)
    if widths is not None and views.widths != widths:
        raise ValueError(f"partitions differ in the columns of their views: {widths}, then {views.widths}.")
    return views if weights is None else ViewBatch(views.blocks, weights_of(weights, len(views)))


def remote_views(X: Any, sample_weight: ArrayLike | None = None) -> PartitionedViews:
    """A list of Dask collections of the same samples with the same chunks of rows, or columns of a Spark DataFrame."""
    if are_dask(X):
        return PartitionedViews(open_views(list(X), sample_weight))
    if not isinstance(X, SparkColumn) or X.kind != "views":
        raise ValueError("say which columns hold the views: odeco.sources.from_spark(frame, ['first', 'second', ...]).")
    return PartitionedViews(open_spark(X, sample_weight)[0])


class PartitionedTable(PartitionedRows):
    """Rows of a table in partitions."""

    schema: Schema


def remote_table(
    X: Any, family: Family, sample_weight: ArrayLike | None, *, schema: Schema | None,
    names: Sequence[str] | None, batch_size: int,
) -> PartitionedTable:  # fmt: skip
    """A Dask or Spark table whose columns have families; without a schema, a pass finds it out."""
    partitions, _, _ = open_remote(X, sample_weight)
    if schema is None:
        labels = list(X.columns) if names is None and hasattr(X, "columns") else names
        labels = None if labels is None else [str(label) for label in labels]
        found = partitions.fold(partial(_summarize, family, labels), _merge_summaries, partitions.everything())
        if found is None:
            raise ValueError("X is empty: no partition has any rows.")
        schema = Schema.of(found)
    table = PartitionedTable(partitions, len(schema), np.float64, batch_size, check=partial(_check_table, schema))
    table.schema = schema
    return table


def _summarize(family: Any, names: Any, partition: Any, rows: Rows) -> list[ColumnSummary] | None:
    if n_rows_of(partition) == 0:
        return None
    return summarize_columns([partition[0] if isinstance(partition, tuple) else partition], family, names)


def _merge_summaries(parts: Sequence[list[ColumnSummary] | None]) -> list[ColumnSummary] | None:
    known = [part for part in parts if part is not None]
    if not known:
        return None
    if len({len(part) for part in known}) > 1:
        raise ValueError(f"partitions differ in their number of columns: {sorted({len(part) for part in known})}.")
    total = deepcopy(known[0])
    for part in known[1:]:
        for summary, other in zip(total, part, strict=True):
            summary.merge(other)
    return total


def _check_table(schema: Schema, partition: Any) -> DenseBatch:
    if isinstance(partition, tuple):
        values = schema.read(partition[0])
        return DenseBatch(values, weights_of(partition[1], len(values)))
    return DenseBatch(schema.read(partition))


def open_remote(X: Any, sample_weight: ArrayLike | None) -> tuple[Partitions, int | None, Any]:
    """The partitions of a collection, its number of columns and its dtype; None where only the data know."""
    return open_dask(X, sample_weight) if is_dask(X) else open_spark(X, sample_weight)


def check_counts(partition: Any) -> Batch:
    """A block, or a pair (block, weights), as a batch of counts."""
    if isinstance(partition, tuple):
        batch = as_batch(partition[0])
        return replace(batch, weights=weights_of(partition[1], len(batch)))
    return as_batch(partition)


def check_rows(partition: Any) -> DenseBatch:
    """A block, or a pair (block, weights), as a batch of dense rows."""
    if isinstance(partition, tuple):
        rows = as_rows(partition[0])
        return DenseBatch(rows, weights_of(partition[1], len(rows)))
    return DenseBatch(as_rows(partition))


def weights_of(weights: Any, n_rows: int) -> Any:
    """Weights of a partition; all of them may be 0 here, if not everywhere."""
    found = np.asarray(weights, dtype=np.float64)
    return found if found.shape == (n_rows,) and not found.any() else check_weights(found, n_rows)


def _first(partitions: Partitions, check: Callable[[Any], Any]) -> Any:
    """One row of the first partition that has any: it tells the number of columns."""

    def look(partition: Any) -> Any:
        one = check(partition)
        if isinstance(one, ViewBatch):
            return one.cut(0, 1)
        return type(one)(one.counts[:1], one.lengths[:1]) if isinstance(one, Batch) else DenseBatch(one.rows[:1])

    return partitions.first(look)
