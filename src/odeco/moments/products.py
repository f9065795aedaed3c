"""Moments of product distributions (section 3.3.1): columns that are independent once the component is known.

Every column becomes one or more *features*: the value itself, centred and scaled, or one indicator per category. The
products of features of different columns have the expectations that the mixture's theorems want,

    E[f_a f_b] = sum_i w_i mu_ia mu_ib,   E[f_a f_b f_c] = sum_i w_i mu_ia mu_ib mu_ic,

those of one column with itself have not. For the indicators of one column exactly one is not zero, and a number has one
feature only: so with z = sum_a e_a u_a (u_a a row of a D x r map) the part of z (x) z (x) z with distinct columns is

    z^(x3) - sym3(sum_a u_a u_a' (x) e_a^2 z) + 2 sum_a e_a^3 u_a^(x3),

and its mean takes the cubes of z, one product E[e_a^2 z] (D x r) and the sums of e_a^3. Nothing of size D^3 is formed.
Missing values have all features 0; inverse shares of what is observed put the means right.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from odeco.kernels.products import tall_inner, tall_product
from odeco.kernels.threads import sum_batches
from odeco.moments.base import Moments
from odeco.moments.cubes import ROWS_PER_BLOCK, add_cubes, fill_symmetric
from odeco.sources.dense import DenseBatch
from odeco.sources.tables import Schema

Floats = NDArray[np.float64]

# Entries of one block of features: 2^18 doubles, 2 MB, stay in the cache of a core. Where features are many, there are
# as many rows, up to 2^21 entries: adding to all pairs of features would take longer than their products.
_BLOCK_ENTRIES, _MOST_ENTRIES = 2**18, 2**21
# Features up to which all their pairs are kept; beyond, products with the pairs read the data instead.
MOST_EXPLICIT = 2_000


@dataclass(frozen=True, eq=False)
class FeatureMap:
    """From values (m, J) to features (m, D).

    Attributes
    ----------
    owner : (D,)
        The column of each feature.
    onehot : (D,)
        Whether a feature is the indicator of a category.
    centre, scale : (J,)
        Numbers become (x - centre) / scale; unused for categories.
    """

    owner: NDArray[np.intp] = field(repr=False)
    onehot: NDArray[np.bool_] = field(repr=False)
    centre: Floats = field(repr=False)
    scale: Floats = field(repr=False)

    @classmethod
    def of(cls, schema: Schema, centre: Floats, scale: Floats) -> FeatureMap:
        """One feature per number, one per category."""
        sizes = [len(column.categories) or 1 for column in schema.columns]
        kinds = np.array([column.family == "categorical" for column in schema.columns], dtype=bool)
        owner = np.repeat(np.arange(len(sizes)), sizes)
        return cls(owner, kinds[owner], centre, scale)

    @property
    def n_features(self) -> int:
        """D."""
        return int(self.owner.size)

    @property
    def n_columns(self) -> int:
        """J."""
        return int(self.centre.size)

    @property
    def starts(self) -> NDArray[np.intp]:
        """The first feature of each column."""
        return np.searchsorted(self.owner, np.arange(self.n_columns))

    def encode(self, values: Floats) -> Floats:
        """Features of rows: 0 where missing."""
        if not self.onehot.any():
            features = values - self.centre
            features *= 1.0 / self.scale
        else:
            starts, kinds = self.starts, self.onehot[self.starts]
            features = np.zeros((len(values), self.n_features))
            numbers = np.flatnonzero(~kinds)
            if numbers.size:
                features[:, starts[numbers]] = (values[:, numbers] - self.centre[numbers]) / self.scale[numbers]
            codes = values[:, kinds]
            known = ~np.isnan(codes)
            places = np.where(known, codes, 0).astype(np.int64) + starts[kinds]
            rows = np.arange(len(values))[:, None] * self.n_features
            features.ravel()[(places + rows)[known]] = 1.0
        if np.isnan(values).any():
            np.nan_to_num(features, copy=False)
        return features

    def block_rows(self) -> int:
        """Rows of one block of features."""
        many = min(self.n_features, _MOST_ENTRIES // self.n_features)
        return max(64, _BLOCK_ENTRIES // self.n_features, many)

    def column_sums(self, features: Floats) -> Floats:
        """Sum a (D, .) array over the features of each column: (J, .)."""
        return np.asarray(np.add.reduceat(features, self.starts, axis=0))

    def within(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """All pairs of features that share a column."""
        sizes = np.bincount(self.owner, minlength=self.n_columns)
        rows = np.repeat(np.arange(self.n_features), sizes[self.owner])
        first = np.repeat(np.cumsum(sizes[self.owner]) - sizes[self.owner], sizes[self.owner])
        columns = np.arange(rows.size) - first + self.starts[self.owner[rows]]
        return rows, columns


class TableMoments(Moments):
    """Sums over the features of a table's rows."""

    _sums: ClassVar[tuple[str, ...]] = ("n", "weight", "first", "observed")
    _on: ClassVar[tuple[str, ...]] = ("features",)
    _by_threads: ClassVar[bool] = True

    def __init__(self, features: FeatureMap, basis: NDArray[np.floating] | None = None) -> None:
        super().__init__(features.n_columns, basis)
        self.features = features
        self.weight = 0.0
        self.first = np.zeros(features.n_features)
        self.observed = np.zeros(features.n_columns)

    def _update(self, batch: DenseBatch) -> None:
        step = self.features.block_rows()
        if len(batch) > step:  # threads share the blocks, each with sums of its own
            self._merge(sum_batches((batch.take(slice(i, i + step)) for i in range(0, len(batch), step)), self.emptied))
            return
        values = np.asarray(batch.rows, dtype=np.float64)
        weights = np.ones(len(values)) if batch.weights is None else batch.weights
        encoded = self.features.encode(values)
        self.weight += float(weights.sum())
        self.first += weights @ encoded
        missing = np.isnan(values)
        self.observed += weights.sum() - (weights @ missing if missing.any() else 0.0)
        self._add(encoded, weights, missing)

    def merge(self, other: Self) -> Self:
        ours, theirs = self.features, other.features
        same = ours is theirs or (
            np.array_equal(ours.owner, theirs.owner)
            and np.array_equal(ours.centre, theirs.centre)
            and np.array_equal(ours.scale, theirs.scale)
        )
        if not same:
            raise ValueError("cannot merge moments of different features: make the feature map once, then split.")
        return super().merge(other)

    def _merge(self, other: Self) -> None:
        self.weight += other.weight
        self.first = self.first + other.first
        self.observed = self.observed + other.observed

    @abstractmethod
    def _add(self, encoded: Floats, weights: Floats, missing: NDArray[np.bool_]) -> None:
        """Add encoded rows, values as `Schema.read` gives them."""

    @property
    def shares(self) -> Floats:
        """The observed share of each column, (J,)."""
        return self.observed / self.weight

    @property
    def mean(self) -> Floats:
        """Mean features where observed, (D,)."""
        return self.first / np.maximum(self.observed, np.finfo(float).tiny)[self.features.owner]


class ProductMarginals(TableMoments):
    """First and second moments of each feature by itself."""

    _sums = (*TableMoments._sums, "second")

    def __init__(self, features: FeatureMap) -> None:
        super().__init__(features)
        self.second = np.zeros(features.n_features)

    def _add(self, encoded: Floats, weights: Floats, missing: NDArray[np.bool_]) -> None:
        self.second += weights @ encoded**2

    def _merge(self, other: Self) -> None:
        super()._merge(other)
        self.second = self.second + other.second

    @property
    def variance(self) -> Floats:
        """Variance of each feature where observed, (D,)."""
        known = np.maximum(self.observed, np.finfo(float).tiny)[self.features.owner]
        return np.maximum(self.second / known - self.mean**2, 0.0)


class ProductPairs(TableMoments):
    """All pairs of features, each over the rows that have both."""

    _sums = (*TableMoments._sums, "gram", "_missing_pairs", "_missing_first")

    def __init__(self, features: FeatureMap) -> None:
        super().__init__(features)
        self.gram = np.zeros((features.n_features,) * 2)
        # How often, and with which features, a column is missing: sums over missing entries are sparse or empty.
        self._missing_pairs = np.zeros((features.n_columns,) * 2)
        self._missing_first = np.zeros((features.n_columns, features.n_features))

    def _add(self, encoded: Floats, weights: Floats, missing: NDArray[np.bool_]) -> None:
        weighted = encoded if (weights == 1.0).all() else encoded * weights[:, None]
        self.gram += tall_inner(weighted, encoded)
        if missing.any():
            gone = missing * weights[:, None]
            self._missing_pairs += gone.T @ missing
            self._missing_first += gone.T @ encoded

    def _merge(self, other: Self) -> None:
        super()._merge(other)
        self.gram = self.gram + other.gram
        self._missing_pairs = self._missing_pairs + other._missing_pairs
        self._missing_first = self._missing_first + other._missing_first

    def pair_counts(self) -> Floats:
        """Weight of the rows in which both columns are observed, (J, J)."""
        gone = self.weight - self.observed
        return np.asarray(self.weight - gone[:, None] - gone + self._missing_pairs)

    def covariance(self) -> Floats:
        """Covariances of all pairs of features over the rows that have both, about the means where observed: (D, D)."""
        owner, mean = self.features.owner, self.mean
        counts = np.maximum(self.pair_counts(), np.finfo(float).tiny)[np.ix_(owner, owner)]
        together = (self.first - self._missing_first)[owner]  # sums of feature b where column of a is observed
        cross = mean[:, None] * together
        return np.asarray((self.gram - cross - cross.T) / counts + np.outer(mean, mean))


class ProductCross(TableMoments):
    """All pairs of features times a block of directions, (D, r): a product with the second moment, one pass."""

    _sums = (*TableMoments._sums, "cross")
    _on = ("features", "basis")

    def __init__(self, features: FeatureMap, basis: Floats) -> None:
        super().__init__(features, basis)
        self.cross = np.zeros(basis.shape)

    def _add(self, encoded: Floats, weights: Floats, missing: NDArray[np.bool_]) -> None:
        assert self.basis is not None
        self.cross += tall_inner(encoded, tall_product(encoded, self.basis) * weights[:, None])

    def _merge(self, other: Self) -> None:
        super()._merge(other)
        self.cross = self.cross + other.cross


class ProductTriples(TableMoments):
    """Triples of features mapped to r dimensions: z = sum_a e_a u_a, the rows u_a of `basis` (D, r)."""

    _sums = (*TableMoments._sums, "projected", "cubes", "squares", "cross", "third", "second")
    _on = ("features", "basis")

    def __init__(self, features: FeatureMap, basis: Floats) -> None:
        super().__init__(features, basis)
        r = basis.shape[1]
        self.projected = np.zeros(r)
        self.cubes = np.zeros((r, r, r))
        self.squares = np.zeros((features.n_features, r))
        """sum e_a^2 z, (D, r)."""
        self.cross = np.zeros((features.n_features, r))
        """sum e_a z, (D, r)."""
        self.third = np.zeros(features.n_features)
        """sum e_a^3, (D,)."""
        self.second = np.zeros(features.n_features)

    def _add(self, encoded: Floats, weights: Floats, missing: NDArray[np.bool_]) -> None:
        assert self.basis is not None
        z = tall_product(encoded, np.asarray(self.basis, dtype=np.float64))
        weighted = z * weights[:, None]
        self.projected += weighted.sum(axis=0)
        add_cubes(self.cubes, z, weights)
        self.cross += tall_inner(encoded, weighted)
        if self.features.onehot.all():  # indicators are their own squares
            self.second += weights @ encoded
            self.third[:], self.squares[:] = self.second, self.cross
            return
        powers = encoded * encoded
        self.second += weights @ powers
        self.squares += tall_inner(powers, weighted)
        powers *= encoded
        self.third += weights @ powers

    def _merge(self, other: Self) -> None:
        super()._merge(other)
        for name in ("projected", "cubes", "squares", "cross", "third", "second"):
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def distinct(self) -> Floats:
        """Mean of z (x) z (x) z over triples of distinct columns, (r, r, r)."""
        assert self.basis is not None
        U = np.asarray(self.basis, dtype=np.float64)
        repeated = pair_terms(U, self.squares)
        own = np.zeros_like(repeated)
        add_cubes(own, U, self.third)
        return np.asarray((fill_symmetric(self.cubes) - symmetrized(repeated) + 2 * fill_symmetric(own)) / self.weight)


def pair_terms(vectors: Floats, others: Floats) -> Floats:
    """``sum_a v_a (x) v_a (x) x_a`` for rows of two (D, r) arrays: one product over blocks of rows."""
    r = vectors.shape[1]
    total = np.zeros((r * r, others.shape[1]))
    for start in range(0, len(vectors), ROWS_PER_BLOCK):
        part = vectors[start : start + ROWS_PER_BLOCK]
        pairs = (part[:, :, None] * part[:, None, :]).reshape(len(part), r * r)
        total += pairs.T @ others[start : start + ROWS_PER_BLOCK]
    return total.reshape(r, r, others.shape[1])


def symmetrized(tensor: Floats) -> Floats:
    """The three placements of a tensor that is symmetric in its first two axes."""
    return np.asarray(tensor + tensor.transpose(0, 2, 1) + tensor.transpose(2, 1, 0))


def repeated_terms(features: FeatureMap, basis: Floats, weights: Floats, means: Floats) -> Floats:
    """What triples that repeat a column add to ``sum_i w_i m_i^(x3)``, m_i = sum_a means[i, a] basis[a]: (r, r, r).

    This is what `ProductTriples.distinct` leaves out, computed from a model: the refill of the completed moments.
    """
    r = basis.shape[1]
    pairs, own = np.zeros((r, r, r)), np.zeros((r, r, r))
    for weight, mean in zip(weights, means, strict=True):
        parts = features.column_sums(basis * mean[:, None])
        pairs += weight * (parts.T @ parts)[:, :, None] * parts.sum(axis=0)
        add_cubes(own, parts, np.full(len(parts), weight))
    return np.asarray(symmetrized(pairs) - 2 * fill_symmetric(own))
