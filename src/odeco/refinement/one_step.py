"""One scoring step on the likelihood of a Gaussian mixture (the paper's introduction, after Le Cam).

From a consistent start, one step delta = I^-1 g, with g the score and I the information, is as efficient as the maximum
of the likelihood to first order. I is the empirical one, the second moment of the scores of single rows. It is never
formed: conjugate gradients need only products I v, each of which costs about as much as an EM step. In
coordinates where the complete-data information is the identity, I lies between 0 and 1 and the first direction is EM's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from odeco.refinement.gaussian_mixture import (
    GaussianParameters,
    Points,
    joint_densities,
    normalize,
    over_batches,
)
from odeco.sources.dense import DenseBatch

Floats = NDArray[np.float64]

# Directions of the conjugate gradients: the residual fell below 1e-3 of the score's within 20 on overlapping spheres.
_DIRECTIONS, _TOLERANCE = 20, 1e-3
# Halvings of a step that lowers the likelihood.
_HALVINGS = 8


def scoring_step(points: Points, start: GaussianParameters) -> tuple[GaussianParameters, float]:
    """The parameters one step from `start`, and the share of the step that was taken (1 unless the likelihood fell)."""
    scores = _Scores(points, start)
    value, gradient = scores.gradient()
    step = _conjugate_gradients(scores.information, gradient)
    share = 1.0
    for _ in range(_HALVINGS):
        moved = scores.moved(share * step)
        if _Scores(points, moved).gradient()[0] >= value:
            return moved, share
        share /= 2
    return start, 0.0


def _conjugate_gradients(product: Callable[[Floats], Floats], target: Floats) -> Floats:
    solution, residual = np.zeros_like(target), target.copy()
    direction, size = residual.copy(), float(residual @ residual)
    first = size
    for _ in range(_DIRECTIONS):
        if size <= _TOLERANCE**2 * first or size == 0:
            break
        image = product(direction)
        curvature = float(direction @ image)
        if curvature <= 0:
            break
        solution += size / curvature * direction
        residual -= size / curvature * image
        previous, size = size, float(residual @ residual)
        direction = residual + size / previous * direction
    return solution


class _Scores:
    """Scores of rows with respect to logits of weights, means, and logarithms of variances, in unit coordinates.

    The score of a row is linear in its posterior-weighted features: with A (k, p) the part of component j is
    ``posterior_j * (A_j . features)``. So ``s'v`` of every row and ``sum c s`` take one product each.
    """

    def __init__(self, points: Points, parameters: GaussianParameters) -> None:
        self.points, self.parameters = points, parameters
        self.kind = parameters.covariance_type
        self.k, self.p = parameters.means.shape
        self.joint = joint_densities(parameters, points.dimension, points.dtype)
        variances = np.asarray(parameters.covariances, dtype=np.float64)
        # (k, p) of axis-aligned components, (k, 1) of spheres
        self.variances = variances if self.kind == "diag" else np.broadcast_to(variances.reshape(-1, 1), (self.k, 1))
        self.roots = np.sqrt(np.maximum(parameters.weights, 1e-12))

    def gradient(self) -> tuple[float, Floats]:
        """Mean log-likelihood and mean score."""

        def part(batch: DenseBatch, first: int) -> tuple[Floats, Floats]:
            total, value = np.zeros(self._width()), np.zeros(2)
            for features, shares, values, weights in self._blocks(batch, first):
                value += (float(weights @ values), float(weights.sum()))
                total = total + (shares * weights) @ features
            return value, total

        parts = over_batches(self.points, part)
        value = np.sum([p[0] for p in parts], axis=0)
        return float(value[0] / value[1]), self._to_unit(np.sum([p[1] for p in parts], axis=0) / value[1])

    def information(self, vector: Floats) -> Floats:
        """``E[s s'] v``, s the score of a row."""
        coefficients = self._from_unit(vector).astype(self.points.dtype)

        def part(batch: DenseBatch, first: int) -> tuple[float, Floats]:
            total, weight = np.zeros(self._width()), 0.0
            for features, shares, _, weights in self._blocks(batch, first):
                inner = np.einsum("km,km->m", shares, coefficients @ features.T)
                total = total + (shares * (weights * inner)) @ features
                weight += float(weights.sum())
            return weight, total

        parts = over_batches(self.points, part)
        return self._to_unit(np.sum([p[1] for p in parts], axis=0) / sum(p[0] for p in parts))

    def _blocks(self, batch: DenseBatch, first: int):  # type: ignore[no-untyped-def]
        for features, weights in self.points.blocks(self.kind, batch, first):
            shares, values = normalize(self.joint(features))
            ones = np.ones(len(features)) if weights is None else weights
            yield features, shares, values, ones.astype(shares.dtype)

    def _width(self) -> tuple[int, int]:
        return self.k, self.p + (self.p if self.kind == "diag" else 1) + 1

    def _to_unit(self, sums: Floats) -> Floats:
        """Posterior sums of features (k, p') as a score in unit coordinates: logits, means, log variances."""
        m, v, p = self.parameters.means, self.variances, self.p
        counts, first, second = sums[:, -1], sums[:, :p], sums[:, p:-1]
        weights = self.parameters.weights
        logits = (counts - weights * counts.sum()) / self.roots
        means = (first - counts[:, None] * m) / np.sqrt(v) / self.roots[:, None]
        if self.kind == "diag":
            squares = (second - 2 * m * first + counts[:, None] * m * m) / v
            spread = (squares - counts[:, None]) / np.sqrt(2) / self.roots[:, None]
        else:
            d = self.points.dimension
            squares = (second[:, 0] - 2 * (m * first).sum(axis=1) + counts * (m * m).sum(axis=1)) / v[:, 0]
            spread = ((squares - d * counts) / np.sqrt(2 * d))[:, None]
            spread = (
                spread.sum(axis=0, keepdims=True) if self.kind == "tied_spherical" else spread / self.roots[:, None]
            )
        return np.concatenate([logits, means.ravel(), spread.ravel()])

    def _split(self, vector: Floats) -> tuple[Floats, Floats, Floats]:
        k, p = self.k, self.p
        return vector[:k], vector[k : k + k * p].reshape(k, p), vector[k + k * p :]

    def _from_unit(self, vector: Floats) -> Floats:
        """Coefficients A (k, p') with ``s'v = sum_j posterior_j (A_j . features)``: the transpose of `_to_unit`.

        The constant part, ``- w' logits``, is the same for all components, whose posteriors sum to 1.
        """
        logits, means, spread = self._split(vector)
        m, v, p, roots = self.parameters.means, self.variances, self.p, self.roots[:, None]
        out = np.zeros(self._width())
        slope = means / np.sqrt(v) / roots
        out[:, :p] = slope
        constant = (
            logits / self.roots - float(self.parameters.weights @ (logits / self.roots)) - (slope * m).sum(axis=1)
        )
        if self.kind == "diag":
            rate = spread.reshape(self.k, p) / np.sqrt(2) / roots
            out[:, p:-1] = rate / v
            out[:, :p] -= 2 * rate * m / v
            constant += (rate * (m * m / v - 1)).sum(axis=1)
        else:
            d = self.points.dimension
            rate = np.broadcast_to(spread, (self.k,)) / np.sqrt(2 * d)
            rate = rate if self.kind == "tied_spherical" else rate / self.roots
            out[:, p] = rate / v[:, 0]
            out[:, :p] -= 2 * (rate / v[:, 0])[:, None] * m
            constant += rate * ((m * m).sum(axis=1) / v[:, 0] - d)
        out[:, -1] = constant
        return out

    def moved(self, step: Floats) -> GaussianParameters:
        """Parameters after a step in unit coordinates."""
        logits, means, spread = self._split(step)
        new = np.log(np.maximum(self.parameters.weights, 1e-300)) + logits / self.roots
        weights = np.exp(new - new.max())
        weights /= weights.sum()
        shifted = self.parameters.means + means * np.sqrt(self.variances) / self.roots[:, None]
        if self.kind == "diag":
            change = spread.reshape(self.k, self.p) * np.sqrt(2) / self.roots[:, None]
        else:
            change = spread * np.sqrt(2 / self.points.dimension)
            change = change[0] if self.kind == "tied_spherical" else change / self.roots
        covariances = self.parameters.covariances * np.exp(np.clip(change, -1.0, 1.0))
        return replace(self.parameters, weights=weights, means=shifted, covariances=covariances)
