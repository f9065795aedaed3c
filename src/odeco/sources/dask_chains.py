"""Sequences in Dask: bags of sequences, lists of delayed partitions, arrays and DataFrames with lengths.

A sequence has to lie in one partition as a whole: the recursions go through it step by step. A bag's does; chunks of an
array are moved to where sequences end.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from odeco.sources.chains import sequence_list
from odeco.sources.dask import DaskPartitions, compute
from odeco.sources.kinds import is_dask
from odeco.sources.sequences import Joined, check_lengths, join_array, join_list
from odeco.sources.values import plain_array

Rowwise = Callable[[NDArray[Any], NDArray[np.int64]], tuple[float, NDArray[Any]]]


@dataclass(frozen=True, eq=False)
class Layout:
    """Partitions as Dask has them: lists of sequences, or blocks of rows with the lengths of their sequences."""

    parts: list[Any] = field(repr=False)
    lengths: list[NDArray[np.int64]] | None = field(default=None, repr=False)

    def joined(self, weights: list[Any] | None) -> list[Any]:
        """Tasks that give each partition as one `Joined`."""
        from dask import delayed

        given = [None] * len(self.parts) if weights is None else weights
        if self.lengths is None:
            from_items = delayed(_join_items, pure=False)
            return [from_items(part, weight) for part, weight in zip(self.parts, given, strict=True)]
        from_rows = delayed(_join_rows, pure=False)
        return [from_rows(*three) for three in zip(self.parts, self.lengths, given, strict=True)]


def open_chains(X: Any, lengths: ArrayLike | None, weights: Any) -> DaskPartitions:
    """Partitions of sequences; `weights` has a number for each sequence, or the partitions of X."""
    layout = lay_out(X, lengths)
    return DaskPartitions(layout.joined(None if weights is None else _split(weights, layout)))


def lay_out(X: Any, lengths: ArrayLike | None) -> Layout:
    """Where the sequences of a collection lie."""
    from dask.delayed import Delayed

    if isinstance(X, (list, tuple, Delayed)):
        given = [X] if isinstance(X, Delayed) else X
        if lengths is not None:
            raise ValueError("lengths goes with one array or DataFrame: give partitions as lists of sequences.")
        return Layout([_as_partition(part) for part in given])
    if hasattr(X, "to_dask_array"):  # a DataFrame or Series, whose partitions have sizes that nobody knows
        X = X.to_dask_array(lengths=True)
    if hasattr(X, "chunks") and hasattr(X, "ndim"):
        return _lay_out_array(X, lengths)
    if lengths is not None:
        raise ValueError("lengths goes with an array or DataFrame: the elements of a Bag are sequences themselves.")
    return Layout(list(X.to_delayed()))


def _as_partition(given: Any) -> Any:
    """A delayed list of sequences as it is, an array as the one sequence of its partition."""
    from dask import delayed
    from dask.array import Array

    return delayed(_alone, pure=False)(given) if isinstance(given, Array) else given


def _alone(sequence: Any) -> list[Any]:
    return [sequence]


def _lay_out_array(X: Any, lengths: ArrayLike | None) -> Layout:
    if X.ndim not in (1, 2):
        raise ValueError(f"X must have shape (n_steps,) or (n_steps, n_features), got a Dask array of shape {X.shape}.")
    sizes = np.asarray(X.chunks[0], dtype=np.float64)
    if np.isnan(sizes).any():
        raise ValueError("the chunks of X have unknown sizes: call X.compute_chunk_sizes() first.")
    n = int(sizes.sum())
    if lengths is None and np.count_nonzero(sizes) > 1:
        raise ValueError(
            f"X is one sequence of {n:,} steps in {len(sizes)} chunks, and a sequence must lie in one partition: give "
            "lengths=, the length of each sequence (chunks may end within one), or a Bag of sequences. If it is one "
            f"sequence indeed, lengths=[{n}] brings all of it together in one partition."
        )
    counts = check_lengths([n] if lengths is None else lengths, n)
    groups = _groups(counts, sizes)
    chunks = tuple(int(group.sum()) for group in groups)
    X = X.rechunk({0: chunks} if X.ndim == 1 else {0: chunks, 1: -1})
    return Layout(list(np.asarray(X.to_delayed(), dtype=object).ravel()), groups)


def _groups(counts: NDArray[np.int64], sizes: NDArray[np.float64]) -> list[NDArray[np.int64]]:
    """Lengths of the sequences of each new chunk: a sequence goes with the chunk in which it begins."""
    if not counts.any():
        return [counts]
    begins = np.cumsum(counts) - counts
    owner = np.searchsorted(np.cumsum(sizes), begins, side="right")
    last_seen = np.maximum.accumulate(np.where(counts > 0, np.arange(counts.size), int(np.argmax(counts > 0))))
    owner = owner[last_seen]  # empty ones stay with their neighbours: no chunk is of these alone
    return [counts[owner == index] for index in np.unique(owner)]


def _split(weights: Any, layout: Layout) -> list[Any]:
    """Weights of the sequences of each partition."""
    from dask import delayed

    if is_dask(weights):
        found = list(np.asarray(weights.to_delayed(), dtype=object).ravel())
        if len(found) != len(layout.parts):
            raise ValueError(
                f"sequence_weight has {len(found)} partitions, X has {len(layout.parts)}: use the same, or one array."
            )
        return found
    if layout.lengths is None:
        sizes = compute([delayed(_count_items, pure=False)(part) for part in layout.parts])
    else:
        sizes = [lengths.size for lengths in layout.lengths]
    given = np.atleast_1d(np.asarray(weights, dtype=np.float64))
    if given.shape != (sum(sizes),):
        raise ValueError(
            f"sequence_weight must hold one number for each of the {sum(sizes)} sequences, got shape {given.shape}."
        )
    return np.split(given, np.cumsum(sizes)[:-1])


def _count_items(partition: Any) -> int:
    return len(sequence_list(partition))


def _join_items(partition: Any, weights: Any) -> Joined:
    return join_list(sequence_list(partition), None if weights is None else np.asarray(list(weights), dtype=np.float64))


def _join_rows(block: Any, lengths: NDArray[np.int64], weights: Any) -> Joined:
    return join_array(plain_array(block), lengths, None if weights is None else np.asarray(weights, dtype=np.float64))


def map_chains(function: Rowwise, X: Any, lengths: ArrayLike | None, example: NDArray[Any]) -> tuple[Any, Any]:
    """``function(array, lengths)`` of every partition, lazily: the sum of its values, and its rows.

    Rows are a Dask array where X is one, and otherwise a Bag with an array for each sequence. `example` are no rows of
    the result: they tell the shape and the type.
    """
    import dask.array as da
    import dask.bag as db
    from dask import delayed

    layout = lay_out(X, lengths)
    apply = delayed(_apply, pure=False, nout=2)
    sent = delayed(function, pure=False, traverse=False)
    joined = layout.joined(None)
    if layout.lengths is None:
        counts = [delayed(_lengths, pure=False)(part) for part in layout.parts]
        found = [apply(sent, whole, example, count) for whole, count in zip(joined, counts, strict=True)]
        rows = db.from_delayed([sequences for _, sequences in found])
    else:
        found = [apply(sent, whole, example, None) for whole in joined]
        sizes = [int(lengths.sum()) for lengths in layout.lengths]
        blocks = [
            da.from_delayed(block, shape=(size, *example.shape[1:]), dtype=example.dtype)
            for (_, block), size in zip(found, sizes, strict=True)
        ]
        rows = da.concatenate(blocks, axis=0)
    return delayed(sum, pure=False)([value for value, _ in found]), rows


def _lengths(partition: Any) -> NDArray[np.int64]:
    return np.array([len(sequence) for sequence in sequence_list(partition)], dtype=np.int64)


def _apply(
    function: Rowwise, joined: Joined, example: NDArray[Any], lengths: NDArray[np.int64] | None
) -> tuple[float, Any]:
    """The value and the rows of a partition; with `lengths` the rows of each sequence, empty ones included."""
    from odeco.kernels.threads import one_thread

    value, rows = 0.0, example
    if len(joined):
        with one_thread():
            value, rows = function(joined.array, np.diff(joined.offsets))
    return value, rows if lengths is None else np.split(rows, np.cumsum(lengths)[:-1]) if lengths.size else []
