"""Rows that begin on cache lines.

Products with sparse rows read and write whole rows of tall blocks, here and there. A row of 60 numbers that begins
anywhere touches five lines of the cache, one that begins on a line four; and loops over whole lines have no rest. So
the blocks are views of wider ones, whose rows are whole lines.
"""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.lib.array_utils import byte_bounds
from numpy.lib.stride_tricks import as_strided
from numpy.typing import DTypeLike, NDArray

Scalar = TypeVar("Scalar", bound=np.floating[Any])

_LINE = 64  # bytes


def zero_lines(shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    """Zeros of a shape, rows (along the last axis) on lines."""
    size = np.dtype(dtype).itemsize
    width = _row_bytes(shape[-1], size) // size
    n_numbers = int(np.prod(shape[:-1])) * width
    memory = np.zeros(n_numbers + _LINE // size, dtype=dtype)
    first = -memory.ctypes.data % _LINE // size
    return memory[first : first + n_numbers].reshape(*shape[:-1], width)[..., : shape[-1]]


def in_lines(rows: NDArray[Scalar]) -> NDArray[Scalar]:
    """A block with its rows on lines: itself, or a copy (what pickles and files bring is contiguous)."""
    if _is_in_lines(rows):
        return rows
    found: NDArray[Scalar] = zero_lines(rows.shape, rows.dtype)
    found[...] = rows
    return found


def whole_lines(rows: NDArray[Scalar]) -> NDArray[Scalar]:
    """The contiguous, wider block that a block with its rows on lines is a view of."""
    assert _is_in_lines(rows), "rows do not begin on lines"
    return as_strided(rows, (*rows.shape[:-1], rows.strides[-2] // rows.itemsize), rows.strides)


def _is_in_lines(rows: NDArray[Any]) -> bool:
    """Whether rows are on lines, and the last one's line is ours to its end."""
    row_bytes = _row_bytes(rows.shape[-1], rows.itemsize)
    steps = row_bytes * np.cumprod([1, *rows.shape[-2:0:-1]], dtype=np.int64)
    if rows.strides != (*steps[::-1].tolist(), rows.itemsize) or rows.ctypes.data % _LINE:
        return False
    end = rows.ctypes.data + row_bytes * (rows.size // rows.shape[-1])
    return bool(end <= byte_bounds(rows.base if isinstance(rows.base, np.ndarray) else rows)[1])


def _row_bytes(n_columns: int, size: int) -> int:
    return -(-n_columns * size // _LINE) * _LINE
