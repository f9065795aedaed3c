"""Rows as columns about an origin: what log densities of numbers are linear in, as compiled loops read it."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Real = TypeVar("Real", bound=np.floating[Any])


def whole_rows(rows: NDArray[Real]) -> NDArray[Real]:
    """The same rows, each in one piece of memory, however far apart: a copy where they are not."""
    return rows if rows.shape[1] < 2 or rows.strides[1] == rows.itemsize else np.ascontiguousarray(rows)


def centred_columns(rows: NDArray[Any], out: NDArray[Any], origin: NDArray[Any] | None = None) -> None:
    """``out = (rows - origin).T``, (d, m), in the precision of the rows: few digits of a large origin are lost."""
    from odeco.kernels._native import centred_columns as write

    if out.dtype == np.float64:
        rows = rows.astype(np.float64, copy=False)
    about = np.empty(0, rows.dtype) if origin is None else origin.astype(rows.dtype)
    write(whole_rows(rows), 0, len(rows), about, out)


def turned(rows: NDArray[Any]) -> NDArray[Any]:
    """``np.ascontiguousarray(rows.T)``, for numbers of four and eight bytes a few times as fast."""
    number = {4: np.float32, 8: np.float64}.get(rows.itemsize)
    if number is None or rows.dtype.kind not in "fiu" or not rows.dtype.isnative or rows.strides[1] != rows.itemsize:
        return np.ascontiguousarray(rows.T)
    from odeco.kernels._native import centred_columns as write

    out = np.empty(rows.shape[::-1], rows.dtype)
    write(rows.view(number), 0, len(rows), np.empty(0, number), out.view(number))  # bits as they are
    return out
