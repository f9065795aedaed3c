"""Sparse matrices of arrays that others wrote: here is checked what compiled code indexes with, before it does."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from odeco.files.opening import InputFile
from odeco.files.rows import check_rows, check_width, csr_part

Array = NDArray[Any]
Size = tuple[int, int]


def of_csr(file: InputFile, data: Array, indices: Array, indptr: Array, shape: Size) -> sparse.csr_array:
    """Row by row: the values and their columns, and where each row begins."""
    _check_shape(file, shape)
    n_entries = _check_parts(file, data, indices, indptr, shape[0])
    return csr_part(file, data[:n_entries], indices[:n_entries], indptr, shape[1], first_row=1)


def of_csc(file: InputFile, data: Array, indices: Array, indptr: Array, shape: Size) -> sparse.csr_array:
    """Column by column."""
    _check_shape(file, shape)
    n_entries = _check_parts(file, data, indices, indptr, shape[1])
    columns = np.repeat(np.arange(shape[1]), np.diff(indptr))
    return of_entries(file, data[:n_entries], indices[:n_entries], columns, shape)


def of_blocks(file: InputFile, data: Array, indices: Array, indptr: Array, shape: Size) -> sparse.csr_array:
    """Blocks of the same size (BSR), row of blocks by row of blocks."""
    _check_shape(file, shape)
    if data.ndim != 3 or 0 in data.shape[1:] or shape[0] % data.shape[1] or shape[1] % data.shape[2]:
        raise file.error(f"its sparse matrix of shape {shape} is not divided by blocks of shape {data.shape[1:]}.")
    height, width = data.shape[1:]
    n_blocks = _check_parts(file, data, indices, indptr, shape[0] // height)
    tops, lefts = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr)), indices[:n_blocks].astype(np.int64)
    rows = tops[:, np.newaxis, np.newaxis] * height + np.arange(height)[:, np.newaxis]
    columns = lefts[:, np.newaxis, np.newaxis] * width + np.arange(width)
    values, rows, columns = np.broadcast_arrays(data[:n_blocks], rows, columns)
    return of_entries(file, values.ravel(), rows.ravel(), columns.ravel(), shape)


def of_diagonals(file: InputFile, data: Array, offsets: Array, shape: Size) -> sparse.csr_array:
    """Diagonals (DIA): the value at column j of the diagonal `offset` belongs to row j - offset."""
    _check_shape(file, shape)
    if data.ndim != 2 or offsets.shape != data.shape[:1] or offsets.dtype.kind not in "iu":
        raise file.error(f"its sparse matrix has {data.shape} numbers on diagonals at {offsets.shape} places.")
    columns = np.broadcast_to(np.arange(data.shape[1]), data.shape)
    rows = columns - offsets.astype(np.int64)[:, np.newaxis]
    used = (rows >= 0) & (rows < shape[0]) & (columns < shape[1]) & (data != 0)
    return of_entries(file, data[used], rows[used], columns[used], shape)


def of_entries(file: InputFile, data: Array, rows: Array, columns: Array, shape: Size) -> sparse.csr_array:
    """Entries in any order; those at the same place are added up."""
    _check_shape(file, shape)
    _check_types(file, data, rows, columns)
    if data.ndim != 1 or not data.shape == rows.shape == columns.shape:
        raise file.error(f"its sparse matrix has {data.size} values at {rows.size} rows and {columns.size} columns.")
    check_rows(file, shape[0], len(data))
    for name, places, size in (("row", rows, shape[0]), ("column", columns, shape[1])):
        if len(places) and (places.min() < 0 or places.max() >= size):
            wrong = int(places.min() if places.min() < 0 else places.max())
            raise file.error(f"it has an entry in {name} {wrong + 1}, outside 1 to {size}.")
    return sparse.csr_array(sparse.coo_array((data, (rows, columns)), shape=shape))


def _check_shape(file: InputFile, shape: Size) -> None:
    check_width(file, shape[1])
    if shape[0] < 1:
        raise file.error("its sparse matrix has no rows.")


def _check_types(file: InputFile, data: Array, *places: Array) -> None:
    if data.dtype.kind not in "biuf" or any(place.dtype.kind not in "iu" for place in places):
        raise file.error(f"its sparse matrix holds {data.dtype} at {places[0].dtype}, and real numbers are needed.")


def _check_parts(file: InputFile, data: Array, indices: Array, indptr: Array, n: int) -> int:
    """The number of entries (or blocks), after the places where rows begin were found to grow from 0 to it."""
    _check_types(file, data, indices, indptr)
    if indptr.shape != (n + 1,):
        raise file.error(f"its sparse matrix of {n} rows has {indptr.size} places where rows begin.")
    n_entries = int(indptr[-1])
    grows = indptr[0] == 0 and not (indptr[1:] < indptr[:-1]).any()
    if not grows or indices.ndim != 1 or n_entries > min(len(indices), len(data)):
        raise file.error("its sparse matrix is damaged: rows do not begin where others end.")
    return n_entries
