"""Greedy EM: a component that is added to others, which stay as they are, until it owns its rows.

A candidate need only point in about the right direction. Beside the known components its rows are those it explains
better; their mean and variance are the next candidate. What it gains in likelihood tells a component from noise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from odeco.refinement.gaussian_mixture import (
    GaussianParameters,
    Points,
    joint_densities,
    over_batches,
    posteriors_of,
)
from odeco.sources.dense import DenseBatch

Floats = NDArray[np.float64]
Rows = NDArray[np.floating]

# EM steps of a candidate, and its weight before, as a share of the average.
_STEPS, _WEIGHT = 4, 0.3
# A variance stays above this share of where it began: on few rows the likelihood has no maximum.
_LEAST_VARIANCE = 0.05


@dataclass(frozen=True, eq=False)
class Lost:
    """A sphere that others leave out: mean (d,) about the origin of the points, variance, weight.

    ``gain`` is that of the mean log-likelihood, or before it has grown what it is sorted by.
    """

    mean: Floats = field(repr=False)
    variance: float
    gain: float
    weight: float = 0.0


@dataclass(frozen=True, eq=False)
class _Sums:
    """Posterior sums of features (r, p) of candidates, their gains (r,), and the weight of all rows."""

    features: Floats
    gains: Floats
    weight: float

    def __add__(self, other: _Sums) -> _Sums:
        return _Sums(self.features + other.features, self.gains + other.gains, self.weight + other.weight)


def grown(points: Points, known: GaussianParameters, candidates: list[Lost]) -> list[Lost]:
    """Each candidate after some EM steps alone beside `known`, whose components keep all but their weights."""
    if not candidates:
        return []
    d, shared = points.dimension, known.covariance_type == "tied_spherical"
    base = np.concatenate(over_batches(points, _log_likelihoods(points, known)))
    first = np.array([lost.variance for lost in candidates])
    weights = np.full(len(candidates), _WEIGHT / known.weights.size)
    state = GaussianParameters(weights, np.stack([lost.mean for lost in candidates]), first, "spherical")
    for _ in range(_STEPS):
        sums = _posterior_sums(points, state, base)
        counts = np.maximum(sums.features[:, -1], np.finfo(np.float64).tiny)
        means = sums.features[:, :d] / counts[:, None]
        variances = (sums.features[:, d] / counts - (means * means).sum(axis=1)) / d
        variances = first if shared else np.maximum(variances, _LEAST_VARIANCE * first)
        weights = np.clip(counts / sums.weight, 1e-12, 0.5)
        state = GaussianParameters(weights, means, variances, "spherical")
    sums = _posterior_sums(points, state, base, gains=True)
    gains = sums.gains / sums.weight
    return [
        Lost(mean, float(variance), float(gain), float(weight))
        for mean, variance, gain, weight in zip(state.means, state.covariances, gains, state.weights, strict=True)
    ]


def _log_likelihoods(points: Points, known: GaussianParameters) -> Callable[[DenseBatch, int], Rows]:
    shares_of = posteriors_of(points, known)
    return lambda batch, first: np.concatenate([values for _, values, _ in shares_of(batch, first)])


def _posterior_sums(points: Points, state: GaussianParameters, base: Rows, *, gains: bool = False) -> _Sums:
    """The E step of each candidate against the log-likelihoods `base` (n,) of what is known."""
    joint = joint_densities(state, points.dimension, points.dtype)
    left = np.log1p(-state.weights)[:, None].astype(points.dtype)

    def part(batch: DenseBatch, first: int) -> _Sums:
        total = _Sums(np.zeros(1), np.zeros(len(left)), 0.0)
        for features, weights in points.blocks("spherical", batch, first):
            odds = joint(features)
            odds -= base[first : first + len(features)]
            odds -= left
            gained = (np.logaddexp(odds, 0) + left).astype(np.float64) if gains else np.zeros_like(odds)
            shares = expit(odds)
            if weights is not None:
                shares, gained = shares * weights.astype(shares.dtype), gained * weights
            weight = float(len(features) if weights is None else weights.sum())
            total += _Sums((shares @ features).astype(np.float64), gained.sum(axis=1), weight)
            first += len(features)
        return total

    parts = over_batches(points, part)
    return sum(parts[1:], start=parts[0])
