"""Numbers in lines of text, strictly: what is not a number, to its last letter, is a fault.

A number is digits with a sign, a point and an exponent, or without them. Most are read here and exactly: whole numbers
of up to 18 digits, and decimals whose digits and power of ten are both exact in double precision, so that one rounded
operation gives the nearest double (Clinger, 1990). Longer decimals are copied, for numpy to read. Words such as nan and
longer whole numbers are left where they are, for Python.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]

# What a number is: whole, decimal, a decimal that is too long to be read here, or anything else.
WHOLE, DECIMAL, LONG, WORD = 0, 1, 2, 3
# What follows it: blanks, a colon, the end of the line.
BLANK, COLON, END = 0, 1, 2

_OPTIONS = {"cache": True, "nogil": True}
_POWERS = 10.0 ** np.arange(23)  # exact, as 5^22 < 2^53
_TAB, _NEWLINE, _RETURN, _SPACE = 9, 10, 13, 32
_PLUS, _MINUS, _POINT, _COLON, _ZERO, _NINE, _E, _LOWER = 43, 45, 46, 58, 48, 57, 101, 32
_MOST_DIGITS = 18  # of a whole number that fits 64 bits for certain
_EXACT = 2**53


@njit(**_OPTIONS)
def read_numbers(
    text: Bytes,
    whole: NDArray[np.int64],
    decimal: NDArray[np.float64],
    kinds: Bytes,
    after: Bytes,
    begins: NDArray[np.integer],
    long: Bytes,
) -> tuple[int, int, int]:
    """All numbers of lines that end in newlines: how many, where the first fault is (-1: nowhere), the bytes of `long`.

    Numbers are apart by blanks, or by one colon without blanks. Lines without numbers are passed over. Decimals that
    are too long go to `long`, a newline behind each. For a word `whole` holds the place behind it.
    """
    n, n_long, at = 0, 0, 0
    while at < text.size:
        symbol = text[at]
        if _is_blank(symbol):
            if symbol == _NEWLINE and n > 0:
                after[n - 1] = END
            at += 1
            continue
        negative = symbol == _MINUS
        begin = at + 1 if negative or symbol == _PLUS else at
        end, digits = _read_digits(text, begin, 0)
        kind = WHOLE
        if 0 < end - begin <= _MOST_DIGITS and _ends(text[end]):
            whole[n] = -digits if negative else digits
        else:
            kind, end, decimal[n] = _read_decimal(text, begin, end, digits)
            if kind == DECIMAL and negative:
                decimal[n] = -decimal[n]
            elif kind == LONG:
                n_long = _copy(text, at, end, long, n_long)
            elif kind == WORD:
                whole[n] = end
        joined = text[end] == _COLON
        if end == at or (joined and _is_blank(text[end + 1])):
            return n, at, n_long
        begins[n], kinds[n], after[n] = at, kind, COLON if joined else BLANK
        at = end + 1 if joined else end
        n += 1
    return n, -1, n_long


@njit(**_OPTIONS)
def _read_decimal(text: Bytes, begin: int, point: int, digits: int) -> tuple[int, int, float]:
    """The kind of what begins there, its digits read up to the point; where it ends, and its value if it is decimal."""
    end = point
    if text[end] == _POINT:
        end, digits = _read_digits(text, end + 1, digits)
    n_after = max(end - point - 1, 0)
    n_digits, power = point - begin + n_after, -n_after
    if text[end] | _LOWER == _E:
        sign = text[end + 1]
        first = end + 1 + (sign == _PLUS) + (sign == _MINUS)
        end, exponent = _read_digits(text, first, 0)
        n_digits = n_digits if end > first else 0
        power += -exponent if sign == _MINUS else exponent
        if end - first > 3:  # more than any double has
            power = _POWERS.size
    if n_digits > 0 and end > point and _ends(text[end]):
        if n_digits > _MOST_DIGITS or digits > _EXACT or abs(power) >= _POWERS.size:
            return LONG, end, 0.0
        return DECIMAL, end, digits * _POWERS[power] if power >= 0 else digits / _POWERS[-power]
    while not _ends(text[end]):
        end += 1
    return WORD, end, 0.0


@njit(**_OPTIONS)
def _copy(text: Bytes, begin: int, end: int, to: Bytes, at: int) -> int:
    """Copy what stands between two places, and a newline; where the copy ends."""
    for i in range(begin, end):
        to[at + i - begin] = text[i]
    to[at + end - begin] = _NEWLINE
    return at + end - begin + 1


@njit(**_OPTIONS)
def _read_digits(text: Bytes, at: int, number: int) -> tuple[int, int]:
    """Where digits end, and their number behind that of earlier ones; it is wrong where they are more than 18."""
    while _ZERO <= text[at] <= _NINE:
        number = 10 * number + (text[at] - _ZERO)
        at += 1
    return at, number


@njit(**_OPTIONS)
def _ends(symbol: int) -> bool:
    return symbol == _COLON or _is_blank(symbol)


@njit(**_OPTIONS)
def _is_blank(symbol: int) -> bool:
    return symbol == _SPACE or _TAB <= symbol <= _RETURN
