"""`read_views`: three or more views of the same samples, from a file each or from groups of columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from odeco.exceptions import InputFileError
from odeco.files import arrays as numpy_files
from odeco.files.frames import TableInput, column_names, listed
from odeco.files.opening import InputFile, PathLike
from odeco.files.prefetch import prefetched
from odeco.files.reading import SPARSE, TABLES, open_as, parquet_counts_or_table, sparse_input, table_input
from odeco.files.rows import SparseRows
from odeco.sources.base import Batch
from odeco.sources.dense import DenseBatch, DenseSource
from odeco.sources.streams import StreamSource

FORMATS = (*TABLES, *SPARSE)
# Rows of all views that are read together.
_ROWS = 4096

Block: TypeAlias = "NDArray[Any] | sparse.csr_array"


@dataclass(frozen=True, eq=False)
class Views:
    """Views of the same samples.

    Attributes
    ----------
    source : function
        Returns a new iterator over lists of blocks [X1, X2, X3, ...] at each call: what `MultiViewMixture.fit` takes.
        Blocks of sparse formats are CSR, others are arrays.
    names : list of lists of str
        Of the columns of each view.
    format : list of str
        What each view was read from.
    """

    source: Callable[[], Iterator[list[Block]]] = field(repr=False)
    names: list[list[str]]
    format: list[str]

    def read(self) -> list[Block]:
        """All rows at once."""
        joined = []
        for blocks in zip(*self.source(), strict=True):
            whole = sparse.issparse(blocks[0])
            joined.append(sparse.csr_array(sparse.vstack(blocks)) if whole else np.concatenate(blocks))
        return joined


def read_views(
    paths: PathLike | Sequence[PathLike],
    *,
    format: str = "auto",
    views: Sequence[Sequence[str]] | Mapping[str, Sequence[str]] | None = None,
    encoding: str = "utf-8",
) -> Views:
    """Read three or more views of the same samples.

    Parameters
    ----------
    paths : list of paths, or one path
        A file for each view (tables of numbers, or any sparse format), row by row the same samples. Or one table whose
        columns are divided by `views`; or, without `views`, by what stands before the first dot or colon of their names
        ("left.a", "left.b", "right.a"); or an .npz file with an array for each view, in the order of their names.
    format : str
        Of all files; "auto" looks at each.
    views : list of lists of names, or a dictionary of them, optional
        The columns of each view, for one table.
    encoding : str
        Of CSV and JSON lines.
    """
    if not isinstance(paths, (str, bytes)) and isinstance(paths, Sequence):
        if views is not None:
            raise ValueError("views divides the columns of one table, and several files were given.")
        if not paths:
            raise ValueError("paths is empty: give a file for each view, or one table.")
        opened, first = [_open_view(path, format, encoding) for path in paths], paths[0]
    else:
        first = paths
        opened = _views_of_one(paths, format, views, encoding)
    if len(opened) < 3:
        raise InputFileError(
            f"{first}: {len(opened)} view(s) were found, and three are needed at least: name columns VIEW.NAME, or "
            "give a file for each view."
        )

    def read() -> Iterator[list[Block]]:
        return prefetched(_together(opened))

    return Views(read, [view.names for view in opened], [view.format for view in opened])


@dataclass(frozen=True, eq=False)
class _View:
    file: InputFile
    format: str
    names: list[str]
    read: Callable[[], Iterator[Block]]
    is_sparse: bool = False

    def blocks(self) -> Iterator[Block]:
        """Blocks of the same number of rows, the last one excepted."""
        if self.is_sparse:
            batches = (Batch(part, np.zeros(part.shape[0])) for part in self.read() if part.shape[0])
            yield from (batch.counts for batch in StreamSource(lambda: batches, _ROWS))
        else:
            rows = (DenseBatch(self._finite(part)) for part in self.read())
            yield from (batch.rows for batch in DenseSource(lambda: rows, _ROWS))

    def _finite(self, part: Any) -> NDArray[Any]:
        block = np.asarray(part, dtype=np.float64)
        if not np.isfinite(block).all():
            name = self.names[int(np.argmax(~np.isfinite(block).all(axis=0)))]
            raise self.file.error(
                f"the column {name!r} has missing or infinite values: fill them in, or drop the rows."
            )
        return block


def _open_view(path: PathLike, format: str, encoding: str) -> _View:
    file, found = open_as(path, format, FORMATS)
    if found in ("npy", "npz"):
        return _array_view(file, found)
    table = parquet_counts_or_table(file) if found == "parquet" else None
    if found in SPARSE or isinstance(table, SparseRows):
        rows = table if isinstance(table, SparseRows) else sparse_input(file, found)
        names = rows.vocabulary or column_names(file, rows.n_features)
        return _View(file, found, names, rows.read, is_sparse=True)
    columns = table or table_input(file, found, encoding)
    return _columns_view(columns, columns.choose(None))


def _array_view(file: InputFile, format: str) -> _View:
    if format == "npy":
        return _dense_view(file, format, numpy_files.npy_table(file))
    arrays = numpy_files.load_npz(file)
    if numpy_files.sparse_matrix(file, arrays) is None:
        whole = numpy_files.dense_rows(file, numpy_files.main_array(file, arrays))
        return _dense_view(file, format, numpy_files.in_memory(whole))
    rows = numpy_files.npz_rows(file, arrays)
    return _View(file, format, column_names(file, rows.n_features), rows.read, is_sparse=True)


def _dense_view(file: InputFile, format: str, table: numpy_files.DenseRows) -> _View:
    return _View(file, format, column_names(file, table.shape[1]), table.batches)


def _columns_view(table: TableInput, names: list[str]) -> _View:
    labels = [name for name in names if table.kind(name) == "label"]
    if labels:
        raise table.file.error(f"views hold numbers, and these columns hold text: {listed(labels)}.")
    return _View(table.file, table.format, names, lambda: (np.column_stack(parts) for parts in table.read(names)))


def _views_of_one(path: PathLike, format: str, views: Any, encoding: str) -> list[_View]:
    file, found = open_as(path, format, (*TABLES, "npz"))
    if found == "npz":
        if views is not None:
            raise ValueError(
                "views divides the columns of a table; the arrays of an .npz file are the views themselves."
            )
        arrays = numpy_files.load_npz(file)
        names = sorted((n for n, a in arrays.items() if a.ndim == 2 and a.dtype.kind in "biuf"), key=_natural)
        tables = (numpy_files.dense_rows(file, arrays[name], f"the array {name}") for name in names)
        return [_dense_view(file, found, numpy_files.in_memory(table)) for table in tables]
    table = table_input(file, found, encoding)
    groups = _groups(table.names) if views is None else views.values() if isinstance(views, Mapping) else views
    return [_columns_view(table, table.choose(list(group))) for group in groups]


def _groups(names: Sequence[str]) -> list[list[str]]:
    groups: dict[str, list[str]] = {}
    for name in names:
        prefix = min((name.split(mark, 1)[0] for mark in ".:" if mark in name), key=len, default=name)
        groups.setdefault(prefix, []).append(name)
    return list(groups.values())


def _natural(name: str) -> tuple[str, int]:
    """X2 before X10."""
    stem = name.rstrip("0123456789")
    return stem, int(name[len(stem) :] or 0)


def _together(views: Sequence[_View]) -> Iterator[list[Block]]:
    """Blocks of all views, as many rows of each; views must end together."""
    iterators = [view.blocks() for view in views]
    n_rows = 0
    while True:
        blocks = [next(iterator, None) for iterator in iterators]
        present = [block for block in blocks if block is not None]
        if not present:
            return
        sizes = [0 if block is None else int(block.shape[0]) for block in blocks]
        if len(set(sizes)) > 1:
            short = int(np.argmin(sizes))
            raise views[short].file.error(
                f"it ends after {n_rows + sizes[short]} rows, other views have more: rows must be the same samples."
            )
        n_rows += sizes[0]
        yield present
