"""From counts of entries to rows of a sparse matrix, once it is known which entry is which column."""

from __future__ import annotations

import tempfile
import weakref
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from threading import Lock
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from odeco.kernels import tokens as kernels
from odeco.text.counting import Block

Part = tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int64]]
Columns = Sequence[NDArray[np.int32]]
"""For each thread, the column of each of its entries, -1 for none."""


class BlockStore:
    """Blocks in their order: in memory as long as there are few of them, then in a file that has no name."""

    def __init__(self, memory: int) -> None:
        self._room = memory
        self._blocks: list[Block] = []
        self._file: IO[bytes] | None = None
        self._places: list[tuple[int, int, list[tuple[np.dtype[Any], int]]]] = []  # thread, offset, dtypes and sizes
        self._lock = Lock()

    def append(self, block: Block) -> None:
        """Add a block at the end."""
        self._room -= block.nbytes
        if self._room >= 0:
            self._blocks.append(block)
            return
        if self._file is None:
            self._file = tempfile.TemporaryFile(prefix="odeco-counts-")  # noqa: SIM115
            weakref.finalize(self, self._file.close)  # it goes when the store goes
        offset, parts = self._file.tell(), (block.entries, block.counts, block.row_ends)
        for part in parts:
            self._file.write(part.data)
        self._places.append((block.thread, offset, [(part.dtype, part.size) for part in parts]))

    def __iter__(self) -> Iterator[Block]:
        yield from self._blocks
        for thread, offset, parts in self._places:
            yield self._read(thread, offset, parts)

    def _read(self, thread: int, offset: int, parts: list[tuple[np.dtype[Any], int]]) -> Block:
        assert self._file is not None
        with self._lock:
            end = self._file.seek(0, 2)
            self._file.seek(offset)
            arrays = [np.frombuffer(self._file.read(n * dtype.itemsize), dtype=dtype) for dtype, n in parts]
            self._file.seek(end)
        return Block(thread, *arrays)


class CountMatrices:
    """The counts of stored blocks as sparse matrices, to be read as often as wanted."""

    def __init__(self, blocks: Iterable[Block], columns: Columns, n_columns: int) -> None:
        self._blocks, self._columns, self._n_columns = blocks, columns, n_columns

    def __iter__(self) -> Iterator[sparse.csr_matrix]:
        for part in sorted_parts(self._blocks, self._columns, self._n_columns):
            yield _matrix([part], self._n_columns)


def matrix_of(blocks: Iterable[Block], columns: Columns, n_columns: int) -> sparse.csr_matrix:
    """All rows in one matrix of int64, columns ascending in each row: what scikit-learn's CountVectorizer gives."""
    parts = list(sorted_parts(blocks, columns, n_columns))
    return _matrix(parts, n_columns) if parts else sparse.csr_matrix((0, n_columns), dtype=np.int64)


def sorted_parts(blocks: Iterable[Block], columns: Columns, n_columns: int) -> Iterator[Part]:
    """Columns, counts and row ends of each block, several at a time."""
    from odeco.kernels.threads import map_parts, thread_count

    iterator = iter(blocks)
    while group := list(islice(iterator, 4 * thread_count())):

        def part(t: int, group: list[Block] = group) -> Part:
            return _sorted(group[t], columns[group[t].thread], n_columns)

        yield from map_parts(part, len(group))


def _sorted(block: Block, column_of: NDArray[np.int32], n_columns: int) -> Part:
    columns, values = np.empty(block.entries.size, dtype=np.int32), np.empty(block.entries.size, dtype=np.int64)
    ends = np.empty(len(block), dtype=np.int64)
    size = kernels.sorted_rows(block.entries, block.counts, block.row_ends, column_of, n_columns, columns, values, ends)
    return columns[:size], values[:size], ends


def _matrix(parts: Sequence[Part], n_columns: int) -> sparse.csr_matrix:
    columns, values, ends = (list(arrays) for arrays in zip(*parts, strict=True))
    starts = np.cumsum([0, *(part.size for part in columns)])
    indptr = np.concatenate([[0], *(part + start for part, start in zip(ends, starts[:-1], strict=True))])
    if starts[-1] <= np.iinfo(np.int32).max:
        indptr = indptr.astype(np.int32)
    matrix = sparse.csr_matrix(
        (np.concatenate(values), np.concatenate(columns), indptr), shape=(indptr.size - 1, n_columns)
    )
    matrix.has_sorted_indices = matrix.has_canonical_format = True
    return matrix
