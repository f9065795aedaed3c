"""Arrays of numpy: .npy, read through the memory map, and .npz, which holds several by name."""

from __future__ import annotations

import tokenize
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from odeco.files.opening import InputFile
from odeco.files.rows import SparseRows, check_width, rows_per_batch
from odeco.files.triplets import row_slices

# Numbers of a batch of dense rows: 2^21 of them are 16 MiB.
_NUMBERS = 2**21

_CSR_PARTS = ("data", "indices", "indptr", "shape")
# How archives call the names of columns and words.
_WORDS = ("vocab", "vocabulary", "words", "feature_names")
_COLUMNS = ("columns", "names", "feature_names", "item_names", "channels")


@contextmanager
def _damage(file: InputFile) -> Iterator[None]:
    """What a damaged header makes of numpy, zipfile and scipy, besides what is a ValueError anyway."""
    try:
        yield
    except (tokenize.TokenError, SyntaxError, TypeError, LookupError, AttributeError, RuntimeError) as error:
        raise file.error(f"it is damaged ({type(error).__name__}: {error}).") from error


def load_npy(file: InputFile) -> NDArray[Any]:
    """An array of numbers; its rows stay on disk until they are read."""
    with file.guard(), _damage(file):
        if file.compressed:
            with file.open() as stream:
                array = np.load(stream, allow_pickle=False)
        else:
            array = np.load(file.path, mmap_mode="r", allow_pickle=False)
    if not isinstance(array, np.ndarray):
        raise file.error("an archive of arrays, one array is expected.")
    return array


def load_npz(file: InputFile) -> dict[str, NDArray[Any]]:
    """All arrays of an archive; nothing in it is ever run."""
    with file.guard(), _damage(file):
        with zipfile.ZipFile(file.path) as members:
            if "odeco.json" in members.namelist():
                raise file.error("it is a file that odeco wrote (a model or sums), and data are expected.")
            if (damaged := members.testzip()) is not None:
                raise file.error(f"its member {damaged} is damaged.")
        with np.load(file.path, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    if not all(isinstance(array, np.ndarray) for array in arrays.values()):
        raise file.error("the archive has members that are not arrays.")
    if not arrays:
        raise file.error("the archive holds no arrays.")
    return arrays


def dense_rows(file: InputFile, array: NDArray[Any], what: str = "the array") -> NDArray[Any]:
    """A table of numbers with at least one row; one dimension is one column."""
    if array.dtype.kind not in "biuf":
        raise file.error(f"{what} holds {array.dtype}, and numbers are needed.")
    if array.ndim == 1:
        array = array[:, np.newaxis]
    if array.ndim != 2 or 0 in array.shape:
        raise file.error(f"{what} has the shape {array.shape}, and rows and columns are needed.")
    return array


def dense_batches(array: NDArray[Any]) -> Iterator[NDArray[Any]]:
    """Some rows at a time, read from disk where they lie there."""
    n_rows = max(_NUMBERS // array.shape[1], 1)
    for start in range(0, array.shape[0], n_rows):
        yield np.array(array[start : start + n_rows])


def npy_rows(file: InputFile) -> SparseRows:
    """A dense array of counts as sparse rows."""
    return _sparse_of(file, "npy", dense_rows(file, load_npy(file)))


def npz_rows(file: InputFile) -> SparseRows:
    """An archive with one matrix: of scipy.sparse.save_npz, of CSR parts ("counts_data", ...), or an array."""
    arrays = load_npz(file)
    words = named(arrays, _WORDS)
    found = sparse_matrix(file, arrays)
    if found is None:
        found = dense_rows(file, main_array(file, arrays))
    rows = _sparse_of(file, "npz", found)
    if words is not None and len(words) != rows.n_features:
        raise file.error(f"it has {rows.n_features} columns and {len(words)} words.")
    return SparseRows(file, "npz", rows.n_features, rows.read, words, rows.rows_per_batch)


def _sparse_of(file: InputFile, name: str, matrix: Any) -> SparseRows:
    width = check_width(file, matrix.shape[1])
    if sparse.issparse(matrix):
        per_batch = rows_per_batch(matrix.shape[0], matrix.nnz)
        return SparseRows(file, name, width, lambda: row_slices(matrix, per_batch), None, per_batch)
    return SparseRows(file, name, width, lambda: (sparse.csr_array(part) for part in dense_batches(matrix)))


def sparse_matrix(file: InputFile, arrays: Mapping[str, NDArray[Any]]) -> sparse.csr_array | None:
    """The sparse matrix of an archive, None where it has none."""
    if "format" in arrays and "shape" in arrays:
        with file.guard(), _damage(file):
            found = sparse.csr_array(sparse.load_npz(file.path))
        return _checked_csr(file, found.data, found.indices, found.indptr, found.shape)
    for prefix in sorted({name[: -len("indptr")] for name in arrays if name.endswith("indptr")}):
        if all(f"{prefix}{part}" in arrays for part in _CSR_PARTS):
            return _checked_csr(file, *(arrays[f"{prefix}{part}"] for part in _CSR_PARTS))
    return None


def _checked_csr(file: InputFile, data: Any, indices: Any, indptr: Any, shape: Any) -> sparse.csr_array:
    """A CSR array of parts that somebody else wrote: every number of them is looked at."""
    if data.dtype.kind not in "biuf" or indices.dtype.kind not in "iu" or indptr.dtype.kind not in "iu":
        raise file.error(f"its sparse matrix holds {data.dtype} at {indices.dtype}, and real numbers are needed.")
    n_rows, n_columns = (int(size) for size in np.ravel(shape)[:2]) if np.size(shape) == 2 else (0, 0)
    check_width(file, n_columns)
    if n_rows < 1 or len(indptr) != n_rows + 1:
        raise file.error(f"its sparse matrix of {n_rows} rows has {len(indptr)} places where rows begin.")
    with file.guard():
        matrix = sparse.csr_array((data, indices, indptr), shape=(n_rows, n_columns))
        matrix.check_format(full_check=True)
    matrix.indices = matrix.indices.astype(np.int32, copy=False)
    matrix.indptr = matrix.indptr.astype(np.int32, copy=False) if matrix.nnz < 2**31 else matrix.indptr
    return matrix


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
