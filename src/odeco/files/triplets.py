"""Lines (row, column, value) in the order of rows, streamed: the UCI bag of words, and large Matrix Market files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from odeco.files.number_lines import number_table
from odeco.files.opening import InputFile
from odeco.files.rows import BATCH_ROWS, SparseRows, check_rows, check_width, csr_part, rows_per_batch

# Rows, columns (both from 0) and values.
Entries: TypeAlias = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[Any]]


@dataclass(frozen=True)
class Shape:
    """What the header of a file of triplets declares; entries without a type have no value but 1."""

    n_rows: int
    n_columns: int
    n_entries: int
    header_lines: int
    dtype: Any = np.int64

    def check(self, file: InputFile) -> None:
        """Refuse sizes that cannot be."""
        check_width(file, self.n_columns)
        if self.n_rows == 0 or self.n_entries == 0:
            raise file.error(
                f"it declares {self.n_rows} documents and {self.n_entries} entries: there is nothing to fit."
            )
        check_rows(file, self.n_rows, self.n_entries)


def uci_rows(file: InputFile) -> SparseRows:
    """UCI docword: the numbers of documents, words and entries on a line each, then lines (document, word, count)."""
    lines = file.head().split(b"\n", 3)[:3]
    if len(lines) < 3 or not all(re.fullmatch(rb"\s*\d{1,18}\s*", line) for line in lines):
        raise file.error(
            "a UCI docword file begins with three lines: the numbers of documents, of words and of entries."
        )
    shape = Shape(int(lines[0]), int(lines[1]), int(lines[2]), header_lines=3)
    shape.check(file)
    return streamed(file, "uci", shape)


def streamed(file: InputFile, name: str, shape: Shape) -> SparseRows:
    """Rows that come in order."""
    per_batch = rows_per_batch(shape.n_rows, shape.n_entries)
    return SparseRows(file, name, shape.n_columns, lambda: _read(file, shape), None, per_batch)


def entry_blocks(file: InputFile, shape: Shape) -> Iterator[tuple[int, Entries]]:
    """The entries of each block and its first line; rows are those of the header, and entries as many as it says."""
    n_entries = 0
    dtypes = (np.int64, np.int64) if shape.dtype is None else (np.int64, np.int64, shape.dtype)
    for line, block in file.line_blocks(shape.header_lines):
        rows, columns, *values = number_table(file, block, line, dtypes)
        if not len(rows):
            continue
        n_entries += len(rows)
        if n_entries > shape.n_entries:
            break
        low, high = int(rows.min()), int(rows.max())
        if low < 1 or high > shape.n_rows:
            wrong = low if low < 1 else high
            raise file.error(f"from line {line} on there is document {wrong}, outside 1 to {shape.n_rows}.")
        yield line, (rows - 1, columns - 1, values[0] if values else np.ones(len(rows), np.int64))
    if n_entries != shape.n_entries:
        found = f"{n_entries} entries" if n_entries < shape.n_entries else f"{n_entries} entries or more"
        raise file.error(f"it has {found}, its header declares {shape.n_entries}: is it cut short?")


def _read(file: InputFile, shape: Shape) -> Iterator[sparse.csr_array]:
    """CSR pieces of whole rows; the last row of a block waits for the next, where it may go on."""
    waiting: list[Entries] = []
    next_row = 0
    for line, entries in entry_blocks(file, shape):
        rows = entries[0]
        if rows[0] < next_row or (np.diff(rows) < 0).any():
            raise file.error(
                f"from line {line} on documents are not in order: sort the lines by their first number (sort -n)."
            )
        last = int(rows[-1])
        if last > next_row:
            complete = int(np.searchsorted(rows, last))
            whole = joined([*waiting, _cut(entries, 0, complete)])
            yield from _pieces(file, shape, whole, next_row, last)
            waiting, next_row, entries = [], last, _cut(entries, complete, len(rows))
        waiting.append(entries)
    yield from _pieces(file, shape, joined(waiting), next_row, shape.n_rows)


def joined(parts: list[Entries]) -> Entries:
    """Entries of several blocks."""
    if len(parts) == 1:
        return parts[0]
    rows, columns, values = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    return rows, columns, values


def _cut(entries: Entries, start: int, stop: int) -> Entries:
    """Some of the entries, copied: the rest of a block need not be kept for the few that wait."""
    rows, columns, values = (array[start:stop].copy() for array in entries)
    return rows, columns, values


def _pieces(file: InputFile, shape: Shape, entries: Entries, first: int, stop: int) -> Iterator[sparse.csr_array]:
    """Rows first to stop, those without entries too."""
    rows, columns, values = entries
    for start in range(first, stop, BATCH_ROWS):
        indptr = np.searchsorted(rows, np.arange(start, min(start + BATCH_ROWS, stop) + 1))
        part = slice(indptr[0], indptr[-1])
        yield csr_part(file, values[part], columns[part], indptr - indptr[0], shape.n_columns, start + 1)
