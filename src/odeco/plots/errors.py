"""Intervals as figures want them: how far they reach to either side of an estimate."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from odeco.uncertainty import Intervals


Floats = NDArray[np.float64]


def error_bars(intervals: Intervals, attribute: str) -> tuple[Floats, Floats]:
    """Distances of the lower and the upper ends from the values of an attribute, never negative."""
    if attribute not in intervals.value:
        known = ", ".join(intervals.value)
        raise ValueError(f"intervals are those of {known}, and have no {attribute!r}: make them of this model.")
    value = np.asarray(intervals.value[attribute])
    low, high = np.asarray(intervals.low[attribute]), np.asarray(intervals.high[attribute])
    return np.maximum(value - low, 0.0), np.maximum(high - value, 0.0)
