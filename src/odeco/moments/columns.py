"""Means and deviations of the columns of many rows, of which entries may be missing: compiled, on threads."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Self

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_ROWS = 16_384  # of a part: parts and their sums do not depend on the number of threads


@dataclass(frozen=True, eq=False)
class Columns:
    """What is there of each column.

    Attributes
    ----------
    n : int
        Number of rows.
    seen : (d,)
        How many entries are there.
    mean, deviation : (d,)
        Of those; 0 where there is none.
    """

    n: int
    seen: Floats = field(repr=False)
    mean: Floats = field(repr=False)
    deviation: Floats = field(repr=False)

    @classmethod
    def of(cls, values: Floats) -> Self:
        """Of rows (n, d), NaN where an entry is missing; squares are about the mean: an offset costs no digits."""
        seen, total, _ = _sums(values, np.zeros(values.shape[1]))
        count = np.maximum(seen, 1.0)
        mean = total / count
        _, shift, square = _sums(values, mean)
        return cls(len(values), seen, mean, np.sqrt(np.maximum(square / count - (shift / count) ** 2, 0.0)))


def _sums(values: Floats, center: Floats) -> Floats:
    """Numbers of entries, sums and sums of squares about the centre, (3, d)."""
    from odeco.kernels.gaussian import diagonal_sums
    from odeco.kernels.threads import map_parts

    def part(p: int) -> Floats:
        rows = np.ascontiguousarray(values[_ROWS * p : _ROWS * (p + 1)])
        found = np.zeros((3, 1, center.size))
        diagonal_sums(rows, center, np.ones((len(rows), 1)), *found)
        return found[:, 0]

    return np.asarray(np.sum(map_parts(part, -(-len(values) // _ROWS)), axis=0))


def covariance_about(values: Floats, center: Floats) -> Floats:
    """Mean products (d, d) of columns about the centre; missing entries are there."""
    from odeco.kernels.gaussian import full_sums
    from odeco.kernels.threads import map_parts

    def part(p: int) -> Floats:
        rows = np.ascontiguousarray(values[_ROWS * p : _ROWS * (p + 1)])
        second = np.zeros((1, center.size, center.size))
        full_sums(rows, center, np.ones((len(rows), 1)), np.zeros(1), np.zeros((1, center.size)), second)
        return np.asarray(second[0])

    return np.asarray(np.sum(map_parts(part, -(-len(values) // _ROWS)), axis=0) / len(values))
