"""Coordinates of a scoring step for components whose columns are of exponential families.

Bernoulli columns, blocks of categories or words, counts, and numbers with their squares (`Families`). In natural
coordinates the complete score of a row of component i is statistics - their mean under i; they are scaled by the
deviations of the statistics. A step changes the means of the statistics, as EM's does.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from odeco.families.tables import Families
from odeco.refinement.scoring import Linear, ScoreSums, WeightCoordinates, grown

Floats = NDArray[np.float64]

_TINY = 1e-13  # the least probability or rate
# Probabilities and rates of a start below this share of the overall ones are raised to it: the moments leave zeros, at
# which rows have no likelihood. The step may lead anywhere again, for it is linear in them. Measured on four views and
# on documents of eight words, 20,000 each: at 0.01 a probability that came out as 0 spoiled one step in four, at 0.1
# the error grew by one per cent.
_FLOOR = 0.03


def columns_of(*, bernoulli: int = 0, blocks: tuple[int, ...] = (), poisson: int = 0, gaussian: int = 0) -> Families:
    """The families of columns without missing values, so many of each; `blocks` of words or categories by their sizes.

    Statistics come in this order, squares of numbers last.
    """
    edges = np.cumsum([0, bernoulli, len(blocks), poisson, gaussian])
    places = [np.arange(low, high, dtype=np.intp) for low, high in pairwise(edges)]
    sizes, masked = np.array(blocks, dtype=np.intp), np.zeros(0, dtype=np.intp)
    centre, scale = np.zeros(edges[-1]), np.ones(edges[-1])
    return Families(places[0], places[1], places[2], places[3], sizes, masked, centre, scale)


def positive(weights: Floats) -> Floats:
    """Weights of which none is 0."""
    shares = np.asarray(weights, dtype=np.float64) + 1e-12
    return np.asarray(shares / shares.sum())


def raised(shares: Floats, overall: Floats) -> Floats:
    """Shares, which sum to 1 along the last axis, raised to a part of the overall ones where they are below it."""
    inside = raised_between(shares, overall, np.inf)
    return np.asarray(inside / inside.sum(axis=-1, keepdims=True))


def raised_between(means: Floats, overall: Floats, most: float) -> Floats:
    """Means between 0 and `most`, kept as far from both as a part of the overall ones is."""
    least = _FLOOR * np.maximum(overall, 1e-12)
    highest = most if most == np.inf else most - _FLOOR * np.maximum(most - overall, 1e-12)
    return np.clip(means, least, highest)


@dataclass(frozen=True, eq=False)
class FamilyMixture:
    """Weights (k,) and parameters (k, Q) of columns of some families."""

    families: Families
    weights: Floats
    table: Floats = field(repr=False)

    def joint(self) -> Linear:
        slopes, offsets = self.families.natural(self.table)
        with np.errstate(divide="ignore"):
            return Linear(slopes, offsets + np.log(self.weights))

    def coordinates(self, sums: ScoreSums) -> FamilyCoordinates:
        return FamilyCoordinates(self, sums)


class FamilyCoordinates:
    """A step is one vector: k for the weights, then k x Q. Squares are taken less their regression on the numbers."""

    def __init__(self, mixture: FamilyMixture, sums: ScoreSums) -> None:
        families, table = mixture.families, mixture.table
        self._families, self._table, self._weights = families, table, WeightCoordinates(mixture.weights)
        _, _, _, numbers, squares = families.spans
        self._means = table.copy()
        self._means[:, squares] += table[:, numbers] ** 2
        seen = np.maximum(families.seen_statistics(sums.features, sums.totals), 1.0) / max(sums.weight, 1.0)
        self._scale = 1.0 / np.sqrt(seen * _variances(families, table))
        self._coupling = 2.0 * table[:, numbers]  # cov(x, x^2) / var(x)

    def score(self, sums: ScoreSums) -> Floats:
        families = self._families
        _, _, _, numbers, squares = families.spans
        seen = families.seen_statistics(sums.features, sums.totals)
        score = sums.features[:, : families.n_parameters] - seen * self._means
        score[:, squares] -= self._coupling * score[:, numbers]
        return np.concatenate([self._weights.score(sums.totals), (score * self._scale).ravel()])

    def along(self, step: Floats) -> Linear:
        weights, change = self._split(step)
        _, _, _, numbers, squares = self._families.spans
        change[:, numbers] -= self._coupling * change[:, squares]
        slopes, offsets = self._families.centred(change, self._means)
        return Linear(slopes, offsets + self._weights.along(weights))

    def moved(self, step: Floats) -> FamilyMixture:
        weights, change = self._split(step)
        families, old, new = self._families, self._table, self._table.copy()
        bernoulli, indicators, counts, numbers, squares = families.spans
        p = old[:, bernoulli]
        ones, zeros = grown(p, change[:, bernoulli] * (1 - p)), grown(1 - p, -change[:, bernoulli] * p)
        new[:, bernoulli] = np.clip(ones / (ones + zeros), _TINY, 1 - _TINY)
        new[:, indicators] = self._moved_shares(change[:, indicators])
        new[:, counts] = np.maximum(grown(old[:, counts], change[:, counts]), _TINY)
        shift, variances = old[:, squares] * change[:, numbers], old[:, squares]
        new[:, numbers] += shift
        new[:, squares] = grown(variances, 2 * variances * change[:, squares] - shift**2 / variances)
        return FamilyMixture(families, self._weights.moved(weights), new)

    def _moved_shares(self, change: Floats) -> Floats:
        """Each block of categories on its simplex."""
        if not self._families.sizes.size:
            return change
        shares = self._table[:, self._families.spans[1]]
        moved = np.maximum(grown(shares, change - self._by_block(shares * change)), _TINY)
        return np.asarray(moved / self._by_block(moved))

    def _by_block(self, values: Floats) -> Floats:
        """Sums of the columns of each block, as wide as the block."""
        sums = np.add.reduceat(values, self._families.blocks, axis=1)
        return np.repeat(sums, self._families.sizes, axis=1)

    def _split(self, step: Floats) -> tuple[Floats, Floats]:
        """Coordinates of the weights, and changes (k, Q) of natural parameters, before squares take part of numbers."""
        k = len(self._table)
        return step[:k], step[k:].reshape(k, -1) * self._scale


def _variances(families: Families, table: Floats) -> Floats:
    """Variances of the statistics under each component; of x^2 what x does not explain, 2 v^2."""
    bernoulli, _, _, numbers, squares = families.spans
    result = np.maximum(table, 1e-6)  # of categories and counts, about their means
    p, v = table[:, bernoulli], table[:, squares]
    result[:, bernoulli] = np.maximum(p * (1 - p), 1e-6)
    result[:, numbers], result[:, squares] = v, 2 * v**2
    return result
