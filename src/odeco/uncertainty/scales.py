"""Scales on which intervals are made: numbers as they are, positive ones by logarithms, shares by logits.

An interval that is symmetric there comes back inside of the bounds, whatever its width.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from odeco.fitting.free import POSITIVE, SHARE

Floats = NDArray[np.float64]

_TINY = 1e-300


def forward(values: Floats, ranges: NDArray[np.int64], least: Floats | float = _TINY) -> Floats:
    """Values on their scale; shares and positive numbers no nearer to their bounds than `least`."""
    inside = np.maximum(values, least)
    shares = np.clip(values, least, 1 - np.maximum(least, 1e-16))
    with np.errstate(all="ignore"):
        return np.where(ranges == SHARE, logit(shares), np.where(ranges == POSITIVE, np.log(inside), values))


def backward(values: Floats, ranges: NDArray[np.int64]) -> Floats:
    """The way back."""
    with np.errstate(over="ignore"):
        return np.where(ranges == SHARE, expit(values), np.where(ranges == POSITIVE, np.exp(values), values))


def slope(values: Floats, ranges: NDArray[np.int64]) -> Floats:
    """Derivative of the scale at some values."""
    shares = np.clip(values, _TINY, 1 - 1e-16)
    with np.errstate(all="ignore"):
        positive = 1 / np.maximum(values, _TINY)
        return np.where(ranges == SHARE, 1 / (shares * (1 - shares)), np.where(ranges == POSITIVE, positive, 1.0))
