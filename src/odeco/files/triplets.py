"""Lines (row, column, value): the UCI bag of words and the coordinates of Matrix Market, streamed."""

from __future__ import annotations

import io
import re
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from odeco.files.opening import InputFile
from odeco.files.rows import BATCH_ROWS, SparseRows, check_width, csr_part, rows_per_batch

# Matrix Market files up to this size are read by scipy as a whole, whatever the order of their lines.
WHOLE_BYTES = 2**27


# Rows, columns (both from 0) and values.
Entries: TypeAlias = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[Any]]


@dataclass(frozen=True)
class Shape:
    """What the header of a file of triplets declares."""

    n_rows: int
    n_columns: int
    n_entries: int
    header_lines: int
    n_fields: int = 3
    dtype: Any = np.int64


def uci_rows(file: InputFile) -> SparseRows:
    """UCI docword: the numbers of documents, words and entries on a line each, then lines (document, word, count)."""
    lines = file.head().split(b"\n", 3)[:3]
    if len(lines) < 3 or not all(re.fullmatch(rb"\s*\d{1,18}\s*", line) for line in lines):
        raise file.error(
            "a UCI docword file begins with three lines: the numbers of documents, of words and of entries."
        )
    return _streamed(file, "uci", Shape(int(lines[0]), int(lines[1]), int(lines[2]), header_lines=3))


def matrix_market_rows(file: InputFile) -> SparseRows:
    """Matrix Market: by scipy where the file is small or not a plain list of entries, else line by line."""
    header = _market_header(file)
    if file.path.stat().st_size > WHOLE_BYTES and header is not None:
        return _streamed(file, "mtx", header)
    matrix = _read_market(file)
    if np.iscomplexobj(matrix):
        raise file.error("its numbers are complex, and real ones are needed.")
    with file.guard():
        whole = sparse.csr_array(matrix)
    check_width(file, whole.shape[1])
    if whole.shape[0] == 0:
        raise file.error("it has no rows.")
    per_batch = rows_per_batch(whole.shape[0], whole.nnz)
    return SparseRows(file, "mtx", whole.shape[1], lambda: row_slices(whole, per_batch), None, per_batch)


def _read_market(file: InputFile) -> Any:
    """By scipy, from a file of its own: given an open stream, its C++ may end the process on damaged input."""
    from scipy.io import mmread

    with file.guard():
        if not file.compressed:
            return mmread(file.path)
        with tempfile.NamedTemporaryFile(suffix=".mtx") as copy, file.open() as stream:
            shutil.copyfileobj(stream, copy)
            copy.flush()
            return mmread(copy.name)


def row_slices(whole: sparse.csr_array, n_rows: int) -> Iterator[sparse.csr_array]:
    """Pieces of a matrix in memory."""
    for start in range(0, whole.shape[0], n_rows):
        yield whole[start : start + n_rows]


def _market_header(file: InputFile) -> Shape | None:
    """The header of a plain list of entries; None for other kinds, which only scipy reads."""
    lines = file.head().split(b"\n")
    words = lines[0].decode("latin-1").lower().split()
    if len(words) != 5 or words[:2] != ["%%matrixmarket", "matrix"]:
        raise file.error(f"the first line of a Matrix Market file is '%%MatrixMarket matrix ...', found {lines[0]!r}.")
    _, _, layout, kind, symmetry = words
    types = {"integer": np.int64, "real": np.float64, "double": np.float64, "pattern": np.int64}
    if layout != "coordinate" or symmetry != "general" or kind not in types:
        return None
    place = next((i for i, line in enumerate(lines) if i and line.strip() and not line.startswith(b"%")), None)
    if place is None or not re.fullmatch(rb"\s*\d{1,18}\s+\d{1,18}\s+\d{1,18}\s*", lines[place]):
        return None
    n_rows, n_columns, n_entries = map(int, lines[place].split())
    return Shape(n_rows, n_columns, n_entries, place + 1, n_fields=2 if kind == "pattern" else 3, dtype=types[kind])


def _streamed(file: InputFile, name: str, shape: Shape) -> SparseRows:
    check_width(file, shape.n_columns)
    if shape.n_rows == 0 or shape.n_entries == 0:
        raise file.error(
            f"it declares {shape.n_rows} documents and {shape.n_entries} entries: there is nothing to fit."
        )
    if shape.n_rows > 10**6 + 1000 * shape.n_entries:  # would be read for ever
        raise file.error(f"it declares {shape.n_rows} documents but only {shape.n_entries} entries: damaged?")
    per_batch = rows_per_batch(shape.n_rows, shape.n_entries)
    return SparseRows(file, name, shape.n_columns, lambda: _read(file, shape), None, per_batch)


def _read(file: InputFile, shape: Shape) -> Iterator[sparse.csr_array]:
    """CSR pieces of whole rows; the last row of a block waits for the next, where it may go on."""
    waiting: list[Entries] = []
    next_row, n_entries = 0, 0
    for line, block in file.line_blocks(shape.header_lines):
        table = number_table(file, block, line, shape.n_fields, shape.dtype)
        if not len(table):
            continue
        n_entries += len(table)
        rows = table[:, 0].astype(np.int64) - 1
        _check_rows(file, rows, next_row, shape.n_rows, line)
        values = table[:, 2].copy() if shape.n_fields == 3 else np.ones(len(table), dtype=shape.dtype)
        entries = rows, table[:, 1].astype(np.int64) - 1, values
        last = int(rows[-1])
        if last > next_row:
            complete = int(np.searchsorted(rows, last))
            whole = _joined([*waiting, _cut(entries, 0, complete)])
            yield from _pieces(file, shape, whole, next_row, last)
            waiting, next_row, entries = [], last, _cut(entries, complete, len(rows))
        waiting.append(entries)
    if n_entries != shape.n_entries:
        raise file.error(f"it has {n_entries} entries, its header declares {shape.n_entries}: is it cut short?")
    yield from _pieces(file, shape, _joined(waiting), next_row, shape.n_rows)


def _joined(parts: list[Entries]) -> Entries:
    if len(parts) == 1:
        return parts[0]
    rows, columns, values = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    return rows, columns, values


def _cut(entries: Entries, start: int, stop: int) -> Entries:
    """Some of the entries, copied: the rest of a block need not be kept for the few that wait."""
    rows, columns, values = (array[start:stop].copy() for array in entries)
    return rows, columns, values


def _check_rows(file: InputFile, rows: NDArray[np.int64], lowest: int, n_rows: int, line: int) -> None:
    low, high = int(rows.min()), int(rows.max())
    if low < 0 or high >= n_rows:
        wrong = low if low < 0 else high
        raise file.error(f"from line {line} on there is document {wrong + 1}, outside 1 to {n_rows}.")
    if low < lowest or (np.diff(rows) < 0).any():
        raise file.error(
            f"from line {line} on documents are not in order: sort the lines by their first number (sort -n)."
        )


def _pieces(file: InputFile, shape: Shape, entries: Entries, first: int, stop: int) -> Iterator[sparse.csr_array]:
    """Rows first to stop, those without entries too."""
    rows, columns, values = entries
    for start in range(first, stop, BATCH_ROWS):
        indptr = np.searchsorted(rows, np.arange(start, min(start + BATCH_ROWS, stop) + 1))
        part = slice(indptr[0], indptr[-1])
        yield csr_part(file, values[part], columns[part], indptr - indptr[0], shape.n_columns, start + 1)


def number_table(file: InputFile, block: bytes, line: int, n_fields: int, dtype: Any) -> NDArray[Any]:
    """Lines of numbers as a table (lines, fields).

    numpy reads a flat list of integers about twice as fast as a table, but does not see where lines end: they are
    counted here, and whatever is not one space between two fields goes the slower way, which finds the fault too.
    """
    flat = _flat_integers(block, n_fields) if dtype == np.int64 else None
    if flat is not None:
        return flat.reshape(-1, n_fields)
    if not block.strip():
        return np.empty((0, n_fields), dtype)
    try:
        table = np.loadtxt(io.BytesIO(block), dtype=dtype, ndmin=2, comments=None)
    except ValueError as error:
        raise file.error(_moved(str(error), line)) from error
    if table.shape[1] != n_fields:
        raise file.error(f"{n_fields} numbers are expected on a line, found {table.shape[1]}.", line)
    return np.asarray(table)


def _flat_integers(block: bytes, n_fields: int) -> NDArray[np.int64] | None:
    symbols = np.frombuffer(block if block.endswith(b"\n") else block + b"\n", dtype=np.uint8)
    separators = symbols[symbols <= ord(" ")]
    expected = np.frombuffer(b" " * (n_fields - 1) + b"\n", dtype=np.uint8)
    if separators.size % n_fields or (separators.reshape(-1, n_fields) != expected).any():
        return None
    try:
        flat = np.fromstring(block, dtype=np.int64, sep=" ")
    except ValueError:
        return None
    if len(flat) != separators.size or (flat == np.iinfo(np.int64).max).any():
        return None
    return flat


def _moved(message: str, line: int) -> str:
    """numpy's message with the row of the block as a line of the file; it counts from 0 or from 1."""
    if found := re.search(r"to (\d+) at row (\d+);", message):
        return f"line {line + int(found[2]) - 1} has {found[1]} numbers, others have another number of them."
    if found := re.search(r"(could not convert string .*) to \w+ at row (\d+), column (\d+)", message):
        return f"line {line + int(found[2])}: {found[1]} (field {found[3]}) to a number."
    return f"from line {line} on: {message}"
