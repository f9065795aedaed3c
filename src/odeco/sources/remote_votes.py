"""Labels of a crowd in Dask and Spark collections: wide rows where they are, long ones brought together by item.

The labels of an item may lie in several partitions of long rows. The engine's own shuffle puts them into one; the votes
that come of it are kept by the engine, so that it shuffles once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial, reduce
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from odeco.sources.crowd import named_columns, read_labels
from odeco.sources.dask import DaskPartitions
from odeco.sources.kinds import SparkColumn, is_dask
from odeco.sources.partitions import Partitioned, Partitions, Read, Rows, n_rows_of
from odeco.sources.remote import open_remote, weights_of
from odeco.sources.votes import CrowdNames, VoteBatch, VoteSource

_LONG = ("item", "worker", "label")


class PartitionedVotes(Partitioned, VoteSource):
    """Votes in partitions."""

    def __init__(self, partitions: Partitions, names: CrowdNames, check: Callable[[Any], VoteBatch]) -> None:
        VoteSource.__init__(self, self._fetch, names)
        self.partitions, self.pieces, self.functions, self.check = partitions, None, (), check

    def _reader(self) -> Read:
        width = len(self.names.workers) * len(self.names.classes)
        return Read(self.check, VoteBatch.take, width, self.functions)


def remote_votes(
    X: Any, layout: str, sample_weight: ArrayLike | None = None, known: CrowdNames | None = None
) -> PartitionedVotes:
    """A Dask or Spark collection of labels as a source of votes; where no names are `known`, a pass looks for them."""
    if not is_long(X, layout):
        partitions = open_remote(X, sample_weight)[0]
        names = known or _find_names(partitions, "wide")
        return PartitionedVotes(partitions, names, partial(_check_wide, names))
    if sample_weight is not None:
        raise ValueError(
            "sample_weight goes with the rows of a wide table: the items of long rows have no order elsewhere."
        )
    names = known or _find_names(_long_partitions(X, together=False), "long")
    return PartitionedVotes(_long_partitions(X, together=True).prepared(names.read), names, VoteBatch)


def is_long(X: Any, layout: str) -> bool:
    """Whether the rows of a collection are (item, worker, label); "auto" goes by the names of its columns."""
    names = None if isinstance(X, SparkColumn) or not hasattr(X, "columns") else [str(name) for name in X.columns]
    if layout != "auto":
        return layout == "long"
    if names is None and getattr(X, "ndim", 0) == 2 and X.shape[1] == 3:
        raise ValueError(
            "X has three columns, which may be annotators or (item, worker, label): say layout='wide' or 'long'."
        )
    return names is not None and named_columns(names) is not None


def _find_names(partitions: Partitions, layout: str) -> CrowdNames:
    """One pass that looks for annotators and labels."""
    found = partitions.fold(partial(_look, layout), _join_names, partitions.everything())
    if found is None:
        raise ValueError("X is empty: no partition has any rows.")
    return found


def _look(layout: str, partition: Any, rows: Rows) -> CrowdNames | None:
    if n_rows_of(partition) == 0:
        return None
    block = partition[0] if isinstance(partition, tuple) else partition
    return CrowdNames.of(read_labels(block, layout, require=False))


def _join_names(parts: Sequence[CrowdNames | None]) -> CrowdNames | None:
    known = [part for part in parts if part is not None]
    return reduce(CrowdNames.joined, known) if known else None


def _check_wide(names: CrowdNames, partition: Any) -> VoteBatch:
    rows, weights = partition if isinstance(partition, tuple) else (partition, None)
    votes = names.read(rows)
    return VoteBatch(votes, None if weights is None else weights_of(weights, votes.shape[0]))


def _long_partitions(X: Any, *, together: bool) -> Any:
    """Partitions of the three columns; all labels of an item in one of them if wanted."""
    if is_dask(X):
        frame = _long_frame(X)
        return DaskPartitions(list((frame.shuffle(on=str(frame.columns[0])) if together else frame).to_delayed()))
    from odeco.sources.spark import SparkPartitions

    frame = _spark_frame(X)
    data = SparkColumn(frame.repartition(frame.columns[0]) if together else frame, tuple(frame.columns), "rows")
    return SparkPartitions(data)


def _long_frame(X: Any) -> Any:
    """A Dask DataFrame of the columns item, worker, label; items of one type, for the shuffle goes by their bits."""
    if hasattr(X, "chunks") and hasattr(X, "ndim"):
        import dask.dataframe as dd

        _places(None, X.shape[1] if X.ndim == 2 else X.ndim)
        X = dd.from_dask_array(X.rechunk({1: -1}), columns=list(_LONG))
    if not hasattr(X, "columns"):
        raise ValueError(f"long rows are a Dask DataFrame or array of three columns, got {type(X).__name__}.")
    names = list(X.columns)
    frame = X[[names[place] for place in _places([str(name) for name in names], len(names))]]
    frame.columns = list(_LONG)
    kind = getattr(frame.dtypes["item"], "kind", "O")
    return frame.assign(item=frame["item"].astype(frame.dtypes["item"])) if kind in "biuf" else frame


def _spark_frame(X: Any) -> Any:
    frame = X.frame if isinstance(X, SparkColumn) else X
    return frame.select([frame.columns[place] for place in _places(list(frame.columns), len(frame.columns))])


def _places(names: list[str] | None, n_columns: int) -> tuple[int, int, int]:
    found = None if names is None else named_columns(names)
    if found is None and n_columns != 3:
        raise ValueError(f"long rows are (item, worker, label), three columns, got {n_columns}.")
    return found or (0, 1, 2)


def map_items(function: Callable[[Any], Any], X: Any, name: str, example: NDArray[Any], classes: Sequence[Any]) -> Any:
    """``function`` of the items of long rows, lazily: a Dask Series or DataFrame with the items as its index, a Spark
    DataFrame with a column for the items.
    """
    if is_dask(X):
        import pandas as pd

        frame = _long_frame(X)
        meta: Any = pd.Series(example, name=name) if example.ndim == 1 else pd.DataFrame(example, columns=list(classes))
        meta.index = pd.Index(frame._meta["item"], name="item")
        return frame.shuffle(on="item").map_partitions(_answer_frame, function, meta, meta=meta)
    from pyspark.sql import types

    from odeco.sources.spark import column_type

    frame = _spark_frame(X)
    item = frame.columns[0]
    schema = types.StructType([frame.schema[item], types.StructField(name, column_type(example))])
    rows = frame.repartition(item).rdd.mapPartitions(partial(_answer_rows, function))
    return frame.sparkSession.createDataFrame(rows, schema, verifySchema=False)


def _answers(function: Callable[[Any], Any], rows: Any) -> tuple[Any, Any]:
    from odeco.kernels.threads import one_thread

    with one_thread():
        return read_labels(rows, "long", require=False).items, np.asarray(function(rows))


def _answer_frame(rows: Any, function: Callable[[Any], Any], meta: Any) -> Any:
    if len(rows) == 0:
        return meta
    import pandas as pd

    items, values = _answers(function, rows)
    names = {"columns": meta.columns} if hasattr(meta, "columns") else {"name": meta.name}
    return type(meta)(values, index=pd.Index(items, name="item").astype(meta.index.dtype), **names)


def _answer_rows(function: Callable[[Any], Any], rows: Iterator[Any]) -> Iterator[Any]:
    found = np.array([tuple(row) for row in rows], dtype=object)
    if len(found):
        items, values = _answers(function, found)
        yield from zip(items.tolist(), values.tolist(), strict=True)
