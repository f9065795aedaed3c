"""Intervals as figures want them: how far they reach to either side of an estimate."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from odeco.uncertainty import Intervals


Floats = NDArray[np.float64]


def error_bars(intervals: Intervals, attribute: str, item: int | None = None) -> tuple[Floats, Floats]:
    """Distances of both ends from the values of an attribute, or of one item of it, never negative."""
    if attribute not in intervals.value:
        known = ", ".join(intervals.value)
        raise ValueError(f"intervals are those of {known}, and have no {attribute!r}: make them of this model.")
    value, low, high = (
        np.asarray(each[attribute] if item is None else each[attribute][item])
        for each in (intervals.value, intervals.low, intervals.high)
    )
    return np.maximum(value - low, 0.0), np.maximum(high - value, 0.0)


def ends_of(intervals: Intervals | None, model: Any, attribute: str, place: Any = ()) -> tuple[Floats, Floats] | None:
    """Both ends of the intervals of a part of an attribute of a model; None where there are none."""
    if intervals is None:
        return None
    intervals.check_model(model)
    return np.asarray(intervals.low[attribute])[place], np.asarray(intervals.high[attribute])[place]
