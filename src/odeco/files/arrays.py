"""Arrays of numpy: .npy, whose rows are read as they are needed, and .npz, which holds several by name."""

from __future__ import annotations

import math
import sys
import tokenize
import warnings
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from odeco.files import sparse_parts
from odeco.files.opening import InputFile
from odeco.files.rows import SparseRows, check_width, row_slices, rows_per_batch
from odeco.files.stored import BATCH_NUMBERS, StoredRows, check_size, native

_CSR_PARTS = ("data", "indices", "indptr", "shape")
_COMPRESSED = {"csr": sparse_parts.of_csr, "csc": sparse_parts.of_csc, "bsr": sparse_parts.of_blocks}
# How archives call the names of columns and words.
_WORDS = ("vocab", "vocabulary", "words", "feature_names")
_COLUMNS = ("columns", "names", "feature_names", "item_names", "channels")


@contextmanager
def _damage(file: InputFile) -> Iterator[None]:
    """What a damaged header makes of numpy and zipfile, besides what is a ValueError anyway."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # headers of Python 2, old names of types: they are read
            yield
    except (tokenize.TokenError, SyntaxError, TypeError, LookupError, AttributeError, RuntimeError) as error:
        raise file.error(f"it is damaged ({type(error).__name__}: {error}).") from error


@dataclass(frozen=True, eq=False)
class DenseRows:
    """A table of numbers, in memory or in a file."""

    shape: tuple[int, int]
    batches: Callable[[], Iterator[NDArray[Any]]] = field(repr=False)


def npy_table(file: InputFile) -> DenseRows:
    """A table whose rows stay in the file until they are read."""
    offset, shape, by_columns, dtype = _npy_header(file)
    shape = _check_table(file, dtype, shape, "the array")
    stored = StoredRows(file, offset, shape, dtype, by_columns)
    return DenseRows(shape, stored.batches)


def load_npy(file: InputFile) -> NDArray[Any]:
    """An array of any shape, read at once."""
    offset, shape, by_columns, dtype = _npy_header(file)
    with file.guard(), file.unpacked() as stream:
        stream.seek(offset)
        content = stream.read(math.prod(shape) * dtype.itemsize)
        array = np.frombuffer(content, dtype) if math.prod(shape) else np.empty(0, dtype)
        if len(array) < math.prod(shape):
            raise file.error(f"it is cut short: it has {len(array)} of its {math.prod(shape)} numbers.")
        return _clean(file, array.reshape(shape, order="F" if by_columns else "C").copy())


def _npy_header(file: InputFile) -> tuple[int, tuple[int, ...], bool, np.dtype[Any]]:
    """Where the numbers begin, the shape, whether columns come first, the type; the file is as long as that needs."""
    with file.guard(), _damage(file), file.open() as stream:
        version = np.lib.format.read_magic(stream)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, by_columns, dtype = read(stream)
        offset = stream.tell()
    if dtype.hasobject:
        raise file.error("it holds Python objects, and they are never read: numbers are needed.")
    if any(size < 0 for size in shape):
        raise file.error(f"it is damaged: its shape is {shape}.")
    check_size(file, offset, math.prod(shape) * dtype.itemsize)
    return offset, shape, by_columns, dtype


def load_npz(file: InputFile) -> dict[str, NDArray[Any]]:
    """All arrays of an archive; nothing in it is ever run."""
    with file.guard(), _damage(file):
        with zipfile.ZipFile(file.path) as members:
            if "odeco.json" in members.namelist():
                raise file.error("it is a file that odeco wrote (a model or sums), and data are expected.")
            packed = sum(member.file_size for member in members.infolist() if member.compress_type)
            file.check_limit("unpacked_bytes", packed, f"its arrays are {packed} bytes when unpacked")
            if (damaged := members.testzip()) is not None:
                raise file.error(f"its member {damaged} is damaged.")
        with np.load(file.path, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    if not all(isinstance(array, np.ndarray) for array in arrays.values()):
        raise file.error("the archive has members that are not arrays.")
    if not arrays:
        raise file.error("the archive holds no arrays.")
    return {name: _clean(file, array) for name, array in arrays.items()}


def _clean(file: InputFile, array: NDArray[Any]) -> NDArray[Any]:
    """An array as the machine has it; letters that are none would bring Python down later."""
    array = np.ascontiguousarray(native(array)).reshape(array.shape)
    if array.dtype.kind == "U" and array.size and array.dtype.itemsize:
        points = array.reshape(-1).view(np.uint32)
        if (points > sys.maxunicode).any() or ((points >= 0xD800) & (points < 0xE000)).any():
            raise file.error("it is damaged: its strings hold letters that are none.")
    return array


def dense_rows(file: InputFile, array: NDArray[Any], what: str = "the array") -> NDArray[Any]:
    """A table of numbers with at least one row; one dimension is one column."""
    return array.reshape(_check_table(file, array.dtype, array.shape, what))


def _check_table(file: InputFile, dtype: np.dtype[Any], shape: tuple[int, ...], what: str) -> tuple[int, int]:
    if dtype.kind not in "biuf":
        raise file.error(f"{what} holds {dtype}, and numbers are needed.")
    if len(shape) not in (1, 2) or 0 in shape:
        raise file.error(f"{what} has the shape {shape}, and rows and columns are needed.")
    n_rows, n_columns = shape if len(shape) == 2 else (shape[0], 1)
    file.check_limit("table_columns", n_columns, f"{what} has {n_columns} columns")
    return n_rows, n_columns


def in_memory(array: NDArray[Any]) -> DenseRows:
    """A table that is there."""

    def batches() -> Iterator[NDArray[Any]]:
        step = max(BATCH_NUMBERS // array.shape[1], 1)
        for start in range(0, array.shape[0], step):
            yield np.array(array[start : start + step])

    return DenseRows((array.shape[0], array.shape[1]), batches)


def npy_rows(file: InputFile) -> SparseRows:
    """A dense array of counts as sparse rows."""
    return _of_dense(file, "npy", npy_table(file))


def npz_rows(file: InputFile, arrays: Mapping[str, NDArray[Any]] | None = None) -> SparseRows:
    """An archive with one matrix: of scipy.sparse.save_npz, of CSR parts ("counts_data", ...), or an array."""
    arrays = load_npz(file) if arrays is None else arrays
    words = named(arrays, _WORDS)
    matrix = sparse_matrix(file, arrays)
    if matrix is None:
        rows = _of_dense(file, "npz", in_memory(dense_rows(file, main_array(file, arrays))))
    else:
        per_batch = rows_per_batch(matrix.shape[0], matrix.nnz)
        rows = SparseRows(file, "npz", matrix.shape[1], lambda: row_slices(matrix, per_batch), None, per_batch)
    if words is not None and len(words) != rows.n_features:
        raise file.error(f"it has {rows.n_features} columns and {len(words)} words.")
    return replace(rows, vocabulary=words)


def _of_dense(file: InputFile, name: str, table: DenseRows) -> SparseRows:
    width = check_width(file, table.shape[1])
    return SparseRows(file, name, width, lambda: (sparse.csr_array(part) for part in table.batches()))


def sparse_matrix(file: InputFile, arrays: Mapping[str, NDArray[Any]]) -> sparse.csr_array | None:
    """The sparse matrix of an archive, None where it has none."""
    if "format" in arrays and "shape" in arrays:
        return _of_scipy(file, arrays)
    for prefix in sorted({name[: -len("indptr")] for name in arrays if name.endswith("indptr")}):
        if all(f"{prefix}{part}" in arrays for part in _CSR_PARTS):
            data, indices, indptr, shape = (arrays[f"{prefix}{part}"] for part in _CSR_PARTS)
            return sparse_parts.of_csr(file, data, indices, indptr, _sizes(file, shape))
    return None


def _of_scipy(file: InputFile, arrays: Mapping[str, NDArray[Any]]) -> sparse.csr_array:
    """A matrix that scipy.sparse.save_npz wrote."""
    shape = _sizes(file, arrays["shape"])
    with file.guard(), _damage(file):
        layout = arrays["format"].item()
        layout = layout.decode("ascii") if isinstance(layout, bytes) else str(layout)
        if layout == "dia":
            return sparse_parts.of_diagonals(file, arrays["data"], arrays["offsets"], shape)
        if layout == "coo":
            rows, columns = arrays["coords"] if "coords" in arrays else (arrays["row"], arrays["col"])
            return sparse_parts.of_entries(file, arrays["data"], rows, columns, shape)
        if layout in _COMPRESSED:
            data, indices, indptr = (arrays[part] for part in _CSR_PARTS[:3])
            return _COMPRESSED[layout](file, data, indices, indptr, shape)
    raise file.error(f"its sparse matrix is stored as {layout!r}, which is not known: save it as CSR.")


def _sizes(file: InputFile, shape: NDArray[Any]) -> tuple[int, int]:
    if shape.dtype.kind not in "iu" or shape.size != 2:
        raise file.error("the shape of its sparse matrix is not two whole numbers.")
    n_rows, n_columns = shape.ravel().tolist()
    return n_rows, n_columns


def main_array(file: InputFile, arrays: Mapping[str, NDArray[Any]]) -> NDArray[Any]:
    """The array "X" of an archive, or the only one with rows and columns of numbers."""
    if "X" in arrays:
        return arrays["X"]
    tables = [name for name, array in arrays.items() if array.ndim == 2 and array.dtype.kind in "biuf"]
    if len(tables) != 1:
        raise file.error(f"which array? It has {', '.join(sorted(arrays))}: name one of them X.")
    return arrays[tables[0]]


def named(arrays: Mapping[str, NDArray[Any]], keys: tuple[str, ...]) -> list[str] | None:
    """The names that an archive gives its columns."""
    for key in keys:
        if key in arrays and arrays[key].ndim == 1 and arrays[key].dtype.kind == "U":
            return [str(name) for name in arrays[key]]
    return None


def column_names(arrays: Mapping[str, NDArray[Any]], n_columns: int) -> list[str]:
    """Names of the columns of a table in an archive, x0, x1, ... where it has none that fit."""
    names = named(arrays, _COLUMNS)
    return names if names is not None and len(names) == n_columns else [f"x{j}" for j in range(n_columns)]
