"""Lines of numbers and of pairs "id:value": what all text formats of counts are read by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from odeco.files.opening import InputFile

_INT64 = np.iinfo(np.int64)


class LineFault(Exception):  # noqa: N818  (the format that is read says what it expected)
    """What is not a number, and the line it stands on."""

    def __init__(self, block: bytes, first_line: int, begin: int) -> None:
        start = block.rfind(b"\n", 0, begin) + 1
        end = block.find(b"\n", begin)
        self.line = first_line + block.count(b"\n", 0, begin)
        self.text = block[start : end if end >= 0 else len(block)][:60].decode("utf-8", "replace").rstrip()
        self.token = (block[begin : begin + 60].split() or [b""])[0].decode("utf-8", "replace")
        super().__init__(self.line, self.token)


@dataclass(frozen=True, eq=False)
class Numbers:
    """The numbers of a block, one after the other, with their kinds and what comes after each (see the kernel)."""

    block: bytes
    line: int
    whole: NDArray[np.int64]  # those that are whole
    decimal: NDArray[np.float64]  # all of them, where some are not
    kinds: NDArray[np.uint8]
    after: NDArray[np.uint8]
    begins: NDArray[np.integer]

    @property
    def values(self) -> NDArray[Any]:
        """All of them: integers where all are."""
        return self.decimal if self.kinds.any() else self.whole

    @property
    def ends(self) -> NDArray[np.intp]:
        """How many numbers come before the end of each line that has some."""
        from odeco.kernels.numbers import END

        return np.flatnonzero(self.after == END) + 1

    def integers(self, chosen: Any = slice(None)) -> NDArray[np.int64]:
        """Some of them, which must be integers."""
        if self.kinds[chosen].any():
            raise self.fault(int(self.begins[chosen][np.argmax(self.kinds[chosen] != 0)]))
        found: NDArray[np.int64] = self.whole[chosen]
        return found

    def fault(self, begin: int) -> LineFault:
        """The error about what begins there."""
        return LineFault(self.block, self.line, begin)


def read_numbers(block: bytes, line: int) -> Numbers:
    """The numbers of whole lines, the first of which is the line of that number."""
    from odeco.kernels import numbers

    block = block if block.endswith(b"\n") else block + b"\n"
    most = len(block) // 2 + 1  # what is not reached takes no memory
    whole, decimal = np.empty(most, np.int64), np.empty(most, np.float64)
    begins: NDArray[np.integer] = np.empty(most, np.int32 if len(block) < 2**31 else np.int64)
    kinds, after, long = np.empty(most, np.uint8), np.empty(most, np.uint8), np.empty(len(block), np.uint8)
    text = np.frombuffer(block, np.uint8)
    n, fault, n_long = numbers.read_numbers(text, whole, decimal, kinds, after, begins, long)
    if fault >= 0:
        raise LineFault(block, line, fault)
    found = Numbers(block, line, whole[:n], decimal[:n], kinds[:n], after[:n], begins[:n])
    if n_long:  # numbers, as the kernel has seen to it
        found.decimal[found.kinds == numbers.LONG] = np.fromstring(long[:n_long].tobytes(), np.float64, sep="\n")
    for i in np.flatnonzero(found.kinds == numbers.WORD).tolist():
        _read_word(found, i)
    if found.kinds.any():
        np.copyto(found.decimal, found.whole, where=found.kinds == numbers.WHOLE)
    return found


def _read_word(numbers: Numbers, i: int) -> None:
    """nan, inf and whole numbers of more than 18 digits; nothing else, though Python knows more."""
    from odeco.kernels.numbers import DECIMAL, WHOLE

    begin, end = int(numbers.begins[i]), int(numbers.whole[i])
    word = numbers.block[begin:end]
    digits = word[1:] if word[:1] in (b"+", b"-") else word
    if not digits.isdigit() and digits.lower() not in (b"nan", b"inf", b"infinity"):
        raise numbers.fault(begin)
    numbers.decimal[i], numbers.kinds[i] = float(word), DECIMAL
    if len(digits) < 40 and digits.isdigit() and _INT64.min <= int(word) <= _INT64.max:
        numbers.whole[i], numbers.kinds[i] = int(word), WHOLE


def number_table(file: InputFile, block: bytes, line: int, dtypes: tuple[Any, ...]) -> list[NDArray[Any]]:
    """The columns of lines with a number for each of the types."""
    n_fields = len(dtypes)
    try:
        numbers = read_numbers(block, line)
        _check_widths(file, numbers, n_fields)
        return [
            numbers.integers(np.s_[j::n_fields]) if dtype == np.int64 else numbers.values[j::n_fields].astype(dtype)
            for j, dtype in enumerate(dtypes)
        ]
    except LineFault as fault:
        kind = "whole number" if set(dtypes) == {np.int64} else "number"
        raise file.error(f"could not convert string {fault.token!r} to a {kind}.", fault.line) from None


def _check_widths(file: InputFile, numbers: Numbers, n_fields: int) -> None:
    from odeco.kernels.numbers import COLON

    if (numbers.after == COLON).any():
        raise numbers.fault(int(numbers.begins[np.argmax(numbers.after == COLON)]))
    widths = np.diff(numbers.ends, prepend=0)
    if (widths != n_fields).any():
        wrong = int(np.argmax(widths != n_fields))
        place = numbers.fault(int(numbers.begins[numbers.ends[wrong] - 1]))
        raise file.error(f"{n_fields} numbers are expected on a line, found {widths[wrong]}.", place.line)
