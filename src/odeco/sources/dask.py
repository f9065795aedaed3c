"""Dask collections as sources: arrays in blocks of rows, DataFrames, bags. Dask schedules, ships and retries.

Tasks run on the active `dask.distributed` client, or on the local scheduler where there is none. A task reads some
partitions, one after the other, and returns sums; sums are merged in a tree by further tasks; one result comes back. A
task uses one thread, so that the workers' threads are the parallelism.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from functools import partial
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from odeco.sources.dask_partitions import Enclosed, enclose
from odeco.sources.kinds import are_dask, is_dask
from odeco.sources.partitions import TREE_WIDTH, Partitions, Piece, Rows, SumRows, n_rows_of

Result = TypeVar("Result")

# Partitions that a task adds up at least, and tasks per thread at most. Few tasks: sums cost something apart from the
# rows. More than one where there are many partitions: a worker that is slow can leave some to the others.
_LEAST_PARTITIONS, _MOST_TASKS_PER_THREAD = 4, 3


class DaskPartitions(Partitions):
    """Tasks over one partition or several, and a tree of merges above."""

    def __init__(self, partitions: Sequence[Any]) -> None:
        super().__init__()
        self._delayed = list(partitions)
        self._readers = enclose(self._delayed)

    @property
    def n_partitions(self) -> int:
        return len(self._delayed)

    def fold(
        self, work: Callable[[Any, Rows], Result], merge: Callable[[Sequence[Result]], Result], pieces: Sequence[Piece]
    ) -> Result:
        from dask import delayed

        merging = delayed(merge, pure=False)
        level = self._sums(work, pieces) if isinstance(work, SumRows) else self._tasks(work, pieces)
        while len(level) > 1:
            level = [merging(level[i : i + TREE_WIDTH]) for i in range(0, len(level), TREE_WIDTH)]
        total: Result = compute(level)[0]
        return total

    def fetch(self, work: Callable[[Any, Rows], Result], pieces: Sequence[Piece]) -> list[Result]:
        from dask import annotate, get_annotations

        given = get_annotations().get("priority", 0)
        # Little work that is waited for: before a pass that was begun at the same time.
        with annotate(priority=given + 1) if isinstance(given, int | float) else nullcontext():
            tasks = self._tasks(work, pieces)
        return list(compute(tasks))

    def prepared(self, make: Callable[[Any], Any]) -> DaskPartitions:
        """What ``make`` makes of every partition, made once and kept by Dask: for what a shuffle brought together."""
        import dask

        making = dask.delayed(partial(_prepare, make), pure=False)
        return DaskPartitions(dask.persist(*(making(part) for part in self._delayed)))

    def _tasks(self, work: Callable[[Any, Rows], Result], pieces: Sequence[Piece]) -> list[Any]:
        """One for each piece. The work goes with them: Dask prefers workers that have what a task needs already."""
        from dask import delayed

        run = delayed(_run, pure=False)
        return [run(_Sent(work), self._readers[piece.index], _Sent(piece.rows)) for piece in pieces]

    def _sums(self, work: SumRows, pieces: Sequence[Piece]) -> list[Any]:
        """Tasks that add up neighbours: what sums cost apart from the rows is paid once for all of these.

        Empty sums are large, and a node of the graph of their own: they travel once to a worker, not once with every
        task, and are still there when a worker that had them dies. A few tasks, of which no worker has a second one,
        take them along: that is one way less.
        """
        from dask import delayed

        run, run_all = delayed(_run, pure=False), delayed(_run_all, pure=False)
        parts = [(self._readers[piece.index], piece.rows) for piece in pieces]
        sent = delayed(work, pure=False, traverse=False)
        if not all(isinstance(reader, Enclosed) for reader, _ in parts):  # they lie on workers: each stays on its own
            return [run(sent, reader, _Sent(rows)) for reader, rows in parts]
        n_workers, n_threads = _workers_and_threads()
        per_thread = np.clip(len(parts) // (_LEAST_PARTITIONS * n_threads), 1, _MOST_TASKS_PER_THREAD)
        edges = np.linspace(0, len(parts), min(len(parts), per_thread * n_threads) + 1).round().astype(int)
        # None is tied to a worker: where all are gone for a moment, such a task waits for its own for ever.
        given = _Sent(work) if len(edges) - 1 <= min(TREE_WIDTH, n_workers) else sent
        return [run_all(given, _Sent(parts[low:high])) for low, high in pairwise(edges)]


class _Sent:
    """Anything as one object: Dask looks into lists and slices for tasks, which takes longer than the tasks."""

    def __init__(self, value: Any) -> None:
        self.value = value


def _run(work: Any, partition: Any, rows: _Sent) -> Any:
    return _received(work)(_read(partition), rows.value)


def _run_all(work: Any, parts: _Sent) -> Any:
    return _received(work).over((_read(partition), rows) for partition, rows in parts.value)


def _received(work: Any) -> Any:
    return work.value if isinstance(work, _Sent) else work


def _read(partition: Any) -> Any:
    return as_block(partition.read() if isinstance(partition, Enclosed) else partition)


def _workers_and_threads() -> tuple[int, int]:
    """How many there are, the threads of all workers; one worker where there is no client."""
    from odeco.kernels.threads import thread_count

    if "distributed" in sys.modules:
        from distributed import default_client

        with suppress(ValueError):  # no client
            threads = default_client().nthreads()
            if threads:
                return len(threads), sum(threads.values())
    return 1, thread_count()


def _prepare(make: Callable[[Any], Any], partition: Any) -> Any:
    return make(partition) if n_rows_of(partition) else np.empty((0, 1))


def compute(tasks: list[Any]) -> Sequence[Any]:
    """Run tasks where Dask is told to: never more BLAS threads than tasks."""
    import dask

    from odeco.kernels.threads import single_threaded_blas

    with warnings.catch_warnings(), single_threaded_blas():
        # Sums on a basis of d x k numbers are larger than what Dask likes to see in a graph, and belong there.
        warnings.filterwarnings("ignore", message="Sending large graph")
        found: Sequence[Any] = dask.compute(*tasks)
        return found


def open_dask(X: Any, sample_weight: ArrayLike | None = None) -> tuple[DaskPartitions, int | None, Any]:
    """The partitions of a collection, its number of columns and its dtype; None where only the data know."""
    kind = type(X).__name__
    if hasattr(X, "chunks") and hasattr(X, "ndim"):
        return _open_array(X, sample_weight)
    if not hasattr(X, "to_delayed"):
        raise ValueError(f"X must be a Dask array, DataFrame or Bag, got {kind}.")
    parts = list(X.to_delayed())
    if sample_weight is not None:
        parts = _weighted(parts, sample_weight, kind)
    width = len(X.columns) if hasattr(X, "columns") else None
    return DaskPartitions(parts), width, None


def _open_array(X: Any, sample_weight: ArrayLike | None) -> tuple[DaskPartitions, int | None, Any]:
    if X.ndim != 2:
        raise ValueError(f"X must be two-dimensional (samples x features), got a Dask array of shape {X.shape}.")
    if len(X.chunks[1]) > 1:
        X = X.rechunk({1: -1})
    parts = [row[0] for row in X.to_delayed()]
    if sample_weight is not None:
        sizes = X.chunks[0]
        if not is_dask(sample_weight):
            weights = np.asarray(sample_weight, dtype=np.float64)
            if np.isnan(sizes).any():
                raise ValueError(
                    "sample_weight is an array, but the chunks of X have unknown sizes: call X.compute_chunk_sizes() "
                    "first, or give a Dask array with the same chunks."
                )
            if weights.shape != (X.shape[0],):
                raise ValueError(f"sample_weight must have shape ({X.shape[0]},), got {weights.shape}.")
            sample_weight = list(np.split(weights, np.cumsum(sizes)[:-1]))
        parts = _weighted(parts, sample_weight, "array")
    width = X.shape[1]
    partitions = DaskPartitions(parts)
    if not np.isnan(X.chunks[0]).any():
        partitions._sizes = [int(size) for size in X.chunks[0]]
    return partitions, None if np.isnan(width) else int(width), X.dtype


def open_views(views: list[Any], sample_weight: ArrayLike | None = None) -> DaskPartitions:
    """Partitions that hold all views of some samples; the views must have the same chunks of rows."""
    from dask import delayed

    opened = [open_dask(view)[0] for view in views]
    counts = {partitions.n_partitions for partitions in opened}
    sizes = {tuple(partitions._sizes) for partitions in opened if partitions._sizes is not None}
    if len(counts) > 1 or len(sizes) > 1:
        raise ValueError(f"the views must have the same chunks of rows, got {sorted(counts)} partitions: rechunk them.")
    together = delayed(_views, pure=False)
    parts = [together(*blocks) for blocks in zip(*(partitions._delayed for partitions in opened), strict=True)]
    if sample_weight is not None:
        if not is_dask(sample_weight):
            weights = np.asarray(sample_weight, dtype=np.float64)
            edges = np.cumsum(opened[0].sizes())
            if weights.shape != (edges[-1],):
                raise ValueError(f"sample_weight must have shape ({edges[-1]},), got {weights.shape}.")
            sample_weight = list(np.split(weights, edges[:-1]))
        parts = _weighted(parts, sample_weight, "array")
    together_partitions = DaskPartitions(parts)
    together_partitions._sizes = opened[0]._sizes
    return together_partitions


def _views(*blocks: Any) -> Any:
    """All views of some samples, to be checked where they are used."""
    from odeco.sources.views import ViewBatch, as_view_batch

    parts = tuple(as_block(block) for block in blocks)
    return as_view_batch(list(parts)) if parts[0].shape[0] else ViewBatch(parts)


def _weighted(parts: list[Any], sample_weight: Any, kind: str) -> list[Any]:
    """Partitions as pairs (rows, weights)."""
    from dask import delayed

    if is_dask(sample_weight):
        weights = list(np.asarray(sample_weight.to_delayed(), dtype=object).ravel())
    elif isinstance(sample_weight, list) and all(isinstance(part, np.ndarray) for part in sample_weight):
        weights = sample_weight
    else:
        raise ValueError(
            f"sample_weight of a Dask {kind} must be a Dask array or Series with the same partitions, got "
            f"{type(sample_weight).__name__}."
        )
    if len(weights) != len(parts):
        raise ValueError(f"sample_weight has {len(weights)} partitions, X has {len(parts)}: use the same ones.")
    pair = delayed(_pair, pure=False)
    return [pair(part, weight) for part, weight in zip(parts, weights, strict=True)]


def _pair(rows: Any, weights: Any) -> tuple[Any, Any]:
    return as_block(rows), np.asarray(weights, dtype=np.float64)


def as_block(partition: Any) -> Any:
    """A partition as one block of rows: a bag's is a list of rows, or of blocks, to be put under one another."""
    if type(partition).__name__ in ("COO", "GCXS"):  # of the library `sparse`
        return partition.tocsr() if partition.shape[0] else np.empty(partition.shape)
    pair = isinstance(partition, tuple) and len(partition) == 2
    return partition if pair or not isinstance(partition, (list, tuple)) else stack_items(list(partition))


def stack_items(items: list[Any]) -> Any:
    """Rows or blocks of rows under one another."""
    from scipy import sparse

    items = [item for item in items if not sparse.issparse(item) or item.shape[0]]
    if not items:
        return np.empty((0, 1))
    if any(sparse.issparse(item) for item in items):
        return sparse.vstack([sparse.csr_array(item) for item in items], format="csr")
    if any(isinstance(item, (str, bytes, dict)) for item in items):
        raise ValueError(
            f"the bag holds {type(items[0]).__name__}, and rows of numbers are needed: count words first, for example "
            "bag.map_partitions(vectorizer.transform)."
        )
    return np.vstack([np.atleast_2d(np.asarray(item)) for item in items])


def map_rows(function: Callable[[Any], Any], X: Any, sample: Any) -> Any:
    """``function`` of every partition of a Dask collection, lazily: a Dask array.

    `sample` is the function's result for one row: it tells the shape and the type of the rest.
    """
    import dask.array as da
    from dask import delayed

    partitions = open_views(list(X)) if are_dask(X) else open_dask(X)[0]
    apply = delayed(partial(_apply, function, np.asarray(sample)), pure=False)
    sizes: list[Any] = list(partitions._sizes or []) or [float("nan")] * partitions.n_partitions
    tail = np.asarray(sample).shape[1:]
    blocks = [
        da.from_delayed(apply(part), shape=(size, *tail), dtype=np.asarray(sample).dtype)
        for part, size in zip(partitions._delayed, sizes, strict=True)
    ]
    return da.concatenate(blocks, axis=0)


def _apply(function: Callable[[Any], Any], sample: Any, partition: Any) -> Any:
    from odeco.kernels.threads import one_thread

    block = as_block(partition)
    if n_rows_of(block) == 0:
        return np.empty((0, *sample.shape[1:]), dtype=sample.dtype)
    with one_thread():
        return np.asarray(function(block))
