"""Moments up to order three of dense rows: what mixtures of spherical Gaussians need (Theorems 3.2 and 3.3).

Third moments are taken of projected rows alone. The rest of a row enters through its squared norm: summed over the
whole noise space it tells the noise variance, and its products with the projection tell how the variance differs
between components, with d - k + 1 times as many numbers behind it as one eigenvector of the theorem has.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from odeco.kernels.threads import map_parts, single_threaded_blas, thread_count
from odeco.moments.cubes import ROWS_PER_BLOCK, add_cubes, fill_symmetric
from odeco.moments.cumulants import DenseMoments, SecondMoments
from odeco.moments.passes import Passes, run_passes
from odeco.sources.dense import DenseBatch

Floats = NDArray[np.float64]
Rows = NDArray[np.floating]

# Directions beyond those asked for in a block of products.
_OVERSAMPLES = 8


class FastSecondMoments(SecondMoments):
    """`SecondMoments` with products in single precision, sums in double: half the time, 1e-6 of the entries lost."""

    def _update(self, batch: DenseBatch) -> None:
        for start in range(0, len(batch), ROWS_PER_BLOCK):
            block = slice(start, start + ROWS_PER_BLOCK)
            y = centred(batch.rows[block], self.shift, np.float32)
            roots = np.ones(len(y), np.float32)
            if batch.weights is not None:
                roots = np.sqrt(batch.weights[block]).astype(np.float32)
                y *= roots[:, None]
            self._gram[0, 1:] += roots @ y
            self._gram[1:, 1:] += y.T @ y


class CovarianceProduct(DenseMoments):
    """The covariance times a block of directions: ``C @ basis``, (d, r), without forming C. The shift is the mean."""

    _sums = (*DenseMoments._sums, "_product")
    _by_threads = True

    def __init__(self, basis: Rows, shift: Floats) -> None:
        super().__init__(basis.shape[0], shift, basis)
        self._product = np.zeros(basis.shape)

    @staticmethod
    def _n_products(width: int) -> int:
        return 1 + width

    def _update(self, batch: DenseBatch) -> None:
        assert self.basis is not None
        for start in range(0, len(batch), ROWS_PER_BLOCK):
            block = slice(start, start + ROWS_PER_BLOCK)
            y = centred(batch.rows[block], self.shift, self.basis.dtype)
            z = y @ self.basis
            weighted = z if batch.weights is None else z * batch.weights[block, None].astype(z.dtype)
            self._product += y.T @ weighted
            self._gram[1:, 1:] += z.T @ weighted

    def _merge(self, other: Self) -> None:
        super()._merge(other)
        self._product = self._product + other._product

    @property
    def product(self) -> Floats:
        """``C @ basis``"""
        self._moments()
        return np.asarray(self._product / self.weight)

    @property
    def inner(self) -> Floats:
        """``basis' C basis``"""
        moments = self._moments()[1:, 1:]
        return np.asarray((moments + moments.T) / 2)


class ColumnMoments(DenseMoments):
    """Mean and variance of each column."""

    _sums = (*DenseMoments._sums, "_first", "_squares")
    _by_threads = True

    def __init__(self, n_features: int, shift: Floats) -> None:
        super().__init__(n_features, shift, np.empty((n_features, 0)))
        self._first, self._squares = np.zeros(n_features), np.zeros(n_features)

    @staticmethod
    def _n_products(width: int) -> int:
        return 0

    def _update(self, batch: DenseBatch) -> None:
        for start in range(0, len(batch), ROWS_PER_BLOCK):
            block = slice(start, start + ROWS_PER_BLOCK)
            y = batch.rows[block] - self.shift
            weights = np.ones(len(y)) if batch.weights is None else batch.weights[block]
            self._first += weights @ y
            self._squares += weights @ (y * y)

    def _merge(self, other: Self) -> None:
        super()._merge(other)
        self._first, self._squares = self._first + other._first, self._squares + other._squares

    @property
    def mean(self) -> Floats:
        """(d,)"""
        self._moments()
        return np.asarray(self.shift + self._first / self.weight)

    @property
    def variances(self) -> Floats:
        """(d,)"""
        self._moments()
        return np.asarray(np.maximum(self._squares / self.weight - (self._first / self.weight) ** 2, 0.0))


def leading_directions(
    batches: Iterable[DenseBatch], mean: Floats, width: int, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """Leading eigenvalues and eigenvectors (d, width) of the covariance of some rows: `direction_passes` over them."""
    return run_passes(direction_passes(mean, width, rng), batches)


def direction_passes(
    mean: Floats, width: int, rng: np.random.Generator, *, n_products: int = 3
) -> Passes[tuple[Floats, Floats]]:
    """Leading eigenvalues and eigenvectors (d, width) of the covariance by a block Krylov space (section 6.1.2).

    Each product reads the data once and costs O(n d width): nothing of size d x d. Of all blocks together the best
    directions are taken (Rayleigh and Ritz), so that a small gap to the noise needs few products.
    """
    block = np.linalg.qr(rng.standard_normal((mean.size, width + _OVERSAMPLES)))[0]
    space: list[Floats] = []
    for _ in range(n_products):
        found = yield CovarianceProduct(np.ascontiguousarray(block.astype(np.float32)), mean)
        block = np.linalg.qr(found.product)[0]
        space.append(block)
    whole = np.linalg.qr(np.hstack(space))[0]
    found = yield CovarianceProduct(np.ascontiguousarray(whole.astype(np.float32)), mean)
    values, vectors = np.linalg.eigh(found.inner)
    return values[::-1][:width].copy(), whole @ vectors[:, ::-1][:, :width]


class VectorMoments(DenseMoments):
    """Sums over ``y = x - shift`` and ``z = y @ basis``: all that a stream has to keep for a Gaussian mixture.

    Parameters
    ----------
    basis : (d, r) array
        Orthonormal columns. Its dtype is that of the products; sums are kept in double precision.
    shift : (d,) array, optional
        Where the moments are taken about. What is read is about the mean all the same.
    cross : bool
        Keep the (d, r) sums of y (x) z. They lift directions of the basis back to all d coordinates, and are needed
        unless the shift is the mean.
    """

    _sums = (*DenseMoments._sums, "_first", "_cubes", "_squares", "_radial", "_cross")
    _on = ("basis", "shift")
    _by_threads = True

    def __init__(self, basis: ArrayLike, shift: ArrayLike | None = None, *, cross: bool = True) -> None:
        block = np.asarray(basis)
        if block.ndim != 2:
            raise ValueError(f"basis must have shape (n_features, r), got {block.shape}.")
        block = np.ascontiguousarray(block, dtype=np.float32 if block.dtype == np.float32 else np.float64)
        super().__init__(block.shape[0], shift, block)
        r = block.shape[1]
        self._first = np.zeros(self.n_features)
        self._cubes = np.zeros((r, r, r))
        self._squares = 0.0
        self._radial = np.zeros(r)
        self._cross = np.zeros((self.n_features, r)) if cross else None

    @staticmethod
    def _n_products(width: int) -> int:
        return 1 + width

    def emptied(self) -> Self:
        assert self.basis is not None
        return type(self)(self.basis, self.shift, cross=self._cross is not None)

    def _update(self, batch: DenseBatch) -> None:
        for start in range(0, len(batch), ROWS_PER_BLOCK):
            block = slice(start, start + ROWS_PER_BLOCK)
            self._add(batch.rows[block], None if batch.weights is None else batch.weights[block])

    def _add(self, rows: Rows, weights: Floats | None) -> None:
        assert self.basis is not None
        y = centred(rows, self.shift, self.basis.dtype)
        z = y @ self.basis
        self._first += y.sum(axis=0, dtype=np.float64) if weights is None else weights @ y
        if self._cross is not None:
            self._cross += y.T @ (z if weights is None else z * weights[:, None].astype(z.dtype))
        self._add_projected(z, np.einsum("ij,ij->i", y, y), weights)

    def _add_projected(self, z: Rows, squares: Rows, weights: Floats | None) -> None:
        ones = np.ones(len(z), dtype=z.dtype) if weights is None else weights.astype(z.dtype)
        weighted = z if weights is None else z * ones[:, None]
        self._squares += float(squares.sum(dtype=np.float64) if weights is None else weights @ squares)
        self._gram[0, 1:] += ones @ z
        self._gram[1:, 1:] += z.T @ weighted
        self._radial += squares @ weighted
        if self.dimension:
            add_cubes(self._cubes, z, weights)

    def _merge(self, other: Self) -> None:
        if (self._cross is None) != (other._cross is None):
            raise ValueError("cannot merge moments with and without cross sums.")
        super()._merge(other)
        self._first = self._first + other._first
        self._cubes = self._cubes + other._cubes
        self._squares += other._squares
        self._radial = self._radial + other._radial
        if self._cross is not None and other._cross is not None:
            self._cross = self._cross + other._cross

    @property
    def mean(self) -> Floats:
        """Mean of x, (d,)."""
        return self.shift + self._offset

    @property
    def covariance(self) -> Floats:
        """Covariance of z, (r, r)."""
        second = self._moments()[1:, 1:]
        return np.asarray((second + second.T) / 2 - np.outer(self._centre, self._centre))

    @property
    def total_variance(self) -> float:
        """Trace of the covariance of x."""
        self._moments()
        return float(self._squares / self.weight - self._offset @ self._offset)

    @property
    def cross(self) -> Floats:
        """Covariance of x with z, (d, r)."""
        if self._cross is None:
            raise ValueError("the cross sums were not kept: create the moments with cross=True.")
        return np.asarray(self._cross / self.weight - np.outer(self._offset, self._centre))

    @property
    def third(self) -> Floats:
        """Third central moment of z, (r, r, r)."""
        raw = fill_symmetric(self._cubes) / self.weight
        c, second = self._centre, self._moments()[1:, 1:]
        lower = np.multiply.outer(c, (second + second.T) / 2 - 2 / 3 * np.outer(c, c))
        return np.asarray(raw - lower - lower.transpose(1, 0, 2) - lower.transpose(2, 1, 0))

    @property
    def radial(self) -> Floats:
        """``E[(z - E z) ||x - E x||^2]``, (r,)."""
        mean, centre = self._offset, self._centre
        raw = self._radial / self.weight - centre * (self._squares / self.weight)
        if self._cross is None:
            return np.asarray(raw)  # about the mean, up to the rounding of the mean
        return np.asarray(raw - 2 * mean @ self.cross)

    @property
    def _offset(self) -> Floats:
        self._moments()
        return np.asarray(self._first / self.weight)

    @property
    def _centre(self) -> Floats:
        return np.asarray(self._moments()[0, 1:])


def centred(rows: Rows, shift: Floats, dtype: Any) -> Rows:
    """``rows - shift``, subtracted in the precision of the rows, then cast: few digits of a large offset are lost."""
    out = np.empty(rows.shape, dtype=dtype)
    np.subtract(rows, shift.astype(rows.dtype), out=out, casting="same_kind")
    return out


@dataclass(frozen=True, eq=False)
class ProjectedRows:
    """Rows about the mean, projected: ``z`` (n, r), ``squares`` (n,) of the whole rows, ``weights`` (n,) or None."""

    z: Rows = field(repr=False)
    squares: Rows = field(repr=False)
    weights: Floats | None = field(repr=False)

    @property
    def rest(self) -> Rows:
        """Squared norms of what was projected out, (n,)."""
        return np.asarray(np.maximum(self.squares - np.einsum("ij,ij->i", self.z, self.z), 0))

    def take(self, rows: NDArray[np.intp]) -> ProjectedRows:
        """Some of the rows."""
        return ProjectedRows(self.z[rows], self.squares[rows], None if self.weights is None else self.weights[rows])

    def moments(self, basis: Rows, mean: Floats) -> VectorMoments:
        """The moments about the mean that `VectorMoments` would give of the rows themselves."""
        n = len(self.z)
        edges = np.linspace(0, n, max(1, min(thread_count(), n // ROWS_PER_BLOCK)) + 1).astype(int)
        with single_threaded_blas():
            parts = map_parts(lambda t: self._part(basis, mean, edges[t], edges[t + 1]), len(edges) - 1)
        for other in parts[1:]:
            parts[0].merge(other)
        return parts[0]

    def _part(self, basis: Rows, mean: Floats, first: int, last: int) -> VectorMoments:
        moments = VectorMoments(basis, mean, cross=False)
        for low in range(first, last, ROWS_PER_BLOCK):
            block = slice(low, min(low + ROWS_PER_BLOCK, last))
            moments._add_projected(
                self.z[block], self.squares[block], None if self.weights is None else self.weights[block]
            )
        moments.n = int(last - first)
        moments.weight = float(last - first if self.weights is None else self.weights[first:last].sum())
        return moments


@dataclass(frozen=True, eq=False)
class Projection:
    """Asked for in a pass, the `n` rows about the mean on a basis (d, r), in its dtype: only where they may be kept."""

    n: int
    basis: Rows = field(repr=False)
    mean: Floats = field(repr=False)

    def update_all(self, batches: Iterable[DenseBatch]) -> ProjectedRows:
        """Project the rows of every batch, a thread for each."""
        basis = self.basis
        z, squares = np.empty((self.n, basis.shape[1]), dtype=basis.dtype), np.empty(self.n, dtype=basis.dtype)
        weights, weighted = np.ones(self.n), False
        first, iterator = 0, iter(batches)
        with single_threaded_blas():
            while group := list(islice(iterator, thread_count())):
                starts = first + np.concatenate([[0], np.cumsum([len(batch) for batch in group])]).astype(int)
                map_parts(lambda t, g=group, s=starts: self._fill(z, squares, g[t], int(s[t])), len(group))  # type: ignore[misc]
                for batch, start in zip(group, starts, strict=False):
                    if batch.weights is not None:
                        weights[start : start + len(batch)], weighted = batch.weights, True
                first = int(starts[-1])
        return ProjectedRows(z, squares, weights if weighted else None)

    def _fill(self, z: Rows, squares: Rows, batch: DenseBatch, first: int) -> None:
        for low in range(0, len(batch), ROWS_PER_BLOCK):
            y = centred(batch.rows[low : low + ROWS_PER_BLOCK], self.mean, self.basis.dtype)
            block = slice(first + low, first + low + len(y))
            np.matmul(y, self.basis, out=z[block])
            np.einsum("ij,ij->i", y, y, out=squares[block])
