"""What the doors share: a path, a format, and the rows or columns behind them."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from odeco.files import arrays as numpy_files
from odeco.files.arrow import to_numpy
from odeco.files.delimited import read_delimited
from odeco.files.detect import canonical_format, detect
from odeco.files.frames import TableInput
from odeco.files.jsonl import read_jsonl
from odeco.files.matrix_market import matrix_market_rows
from odeco.files.opening import InputFile, PathLike, open_input
from odeco.files.pairs import lda_c_rows, svmlight_rows
from odeco.files.parquet import ParquetInput, open_parquet
from odeco.files.parquet_counts import has_counts, parquet_count_rows
from odeco.files.rows import SparseRows
from odeco.files.triplets import uci_rows

TABLES = ("csv", "tsv", "jsonl", "parquet")
SPARSE = ("uci", "ldac", "svmlight", "mtx", "npz", "npy")


def open_as(path: PathLike, format: str, allowed: Collection[str]) -> tuple[InputFile, str]:
    """Find a file and its format; a folder holds parts of Parquet, or texts."""
    wanted = canonical_format(format, allowed)
    folder = Path(os.path.expanduser(path)) if str(path) != "-" else None
    if folder is not None and folder.is_dir():
        file = InputFile(folder, os.fspath(path))
        with file.guard():
            names = [entry.name for entry in folder.iterdir()]  # an unreadable folder says so here
        if wanted not in ("auto", "folder", "parquet"):
            raise file.error(f"is a folder, a {wanted} file is expected.")
        parts = wanted != "folder" and any(name.endswith(".parquet") or "=" in name for name in names)
        found = wanted if wanted != "auto" else "parquet" if parts else "folder"
        if found not in allowed:
            raise file.error("is a folder, a file is expected.")
        return file, found
    file = open_input(path)
    if wanted == "folder":
        raise file.error("is a file, a folder is expected.")
    return file, detect(file, allowed) if wanted == "auto" else wanted


def table_input(file: InputFile, format: str, encoding: str) -> TableInput:
    """The columns of a file of one of `TABLES`."""
    if format == "jsonl":
        return read_jsonl(file, encoding)
    if format == "parquet":
        return parquet_table(open_parquet(file))
    return read_delimited(file, format, encoding)


def parquet_table(parquet: ParquetInput) -> TableInput:
    """The columns of a Parquet file."""
    kinds = parquet.kinds
    _ = parquet.n_rows  # a file without rows says so

    def read(names: Sequence[str]) -> Iterator[list[NDArray[Any]]]:
        for batch in parquet.batches(names):
            if batch.num_rows:
                with parquet.file.guard():
                    yield [to_numpy(parquet.arrow, batch.column(name), kinds[name] or "number") for name in names]

    return TableInput(parquet.file, "parquet", list(kinds), list(kinds.values()), read)


def sparse_input(file: InputFile, format: str, n_features: int | None = None) -> SparseRows:
    """The rows of a file of one of `SPARSE`."""
    if format == "uci":
        return uci_rows(file)
    if format == "mtx":
        return matrix_market_rows(file)
    if format == "npz":
        return numpy_files.npz_rows(file)
    if format == "npy":
        return numpy_files.npy_rows(file)
    return (lda_c_rows if format == "ldac" else svmlight_rows)(file, n_features)


def parquet_counts_or_table(file: InputFile) -> SparseRows | TableInput:
    """Lists of words and counts, or columns."""
    parquet = open_parquet(file)
    return parquet_count_rows(parquet) if has_counts(parquet) else parquet_table(parquet)
