"""First and second moments of words, in closed form from the counts (section 6.1.1 of the paper).

A document of length l has l (l - 1) ordered pairs and l (l - 1) (l - 2) ordered triples of different tokens. Their
averages are unbiased for E[x1 (x) x2] and E[x1 (x) x2 (x) x3], and every document has the same weight in them unless
weights are given (`odeco.sources.weigh_by_length` gives good ones where lengths vary). A document enters the moments
of the orders its length allows: order p needs at least p words (fractional counts: a sum of at least p). Shorter ones
still enter the lower orders.
"""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from odeco.exceptions import MomentError
from odeco.kernels.alignment import in_lines, whole_lines
from odeco.kernels.products import by_rows
from odeco.kernels.threads import balanced_parts, map_parts, thread_count
from odeco.moments.base import Additive, Moments
from odeco.moments.scatter import CsrParts, ScatterSum
from odeco.sources import Batch
from odeco.sources.counts import check_range

Floats = NDArray[np.floating]

_NONZEROS_PER_THREAD = 50_000  # fewer are summed before a thread has begun


def tuple_weights(batch: Batch, order: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Weight of each document at an order, and the same divided by its number of ordered tuples.

    The number is ``l (l - 1) ... (l - order + 1)``; documents that are too short get 0. At order 1 any positive length
    is enough: fractions of a word still have frequencies.
    """
    long_enough = batch.lengths >= order if order > 1 else batch.lengths > 0
    weights = np.where(long_enough, batch.row_weights(), 0.0)
    n_tuples = np.ones(len(batch))
    for taken in range(order):
        n_tuples *= np.where(weights > 0, batch.lengths - taken, 1.0)
    return weights, weights / n_tuples


class WordFrequencies(Moments):
    """The first moment M1 = E[x1] and the lengths of the documents."""

    _sums = ("n", "_sum", "_weight", "n_at_least", "n_words")
    _maxima = ("longest",)

    def __init__(self, n_features: int) -> None:
        super().__init__(n_features)
        self._sum = np.zeros(n_features)
        self._weight = 0.0
        self.n_at_least = np.zeros(3, dtype=np.int64)
        """Numbers of documents with at least 1, 2 and 3 words: those that enter the moments of order 1, 2 and 3."""
        self.n_words = 0.0
        """The sum of all counts."""
        self.longest = 0.0
        """The length of the longest document."""

    @property
    def mean(self) -> NDArray[np.float64]:
        """M1, a probability vector: mean word frequencies, every document with the same weight."""
        require_documents(self._weight, order=1)
        return self._sum / self._weight

    def _update(self, batch: Batch) -> None:
        weights, scaled = tuple_weights(check_range(batch), 1)
        self._sum += column_sums(CsrParts.of(batch, batch.counts.dtype), scaled, self.n_features)
        self._weight += float(weights.sum())
        self.n_at_least += [int(np.sum(batch.lengths > 0)), *(int(np.sum(batch.lengths >= p)) for p in (2, 3))]
        self.n_words += float(batch.lengths.sum())
        self.longest = max(self.longest, float(batch.lengths.max()))

    def _merge(self, other: Self) -> None:
        self._sum = self._sum + other._sum
        self._weight += other._weight
        self.n_at_least = self.n_at_least + other.n_at_least
        self.n_words += other.n_words
        self.longest = max(self.longest, other.longest)


class WordPairs(Moments):
    """The second moment E[x1 (x) x2] times a basis R, never the (d, d) matrix itself (section 6.1.2).

    Each document adds ``c (c^T R) - diag(c) R`` over its number of ordered pairs. The diagonal part needs only the
    weighted sum of the counts, so it is subtracted once, when the product is read.

    Parameters
    ----------
    basis : (d, r) array
        R. Its dtype is that of the work: float32 is twice as fast, and its rounding far below sampling noise; sums
        are kept in double precision.
    """

    _sums = ("n", "_product_sums", "_diagonal", "_weight")

    def __init__(self, basis: ArrayLike) -> None:
        block = as_basis(basis)
        super().__init__(block.shape[0], block)
        self.basis: Floats = block
        self._products = ScatterSum(block.shape, block.dtype)
        self._diagonal = np.zeros(block.shape[0])
        self._weight = 0.0

    @property
    def product(self) -> NDArray[np.float64]:
        """``M2 @ R`` of shape (d, r), M2 = E[x1 (x) x2]."""
        require_documents(self._weight, order=2)
        total, product = self._products.total, np.empty(self.basis.shape)

        def read(rows: slice) -> None:
            np.multiply(self._diagonal[rows, None], self.basis[rows], out=product[rows])
            np.subtract(total[rows], product[rows], out=product[rows])
            product[rows] /= self._weight

        by_rows(read, product)
        return product

    @property
    def projected(self) -> NDArray[np.float64]:
        """``R^T @ M2 @ R`` of shape (r, r)."""
        projected = self.basis.T.astype(np.float64) @ self.product
        return (projected + projected.T) / 2

    def _update(self, batch: Batch) -> None:
        from odeco.kernels.sparse import gram_rows

        weights, scaled = tuple_weights(batch, 2)
        parts = CsrParts.of(batch, self.basis.dtype)
        rows = scaled.astype(self.basis.dtype)
        self.basis = in_lines(self.basis)
        basis = whole_lines(self.basis)

        def work(_: int, start: int, stop: int, out: Floats) -> None:
            gram_rows(parts.indptr, parts.columns, parts.values, rows, basis, start, stop, out)

        self._products.scatter(parts, work)
        self._diagonal += column_sums(parts, scaled, self.n_features)
        self._weight += float(weights.sum())

    @property
    def _product_sums(self) -> NDArray[np.float64]:
        return self._products.total

    @_product_sums.setter
    def _product_sums(self, total: NDArray[np.float64]) -> None:
        self._products.total = total

    def _merge(self, other: Self) -> None:
        self._products.merge(other._products)
        self._diagonal = self._diagonal + other._diagonal
        self._weight += other._weight


class FrequenciesAndPairs(Additive):
    """Word frequencies, and word pairs on a basis that needs none of them: one pass for both."""

    _sums = ("frequencies", "pairs")
    _maxima = ("frequencies",)

    def __init__(self, basis: ArrayLike) -> None:
        self.pairs = WordPairs(basis)
        self.frequencies = WordFrequencies(self.pairs.n_features)

    @property
    def n(self) -> int:
        """The number of documents seen."""
        return self.pairs.n

    def update(self, batch: Batch) -> Self:
        """Add the documents of a batch; returns self."""
        self.frequencies.update(batch)
        self.pairs.update(batch)
        return self


def column_sums(parts: CsrParts, weights: NDArray[np.float64], n_features: int) -> NDArray[np.float64]:
    """``C^T weights`` in double precision."""
    from odeco.kernels.sparse import weighted_column_sums

    n_parts = thread_count() if parts.n_nonzeros > _NONZEROS_PER_THREAD * thread_count() else 1
    bounds = balanced_parts(parts.indptr, n_parts).tolist()
    sums = np.zeros((n_parts, n_features))

    def add(part: int) -> None:
        low, high = bounds[part], bounds[part + 1]
        weighted_column_sums(parts.indptr[low : high + 1], parts.columns, parts.values, weights[low:high], sums[part])

    map_parts(add, n_parts)
    return np.asarray(sum(sums[1:], start=sums[0]))


def as_basis(basis: ArrayLike) -> Floats:
    """A (d, r) block of float32 or float64, rows on cache lines."""
    block = np.asarray(basis)
    if block.ndim != 2 or block.size == 0:
        raise ValueError(f"basis must have shape (n_features, r), got {block.shape}.")
    dtype = np.float32 if block.dtype == np.float32 else np.float64
    return in_lines(block.astype(dtype, copy=False))


def require_documents(weight: float, *, order: int) -> None:
    """Raise where no document has ``order`` words."""
    if not weight > 0:
        raise MomentError(
            f"no document has {order} word{'s' if order > 1 else ''} or more: the moment of order {order} of "
            "the words is not defined. Use longer documents, or join short ones."
        )
