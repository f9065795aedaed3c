"""Matrix Market: lists of entries in any order and arrays, whole; large lists whose rows come in order, streamed."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from odeco.files.limits import limits
from odeco.files.number_lines import number_table
from odeco.files.opening import InputFile
from odeco.files.rows import SparseRows, row_slices, rows_per_batch
from odeco.files.sparse_parts import of_entries
from odeco.files.triplets import Entries, Shape, entry_blocks, joined, streamed

# The type of the values of each kind; a pattern has none.
_TYPES = {"integer": np.int64, "unsigned-integer": np.int64, "real": np.float64, "double": np.float64, "pattern": None}
# What stands on the other side of the diagonal.
_MIRRORED = {"symmetric": 1, "skew-symmetric": -1}


@dataclass(frozen=True)
class Header:
    """The first lines of a file."""

    layout: str
    symmetry: str
    shape: Shape


def matrix_market_rows(file: InputFile) -> SparseRows:
    """Rows of a file: at once where that is possible, streamed elsewhere."""
    header = _read_header(file)
    shape = header.shape
    if shape.n_entries > limits().market_entries and (header.layout, header.symmetry) == ("coordinate", "general"):
        return streamed(file, "mtx", shape)
    what = f"it has {shape.n_entries} entries, which must be read at once where it is {header.symmetry} {header.layout}"
    file.check_limit("market_entries", shape.n_entries, what)
    whole = _of_entries(file, header) if header.layout == "coordinate" else _of_array(file, header)
    per_batch = rows_per_batch(shape.n_rows, whole.nnz)
    return SparseRows(file, "mtx", shape.n_columns, lambda: row_slices(whole, per_batch), None, per_batch)


def _read_header(file: InputFile) -> Header:
    with file.guard(), file.open() as stream:
        first = file.read_line(stream, 1)
        words = first.decode("latin-1").lower().split()
        if len(words) != 5 or words[:2] != ["%%matrixmarket", "matrix"]:
            raise file.error(f"the first line of a Matrix Market file is '%%MatrixMarket matrix ...', found {first!r}.")
        n_lines, sizes = 2, file.read_line(stream, 2)
        while sizes and (sizes.startswith(b"%") or not sizes.strip()):
            n_lines, sizes = n_lines + 1, file.read_line(stream, n_lines + 1)
    return _checked_header(file, words[2:], sizes, n_lines)


def _checked_header(file: InputFile, words: list[str], sizes: bytes, n_lines: int) -> Header:
    layout, kind, symmetry = words
    if kind == "complex" or symmetry == "hermitian":
        raise file.error("its numbers are complex, and real ones are needed.")
    known = layout in ("coordinate", "array") and kind in _TYPES and symmetry in ("general", *_MIRRORED)
    if not known or (layout == "array" and kind == "pattern"):
        raise file.error(f"a Matrix Market file of the kind {' '.join(words)!r} is not known.")
    n_sizes = 3 if layout == "coordinate" else 2
    if not re.fullmatch(rb"\s*\d{1,18}(\s+\d{1,18}){%d}\s*" % (n_sizes - 1), sizes):
        raise file.error(f"{n_sizes} sizes are expected, found {sizes[:60].decode('latin-1')!r}.", n_lines)
    n_rows, n_columns, *n_entries = map(int, sizes.split())
    if symmetry != "general" and n_rows != n_columns:
        raise file.error(f"it is {symmetry} and has {n_rows} rows and {n_columns} columns.")
    stored = n_rows * n_columns if symmetry == "general" else n_rows * (n_rows + _MIRRORED[symmetry]) // 2
    shape = Shape(n_rows, n_columns, n_entries[0] if n_entries else stored, n_lines, _TYPES[kind])
    shape.check(file)
    return Header(layout, symmetry, shape)


def _of_entries(file: InputFile, header: Header) -> sparse.csr_array:
    return _matrix(file, header, joined([part for _, part in entry_blocks(file, header.shape)]))


def _of_array(file: InputFile, header: Header) -> sparse.csr_array:
    """All values, column by column; of a symmetric matrix those below the diagonal, and on it."""
    shape = header.shape
    blocks = file.line_blocks(shape.header_lines)
    parts = [number_table(file, block, line, (shape.dtype,))[0] for line, block in blocks]
    values = np.concatenate(parts) if parts else np.empty(0)
    if len(values) != shape.n_entries:
        raise file.error(f"it has {len(values)} numbers, its header declares {shape.n_entries}: is it cut short?")
    if header.symmetry == "general":
        return sparse.csr_array(values.reshape(shape.n_columns, shape.n_rows).T)
    columns, rows = np.triu_indices(shape.n_rows, 0 if header.symmetry == "symmetric" else 1)
    return _matrix(file, header, (rows, columns, values))


def _matrix(file: InputFile, header: Header, entries: Entries) -> sparse.csr_array:
    """Entries, on both sides of the diagonal where the file has those of one."""
    if header.symmetry != "general":
        rows, columns, values = entries
        beside = rows != columns
        mirrored = columns[beside], rows[beside], _MIRRORED[header.symmetry] * values[beside]
        entries = joined([entries, mirrored])
    rows, columns, values = entries
    return of_entries(file, values, rows, columns, (header.shape.n_rows, header.shape.n_columns))
