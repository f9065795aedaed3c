"""Lines of pairs "id:value": LDA-C and SVMlight, streamed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from odeco.files.number_lines import LineFault, Numbers, read_numbers
from odeco.files.opening import InputFile
from odeco.files.rows import SparseRows, check_width, csr_part, rows_per_batch

_COMMENT = re.compile(rb"#[^\n]*")
_QUERY = re.compile(rb"(?<=[ \t])qid:[+-]?\d+(?=[ \t\r\n]|\Z)")
# Labels, or none, before the first pair; only the pairs are data.
_LABELS = re.compile(rb"^[ \t]*[-+.\deE]+(,[-+.\deE]+)+(?=[ \t\r\n]|\Z)", re.MULTILINE)


class Pairs(NamedTuple):
    """Lines of a block: the number before the pairs, where pairs begin, their ids and their values."""

    first: NDArray[Any]
    indptr: NDArray[np.int64]
    ids: NDArray[np.int64]
    values: NDArray[Any]


def lda_c_rows(file: InputFile, n_features: int | None = None) -> SparseRows:
    """LDA-C: on each line the number of distinct words, then pairs "word:count", words counted from 0."""
    return _rows(file, "ldac", _lda_c_block, n_features, lowest=0)


def svmlight_rows(file: InputFile, n_features: int | None = None) -> SparseRows:
    """SVMlight: on each line a label, then pairs "column:value"; columns count from 1, or from 0 where 0 occurs."""
    return _rows(file, "svmlight", _svmlight_block, n_features, lowest=None)


Parser = Callable[[InputFile, int, bytes], Pairs]


def _rows(file: InputFile, name: str, parse: Parser, n_features: int | None, lowest: int | None) -> SparseRows:
    """One pass for the number of columns, which these formats do not say, and to see all faults before a fit."""
    low, high, n_rows, n_pairs = np.iinfo(np.int64).max, -1, 0, 0
    dtype: Any = np.int64
    for line, block in file.line_blocks():
        pairs = parse(file, line, block)
        dtype = np.result_type(dtype, pairs.values.dtype)
        n_rows, n_pairs = n_rows + len(pairs.first), n_pairs + len(pairs.ids)
        if len(pairs.ids):
            if pairs.ids.min() < 0:
                raise file.error(f"from line {line} on there is the id {pairs.ids.min()}: ids are not negative.")
            low, high = min(low, int(pairs.ids.min())), max(high, int(pairs.ids.max()))
    if n_rows == 0 or n_pairs == 0:
        raise file.error(f"it has {n_rows} rows and no pairs 'id:value': there is nothing to fit.")
    start = lowest if lowest is not None else min(low, 1)
    width = check_width(file, high + 1 - start)
    if n_features is not None:
        width = max(width, n_features)  # the caller refuses a file that is too wide

    def read() -> Iterator[sparse.csr_array]:
        row = 1
        for line, block in file.line_blocks():
            pairs = parse(file, line, block)
            yield csr_part(file, pairs.values.astype(dtype, copy=False), pairs.ids - start, pairs.indptr, width, row)
            row += len(pairs.first)

    return SparseRows(file, name, width, read, None, rows_per_batch(n_rows, n_pairs))


def _lda_c_block(file: InputFile, line: int, block: bytes) -> Pairs:
    numbers, pairs = _pairs(file, line, block, "the number of words, then pairs 'word:count' of whole numbers")
    if pairs.values.dtype != np.int64:
        raise file.error(f"from line {line} on there are counts that are not whole numbers.")
    wrong = np.flatnonzero(np.diff(pairs.indptr) != pairs.first)
    if wrong.size:
        found, said = np.diff(pairs.indptr)[wrong[0]], pairs.first[wrong[0]]
        place = numbers.fault(int(numbers.begins[numbers.ends[wrong[0]] - 1]))
        raise file.error(f"{said} words are announced and {found} pairs follow.", place.line)
    return pairs


def _svmlight_block(file: InputFile, line: int, block: bytes) -> Pairs:
    """Comments, query numbers and labels beyond the first are left out, line by line."""
    if b"#" in block:
        block = _COMMENT.sub(b"", block)
    if b"qid:" in block:
        block = _QUERY.sub(b"", block)
    if b"," in block:
        block = _LABELS.sub(b"0", block)
    return _pairs(file, line, block, "a label, then pairs 'column:value'")[1]


def _pairs(file: InputFile, line: int, block: bytes, expected: str) -> tuple[Numbers, Pairs]:
    """Lines of a number and pairs of numbers; an id is whole."""
    try:
        numbers = read_numbers(block, line)
        return numbers, _in_pairs(numbers)
    except LineFault as fault:
        raise file.error(f"line {fault.line} is {fault.text!r}, expected {expected}.") from None


def _in_pairs(numbers: Numbers) -> Pairs:
    """A line of p pairs has 1 + 2 p numbers; behind the first of each pair, and only there, stands a colon."""
    from odeco.kernels.numbers import COLON

    ends = numbers.ends
    starts = np.concatenate([[0], ends])[:-1]
    widths = ends - starts
    places = np.arange(len(numbers.after)) - np.repeat(starts, widths)
    wrong = (numbers.after == COLON) != (places % 2 == 1)
    if wrong.any():
        raise numbers.fault(int(numbers.begins[np.argmax(wrong)]))
    is_id = places % 2 == 1
    is_value = (places > 0) & ~is_id
    indptr = np.concatenate([[0], np.cumsum(widths // 2)])
    return Pairs(numbers.values[starts], indptr, numbers.integers(is_id), numbers.values[is_value])
