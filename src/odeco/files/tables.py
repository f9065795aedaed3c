"""`read_table`: rows of measurements, codes and labels, for mixtures and ICA."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from odeco.files import arrays as numpy_files
from odeco.files.frames import Frame, TableInput, column_names
from odeco.files.opening import InputFile, PathLike
from odeco.files.prefetch import prefetched
from odeco.files.reading import TABLES, open_as, sparse_input, table_input
from odeco.files.rows import SparseRows
from odeco.files.stored import BATCH_NUMBERS

FORMATS = (*TABLES, "npy", "npz", "svmlight", "mtx")

Block = NDArray[Any] | Frame


@dataclass(frozen=True, eq=False)
class Table:
    """Rows of a file.

    Attributes
    ----------
    source : function
        Returns a new iterator over batches at each call: what `fit` of mixtures and of ICA takes. Batches are arrays
        where all columns hold numbers of one kind (NaN where missing), and `Frame`, which is read like a DataFrame,
        elsewhere.
    names : list of str
        Of the columns.
    kinds : list of str
        What each holds: "integer", "number", "truth" or "label".
    format : str
    """

    source: Callable[[], Iterator[Block]] = field(repr=False)
    names: list[str]
    kinds: list[str] = field(repr=False)
    format: str

    @property
    def is_numeric(self) -> bool:
        """Whether every column holds numbers."""
        return "label" not in self.kinds

    def read(self) -> Block:
        """All rows at once."""
        batches = list(self.source())
        if isinstance(batches[0], Frame):
            columns = zip(*(batch.parts for batch in batches if isinstance(batch, Frame)), strict=True)
            return Frame(batches[0].columns, tuple(np.concatenate(parts) for parts in columns))
        return np.concatenate([batch for batch in batches if isinstance(batch, np.ndarray)])


def read_table(
    path: PathLike, *, format: str = "auto", columns: Sequence[str] | None = None, encoding: str = "utf-8"
) -> Table:
    """Read rows; only a batch of them is held in memory at a time.

    Parameters
    ----------
    path : path, or "-" for the standard input
        CSV, TSV, JSON lines, Parquet (a file or a folder of parts), .npy, .npz (the array "X"), SVMlight, Matrix
        Market.
    format : str
        "auto" looks at the content and the name; else one of "csv", "tsv", "jsonl", "parquet", "npy", "npz",
        "svmlight", "mtx".
    columns : list of str, optional
        The columns to use, in this order; all by default.
    encoding : str
        Of CSV and JSON lines.
    """
    file, found = open_as(path, format, FORMATS)
    return table_of(file, found, columns, encoding)


def table_of(file: InputFile, found: str, columns: Sequence[str] | None, encoding: str) -> Table:
    """The table of a file of a known format."""
    if found in TABLES:
        return _of_columns(table_input(file, found, encoding), columns)
    if found in ("svmlight", "mtx"):
        return _of_blocks(file, found, columns, *_dense(sparse_input(file, found)))
    if found == "npy":
        table = numpy_files.npy_table(file)
        return _of_blocks(file, found, columns, table.batches, column_names(file, table.shape[1]))
    arrays = numpy_files.load_npz(file)
    if numpy_files.sparse_matrix(file, arrays) is not None:
        return _of_blocks(file, found, columns, *_dense(numpy_files.npz_rows(file, arrays)))
    table = numpy_files.in_memory(numpy_files.dense_rows(file, numpy_files.main_array(file, arrays)))
    return _of_blocks(file, found, columns, table.batches, numpy_files.column_names(arrays, table.shape[1]))


def _of_columns(table: TableInput, columns: Sequence[str] | None) -> Table:
    names = table.choose(columns)
    kinds = [str(table.kind(name)) for name in names]
    alike = len(set(kinds)) == 1 and "label" not in kinds

    def read() -> Iterator[Block]:
        for parts in table.read(names):
            yield np.column_stack(parts) if alike else Frame(tuple(names), tuple(parts))

    return Table(lambda: prefetched(read()), names, kinds, table.format)


def _dense(rows: SparseRows) -> tuple[Callable[[], Iterator[NDArray[Any]]], list[str]]:
    """Sparse rows as dense blocks that stay small."""
    names = rows.vocabulary or column_names(rows.file, rows.n_features)
    step = max(BATCH_NUMBERS // rows.n_features, 1)

    def read() -> Iterator[NDArray[Any]]:
        for part in rows.read():
            for start in range(0, part.shape[0], step):
                yield part[start : start + step].toarray()

    return read, names


def _of_blocks(
    file: InputFile,
    format: str,
    columns: Sequence[str] | None,
    read: Callable[[], Iterator[NDArray[Any]]],
    names: list[str],
) -> Table:
    """Arrays of numbers, or some columns of them."""
    places = None if columns is None else [names.index(name) for name in _known(file, columns, names)]
    chosen = names if places is None else [names[place] for place in places]

    def blocks() -> Iterator[NDArray[Any]]:
        for block in read():
            yield block if places is None else block[:, places]

    kind = "number" if next(read()).dtype.kind == "f" else "integer"
    return Table(lambda: prefetched(blocks()), chosen, [kind] * len(chosen), format)


def _known(file: InputFile, columns: Sequence[str], names: list[str]) -> list[str]:
    return TableInput(file, "", names, ["number"] * len(names), lambda _: iter(())).choose(columns)
