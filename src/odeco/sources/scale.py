"""The range of values whose powers are within that of double precision: others are refused here, with the cure."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

# Third moments are sums of cubes and their norms sums of the squares of those: sixth powers of 1e40 leave room for the
# number of rows, and squares of what is largest in units of what is smallest are within the range, too.
LARGEST = 1e40
SMALLEST = 1 / LARGEST


def is_within_range(values: NDArray[Any]) -> bool:
    """Whether all values are finite and at most `LARGEST`, in one pass without a copy; float32 may say no in error."""
    from odeco.kernels.products import by_rows

    norms: list[float] = []

    def look(part: slice) -> None:
        with np.errstate(over="ignore", invalid="ignore"):
            norms.append(float(np.linalg.norm(values[part])))

    by_rows(look, values)
    return all(norm <= LARGEST for norm in norms)


def check_size(size: float, name: str = "X", where: str = "") -> None:
    """Raise unless values of this size, the largest there are, or 0, have powers within the range."""
    if size > LARGEST or 0 < size < SMALLEST:
        raise ValueError(
            f"{name} has values of about {size:.1g}{where}, and squares of their third powers are out of range: divide "
            f"{name} by about {size:.0e}{where and ' there'}, and scale back what is learned."
        )


def check_magnitude(values: NDArray[Any]) -> NDArray[Any]:
    """Return the values; raise where one is too large. NaN, which may stand for what is missing, passes."""
    if not is_within_range(values):
        largest = float(np.fmax.reduce(np.abs(values), axis=None, initial=0.0))
        if largest > LARGEST:
            check_size(largest)
    return values


def check_columns(magnitudes: Floats, name: str = "X") -> None:
    """Raise where all values of a column are too small; `magnitudes` (d,) are what they reach, 0 where all are 0.

    Asked of all rows together: single rows and chunks may well be small.
    """
    small = np.flatnonzero((magnitudes > 0) & (magnitudes < SMALLEST))
    if small.size:
        columns = f"{small[:5].tolist()}{' and others' if small.size > 5 else ''}"
        check_size(float(magnitudes[small].max()), name, f" in columns {columns}")
