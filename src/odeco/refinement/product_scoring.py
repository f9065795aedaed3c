"""One scoring step on the likelihood of a product mixture (the paper's introduction, after Le Cam).

From a consistent start one step delta = I^-1 g, with g the score and I the empirical information (the second moment of
the scores of single rows), is as efficient as the maximum of the likelihood to first order. In natural coordinates the
score of a row for component i is its posterior r_i times (statistics - their mean under i): so g and products I v are
the matrix products of an EM step, and conjugate gradients never form I. Coordinates are scaled such that the
information of complete data is about the identity.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator, cg
from scipy.special import expit, logit

from odeco.refinement.families import Families
from odeco.refinement.product_mixture import Data, Parameters, em_step, log_joint

Floats = NDArray[np.float64]

_HALVINGS = 3
# Directions of the conjugate gradients, and the share of the score at which they end.
_DIRECTIONS, _TOLERANCE = 20, 1e-3


def scoring_step(data: Data, start: Parameters) -> Parameters:
    """The mixture one scoring step from `start`, or one EM step where the likelihood is higher there.

    The step is halved while it leads below EM's. Where probabilities near 0 make the likelihood anything but quadratic,
    as with many components, EM's step is the better one.
    """
    plain = em_step(data, start)[0]
    value = em_step(data, plain)[1][0]
    scores = _Scores(data, start)
    gradient = scores.gradient()
    information = LinearOperator((gradient.size,) * 2, matvec=scores.information, dtype=np.float64)
    step, _ = cg(information, gradient, rtol=_TOLERANCE, maxiter=_DIRECTIONS)
    for halving in range(_HALVINGS):
        moved = scores.moved(step / 2**halving)
        if em_step(data, moved)[1][0] >= value:
            return moved
    return plain


class _Scores:
    """Scores of all rows at one mixture, in scaled natural coordinates, as one vector: k weights, then k x Q."""

    def __init__(self, data: Data, parameters: Parameters) -> None:
        self._data, self._weights, self._table = data, parameters.weights[0], parameters.table
        families = data.families
        self._means = mean_statistics(families, self._table)
        self._posteriors: list[Floats] = []
        totals = np.zeros(self._weights.size)
        for statistics, mass in data.batches:
            joint = log_joint(families, statistics, self._weights, self._table)
            joint -= joint.max(axis=1, keepdims=True)
            np.exp(joint, out=joint)
            joint /= joint.sum(axis=1, keepdims=True)
            self._posteriors.append(joint)
            totals += joint.sum(axis=0) if mass is None else mass @ joint
        masses = np.maximum(totals, 1.0)
        self._scale = 1.0 / np.sqrt(masses[:, None] * _variances(families, self._table))
        self._weight_scale = 1.0 / np.sqrt(masses)
        self._coupling = _coupling(families, self._table)

    def gradient(self) -> Floats:
        """The sum of all scores."""
        return self._gather([np.ones(len(r)) for r in self._posteriors])

    def information(self, vector: Floats) -> Floats:
        """The sum of score (score . vector)."""
        return self._gather(self._along(vector))

    def moved(self, step: Floats) -> Parameters:
        """The mixture at some distance, back in its usual parameters."""
        change_weights, change = self._unpack(step)
        families, table = self._data.families, self._table.copy()
        bernoulli, indicators, counts, numbers, squares = families.spans
        table[:, bernoulli] = expit(logit(table[:, bernoulli]) + change[:, bernoulli])
        # Bounded: a category or a count may grow by e^20, not overflow.
        table[:, indicators] *= np.exp(np.clip(change[:, indicators], -20, 20))
        table[:, counts] *= np.exp(np.clip(change[:, counts], -20, 20))
        slope = table[:, numbers] / table[:, squares] + change[:, numbers]
        curvature = np.minimum(-0.5 / table[:, squares] + change[:, squares], -0.05 / table[:, squares])
        table[:, squares] = -0.5 / curvature
        table[:, numbers] = slope * table[:, squares]
        weights = self._weights * np.exp(np.clip(change_weights, -20, 20))
        return Parameters((weights / weights.sum())[None], families.project(table))

    def _along(self, vector: Floats) -> list[Floats]:
        """score . vector of every row."""
        change_weights, change = self._unpack(vector)
        coefficients, constants = self._data.families.centred(change, self._means)
        offsets = constants + change_weights
        mean = float(self._weights @ change_weights)
        return [
            np.einsum("nk,nk->n", posterior, statistics @ coefficients.T + offsets) - mean
            for (statistics, _), posterior in zip(self._data.batches, self._posteriors, strict=True)
        ]

    def _gather(self, factors: list[Floats]) -> Floats:
        """Sum of factor * score over the rows."""
        families, k = self._data.families, self._weights.size
        sums, totals, total = np.zeros((k, families.n_statistics)), np.zeros(k), 0.0
        for (statistics, mass), posterior, factor in zip(self._data.batches, self._posteriors, factors, strict=True):
            weighted = factor if mass is None else factor * mass
            shares = posterior * weighted[:, None]
            sums += shares.T @ statistics
            totals += shares.sum(axis=0)
            total += float(weighted.sum())
        score = sums[:, : families.n_parameters] - families.seen_statistics(sums, totals) * self._means
        return self._pack(totals - total * self._weights, score)

    def _pack(self, weights: Floats, score: Floats) -> Floats:
        """The transpose of `_unpack`."""
        _, _, _, numbers, squares = self._data.families.spans
        scaled = score.copy()
        scaled[:, squares] -= self._coupling * scaled[:, numbers]
        return np.concatenate([weights * self._weight_scale, (scaled * self._scale).ravel()])

    def _unpack(self, vector: Floats) -> tuple[Floats, Floats]:
        """Changes of log weights (k,) and natural parameters (k, Q); x^2 is taken less its regression on x."""
        k = self._weights.size
        _, _, _, numbers, squares = self._data.families.spans
        change = vector[k:].reshape(k, -1) * self._scale
        change[:, numbers] -= self._coupling * change[:, squares]
        return vector[:k] * self._weight_scale, change


def mean_statistics(families: Families, table: Floats) -> Floats:
    """Means of the statistics under each component (K, Q): squares instead of variances."""
    _, _, _, numbers, squares = families.spans
    means = table.copy()
    means[:, squares] += table[:, numbers] ** 2
    return means


def _variances(families: Families, table: Floats) -> Floats:
    """Variances of the statistics under each component; of x^2 what x does not explain, 2 v^2."""
    bernoulli, indicators, counts, numbers, squares = families.spans
    result = np.empty_like(table)
    p, v = table[:, bernoulli], table[:, squares]
    result[:, bernoulli], result[:, indicators], result[:, counts] = p * (1 - p), table[:, indicators], table[:, counts]
    result[:, numbers], result[:, squares] = v, 2 * v**2
    return np.maximum(result, 1e-6)


def _coupling(families: Families, table: Floats) -> Floats:
    """cov(x, x^2) / var(x) = 2 mu."""
    return np.asarray(2.0 * table[:, families.spans[3]])
