"""Moments up to order four of dense rows, and the fourth cumulant (Theorem 3.4 of the paper, section 3.2.3).

The fourth cumulant of x = A h + z does not see Gaussian noise z: M4 = sum_i kappa_i mu_i^(x4), mu_i the columns of A.

All moments up to order p of y are the entries of one Gram matrix: that of the products of (1, y) at p = 4, that of
(1, y) itself at p = 2. It is a SYRK per block of rows, and it is all that has to be kept and merged.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from functools import lru_cache
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from odeco.kernels.channels import NARROW, add_row_products
from odeco.kernels.products import by_parts
from odeco.moments.base import Moments
from odeco.sources.dense import DenseBatch
from odeco.tensors import SymmetricTensor

Floats = NDArray[np.float64]
Rows = NDArray[np.floating]

# Rows per product: the block of products stays in cache up to about 10 dimensions, and is reused above.
_ROWS = 1024


class DenseMoments(Moments):
    """Sums over dense rows about a fixed shift: ``y = (x - shift) @ basis`` (the identity where basis is None).

    A shift near the mean keeps the digits; it is part of the basis, and moments of different shifts do not merge.
    """

    _sums: ClassVar[tuple[str, ...]] = ("n", "weight", "_gram")

    def __init__(self, n_features: int, shift: ArrayLike | None, basis: Rows | None) -> None:
        origin = np.zeros(n_features) if shift is None else np.asarray(shift, dtype=np.float64)
        if origin.shape != (n_features,):
            raise ValueError(f"shift must have shape ({n_features},), got {origin.shape}.")
        super().__init__(n_features, basis)
        self.shift = np.ascontiguousarray(origin)
        width = n_features if basis is None else basis.shape[1]
        self.dimension = width
        self.weight = 0.0
        """Sum of the weights: the number of samples where none were given."""
        self._gram = np.zeros((self._n_products(width),) * 2)

    @staticmethod
    @abstractmethod
    def _n_products(width: int) -> int:
        """Side of the Gram matrix for rows of this width."""

    def update(self, batch: DenseBatch) -> Self:
        super().update(batch)
        self.weight += float(len(batch) if batch.weights is None else batch.weights.sum())
        return self

    def merge(self, other: Self) -> Self:
        if isinstance(other, DenseMoments) and not np.array_equal(self.shift, other.shift):
            raise ValueError("cannot merge moments about different shifts: learn the shift once, before the split.")
        return super().merge(other)

    def _merge(self, other: Self) -> None:
        self._gram = self._gram + other._gram
        self.weight += other.weight

    def _moments(self) -> Floats:
        if not self.weight > 0:
            raise ValueError("no samples were given, or all sample weights are zero: the moments are not defined.")
        return self._gram / self.weight


class SecondMoments(DenseMoments):
    """Mean and covariance of dense rows."""

    _by_threads = True

    def __init__(self, n_features: int, shift: ArrayLike | None = None) -> None:
        super().__init__(n_features, shift, None)

    @staticmethod
    def _n_products(width: int) -> int:
        return 1 + width

    @property
    def mean(self) -> Floats:
        """(d,)"""
        return self.shift + self._moments()[0, 1:]

    @property
    def covariance(self) -> Floats:
        """(d, d), divided by the number of samples."""
        moments = self._moments()
        covariance = moments[1:, 1:] - np.outer(moments[0, 1:], moments[0, 1:])
        return np.asarray((covariance + covariance.T) / 2)

    def _update(self, batch: DenseBatch) -> None:
        if self.n_features <= NARROW:
            weights = np.empty(0) if batch.weights is None else np.ascontiguousarray(batch.weights)
            add_row_products(np.ascontiguousarray(batch.rows), self.shift, weights, self._gram)
            return
        for start in range(0, len(batch), _ROWS):
            rows = batch.rows[start : start + _ROWS]
            products = np.ones((len(rows), 1 + self.n_features))
            np.subtract(rows, self.shift, out=products[:, 1:])
            if batch.weights is not None:
                products *= np.sqrt(batch.weights[start : start + _ROWS])[:, None]
            self._gram += products.T @ products


class FourthMoments(DenseMoments):
    """All moments up to order four of ``y = (x - shift) @ basis``, mergeable, read as cumulants.

    Parameters
    ----------
    basis : (d, r) array
        Its dtype is that of the work; sums are kept in double precision. Cost: n r^4 / 4 operations.
    shift : (d,) array, optional
        Where the moments are taken about; the cumulants are those about the mean all the same.
    """

    def __init__(self, basis: ArrayLike, shift: ArrayLike | None = None) -> None:
        block = np.asarray(basis)
        if block.ndim != 2 or block.size == 0:
            raise ValueError(f"basis must have shape (n_features, r), got {block.shape}.")
        block = np.ascontiguousarray(block, dtype=np.float32 if block.dtype == np.float32 else np.float64)
        super().__init__(block.shape[0], shift, block)

    @staticmethod
    def _n_products(width: int) -> int:
        return (width + 1) * (width + 2) // 2

    def _update(self, batch: DenseBatch) -> None:
        assert self.basis is not None
        scratch = np.empty((self._gram.shape[0], min(_ROWS, len(batch))), dtype=self.basis.dtype)
        for start in range(0, len(batch), _ROWS):
            block = slice(start, start + _ROWS)
            centred = batch.rows[block] - self.shift.astype(batch.rows.dtype)
            y = self.basis.T @ centred.T.astype(self.basis.dtype, copy=False)
            self._add(y, None if batch.weights is None else batch.weights[block], scratch)

    def _add(self, y: Rows, weights: Floats | None, scratch: Rows) -> None:
        """Add the Gram matrix of 1, y and the products of y, pairs in the order of np.triu_indices."""
        r = self.dimension
        products = scratch[:, : y.shape[1]]
        products[0], products[1 : r + 1] = 1.0, y
        if weights is not None:
            products[: r + 1] *= np.sqrt(weights).astype(y.dtype)
        low = r + 1
        for i in range(r):
            np.multiply(y[i], products[i + 1 : r + 1], out=products[low : low + r - i])
            low += r - i
        self._gram += products @ products.T

    @property
    def mean(self) -> Floats:
        """Mean of y, (r,)."""
        return np.asarray(self._moments()[0, 1 : self.dimension + 1])

    @property
    def covariance(self) -> Floats:
        """Covariance of y, (r, r)."""
        r, moments = self.dimension, self._moments()
        second = moments[1 : r + 1, 1 : r + 1]
        return np.asarray((second + second.T) / 2 - np.outer(self.mean, self.mean))

    def cumulant(self, transform: Floats | None = None) -> Floats:
        """The fourth cumulant of y, or of ``y @ transform``, as a full symmetric array (Theorem 3.4).

        With raw moments P and mean m: P4 - [4] m P3 - [3] P2 P2 + 2 [6] m m P2 - 6 m m m m, [c] the number of ways to
        place the indices.
        """
        r, moments = self.dimension, self._moments()
        flat = r + 1 + _pair_index(r)
        second = moments[1 : r + 1, 1 : r + 1]
        result = _symmetric(moments[np.ix_(flat, flat)], r) - _pairings(second, second)
        mean = self.mean
        if np.abs(mean).max() > 1e-12 * np.sqrt(np.diag(second).max() or 1.0):
            third = moments[np.ix_(np.arange(1, r + 1), flat)].reshape((r,) * 3)
            square = np.outer(mean, mean)
            result -= sum(np.moveaxis(np.multiply.outer(mean, third), 0, axis) for axis in range(4))
            result += 2 * (_pairings(second, square) + _pairings(square, second))
            result -= 2 * _pairings(square, square)
        if transform is not None:
            for _ in range(4):
                result = np.tensordot(result, transform, axes=(0, 0))
        return np.asarray(result)


class CumulantTensor(SymmetricTensor):
    """The fourth cumulant of rows in memory, never formed: contractions in O(n k) each (Theorem 3.4).

    Parameters
    ----------
    rows : (k, n) array
        Samples in columns, centred; float32 or float64.
    weights : (n,) array, optional
        Summing to anything positive.
    """

    def __init__(self, rows: Rows, weights: Floats | None = None) -> None:
        self.order, self.dimension = 4, rows.shape[0]
        self.rows = rows
        self.weights = None if weights is None else (weights / weights.mean()).astype(rows.dtype)
        self.covariance = self._mean(lambda block: self._weighted(block) @ rows[:, block].T)

    def _mean(self, of: Callable[[slice], Rows]) -> Floats:
        """Over samples, from sums over blocks of them."""
        n = self.rows.shape[1]

        def part(run: slice) -> Floats:
            blocks = [of(slice(low, min(low + _ROWS, run.stop))) for low in range(run.start, run.stop, _ROWS)]
            return np.asarray(np.sum(blocks, axis=0, dtype=np.float64))

        return np.asarray(sum(by_parts(part, n)) / n)

    def _weighted(self, block: slice) -> Rows:
        return self.rows[:, block] if self.weights is None else self.rows[:, block] * self.weights[block]

    def power_map(self, vectors: Floats) -> Floats:
        """M4(I, v, v, v) for every column v."""
        columns = np.asarray(vectors, dtype=self.rows.dtype)

        def cubes(block: slice) -> Rows:
            inner = columns.T @ self.rows[:, block]
            return np.asarray(self._weighted(block) @ (inner * inner * inner).T)

        mapped = self.covariance @ vectors
        return np.asarray(self._mean(cubes) - 3 * mapped * np.einsum("ij,ij->j", vectors, mapped))

    def matrix(self, vector: Floats) -> Floats:
        return self.pair(vector, vector)

    def pair(self, u: ArrayLike, v: ArrayLike) -> Floats:
        """M4(I, I, u, v) = sum_i kappa_i (mu_i'u) (mu_i'v) mu_i mu_i': the paper's reduction to order 2."""
        first, second = np.asarray(u, dtype=np.float64), np.asarray(v, dtype=np.float64)
        both = np.stack([first, second]).astype(self.rows.dtype)

        def squares(block: slice) -> Rows:
            inner = both @ self.rows[:, block]
            return np.asarray((self._weighted(block) * (inner[0] * inner[1])) @ self.rows[:, block].T)

        left, right = self.covariance @ first, self.covariance @ second
        cross = np.outer(left, right)
        result = self._mean(squares) - self.covariance * float(first @ right) - cross - cross.T
        return np.asarray((result + result.T) / 2)

    def third(self, v: ArrayLike) -> Floats:
        """M4(I, I, I, v) = sum_i kappa_i (mu_i'v) mu_i^(x3): the paper's reduction to order 3, (k, k, k)."""
        direction, k = np.asarray(v, dtype=np.float64), self.dimension
        column = direction.astype(self.rows.dtype)
        upper = np.triu_indices(k)

        def pairs(block: slice) -> Rows:
            rows = self.rows[:, block]
            return np.asarray((self._weighted(block) * (column @ rows)) @ (rows[upper[0]] * rows[upper[1]]).T)

        full = np.empty((k, k, k))
        full[:, upper[0], upper[1]] = full[:, upper[1], upper[0]] = self._mean(pairs)
        gaussian = np.multiply.outer(self.covariance @ direction, self.covariance)
        return np.asarray(full - gaussian - gaussian.transpose(1, 0, 2) - gaussian.transpose(2, 1, 0))


def fourth_cumulant(X: ArrayLike) -> Floats:
    """The explicit fourth cumulant of the rows of X: M4 of Theorem 3.4.

    Parameters
    ----------
    X : (n, d) array

    Returns
    -------
    (d, d, d, d) array
        Symmetric, about the mean of the rows.

    Examples
    --------
    >>> import numpy as np, odeco
    >>> odeco.moments.fourth_cumulant([[-1.0], [1.0]]).item()  # a fair coin: 1 - 3
    -2.0
    """
    rows = np.asarray(X)
    if rows.ndim != 2 or rows.size == 0:
        raise ValueError(f"X must have shape (n, d), got {rows.shape}.")
    if rows.dtype.kind not in "biuf" or not np.isfinite(rows).all():
        raise ValueError("X must be of real and finite numbers: remove rows with NaN or infinite entries first.")
    moments = FourthMoments(np.eye(rows.shape[1]), rows.mean(axis=0, dtype=np.float64))
    return moments.update(DenseBatch(np.asarray(rows, dtype=np.float64))).cumulant()


def centred_cumulant(rows: Rows, weights: Floats | None = None) -> Floats:
    """The explicit fourth cumulant of samples in columns (r, n) whose mean is zero.

    What `FourthMoments` gives, from every multiset of coordinates once, where the mean is already out.
    """
    from odeco.kernels.cumulants import add_fourth

    r, n = rows.shape
    n_pairs = r * (r + 1) // 2
    samples, given = np.ascontiguousarray(rows), np.empty(0) if weights is None else weights / weights.mean()

    def sums(part: slice) -> tuple[Floats, Floats]:
        second, fourth = np.zeros((r, r)), np.zeros((n_pairs, n_pairs))
        add_fourth(samples, part.start, part.stop, given, second, fourth)
        return second, fourth

    second, fourth = (np.asarray(sum(parts) / n) for parts in zip(*by_parts(sums, n), strict=True))
    covariance = second + np.triu(second, 1).T
    return np.asarray(fourth.ravel()[_multiset_index(r)] - _pairings(covariance, covariance))


@lru_cache(maxsize=8)
def _multiset_index(r: int) -> NDArray[np.intp]:
    """Where `add_fourth` adds the product of coordinates i, j, k and l, (r, r, r, r)."""
    low, high, pairs = np.minimum(*np.indices((r, r))), np.maximum(*np.indices((r, r))), _pair_index(r).reshape(r, r)
    inner = np.maximum.outer(low, low), np.minimum.outer(high, high)  # the second and the third of all four, or so
    left = pairs[np.minimum.outer(low, low), np.minimum(*inner)]
    return np.asarray(left * (r * (r + 1) // 2) + pairs[np.maximum(*inner), np.maximum.outer(high, high)])


def _pair_index(r: int) -> NDArray[np.intp]:
    """Where the product of coordinates i and j stands among the pairs of np.triu_indices, flat over (i, j)."""
    index = np.empty((r, r), dtype=np.intp)
    upper = np.triu_indices(r)
    index[upper] = index[upper[::-1]] = np.arange(upper[0].size)
    return index.ravel()


def _symmetric(matrix: Floats, r: int) -> Floats:
    """Moments of pairs with pairs as a tensor of order 4, its three equal halves averaged."""
    tensor = matrix.reshape((r,) * 4)
    return np.asarray((tensor + tensor.transpose(0, 2, 1, 3) + tensor.transpose(0, 3, 2, 1)) / 3)


def _pairings(first: Floats, second: Floats) -> Floats:
    """first_ij second_kl + first_ik second_jl + first_il second_jk."""
    outer = np.multiply.outer(first, second)
    return np.asarray(outer + outer.transpose(0, 2, 1, 3) + outer.transpose(0, 2, 3, 1))
