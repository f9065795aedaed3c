"""Spark DataFrames as sources: a column of vectors, of arrays or of token lists, or numeric columns side by side.

Rows are turned into one block per partition once, and kept by Spark (in memory, on disk where they do not fit). A pass
is then a task per partition and Spark's own `treeReduce` over the sums that the tasks return; Spark schedules, ships
and retries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from functools import partial
from itertools import islice
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from odeco.sources.kinds import SparkColumn
from odeco.sources.partitions import Partitions, Piece, Rows
from odeco.sources.views import ViewBatch, as_view_batch

Result = TypeVar("Result")

# Partitions whose results are merged here rather than in a tree.
_FEW = 32
# Rows that `add_column` works on at a time.
_ROWS = 4096


def from_spark(
    frame: Any,
    column: str | Sequence[str] | None = None,
    *,
    vocabulary: Sequence[str] | None = None,
    weight: str | None = None,
) -> SparkColumn:
    """Say which column of a Spark DataFrame holds the data.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
    column : str or list of str, optional
        Vectors of pyspark.ml (sparse or dense), arrays of numbers, or arrays of strings: lists of tokens to be counted;
        arrays of symbols, of numbers or of arrays of numbers: sequences, for hidden Markov models.
        May be left out where there is one such column; numeric columns are a table of their own. Several columns of
        vectors or arrays are views of the same samples.
    vocabulary : list of str, optional
        The words that are counted, in the order of the columns of the counts; all words of the corpus, sorted, where it
        is not given (`SparkColumn.vocabulary` then is what was found, after one pass).
    weight : str, optional
        A column with the weight of each row.
    """
    views = None if column is None or isinstance(column, str) else tuple(column)
    for name in views or ([] if column is None else [str(column)]):
        if name not in frame.columns:
            raise ValueError(f"column must be one of {', '.join(map(repr, frame.columns))}, got {name!r}.")
    if weight is not None and weight not in frame.columns:
        raise ValueError(f"weight must be one of {', '.join(map(repr, frame.columns))}, got {weight!r}.")
    if views is not None:
        kinds = [_find_columns(frame, name, weight)[0] for name in views]
        if "tokens" in kinds or vocabulary is not None:
            raise ValueError("views are columns of vectors or of arrays of numbers: count tokens first.")
        return SparkColumn(frame, views, "views", None, weight)
    kind, names = _find_columns(frame, None if column is None else str(column), weight)
    words = tuple(vocabulary) if vocabulary is not None else None
    if kind == "tokens" and words is None:
        words = _all_words(frame, names[0])
    if kind != "tokens" and words is not None:
        raise ValueError(f"vocabulary goes with lists of tokens, and column {names[0]!r} holds {kind}.")
    return SparkColumn(frame, names, kind, words, weight)


def _find_columns(frame: Any, column: str | None, weight: str | None) -> tuple[str, tuple[str, ...]]:
    """What holds the data, and which columns do."""
    types = {field.name: field.dataType for field in frame.schema.fields if field.name != weight}
    kinds = {name: _kind(kind) for name, kind in types.items()}
    if column is not None:
        if kinds[column] is None:
            raise ValueError(
                f"column {column!r} is of type {types[column].simpleString()}: vectors, arrays of numbers or arrays of "
                "strings are needed."
            )
        return str(kinds[column]), (column,)
    wide = [name for name, kind in kinds.items() if kind in ("vectors", "arrays", "tokens", "sequences")]
    if len(wide) == 1:
        return str(kinds[wide[0]]), (wide[0],)
    if not wide and kinds and all(kind == "numbers" for kind in kinds.values()):
        return "numbers", tuple(kinds)
    raise ValueError(
        f"it is not clear which of the columns {', '.join(map(repr, types))} hold the data: say it with "
        "odeco.sources.from_spark(frame, column), or select the numeric columns."
    )


def _kind(kind: Any) -> str | None:
    name = type(kind).__name__
    if name == "VectorUDT":
        return "vectors"
    if name == "ArrayType":
        inner = type(kind.elementType).__name__
        if inner == "ArrayType":
            return "sequences" if _is_number(type(kind.elementType.elementType).__name__) else None
        return "tokens" if inner == "StringType" else "arrays" if _is_number(inner) else None
    return "numbers" if _is_number(name) else None


def _is_number(name: str) -> bool:
    return name in ("ByteType", "ShortType", "IntegerType", "LongType", "FloatType", "DoubleType", "BooleanType")


def _all_words(frame: Any, column: str) -> tuple[str, ...]:
    from pyspark.sql.functions import col, explode

    found = frame.select(explode(col(column)).alias("word")).where(col("word").isNotNull()).distinct().collect()
    if not found:
        raise ValueError(f"column {column!r} has no tokens at all.")
    return tuple(sorted(row.word for row in found))


class SparkPartitions(Partitions):
    """One block of rows per partition of a DataFrame."""

    def __init__(self, data: SparkColumn, make: Callable[..., Iterator[Any]] | None = None) -> None:
        super().__init__()
        from pyspark import StorageLevel

        names = [*data.columns, *([] if data.weight is None else [data.weight])]
        rows = data.frame.select(*names).rdd
        make = partial(_block, kind=data.kind, vocabulary=data.vocabulary) if make is None else make
        blocks = rows.mapPartitions(partial(make, weighted=data.weight is not None))
        self._blocks = blocks.persist(StorageLevel.MEMORY_AND_DISK)
        self._n_partitions = int(rows.getNumPartitions())

    @property
    def n_partitions(self) -> int:
        return self._n_partitions

    def fold(
        self, work: Callable[[Any, Rows], Result], merge: Callable[[Sequence[Result]], Result], pieces: Sequence[Piece]
    ) -> Result:
        if len(pieces) < min(self._n_partitions, _FEW):  # a window: the other partitions are not even looked at
            return merge(self.fetch(work, pieces))
        total: Result = self._tasks(work, pieces).treeReduce(partial(_merge_two, merge))
        return total

    def fetch(self, work: Callable[[Any, Rows], Result], pieces: Sequence[Piece]) -> list[Result]:
        indexes = [piece.index for piece in pieces]
        context = self._blocks.context
        found: list[Result] = list(context.runJob(self._tasks(work, pieces), list, indexes)) if indexes else []
        return found

    def prepared(self, make: Callable[[Any], Any]) -> SparkPartitions:
        """What ``make`` makes of every partition, made once and kept by Spark instead of the rows."""
        from pyspark import StorageLevel

        made = copy(self)
        made._blocks = self._blocks.map(partial(_prepare, make)).persist(StorageLevel.MEMORY_AND_DISK)
        self._blocks.unpersist()
        return made

    def _tasks(self, work: Callable[[Any, Rows], Result], pieces: Sequence[Piece]) -> Any:
        from pyspark import cloudpickle

        wanted = {piece.index: piece.rows for piece in pieces}
        # Once to every machine rather than with every task; as Spark sends functions, closures included.
        sent = self._blocks.context.broadcast(cloudpickle.dumps(work))
        return self._blocks.mapPartitionsWithIndex(partial(_run, sent, wanted))


def _prepare(make: Callable[[Any], Any], block: Any) -> Any:
    return make(block) if block.shape[0] else block


def _run(work: Any, wanted: dict[int, Rows], index: int, blocks: Iterator[Any]) -> Iterator[Any]:
    from pyspark import cloudpickle

    for block in blocks:  # all of them: Spark ends a worker that leaves some of its input unread
        if index in wanted:
            yield cloudpickle.loads(work.value)(block, wanted[index])


def _merge_two(merge: Callable[[Sequence[Result]], Result], first: Result, second: Result) -> Result:
    return merge([first, second])


def _block(rows: Iterable[Any], *, kind: str, vocabulary: tuple[str, ...] | None, weighted: bool) -> Iterator[Any]:
    """The rows of a partition as one block; as a pair (block, weights) where rows have weights."""
    found = list(rows)
    values = [row[:-1] if weighted else row for row in found]
    if kind == "rows":
        block: Any = np.array([tuple(row) for row in values], dtype=object).reshape(len(found), -1)
    elif kind == "views":
        block = _view_block(values)
    elif kind == "numbers":
        block = np.array([[np.nan if x is None else x for x in row] for row in values], dtype=np.float64)
        block = block.reshape(len(found), -1) if found else np.empty((0, 1))
    else:
        block = _stack([row[0] for row in values], kind, vocabulary)
    yield (block, np.array([row[-1] for row in found], dtype=np.float64)) if weighted else block


def _view_block(rows: list[Any]) -> ViewBatch:
    """The views of some samples; none of them where there are none."""
    if not rows:
        return ViewBatch((np.empty((0, 1)),))
    columns = [list(column) for column in zip(*rows, strict=True)]
    kinds = ["vectors" if hasattr(column[0], "toArray") else "arrays" for column in columns]
    return as_view_batch([_stack(column, kind, None) for column, kind in zip(columns, kinds, strict=True)])


def _stack(items: list[Any], kind: str, vocabulary: tuple[str, ...] | None) -> Any:
    if not items:
        return np.empty((0, 1))
    if any(item is None for item in items):
        raise ValueError("the column has null rows: drop them first (frame.dropna).")
    if kind == "tokens":
        assert vocabulary is not None
        return _count_tokens(items, vocabulary)
    if kind == "vectors":
        return _stack_vectors(items)
    widths = {len(item) for item in items}
    if len(widths) > 1:
        raise ValueError(f"the arrays of a column must all have one length, found {sorted(widths)}.")
    return np.array(items, dtype=np.float64)


def _stack_vectors(vectors: list[Any]) -> Any:
    widths = {int(vector.size) for vector in vectors}
    if len(widths) > 1:
        raise ValueError(f"the vectors of a column must all have one size, found {sorted(widths)}.")
    if not any(hasattr(vector, "indices") for vector in vectors):
        return np.array([vector.toArray() for vector in vectors])
    places = [np.asarray(v.indices if hasattr(v, "indices") else np.flatnonzero(v.toArray())) for v in vectors]
    values = [v.values if hasattr(v, "indices") else v.toArray()[p] for v, p in zip(vectors, places, strict=True)]
    return _as_csr(places, values, widths.pop())


def _count_tokens(documents: list[Any], vocabulary: tuple[str, ...]) -> Any:
    columns = {word: column for column, word in enumerate(vocabulary)}
    places, values = [], []
    for tokens in documents:
        known = [columns[token] for token in tokens if token in columns]
        place, count = np.unique(np.array(known, dtype=np.int64), return_counts=True)
        places.append(place)
        values.append(count)
    return _as_csr(places, values, len(vocabulary))


def _as_csr(places: list[NDArray[Any]], values: list[NDArray[Any]], width: int) -> sparse.csr_array:
    edges = np.concatenate([[0], np.cumsum([len(place) for place in places])])
    parts = np.concatenate(values).astype(np.float64), np.concatenate(places).astype(np.int32), edges
    return sparse.csr_array(parts, shape=(len(places), width))


def open_spark(X: Any, sample_weight: Any = None) -> tuple[Partitions, int | None, Any]:
    """The partitions of a DataFrame, its number of columns and its dtype; None where only the data know."""
    if sample_weight is not None and not isinstance(sample_weight, str):
        raise ValueError(
            f"sample_weight of a Spark DataFrame is the name of a column, got {type(sample_weight).__name__}."
        )
    if isinstance(X, SparkColumn):
        if sample_weight is not None:
            raise ValueError("sample_weight goes into from_spark(frame, column, weight=...).")
        data = X
    else:
        data = from_spark(X, weight=sample_weight)
    if data.kind == "sequences":
        raise ValueError(f"column {data.columns[0]!r} holds arrays of arrays: these are sequences, for an HMM.")
    width = len(data.vocabulary) if data.vocabulary is not None else None
    return SparkPartitions(data), len(data.columns) if data.kind == "numbers" else width, None


def add_column(function: Callable[[Any], Any], X: Any, name: str, example: NDArray[Any]) -> Any:
    """The DataFrame with ``function`` of its rows in a further column, lazily."""
    from pyspark.sql import types

    data = X if isinstance(X, SparkColumn) else from_spark(X)
    if name in data.frame.columns:
        raise ValueError(f"the DataFrame already has a column {name!r}: rename it first.")
    schema = types.StructType([*data.frame.schema.fields, types.StructField(name, column_type(example))])
    places = [data.frame.columns.index(column) for column in data.columns]
    work = partial(_extend, function, places, data.kind, data.vocabulary)
    session = data.frame.sparkSession
    return session.createDataFrame(data.frame.rdd.mapPartitions(work), schema, verifySchema=False)


def column_type(example: NDArray[Any]) -> Any:
    """The type of a column of such values."""
    from pyspark.sql import types

    kinds: dict[str, Any] = {"i": types.LongType(), "U": types.StringType()}
    one = kinds.get(example.dtype.kind, types.DoubleType())
    return types.ArrayType(one, containsNull=False) if example.ndim == 2 else one


def _extend(
    function: Callable[[Any], Any], places: list[int], kind: str, vocabulary: Any, rows: Iterable[Any]
) -> Iterator[Any]:
    from odeco.kernels.threads import one_thread

    iterator = iter(rows)
    while group := list(islice(iterator, _ROWS)):
        values = [[row[place] for place in places] for row in group]
        block = next(_block(values, kind=kind, vocabulary=vocabulary, weighted=False))
        with one_thread():
            found = np.asarray(function(block)).tolist()
        for row, value in zip(group, found, strict=True):
            yield (*row, value)
