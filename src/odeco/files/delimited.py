"""CSV and TSV by pyarrow: quotes, newlines in quotes, any delimiter, streamed in blocks."""

from __future__ import annotations

import csv
import io
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from odeco.exceptions import InputFileError
from odeco.files import opening
from odeco.files.arrow import import_arrow, to_numpy
from odeco.files.encodings import text_decoder
from odeco.files.frames import TableInput, joined_kind
from odeco.files.limits import limits
from odeco.files.opening import InputFile

_DELIMITERS = ",\t;|"
# What stands for a missing value.
_NULLS = ["", "NA", "N/A", "n/a", "#N/A", "NULL", "null", "None", "NaN", "nan", "<NA>"]
# A number with a decimal comma, and one that could be a thousand of another country as well.
_COMMA = r"^[+-]?\d*(,\d+)?([eE][+-]?\d+)?$"
_NO_THOUSANDS = r",(\d{1,2}|\d{4,})([eE]|$)|\d{4,},"
_COMMA_NUMBER = re.compile(r"[+-]?\d+(,\d+)?([eE][+-]?\d+)?$")
_TRUTH = ["true", "True", "TRUE", "false", "False", "FALSE"]


@dataclass(frozen=True, eq=False)
class Delimited:
    """How the rows of a file are divided."""

    file: InputFile
    encoding: str
    delimiter: str
    names: list[str]
    n_skipped: int  # bytes of UTF-8 before the first row
    arrow: Any = field(repr=False)
    block_bytes: int = 2**20

    def batches(self, columns: Sequence[str], types: dict[str, Any]) -> Iterator[Any]:
        """Record batches of some columns, converted to types."""
        module = self.arrow.csv
        read = module.ReadOptions(
            block_size=self.block_bytes,
            column_names=self.names,
            use_threads=False,  # messages then name the row; parsing runs beside the fit anyway
        )
        parse = module.ParseOptions(delimiter=self.delimiter, newlines_in_values=True)
        convert = module.ConvertOptions(
            include_columns=list(columns), column_types=types, null_values=_NULLS, strings_can_be_null=True
        )
        with (
            self.guard(),
            Utf8(self.file, self.encoding, self.n_skipped) as stream,
            module.open_csv(stream, read, parse, convert) as reader,
        ):
            yield from reader

    @contextmanager
    def guard(self) -> Iterator[None]:
        """pyarrow's errors, in the words of the file."""
        try:
            with self.file.guard():
                yield
        except (InputFileError, self.arrow.ArrowException) as error:
            if "straddling" in str(error):
                raise _TooLong from error
            if "Empty CSV file" in str(error):
                raise self.file.error("it has a header and no rows.") from error
            if isinstance(error, InputFileError):
                raise
            raise self.file.error(str(error)) from error


class Utf8(io.RawIOBase):
    """The text of a file in UTF-8, whatever its encoding and compression, but for the first bytes.

    No read but the last ends between the two characters of a newline of Windows: within quotes pyarrow would lose one.
    """

    def __init__(self, file: InputFile, encoding: str, n_skipped: int = 0) -> None:
        super().__init__()
        self._decoder = text_decoder(encoding)
        self._stream = file.open()
        self._rest, self._ended = b"", False
        while n_skipped:
            n_skipped -= len(self.read(n_skipped))

    def readable(self) -> bool:
        """It can be read."""
        return True

    def read(self, size: int = -1) -> bytes:
        """So many bytes, or a few less; none at the end. All of them where no size is given."""
        size = size if size >= 0 else sys.maxsize
        while not self._ended and len(self._rest) <= size:
            piece = self._stream.read(opening.BLOCK_BYTES)
            self._ended = not piece
            self._rest += self._decoder.decode(piece, final=self._ended).encode()
        found = self._rest[:size]
        if len(self._rest) > size:
            found = found.rstrip(b"\r") or found
        self._rest = self._rest[len(found) :]
        return found

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer as far as one read does."""
        found = self.read(len(buffer))
        buffer[: len(found)] = found
        return len(found)

    def close(self) -> None:
        """Close the file too."""
        self._stream.close()
        super().close()


class _TooLong(Exception):  # noqa: N818  (not an error yet: a larger block may do)
    """A row does not fit into a block."""


def read_delimited(file: InputFile, format: str = "csv", encoding: str = "utf-8") -> TableInput:
    """The columns of a CSV or TSV file; one pass over it finds out what they hold."""
    dialect = open_delimited(file, encoding, "\t" if format == "tsv" else None)
    kinds = None
    size = opening.BLOCK_BYTES
    while kinds is None:  # a block must hold the longest row
        dialect = replace(dialect, block_bytes=size)
        try:
            kinds = _kinds(dialect)
        except _TooLong:
            what = "a row is too long, or a quote is opened and never closed"
            file.check_limit("line_bytes", size + 1, what)
            size = min(16 * size, limits().line_bytes)
    shown = ["number" if kind == "comma" else kind for kind in kinds.values()]
    return TableInput(file, format, dialect.names, shown, partial(_read, dialect, kinds))


def open_delimited(file: InputFile, encoding: str, delimiter: str | None) -> Delimited:
    """Find the delimiter and the names."""
    arrow = import_arrow(file.name, "reading CSV")
    first_lines = _first_lines(file, encoding)
    used = delimiter or find_delimiter(first_lines) or ","
    first_row, n_bytes = _first_row(file, encoding, used)
    file.check_limit("table_columns", len(first_row), f"it has {len(first_row)} columns")
    point = "," if used == "," else "."
    has_header = not all(is_number(value.replace(",", point)) or value.strip() in _NULLS for value in first_row)
    names = [name.strip() for name in first_row] if has_header else [""] * len(first_row)
    names = [name or f"x{j}" for j, name in enumerate(names)]
    if len(set(names)) < len(names):
        twice = Counter(names).most_common(1)[0][0]
        raise file.error(f"two columns are called {twice!r}: rename one.")
    return Delimited(file, encoding, used, names, n_bytes if has_header else 0, arrow)


def _first_row(file: InputFile, encoding: str, delimiter: str) -> tuple[list[str], int]:
    """The first row that is not empty, and the bytes of UTF-8 up to its end: within quotes it may have many lines."""
    n_bytes, first = 0, ("", 0)

    def lines() -> Iterator[str]:
        nonlocal n_bytes, first
        for line in iter(lambda: text.readline(limits().line_bytes), ""):
            n_bytes += len(line.encode())
            first = first if first[1] or not line.strip("\r\n") else (line.strip("\r\n"), n_bytes)
            yield line

    with file.guard(), Utf8(file, encoding) as stream:
        text = io.TextIOWrapper(io.BufferedReader(stream), "utf-8", newline="")
        try:
            row = next((row for row in csv.reader(lines(), delimiter=delimiter) if row), None)
        except csv.Error:  # a field of more than 128 KiB, which pyarrow takes
            return first[0].split(delimiter), first[1]
    if row is None:
        raise file.error("it holds no rows.")
    return row, n_bytes


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
    if best == "," and all(len(row) > 1 and all(map(_COMMA_NUMBER.match, row)) for row in _fields(lines, ";")):
        best = ";"  # 1,5;2,5: commas are within the numbers
    if best is None and lines:  # ragged, or rows with newlines: the first line decides
        counts = {delimiter: lines[0].count(delimiter) for delimiter in _DELIMITERS}
        best = max(counts, key=lambda delimiter: counts[delimiter]) if any(counts.values()) else None
    return best


def _first_lines(file: InputFile, encoding: str, most: int = 20) -> list[str]:
    blocks = file.text_blocks(encoding)
    return list(islice(chain.from_iterable(lines for _, lines in blocks), most))


def _kinds(dialect: Delimited) -> dict[str, str | None]:
    """One pass over the values as text: what each column holds."""
    text = {name: dialect.arrow.string() for name in dialect.names}
    kinds: dict[str, str | None] = dict.fromkeys(dialect.names)
    n_rows = 0
    comma = dialect.delimiter if dialect.delimiter != "," else None
    for batch in dialect.batches(dialect.names, text):
        n_rows += batch.num_rows
        for name in dialect.names:
            if kinds[name] != "label":
                kinds[name] = joined_kind(kinds[name], _kind(dialect.arrow, batch.column(name), comma))
    if n_rows == 0:
        raise dialect.file.error("it has a header and no rows.")
    return {name: kind or "number" for name, kind in kinds.items()}  # nothing but missing values: numbers, all NaN


def _kind(arrow: Any, column: Any, delimiter: str | None = None) -> str | None:
    """What a column of text holds, None where all of it is missing; commas may be decimal where none divides fields."""
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
    if delimiter is not None and _has_decimal_commas(compute, column, sure=delimiter == ";"):
        return "comma"
    truth = compute.is_in(column, value_set=arrow.array(_TRUTH))
    return "truth" if compute.all(truth).as_py() else "label"


def _has_decimal_commas(compute: Any, texts: Any, *, sure: bool) -> bool:
    """Whether all are numbers with decimal commas; 1,234 may be a thousand, unless semicolons divide the fields."""
    if not compute.all(compute.match_substring_regex(texts, _COMMA)).as_py():
        return False
    return sure or bool(compute.any(compute.match_substring_regex(texts, _NO_THOUSANDS)).as_py())


def _are_codes(compute: Any, texts: Any, numbers: Any) -> bool:
    """Whether zeros at the beginning make a difference, as in 007 beside 7: as numbers these would be the same."""
    padded = compute.any(compute.match_substring_regex(texts, r"^[+-]?0\d")).as_py()
    return bool(padded and compute.count_distinct(texts).as_py() > compute.count_distinct(numbers).as_py())


def _read(dialect: Delimited, kinds: dict[str, str | None], names: Sequence[str]) -> Iterator[list[NDArray[Any]]]:
    arrow = dialect.arrow
    types = {"integer": arrow.int64(), "number": arrow.float64(), "truth": arrow.bool_()}
    wanted = {name: types.get(kinds[name] or "number", arrow.string()) for name in names}
    for batch in dialect.batches(names, wanted):
        if batch.num_rows:
            with dialect.guard():
                columns = [_values(arrow, batch.column(name), kinds[name] or "number") for name in names]
            yield columns


def _values(arrow: Any, column: Any, kind: str) -> NDArray[Any]:
    if kind == "comma":
        column, kind = arrow.compute.replace_substring(column, ",", "."), "number"
        column = arrow.compute.utf8_trim_whitespace(column)
    return to_numpy(arrow, column, kind)


def is_number(text: str) -> bool:
    """Whether a cell is a finite number."""
    try:
        float(text)
    except ValueError:
        return False
    return bool(np.isfinite(float(text)))
