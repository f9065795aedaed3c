"""Lines of pairs "id:value": LDA-C and SVMlight, streamed."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from odeco.files.opening import InputFile
from odeco.files.rows import SparseRows, check_width, csr_part, rows_per_batch

_PLAIN = bytes(range(ord("0"), ord("9") + 1)) + b".eE+-: \n"


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
    for line, block in file.line_blocks():
        pairs = parse(file, line, block)
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
            yield csr_part(file, pairs.values, pairs.ids - start, pairs.indptr, width, row)
            row += len(pairs.first)

    return SparseRows(file, name, width, read, None, rows_per_batch(n_rows, n_pairs))


def _lda_c_block(file: InputFile, line: int, block: bytes) -> Pairs:
    pairs = flat_pairs(block)
    if pairs is None:
        raise file.error(_fault(block, line, "the number of words, then pairs 'word:count' of whole numbers"))
    if pairs.values.dtype != np.int64:
        raise file.error(f"from line {line} on there are counts that are not whole numbers.")
    wrong = np.flatnonzero(np.diff(pairs.indptr) != pairs.first)
    if wrong.size:
        found, said = np.diff(pairs.indptr)[wrong[0]], pairs.first[wrong[0]]
        raise file.error(f"{said} words are announced and {found} pairs follow.", _line_of(block, line, int(wrong[0])))
    return pairs


def _svmlight_block(file: InputFile, line: int, block: bytes) -> Pairs:
    """numpy reads plain lines ten times as fast as scikit-learn, which knows comments, qid and several labels."""
    pairs = flat_pairs(block)
    if pairs is not None:
        return pairs
    from sklearn.datasets import load_svmlight_file

    try:
        # Without a column 0 in front scikit-learn would have to guess where columns begin.
        matrix, labels = load_svmlight_file(io.BytesIO(block), zero_based=True, multilabel=_several_labels(block))
    except (ValueError, OverflowError, IndexError) as error:
        text = _fault(block, line, "a label, then pairs 'column:value'")
        raise file.error(f"{text} ({error})") from error
    indptr = matrix.indptr.astype(np.int64)
    return Pairs(np.zeros(len(labels)), indptr, matrix.indices.astype(np.int64), matrix.data)


def _several_labels(block: bytes) -> bool:
    return any(b"," in line.split(b":", 1)[0] for line in block.split(b"\n")[:100])


def flat_pairs(block: bytes) -> Pairs | None:
    """Pairs of plain lines, None where something else stands in them.

    The numbers are read as one flat list. Colons and spaces, counted by line, say where each line begins in it: a line
    of p pairs has p colons, each with a number on both sides, and 1 + 2 p numbers.
    """
    block = block.replace(b"\r\n", b"\n").replace(b"\t", b" ")
    if block.translate(None, _PLAIN):
        return None
    lines = [line for line in block.split(b"\n") if line.strip()]
    n_pairs = np.array([line.count(b":") for line in lines], dtype=np.int64)
    n_fields = np.array([len(line.split()) for line in lines], dtype=np.int64)
    if (n_fields != n_pairs + 1).any() or re.search(rb":[ \n:]|[ \n:]:|:[^ \n]*:", b"\n" + block + b"\n"):
        return None
    try:
        flat = _numbers(b" ".join(lines).replace(b":", b" "))
    except ValueError:
        return None
    indptr = np.concatenate([[0], np.cumsum(n_pairs)])
    if len(flat) != len(lines) + 2 * indptr[-1]:
        return None
    starts = 2 * indptr[:-1] + np.arange(len(lines))
    rest = np.delete(flat, starts)
    first, ids, values = flat[starts], rest[::2], rest[1::2].copy()
    if ids.dtype != np.int64:
        if (ids != np.floor(ids)).any() or (np.abs(ids) > 2**53).any():
            return None
        ids = ids.astype(np.int64)
    return Pairs(first, indptr, ids, values)


def _numbers(text: bytes) -> NDArray[Any]:
    """Integers where all are, which read three times as fast as floats."""
    if not any(symbol in text for symbol in (b".", b"e", b"E")):
        whole = np.fromstring(text, dtype=np.int64, sep=" ")
        if not (np.abs(whole) == np.iinfo(np.int64).max).any():
            return np.asarray(whole)
    return np.fromstring(text, dtype=np.float64, sep=" ")


def _line_of(block: bytes, line: int, row: int) -> int:
    """The line of a file on which a row of a block stands: empty lines are no rows."""
    filled = [i for i, text in enumerate(block.split(b"\n")) if text.strip()]
    return line + filled[row]


def _fault(block: bytes, line: int, expected: str) -> str:
    """Find the line that is not what it should be."""
    for number, text in enumerate(block.split(b"\n"), line):
        words = text.split(b"#")[0].split()
        if words and not all(re.fullmatch(rb"(qid|[+]?\d+):[-+.\deE]+", word) for word in words[1:]):
            shown = text[:60].decode("utf-8", "replace")
            return f"line {number} is {shown!r}, expected {expected}."
    return f"from line {line} on: expected {expected}."
