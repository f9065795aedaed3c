"""From errors to intervals: symmetric on the scale of each number, exact binomial ones at the bounds of shares."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from odeco.fitting.free import SHARE
from odeco.uncertainty.parameters import Learned
from odeco.uncertainty.scales import backward, forward, slope

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Errors:
    """Errors of one array: standard errors as they are and on the scale of the intervals, the observations that its
    shares were counted in, and how far the middle of the intervals is from the values.
    """

    learned: Learned
    values: Floats = field(repr=False)
    standard: Floats = field(repr=False)
    scaled: Floats = field(repr=False)
    trials: Floats = field(repr=False)
    shift: Floats | float = field(default=0.0, repr=False)

    @classmethod
    def of(
        cls, learned: Learned, values: Floats, standard: Floats, trials: Floats, change: Floats | float = 0.0
    ) -> Errors:
        """By the delta method; `change` leads from the values to the maximum, and counts for one error at most."""
        slopes = slope(values, learned.ranges)
        scaled, shift = standard * slopes, change * slopes
        trials = np.broadcast_to(trials, values.shape)
        return cls(learned, values, standard, scaled, trials, np.clip(shift, -scaled, scaled))


def bounded(errors: Errors, quantile: float, tail: float) -> tuple[Floats, Floats, Floats]:
    """Standard errors, lower and upper ends."""
    values, ranges, trials = errors.values, errors.learned.ranges, np.maximum(errors.trials, 1.0)
    middle = forward(values, ranges) + errors.shift
    low = backward(middle - quantile * errors.scaled, ranges)
    high = backward(middle + quantile * errors.scaled, ranges)
    # The middle may be far from the value, where that is biased: both are held.
    low, high = np.minimum(low, values), np.maximum(high, values)
    # Shares of which less than half an observation tells: none of n were seen, and (1 - share)^n is the chance of that.
    none, all_ = (ranges == SHARE) & (values < 0.5 / trials), (ranges == SHARE) & (values > 1 - 0.5 / trials)
    most = 1 - tail ** (1 / trials)
    low, high = np.where(none, 0.0, low), np.where(none, np.maximum(most, values), high)
    low, high = np.where(all_, np.minimum(1 - most, values), low), np.where(all_, 1.0, high)
    standard = np.where(none | all_, np.maximum(errors.standard, 0.5 / trials), errors.standard)
    return standard, low, high


def together(found: list[tuple[Learned, Any]]) -> dict[str, Any]:
    """Arrays by attribute, lists where the attribute is one."""
    result: dict[str, Any] = {}
    for learned, value in found:
        if learned.place is None:
            result[learned.name] = value
            continue
        items = result.setdefault(learned.name, [])
        items += [None] * (learned.place - len(items))  # views without variances
        items.append(value)
    return result
