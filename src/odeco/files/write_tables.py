"""`write_table`: columns or rows of numbers to Parquet, CSV, JSON lines or .npy, batch by batch."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from odeco.files.arrow import import_arrow
from odeco.files.delimited import is_number
from odeco.files.detect import canonical_format, suffix_format
from odeco.files.opening import PathLike
from odeco.files.output import writing

# How a formula begins, in the wide forms of East Asian keyboards too; a sign alone is none.
_FORMULA = re.compile(r"[=+\-@\t\r\uff1d\uff0b\uff0d\uff20].", re.DOTALL)

FORMATS = ("parquet", "csv", "tsv", "jsonl", "npy")

Array = NDArray[Any]
Columns = dict[str, Array]


def write_table(
    path: PathLike,
    columns: Mapping[str, Any] | Any,
    names: Sequence[str] | None = None,
    format: str = "auto",
) -> None:
    """Write a table; the file is there as a whole in the end, or not at all.

    CSV and TSV are opened in spreadsheets, which run a text that begins with =, +, - or @ as a formula: unless it is a
    number, it is written with an apostrophe before it. The other formats keep every text as it is.

    Parameters
    ----------
    path : path, or "-" for the standard output
    columns : dictionary of columns, array (n,) or (n, d), or an iterator over such batches
        An iterator is written batch by batch: the whole table never is in memory.
    names : list of str, optional
        Of the columns of arrays; x0, x1, ... by default.
    format : str
        "auto" goes by the name (CSV for "-"); else one of "parquet", "csv", "tsv", "jsonl", "npy".
    """
    chosen = output_format(path, format, FORMATS, "csv")
    batches: Iterator[Any] = columns if hasattr(columns, "__next__") else iter([columns])
    first = next(batches, None)
    if first is None:
        raise ValueError("columns has no batches: there is nothing to write.")
    start = _as_columns(first, names)
    rest = (_alike(_as_columns(batch, names), start) for batch in batches)
    writers: dict[str, Callable[[IO[bytes], Columns, Iterator[Columns]], None]] = {
        "npy": _write_npy,
        "jsonl": _write_jsonl,
        "csv": lambda stream, start, rest: _write_csv(stream, start, rest, ","),
        "tsv": lambda stream, start, rest: _write_csv(stream, start, rest, "\t"),
        "parquet": lambda stream, start, rest: _write_parquet(stream, start, rest, str(path)),
    }
    with writing(path) as stream:
        writers[chosen](stream, start, rest)


def output_format(path: PathLike, format: str, allowed: Sequence[str], default: str) -> str:
    """The format to write, by its name or by that of the file."""
    chosen = canonical_format(format, allowed)
    if chosen != "auto":
        return chosen
    if str(path) == "-":
        return default
    found = suffix_format(Path(path))
    if found is None or found not in allowed:
        raise ValueError(f"the format of {path} is not known by its name: name one of {', '.join(allowed)}.")
    return found


def _as_columns(batch: Any, names: Sequence[str] | None) -> Columns:
    if isinstance(batch, Mapping):
        if names is not None:
            raise ValueError("names is for arrays; a dictionary names its columns itself.")
        columns = {str(name): np.asarray(column) for name, column in batch.items()}
    else:
        array = np.asarray(batch)
        array = array[:, np.newaxis] if array.ndim == 1 else array
        if array.ndim != 2:
            raise ValueError(f"columns must have rows and columns, got shape {array.shape}.")
        labels = [f"x{j}" for j in range(array.shape[1])] if names is None else [str(name) for name in names]
        if len(labels) != array.shape[1]:
            raise ValueError(f"names has {len(labels)} names for {array.shape[1]} columns.")
        if len(set(labels)) < len(labels):
            raise ValueError("names has a name twice.")
        columns = {label: array[:, j] for j, label in enumerate(labels)}
    if not columns:
        raise ValueError("columns is empty: there is nothing to write.")
    if len({column.shape for column in columns.values()}) > 1 or next(iter(columns.values())).ndim != 1:
        raise ValueError("columns must be one-dimensional and of the same length.")
    return columns


def _alike(columns: Columns, first: Columns) -> Columns:
    if list(columns) != list(first):
        raise ValueError(f"batches differ in their columns: {list(first)}, then {list(columns)}.")
    return columns


def _all(start: Columns, rest: Iterator[Columns]) -> Iterator[Columns]:
    yield start
    yield from rest


def _write_npy(stream: IO[bytes], start: Columns, rest: Iterator[Columns]) -> None:
    """Rows behind a header that is written again when their number is known: numpy leaves room for it to grow."""
    dtype = np.result_type(*start.values())
    if dtype.kind not in "biuf":
        raise ValueError(f".npy takes numbers, and there is a column of {dtype}: use Parquet or CSV.")

    def header(n_rows: int) -> bytes:
        buffer = io.BytesIO()
        described = np.lib.format.dtype_to_descr(dtype)
        np.lib.format.write_array_header_1_0(
            buffer, {"descr": described, "fortran_order": False, "shape": (n_rows, len(start))}
        )
        return buffer.getvalue()

    room = len(header(0))
    stream.write(header(0))
    n_rows = 0
    for columns in _all(start, rest):
        block = np.column_stack(list(columns.values())).astype(dtype, casting="same_kind")
        stream.write(np.ascontiguousarray(block).tobytes())
        n_rows += len(block)
    final = header(n_rows)
    if len(final) != room:
        raise ValueError(f"{n_rows} rows are too many for the header of a .npy file: use Parquet.")
    stream.seek(0)
    stream.write(final)
    stream.seek(0, io.SEEK_END)


def _write_csv(stream: IO[bytes], start: Columns, rest: Iterator[Columns], delimiter: str) -> None:
    text = io.TextIOWrapper(stream, encoding="utf-8", newline="", write_through=True)
    writer = csv.writer(_UnixLines(text), delimiter=delimiter, lineterminator="\r\n")
    writer.writerow([_inert(name) for name in start])
    for columns in _all(start, rest):
        writer.writerows(zip(*(_plain(column) for column in columns.values()), strict=True))
    text.flush()
    text.detach()


class _UnixLines:
    """Rows that end in a newline alone; csv quotes what is in its own line ends, and carriage returns need that too."""

    def __init__(self, text: IO[str]) -> None:
        self._text = text

    def write(self, row: str) -> int:
        """One row, as the module csv gives it."""
        return self._text.write(row.removesuffix("\r\n") + "\n")


def _inert(text: str) -> str:
    """A text that a spreadsheet would take for a formula, marked as text by an apostrophe; numbers are left alone."""
    return f"'{text}" if _FORMULA.match(text) and not is_number(text) else text


def _plain(column: Array) -> list[Any]:
    """Python values, nothing where a number is missing; texts as a spreadsheet shows and does not run them."""
    values = column.tolist()
    if column.dtype.kind not in "biuf":
        return [_inert(value) if isinstance(value, str) else value for value in values]
    if column.dtype.kind == "f" and np.isnan(column).any():
        return [None if value != value else value for value in values]
    return list(values)


def _write_jsonl(stream: IO[bytes], start: Columns, rest: Iterator[Columns]) -> None:
    for columns in _all(start, rest):
        names = list(columns)
        rows: Iterable[tuple[Any, ...]] = zip(*(_json_values(column) for column in columns.values()), strict=True)
        for row in rows:
            stream.write(json.dumps(dict(zip(names, row, strict=True)), ensure_ascii=False).encode() + b"\n")


def _json_values(column: Array) -> list[Any]:
    """JSON has no infinity either."""
    if column.dtype.kind != "f":
        return list(column.tolist())
    return [value if abs(value) < np.inf else None for value in column.tolist()]


def _write_parquet(stream: IO[bytes], start: Columns, rest: Iterator[Columns], name: str) -> None:
    arrow = import_arrow(name, "writing Parquet")
    schema = arrow.Table.from_pydict(start).schema
    with arrow.parquet.ParquetWriter(stream, schema, compression="zstd") as writer:
        for columns in _all(start, rest):
            writer.write_table(arrow.Table.from_pydict(columns, schema=schema))
