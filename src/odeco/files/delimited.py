"""CSV and TSV by pyarrow: quotes, newlines in quotes, any delimiter, streamed in blocks."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from odeco.exceptions import InputFileError
from odeco.files import opening
from odeco.files.arrow import import_arrow, to_numpy
from odeco.files.frames import TableInput, joined_kind
from odeco.files.opening import InputFile

_DELIMITERS = ",\t;|"
# What stands for a missing value.
_NULLS = ["", "NA", "N/A", "n/a", "#N/A", "NULL", "null", "None", "NaN", "nan", "<NA>"]
_TRUTH = ["true", "True", "TRUE", "false", "False", "FALSE"]


@dataclass(frozen=True, eq=False)
class Delimited:
    """How the rows of a file are divided."""

    file: InputFile
    encoding: str
    delimiter: str
    names: list[str]
    n_skipped: int  # lines before the first row
    arrow: Any = field(repr=False)
    block_bytes: int = 2**20

    def batches(self, columns: Sequence[str], types: dict[str, Any]) -> Iterator[Any]:
        """Record batches of some columns, converted to types."""
        module = self.arrow.csv
        read = module.ReadOptions(
            block_size=self.block_bytes,
            column_names=self.names,
            skip_rows=self.n_skipped,
            encoding=self.encoding,
            use_threads=False,  # messages then name the row; parsing runs beside the fit anyway
        )
        parse = module.ParseOptions(delimiter=self.delimiter, newlines_in_values=True)
        convert = module.ConvertOptions(
            include_columns=list(columns), column_types=types, null_values=_NULLS, strings_can_be_null=True
        )
        with self.guard(), self._stream() as stream, module.open_csv(stream, read, parse, convert) as reader:
            yield from reader

    def _stream(self) -> Any:
        opened = self.arrow.OSFile(str(self.file.path))
        return self.arrow.CompressedInputStream(opened, "gzip") if self.file.compressed else opened

    @contextmanager
    def guard(self) -> Iterator[None]:
        """pyarrow's errors, in the words of the file."""
        try:
            with self.file.guard():
                yield
        except (InputFileError, self.arrow.ArrowException) as error:
            if "straddling" in str(error):
                raise _TooLong from error
            if "invalid UTF8" in str(error):
                raise self.file.error(f"it is not {self.encoding}: give its encoding (latin-1, ...).") from error
            if isinstance(error, InputFileError):
                raise
            raise self.file.error(str(error)) from error


class _TooLong(Exception):  # noqa: N818  (not an error yet: a larger block may do)
    """A row does not fit into a block."""


def read_delimited(file: InputFile, format: str = "csv", encoding: str = "utf-8") -> TableInput:
    """The columns of a CSV or TSV file; one pass over it finds out what they hold."""
    dialect = open_delimited(file, encoding, "\t" if format == "tsv" else None)
    kinds = None
    for larger in (1, 16, 256):  # a block must hold the longest row
        dialect = replace(dialect, block_bytes=larger * max(opening.BLOCK_BYTES, 2**10))
        try:
            kinds = _kinds(dialect)
            break
        except _TooLong:
            continue
    if kinds is None:
        raise file.error("a row is longer than can be read, or a quote is opened and never closed.")
    return TableInput(file, format, dialect.names, list(kinds.values()), partial(_read, dialect, kinds))


def open_delimited(file: InputFile, encoding: str, delimiter: str | None) -> Delimited:
    """Find the delimiter and the names."""
    arrow = import_arrow(file.name, "reading CSV")
    first_lines = _first_lines(file, encoding)
    used = delimiter or find_delimiter(first_lines) or ","
    n_blank = next((i for i, line in enumerate(first_lines) if line), len(first_lines))
    rows = _fields(first_lines, used)
    if not rows:
        raise file.error("it holds no rows.")
    has_header = not all(is_number(value) or value.strip() in _NULLS for value in rows[0])
    names = [name.strip() for name in rows[0]] if has_header else [""] * len(rows[0])
    names = [name or f"x{j}" for j, name in enumerate(names)]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise file.error(f"two columns are called {twice!r}: rename one.")
    return Delimited(file, encoding, used, names, n_blank + has_header, arrow)


def _fields(lines: Sequence[str], delimiter: str) -> list[list[str]]:
    """Rows of the first lines; Python's reader refuses fields of more than 128 KiB, which pyarrow takes."""
    try:
        return [row for row in csv.reader(lines, delimiter=delimiter) if row]
    except csv.Error:
        return [line.split(delimiter) for line in lines if line]


def find_delimiter(lines: Sequence[str]) -> str | None:
    """The delimiter that divides all of the first lines into the same number of fields, the most of them."""
    best, most = None, 1
    for delimiter in _DELIMITERS:
        widths = {len(row) for row in _fields(lines, delimiter)}
        if len(widths) == 1 and (width := widths.pop()) > most:
            best, most = delimiter, width
    if best is None and lines:  # ragged, or rows with newlines: the first line decides
        counts = {delimiter: lines[0].count(delimiter) for delimiter in _DELIMITERS}
        best = max(counts, key=lambda delimiter: counts[delimiter]) if any(counts.values()) else None
    return best


def _first_lines(file: InputFile, encoding: str, most: int = 20) -> list[str]:
    with file.guard():
        for _, lines in file.text_blocks(encoding):
            if any("\0" in line for line in lines[:most]):
                raise file.error("it holds binary data (NUL bytes), and CSV is expected.")
            return lines[:most]
    return []


def _kinds(dialect: Delimited) -> dict[str, str | None]:
    """One pass over the values as text: what each column holds."""
    text = {name: dialect.arrow.string() for name in dialect.names}
    kinds: dict[str, str | None] = dict.fromkeys(dialect.names)
    n_rows = 0
    for batch in dialect.batches(dialect.names, text):
        n_rows += batch.num_rows
        for name in dialect.names:
            if kinds[name] != "label":
                kinds[name] = joined_kind(kinds[name], _kind(dialect.arrow, batch.column(name)))
    if n_rows == 0:
        raise dialect.file.error("it has a header and no rows.")
    return {name: kind or "number" for name, kind in kinds.items()}  # nothing but missing values: numbers, all NaN


def _kind(arrow: Any, column: Any) -> str | None:
    """What a column of text holds, None where all of it is missing."""
    if column.null_count == len(column):
        return None
    compute = arrow.compute
    column = compute.utf8_trim_whitespace(column.drop_null())
    for kind, dtype in (("integer", arrow.int64()), ("number", arrow.float64())):
        try:
            numbers = column.cast(dtype)
            return "label" if kind == "integer" and _are_codes(compute, column, numbers) else kind
        except arrow.ArrowInvalid:
            continue
    truth = compute.is_in(column, value_set=arrow.array(_TRUTH))
    return "truth" if compute.all(truth).as_py() else "label"


def _are_codes(compute: Any, texts: Any, numbers: Any) -> bool:
    """Whether zeros at the beginning make a difference, as in 007 beside 7: as numbers these would be the same."""
    padded = compute.any(compute.match_substring_regex(texts, r"^[+-]?0\d")).as_py()
    return bool(padded and compute.count_distinct(texts).as_py() > compute.count_distinct(numbers).as_py())


def _read(dialect: Delimited, kinds: dict[str, str | None], names: Sequence[str]) -> Iterator[list[NDArray[Any]]]:
    arrow = dialect.arrow
    types = {"integer": arrow.int64(), "number": arrow.float64(), "truth": arrow.bool_(), "label": arrow.string()}
    wanted = {name: types[kinds[name] or "number"] for name in names}
    for batch in dialect.batches(names, wanted):
        if batch.num_rows:
            with dialect.guard():
                columns = [to_numpy(arrow, batch.column(name), kinds[name] or "number") for name in names]
            yield columns


def is_number(text: str) -> bool:
    """Whether a cell is a finite number."""
    try:
        float(text)
    except ValueError:
        return False
    return bool(np.isfinite(float(text)))
