"""Rows that lie in partitions elsewhere: sums over them come back, the rows stay where they are.

A pass over a source is always the same thing: sums that are updated with every batch. So this is all that has to run
elsewhere: `add_to` sends the (empty) sums to every partition, updates them there, and merges what comes back in a
tree. Which engine does it is the business of `Partitions`; `odeco.sources.dask` and `odeco.sources.spark` are two.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy, deepcopy
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from odeco.sources.arrays import join_batches as join_counts
from odeco.sources.base import Batch, evenly
from odeco.sources.dense import DENSE_BATCH_SIZE, DenseBatch, OutOfCoreRows, join_batches
from odeco.sources.streams import StreamSource

Result = TypeVar("Result")
SomeSums = TypeVar("SomeSums")
Rows = slice | NDArray[np.intp]

# Results that one merge adds up: neighbours, which engines tend to have on one worker, so that most of them stay there.
TREE_WIDTH = 4
# Partitions in which first rows are looked for at a time, until more have been seen: then as many again.
_FIRST_LOOK = 4


@dataclass(frozen=True, eq=False)
class Piece:
    """Some rows of one partition."""

    index: int
    rows: Rows


ALL = slice(None)


class Partitions(ABC):
    """Where the partitions lie, and how a function is run on each of them.

    ``work(partition, rows)`` runs where a partition is; only what it returns travels. Engines run what they are given
    again when a worker dies: a function must not depend on what it did before.
    """

    def __init__(self) -> None:
        self._sizes: list[int] | None = None
        self._first_sizes: list[int] = []

    @property
    @abstractmethod
    def n_partitions(self) -> int:
        """How many there are."""

    @abstractmethod
    def fold(
        self, work: Callable[[Any, Rows], Result], merge: Callable[[Sequence[Result]], Result], pieces: Sequence[Piece]
    ) -> Result:
        """``merge`` of ``work(partition, rows)`` over all pieces, in a tree, with neighbours merged first."""

    @abstractmethod
    def fetch(self, work: Callable[[Any, Rows], Result], pieces: Sequence[Piece]) -> list[Result]:
        """``work(partition, rows)`` of each piece, in order."""

    def everything(self) -> list[Piece]:
        """All rows."""
        return [Piece(index, ALL) for index in range(self.n_partitions)]

    def sizes(self) -> list[int]:
        """Numbers of rows, counted once and where the rows are."""
        if self._sizes is None:
            known = self._first_sizes
            self._sizes = known + self.fetch(_count_rows, self.everything()[len(known) :])
        return self._sizes

    def first_sizes(self, n_rows: int) -> list[int]:
        """Those of the first partitions, as many as have `n_rows` rows together, or a few more: no others are read."""
        known = self._first_sizes
        while self._sizes is None and sum(known) < n_rows:
            # As many as are missing if they are like those before; not many more than were seen.
            missing = len(known) * (n_rows / max(sum(known), 1) - 1)
            more = int(np.ceil(min(max(missing, 1), max(_FIRST_LOOK, len(known)))))
            self._remember(self.fetch(_count_rows, self.everything()[len(known) : len(known) + more]))
        return known if self._sizes is None else self._sizes

    def first(self, look: Callable[[Any], Result]) -> Result:
        """``look(partition)`` of the first partition that has any rows."""
        for piece in self.everything():
            size, found = self.fetch(partial(_look, look), [piece])[0]
            if piece.index == len(self._first_sizes):
                self._remember([size])
            if size:
                return found  # type: ignore[no-any-return]
        raise ValueError("X is empty: no partition has any rows.")

    def _remember(self, sizes: list[int]) -> None:
        self._first_sizes += sizes
        if len(self._first_sizes) == self.n_partitions and self._sizes is None:
            self._sizes = self._first_sizes

    def find(self, rows: NDArray[np.intp]) -> list[Piece]:
        """The pieces that hold rows of the whole, ascending."""
        sizes = self.first_sizes(int(rows[-1]) + 1) if len(rows) else []
        ends = np.cumsum(sizes)
        owners = np.searchsorted(ends, rows, side="right")
        found = []
        for index in np.unique(owners).tolist():
            first = int(ends[index]) - sizes[index]
            mine = rows[owners == index] - first
            whole = len(mine) and mine[-1] - mine[0] + 1 == len(mine)
            found.append(Piece(index, slice(int(mine[0]), int(mine[-1]) + 1) if whole else mine))
        return found


class Partitioned(ABC):
    """What sources over partitions share; see the module."""

    partitions: Partitions
    pieces: Sequence[Piece] | None
    functions: tuple[Callable[[Any], Any], ...]
    checkpoint: Any = None
    _read: Callable[[], Iterable[Any]]
    _n_samples: int | None
    _batch_size: int = 65_536

    def _restricted(self, pieces: Sequence[Piece] | None, functions: tuple[Callable[[Any], Any], ...]) -> Self:
        """The same source with other rows, and other functions applied to its batches."""
        other = copy(self)
        other.pieces, other.functions = pieces, functions
        other._read, other._n_samples = other._fetch, None
        return other

    @abstractmethod
    def _reader(self) -> Read:
        """What makes batches of a partition."""

    def add_to(self, sums: SomeSums) -> SomeSums:
        """Add all rows to `sums`, which must be empty; one pass, made where the rows are."""
        if self.checkpoint is not None:
            kept: SomeSums = self.checkpoint.remember(sums, self._add_to)
            return kept
        return self._add_to(sums)

    def _add_to(self, sums: SomeSums) -> SomeSums:
        total = self.partitions.fold(SumRows(self._reader(), sums), merge_sums, self._places())
        found: SomeSums = _unpacked(sums, total)
        return found

    def map(self, function: Callable[[Any], Any]) -> Self:
        """A source of ``function(batch)``."""
        return self._restricted(self.pieces, (*self.functions, function))

    @property
    def n_rows(self) -> int:
        """The number of rows; counting them may take a pass."""
        if self.pieces is not None:
            sizes = self.partitions.sizes()
            return sum(len(range(*p.rows.indices(sizes[p.index]))) if isinstance(p.rows, slice) else len(p.rows)
                       for p in self.pieces)  # fmt: skip
        return sum(self.partitions.sizes())

    def n_first(self, most: int) -> int:
        """The number of rows, counted up to `most` only."""
        return min(most, sum(self.partitions.first_sizes(most)) if self.pieces is None else self.n_rows)

    def count_first(self) -> None:
        """Count the rows of a first batch: it is known then where a sample of them lies."""
        self.n_first(self._batch_size)

    def only(self, rows: NDArray[np.intp]) -> Self:
        """The source of some rows, given by their places in the whole, ascending."""
        return self._restricted(self.partitions.find(rows), self.functions)

    def windows(self, size: int) -> Iterator[Self]:
        """Sources of `size` rows each, one after the other, wherever partitions begin and end."""
        n_rows = sum(self.partitions.sizes())
        for start in range(0, n_rows, size):
            yield self.only(np.arange(start, min(start + size, n_rows)))

    def collect(self) -> list[Any]:
        """The batches themselves, brought here: for samples."""
        return [batch for batches in self.partitions.fetch(self._reader(), self._places()) for batch in batches]

    def _fetch(self) -> Iterator[Any]:
        """The batches, brought here one partition at a time."""
        for piece in self._places():
            yield from self.partitions.fetch(self._reader(), [piece])[0]

    def _places(self) -> Sequence[Piece]:
        return self.partitions.everything() if self.pieces is None else self.pieces


@dataclass(frozen=True, eq=False)
class Read:
    """Makes checked batches of a partition: none where it is empty."""

    check: Callable[[Any], Any]
    cut: Callable[[Any, Rows], Any]
    n_features: int
    functions: tuple[Callable[[Any], Any], ...] = ()
    batch_size: int = 65_536

    def __call__(self, partition: Any, rows: Rows) -> list[Any]:
        """The batches of some rows."""
        return list(self.batches(partition, rows))

    def batches(self, partition: Any, rows: Rows) -> Iterator[Any]:
        """The same one after the other."""
        if n_rows_of(partition) == 0:
            return
        chunk = self.check(partition)
        if chunk.n_features != self.n_features:
            raise ValueError(
                f"partitions differ in their number of columns: {self.n_features} in the first, then "
                f"{chunk.n_features}."
            )
        if rows != ALL if isinstance(rows, slice) else True:
            chunk = self.cut(chunk, rows)
        for start in range(0, len(chunk), self.batch_size):
            whole = len(chunk) <= self.batch_size
            batch = chunk if whole else self.cut(chunk, slice(start, min(start + self.batch_size, len(chunk))))
            for function in self.functions:
                batch = function(batch)
            yield batch


@dataclass(frozen=True, eq=False)
class SumRows:
    """Updates a copy of empty sums with the rows of a partition, on one thread: engines use one task per core."""

    read: Read
    empty: Any = field(repr=False)

    def __call__(self, partition: Any, rows: Rows) -> Any:
        """The sums, packed where they can be."""
        return self.over([(partition, rows)])

    def over(self, parts: Iterable[tuple[Any, Rows]]) -> Any:
        """Those of several partitions, read one after the other."""
        from odeco.kernels.threads import one_thread

        with one_thread():
            sums = deepcopy(self.empty)
            for partition, rows in parts:
                for batch in self.read.batches(partition, rows):
                    sums.update(batch)
                del partition  # before the next one is read
            return sums.pack() if hasattr(sums, "pack") else sums


def merge_sums(parts: Sequence[Any]) -> Any:
    """Sums of several partitions: packed ones add up, others merge."""
    total = parts[0]
    if hasattr(total, "merge"):
        total = deepcopy(total)
        for part in parts[1:]:
            total.merge(part)
        return total
    for part in parts[1:]:
        total = total + part
    return total


def _unpacked(empty: Any, total: Any) -> Any:
    return empty.unpack(total) if hasattr(empty, "unpack") else total


def n_rows_of(partition: Any) -> int:
    """The rows of a raw partition: a matrix, a DataFrame, a batch, a pair (rows, weights), or a list of rows."""
    rows = partition[0] if isinstance(partition, tuple) and len(partition) == 2 else partition
    return int(rows.shape[0]) if hasattr(rows, "shape") else len(rows)


def _count_rows(partition: Any, rows: Rows) -> int:
    return n_rows_of(partition)


def _look(look: Callable[[Any], Any], partition: Any, rows: Rows) -> tuple[int, Any]:
    """The number of rows, and what is seen where there are any."""
    n_rows = n_rows_of(partition)
    return n_rows, look(partition) if n_rows else None


class PartitionedCounts(Partitioned, StreamSource):
    """Counts in partitions. Read one batch after the other, it brings them here: sums do not."""

    def __init__(
        self,
        partitions: Partitions,
        n_features: int,
        batch_size: int,
        *,
        check: Callable[[Any], Batch],
    ) -> None:
        StreamSource.__init__(self, self._fetch, batch_size)
        self.partitions, self.pieces, self.functions, self.check = partitions, None, (), check
        self._n_features = n_features

    def _reader(self) -> Read:
        return Read(self.check, cut_counts, self.n_features, self.functions, self._batch_size)

    @property
    def batch_size(self) -> int:
        """Rows per batch that leaves the source, where it is read batch by batch."""
        return self._batch_size

    def sample(self, size: int) -> Batch:
        """What the first batch would give; no other row travels."""
        return join_counts(self.only(evenly(self.n_first(self.batch_size), size)).collect())

    def map(self, function: Callable[[Batch], Batch]) -> PartitionedCounts:
        return Partitioned.map(self, function)


class PartitionedRows(Partitioned, OutOfCoreRows):
    """Dense rows in partitions."""

    def take(self, rows: NDArray[np.intp]) -> DenseBatch:
        """Some rows, brought here."""
        return join_batches(self.only(rows).collect())

    def __init__(
        self,
        partitions: Partitions,
        n_features: int,
        dtype: Any,
        batch_size: int = DENSE_BATCH_SIZE,
        *,
        check: Callable[[Any], DenseBatch],
    ) -> None:
        OutOfCoreRows.__init__(self, self._fetch, batch_size)
        self.partitions, self.pieces, self.functions, self.check = partitions, None, (), check
        self._n_features, self._dtype = n_features, np.dtype(dtype)

    def _reader(self) -> Read:
        return Read(self.check, cut_dense, self.n_features, self.functions, self._batch_size)


def cut_counts(batch: Batch, rows: Rows) -> Batch:
    """Some rows of counts."""
    return batch.take(rows)


def cut_dense(batch: DenseBatch, rows: Rows) -> DenseBatch:
    """Some dense rows."""
    return batch.take(rows)


def is_elsewhere(source: Any) -> bool:
    """Whether sums over a source are made where its rows are."""
    return hasattr(source, "add_to")
