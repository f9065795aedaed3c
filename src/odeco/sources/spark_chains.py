"""Sequences in Spark: a column of arrays, each row a whole sequence.

Rows of a DataFrame have no order, so that steps cannot be rows; the elements of an array do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from odeco.sources.kinds import SparkColumn
from odeco.sources.sequences import Joined, join_list
from odeco.sources.spark import SparkPartitions, column_type, from_spark

_STEPS = (
    "a row is a whole sequence, an array of numbers or of arrays of numbers. Rows that are steps have no order: bring "
    "those of a sequence together, as in frame.groupBy('sequence').agg(sort_array(collect_list(struct('time', 'x'))))."
)


def open_chains(X: Any, lengths: ArrayLike | None, weights: Any) -> SparkPartitions:
    """Partitions of sequences; `weights` is the name of a column with a number for each."""
    if lengths is not None:
        raise ValueError(f"lengths does not go with a Spark DataFrame: {_STEPS}")
    if weights is not None and not isinstance(weights, str):
        raise ValueError(f"sequence_weight of a Spark DataFrame is the name of a column, got {type(weights).__name__}.")
    if weights is not None and isinstance(X, SparkColumn):
        raise ValueError("sequence_weight goes into from_spark(frame, column, weight=...).")
    return SparkPartitions(_sequences_of(X, weights), join_rows)


def _sequences_of(X: Any, weight: str | None = None) -> SparkColumn:
    data = X if isinstance(X, SparkColumn) else from_spark(X, weight=weight)
    if data.kind not in ("arrays", "sequences"):
        raise ValueError(f"the column {data.columns[0]!r} holds {data.kind}: {_STEPS}")
    return replace(data, kind="sequences")


def join_rows(rows: Iterable[Any], *, weighted: bool) -> Iterator[Joined]:
    """The sequences of a partition."""
    found = list(rows)
    weights = np.array([row[-1] for row in found], dtype=np.float64) if weighted else None
    yield join_list([_sequence(row[0]) for row in found], weights)


def _sequence(items: Any) -> NDArray[Any]:
    """(T,) or (T, d), null for what is missing."""
    if items is None:
        raise ValueError("the column has null rows: drop them first (frame.dropna).")
    if any(isinstance(item, (list, tuple)) for item in items):
        return np.array([[np.nan if x is None else x for x in item] for item in items], dtype=np.float64)
    return np.array([np.nan if x is None else x for x in items])


def add_column(function: Callable[[NDArray[Any]], Any], X: Any, name: str, example: NDArray[Any]) -> Any:
    """The DataFrame with ``function`` of each sequence, an array with a row for each step, in a further column."""
    from pyspark.sql import types

    data = _sequences_of(X)
    if name in data.frame.columns:
        raise ValueError(f"the DataFrame already has a column {name!r}: rename it first.")
    kind = types.ArrayType(column_type(example), containsNull=False)
    schema = types.StructType([*data.frame.schema.fields, types.StructField(name, kind)])
    work = partial(_extend, function, data.frame.columns.index(data.columns[0]))
    return data.frame.sparkSession.createDataFrame(data.frame.rdd.mapPartitions(work), schema, verifySchema=False)


def _extend(function: Callable[[NDArray[Any]], Any], place: int, rows: Iterable[Any]) -> Iterator[Any]:
    from odeco.kernels.threads import one_thread

    for row in rows:
        sequence = _sequence(row[place])
        with one_thread():
            yield (*row, np.asarray(function(sequence)).tolist() if len(sequence) else [])
