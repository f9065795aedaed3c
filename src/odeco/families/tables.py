"""Gaussian, Bernoulli, categorical and Poisson columns as one exponential family.

log density = statistics . natural parameters + base.

One row of *statistics* holds the values of Bernoulli columns, the indicators of categories, counts, numbers and their
squares (standardized), and, for columns of numbers that may be missing, whether the value is there. A missing value
has statistics 0 and so drops out of the likelihood: it is marginalized. A mixture of any families is then two matrix
products per step: statistics times natural parameters, and posteriors times statistics.

The parameters of a component are the means of its statistics, except that squares are replaced by variances.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from odeco.families import gaussian
from odeco.families.counts import BERNOULLI, CATEGORICAL, POISSON
from odeco.sources.tables import Schema

Floats = NDArray[np.float64]

_FLOOR = 1e-13  # of probabilities and rates
# Standardized variances stay above this: as far as the squares of standardized values keep their digits.
VARIANCE_FLOOR = 1e-6


@dataclass(frozen=True, eq=False)
class Families:
    """Where the statistics of each family stand, and how parameters and statistics belong together.

    The order is: Bernoulli values, indicators, counts, numbers, squares, then one mask for each column of
    Bernoulli values, counts or numbers that may be missing. `Q` is the number of parameters of a component.
    """

    bernoulli: NDArray[np.intp]
    categorical: NDArray[np.intp]
    poisson: NDArray[np.intp]
    gaussian: NDArray[np.intp]
    sizes: NDArray[np.intp] = field(repr=False)  # categories of each categorical column
    masked: NDArray[np.intp] = field(repr=False)  # columns that have a mask
    centre: Floats = field(repr=False)
    scale: Floats = field(repr=False)

    @classmethod
    def of(cls, schema: Schema, centre: Floats, scale: Floats) -> Families:
        """Layout of a schema; `centre`, `scale` (J,) standardize the numbers."""
        kinds = np.array(schema.families)
        places = [np.flatnonzero(kinds == kind) for kind in ("bernoulli", "categorical", "poisson", "gaussian")]
        sizes = np.array([len(schema.columns[j].categories) for j in places[1]], dtype=np.intp)
        masked = [j for j, column in enumerate(schema.columns) if column.missing and column.family != "categorical"]
        return cls(places[0], places[1], places[2], places[3], sizes, np.array(masked, dtype=np.intp), centre, scale)

    def with_missing(self, values: Floats) -> Families:
        """The same with masks for all columns that have missing values here, whether the fit has seen any or not."""
        gone = np.intersect1d(np.flatnonzero(np.isnan(values).any(axis=0)), self.numbers)
        return replace(self, masked=np.union1d(self.masked, gone).astype(np.intp))

    @cached_property
    def numbers(self) -> NDArray[np.intp]:
        """The columns with one value each, in the order of their statistics."""
        return np.concatenate([self.bernoulli, self.poisson, self.gaussian])

    @cached_property
    def spans(self) -> tuple[slice, slice, slice, slice, slice]:
        """Places of Bernoulli values, indicators, counts, numbers and squares."""
        edges = np.cumsum(
            [0, self.bernoulli.size, self.sizes.sum(), self.poisson.size, self.gaussian.size, self.gaussian.size]
        )
        return tuple(slice(int(a), int(b)) for a, b in pairwise(edges))  # type: ignore[return-value]

    @property
    def n_parameters(self) -> int:
        """Q."""
        return int(self.spans[-1].stop)

    @property
    def n_statistics(self) -> int:
        """Q and the masks."""
        return self.n_parameters + int(self.masked.size)

    @cached_property
    def blocks(self) -> NDArray[np.intp]:
        """The first indicator of each categorical column, counted from the first indicator of all."""
        return np.concatenate([[0], np.cumsum(self.sizes)[:-1]]).astype(np.intp)

    @cached_property
    def places(self) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Where the indicators of each categorical column end, from 0 on; which mask each of `numbers` has, or -1."""
        position = np.searchsorted(self.masked, self.numbers)
        mask_of = np.where(np.isin(self.numbers, self.masked), position, -1)
        return np.concatenate([[0], np.cumsum(self.sizes)]).astype(np.int64), mask_of.astype(np.int32)

    def free_parameters(self) -> int:
        """Free parameters of one component."""
        numbers = self.gaussian.size + gaussian.DIAGONAL.n_free(1, self.gaussian.size)
        categories = sum(CATEGORICAL.n_free(size) for size in self.sizes)
        return int(BERNOULLI.n_free(self.bernoulli.size) + categories + POISSON.n_free(self.poisson.size) + numbers)

    def statistics(self, values: Floats) -> Floats:
        """Statistics (m, P) of rows of values (m, J) with NaN where missing."""
        if self.bernoulli.size == values.shape[1] and not self.masked.size:
            return np.ascontiguousarray(values)
        out = np.zeros((len(values), self.n_statistics))
        bernoulli, indicators, counts, numbers, squares = self.spans
        out[:, bernoulli] = values[:, self.bernoulli]
        out[:, counts] = values[:, self.poisson]
        out[:, numbers] = (values[:, self.gaussian] - self.centre[self.gaussian]) / self.scale[self.gaussian]
        if self.categorical.size:
            codes = values[:, self.categorical]
            known = ~np.isnan(codes)
            places = np.where(known, codes, 0).astype(np.int64) + (self.blocks + indicators.start)
            rows = np.arange(len(values))[:, None] * self.n_statistics
            out.ravel()[(places + rows)[known]] = 1.0
        out[:, self.n_parameters :] = ~np.isnan(values[:, self.masked])
        if self.masked.size:
            np.nan_to_num(out, copy=False)
        out[:, squares] = out[:, numbers] ** 2
        return out

    def base(self, values: Floats) -> Floats:
        """The part of the log density that no parameter enters, (m,): factorials, and the scale of the numbers."""
        total = np.zeros(len(values))
        if self.poisson.size:
            total += POISSON.base(np.nan_to_num(values[:, self.poisson]))
        if self.gaussian.size:
            logs = np.log(self.scale[self.gaussian])
            known = np.isin(self.gaussian, self.masked)
            total -= logs[~known].sum()
            if known.any():
                total -= ~np.isnan(values[:, self.gaussian[known]]) @ logs[known]
        return total

    def category_tables(self, table: Floats) -> list[Floats]:
        """The probabilities (K, categories) of each categorical column, of parameters (K, Q)."""
        if not self.categorical.size:
            return []
        parts = np.split(table[:, self.spans[1]], self.blocks[1:], axis=1)
        return [np.ascontiguousarray(part) for part in parts]

    def column_moments(self, table: Floats) -> tuple[Floats, Floats]:
        """Means and variances (K, J) of the columns, of parameters (K, Q); categories count 0, 1, ..."""
        bernoulli, _, counts, numbers, squares = self.spans
        means, variances = np.empty((2, len(table), self.centre.size))
        p, rate = table[:, bernoulli], table[:, counts]
        means[:, self.bernoulli], variances[:, self.bernoulli] = p, p * (1 - p)
        means[:, self.poisson], variances[:, self.poisson] = rate, rate
        centre, scale = self.centre[self.gaussian], self.scale[self.gaussian]
        means[:, self.gaussian] = table[:, numbers] * scale + centre
        variances[:, self.gaussian] = table[:, squares] * scale**2
        for j, part in zip(self.categorical, self.category_tables(table), strict=True):
            codes = np.arange(part.shape[1])
            means[:, j] = part @ codes
            variances[:, j] = part @ codes**2 - means[:, j] ** 2
        return means, variances

    def natural(self, table: Floats) -> tuple[Floats, Floats]:
        """Coefficients (K, P) of the statistics and constants (K,), of parameters (K, Q)."""
        bernoulli, indicators, counts, numbers, squares = self.spans
        coefficients, constants = np.zeros((len(table), self.n_statistics)), []
        if self.categorical.size:
            coefficients[:, indicators] = CATEGORICAL.natural(table[:, indicators])[0]
        for family, span, columns in ((BERNOULLI, bernoulli, self.bernoulli), (POISSON, counts, self.poisson)):
            if columns.size:
                coefficients[:, span], constant = family.natural(table[:, span])
                constants.append(constant)
        if self.gaussian.size:
            linear, square, scale = gaussian.natural(table[:, numbers], table[:, squares])
            coefficients[:, numbers], coefficients[:, squares] = linear, square
            constants.append(scale)
        together = np.concatenate(constants, axis=1) if constants else np.empty((len(table), 0))
        return coefficients, self._place(coefficients, together)

    def centred(self, change: Floats, means: Floats) -> tuple[Floats, Floats]:
        """Coefficients (K, P) and constants (K,) of ``change . (statistics - means)``, summed where observed."""
        bernoulli, indicators, counts, numbers, squares = self.spans
        coefficients = np.zeros((len(change), self.n_statistics))
        coefficients[:, : self.n_parameters] = change
        products = change * means
        if self.categorical.size:
            sums = np.add.reduceat(products[:, indicators], self.blocks, axis=1)
            coefficients[:, indicators] -= np.repeat(sums, self.sizes, axis=1)
        constants = np.concatenate(
            [-products[:, bernoulli], -products[:, counts], -products[:, numbers] - products[:, squares]], axis=1
        )
        return coefficients, self._place(coefficients, constants)

    def seen_statistics(self, sums: Floats, totals: Floats) -> Floats:
        """How much weight of each statistic's column is observed in each component, (K, Q)."""
        seen = self._seen(sums, totals)
        parts = [seen[:, self.bernoulli]]
        if self.categorical.size:
            known = np.add.reduceat(sums[:, self.spans[1]], self.blocks, axis=1)
            parts.append(np.repeat(known, self.sizes, axis=1))
        return np.concatenate([*parts, seen[:, self.poisson], seen[:, self.gaussian], seen[:, self.gaussian]], axis=1)

    def _place(self, coefficients: Floats, constants: Floats) -> Floats:
        """Constants of columns of numbers go to their masks where they have one; the rest is summed, (K,)."""
        if not self.masked.size:
            return np.asarray(constants.sum(axis=1))
        order = self.numbers
        where = np.isin(order, self.masked)
        position = np.searchsorted(self.masked, order[where])
        coefficients[:, self.n_parameters + position] = constants[:, where]
        return np.asarray(constants[:, ~where].sum(axis=1))

    def estimate(self, sums: Floats, totals: Floats, overall: Floats, prior: float) -> Floats:
        """Parameters (K, Q) from expected sums of statistics (K, P), component totals (K,) and pseudo-observations.

        `prior` observations with the mean statistics of all data, `overall` (P,), are added to each component.
        """
        table = sums[:, : self.n_parameters] + prior * overall[: self.n_parameters]
        bernoulli, _, counts, numbers, squares = self.spans
        seen = np.maximum(self._seen(sums + prior * overall, totals + prior), np.finfo(float).tiny)
        for span, columns in ((bernoulli, self.bernoulli), (counts, self.poisson), (numbers, self.gaussian)):
            table[:, span] /= seen[:, columns]
        table[:, squares] = table[:, squares] / seen[:, self.gaussian] - table[:, numbers] ** 2
        return self.project(table)

    def project(self, table: Floats) -> Floats:
        """Put parameters back into their domain, in place."""
        bernoulli, indicators, counts, _, squares = self.spans
        table[:, bernoulli] = BERNOULLI.inside(table[:, bernoulli], _FLOOR)
        table[:, counts] = POISSON.inside(table[:, counts], _FLOOR)
        np.maximum(table[:, squares], VARIANCE_FLOOR, out=table[:, squares])
        if self.categorical.size:
            part = table[:, indicators]
            np.maximum(part, _FLOOR, out=part)
            part /= np.repeat(np.add.reduceat(part, self.blocks, axis=1), self.sizes, axis=1)
        return table

    def _seen(self, sums: Floats, totals: Floats) -> Floats:
        """How much weight of each column is observed in each component, (K, J); categories know it themselves."""
        n_columns = self.numbers.size + self.categorical.size
        seen = np.repeat(totals[:, None], n_columns, axis=1)
        seen[:, self.masked] = sums[:, self.n_parameters :]
        return seen
