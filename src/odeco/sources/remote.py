"""The door to partitions elsewhere: Dask and Spark collections as sources of counts or of dense rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from odeco.sources.base import Batch
from odeco.sources.counts import as_batch, check_weights
from odeco.sources.dask import open_dask
from odeco.sources.dense import DENSE_BATCH_SIZE, DenseBatch, as_rows
from odeco.sources.kinds import is_dask
from odeco.sources.partitions import ALL, PartitionedCounts, PartitionedRows, Partitions, Piece, Rows, n_rows_of
from odeco.sources.spark import open_spark


def remote_counts(X: Any, batch_size: int, sample_weight: ArrayLike | None = None) -> PartitionedCounts:
    """A Dask array, DataFrame or Bag, or a Spark DataFrame, as a source of counts."""
    partitions, width, _ = _open(X, sample_weight)
    n_features = width or _first(partitions, check_counts).n_features
    return PartitionedCounts(partitions, n_features, batch_size, check=check_counts)


def remote_rows(X: Any, batch_size: int = DENSE_BATCH_SIZE, sample_weight: ArrayLike | None = None) -> PartitionedRows:
    """The same as a source of dense rows."""
    partitions, width, dtype = _open(X, sample_weight)
    if width is None or dtype is None:
        first = _first(partitions, check_rows)
        width, dtype = first.n_features, first.rows.dtype
    kept = np.dtype(dtype) if np.dtype(dtype) in (np.dtype(np.float32), np.dtype(np.float64)) else np.dtype(np.float64)
    return PartitionedRows(partitions, width, kept, batch_size, check=check_rows)


def _open(X: Any, sample_weight: ArrayLike | None) -> tuple[Partitions, int | None, Any]:
    return open_dask(X, sample_weight) if is_dask(X) else open_spark(X, sample_weight)


def check_counts(partition: Any) -> Batch:
    """A block, or a pair (block, weights), as a batch of counts."""
    if isinstance(partition, tuple):
        batch = as_batch(partition[0])
        return replace(batch, weights=_weights(partition[1], len(batch)))
    return as_batch(partition)


def check_rows(partition: Any) -> DenseBatch:
    """A block, or a pair (block, weights), as a batch of dense rows."""
    if isinstance(partition, tuple):
        rows = as_rows(partition[0])
        return DenseBatch(rows, _weights(partition[1], len(rows)))
    return DenseBatch(as_rows(partition))


def _weights(weights: Any, n_rows: int) -> Any:
    """Weights of a partition; all of them may be 0 here, if not everywhere."""
    found = np.asarray(weights, dtype=np.float64)
    return found if found.shape == (n_rows,) and not found.any() else check_weights(found, n_rows)


def _first(partitions: Partitions, check: Callable[[Any], Any]) -> Any:
    """One row of the first partition that has any: it tells the number of columns."""

    def look(partition: Any, rows: Rows) -> Any:
        if n_rows_of(partition) == 0:
            return None
        one = check(partition)
        return type(one)(one.counts[:1], one.lengths[:1]) if isinstance(one, Batch) else DenseBatch(one.rows[:1])

    for index in range(partitions.n_partitions):
        found = partitions.fetch(look, [Piece(index, ALL)])[0]
        if found is not None:
            return found
    raise ValueError("X is empty: no partition has any rows.")
