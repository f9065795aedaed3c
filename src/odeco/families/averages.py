"""The M step of every family: sums by the weight that they were summed with."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

# Of responsibilities: less is rounding, and a component that has no more keeps what it has.
LEAST_WEIGHT = 1e-8


def averages(sums: Any, totals: Any, otherwise: Any, least: float = LEAST_WEIGHT) -> Floats:
    """``sums / totals``, and `otherwise` where totals are not above `least`; shapes broadcast."""
    seen = np.asarray(totals) > least
    return np.asarray(np.where(seen, sums / np.where(seen, totals, 1.0), otherwise))
