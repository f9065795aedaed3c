"""Coordinates of a scoring step for Gaussian mixtures: spheres, spheres of one size, and axis-aligned components.

Logits of weights, means in deviations, and logarithms of variances, scaled to the information of complete data.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from odeco.refinement.gaussian_mixture import GaussianParameters, Points, Rows, joint_densities
from odeco.refinement.scoring import Features, Linear, ScoreSums, Step, WeightCoordinates, grown, scoring_step

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class _Gaussians:
    """A mixture about the origin of some points; `dimension` is that of the data."""

    parameters: GaussianParameters
    dimension: int

    def joint(self) -> Linear:
        k, p = self.parameters.means.shape
        width = p + (p if self.parameters.covariance_type == "diag" else 1) + 1
        slopes = joint_densities(self.parameters, self.dimension, np.float64)(np.eye(width))
        return Linear(slopes.astype(np.float64), np.zeros(k))  # the last feature is 1

    def coordinates(self, sums: ScoreSums) -> _Coordinates:
        return _Coordinates(self, sums)


@dataclass(frozen=True, eq=False)
class _Blocks:
    """Features of points, block by block, as batches."""

    points: Points
    kind: str

    def __iter__(self) -> Iterator[tuple[Rows, Floats | None]]:
        first = 0
        for batch in self.points.batches:
            yield from self.points.blocks(self.kind, batch, first)
            first += len(batch)


def gaussian_step(points: Points, start: GaussianParameters) -> tuple[GaussianParameters, Step[_Gaussians]]:
    """The mixture one scoring step from `start`, whose means are about the origin of `points`."""
    done = scoring_step(_Blocks(points, start.covariance_type), _read, _Gaussians(start, points.dimension))
    return done.mixture.parameters, done


def _read(batch: tuple[Rows, Floats | None]) -> Iterator[tuple[Features, Floats | None]]:
    features, weights = batch
    yield [(slice(None), features)], weights


class _Coordinates:
    def __init__(self, mixture: _Gaussians, sums: ScoreSums) -> None:
        self.parameters, self.dimension = mixture.parameters, mixture.dimension
        self.kind = self.parameters.covariance_type
        self.k, self.p = self.parameters.means.shape
        variances = np.asarray(self.parameters.covariances, dtype=np.float64)
        # (k, p) of axis-aligned components, (k, 1) of spheres
        self.variances = variances if self.kind == "diag" else np.broadcast_to(variances.reshape(-1, 1), (self.k, 1))
        self.weights = WeightCoordinates(self.parameters.weights)
        # Deviations of sums over the rows of each component, (k, 1).
        self.roots = np.sqrt(np.maximum(sums.features[:, -1:], 1.0) / max(sums.weight, 1.0))
        # Squares of so many columns are added up in one, and tell of one variance.
        self.together = 1 if self.kind == "diag" else self.dimension

    def score(self, sums: ScoreSums) -> Floats:
        m, v, p = self.parameters.means, self.variances, self.p
        counts, first, second = sums.features[:, -1:], sums.features[:, :p], sums.features[:, p:-1]
        means = (first - counts * m) / np.sqrt(v) / self.roots
        squares = (second - self._by_variance(2 * m * first - counts * m * m)) / v
        spread = (squares - self.together * counts) / np.sqrt(2 * self.together)
        spread = spread.sum(axis=0) if self.kind == "tied_spherical" else spread / self.roots
        return np.concatenate([self.weights.score(counts[:, 0]), means.ravel(), spread.ravel()])

    def along(self, step: Floats) -> Linear:
        logits, means, spread = self._split(step)
        m, v = self.parameters.means, self.variances
        slope = means / np.sqrt(v) / self.roots
        rate = spread / np.sqrt(2 * self.together)
        rate = rate if self.kind == "tied_spherical" else rate / self.roots
        offsets = self.weights.along(logits) - (slope * m).sum(axis=1)
        offsets += (rate * (self._by_variance(m * m) / v - self.together)).sum(axis=1)
        slopes = np.hstack([slope - 2 * rate * m / v, rate / v, offsets[:, None]])
        return Linear(slopes, np.zeros(self.k))

    def moved(self, step: Floats) -> _Gaussians:
        logits, means, spread = self._split(step)
        shift = means / self.roots  # in deviations
        shifted = self.parameters.means + shift * np.sqrt(self.variances)
        change = spread * np.sqrt(2 / self.together)
        change = change if self.kind == "tied_spherical" else change / self.roots
        change = change - self._by_variance(shift**2) / self.together
        shape = np.shape(self.parameters.covariances)
        covariances = grown(self.variances, change)
        covariances = float(covariances[0, 0]) if self.kind == "tied_spherical" else covariances.reshape(shape)
        weights = self.weights.moved(logits)
        parameters = replace(self.parameters, weights=weights, means=shifted, covariances=covariances)
        return _Gaussians(parameters, self.dimension)

    def _by_variance(self, values: Floats) -> Floats:
        """Values of columns (k, p), added up where one variance stands for all: (k, 1)."""
        return values if self.kind == "diag" else values.sum(axis=1, keepdims=True)

    def _split(self, step: Floats) -> tuple[Floats, Floats, Floats]:
        """Of weights (k,), means (k, p) and variances: (k, p) or (k, 1), of one variance (1, 1) for all."""
        k, p = self.k, self.p
        spread = step[k + k * p :]
        columns = p if self.kind == "diag" else 1
        return step[:k], step[k : k + k * p].reshape(k, p), spread.reshape(-1, columns)
