"""The flattening of a symmetric tensor with every multiset of indices kept once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from odeco.kernels.products import by_parts
from odeco.kernels.threads import map_parts, single_threaded_blas
from odeco.tensors.algebra import Floats

# Rows handled at a time: enough for GEMM to run at full speed, few enough for their Khatri-Rao rows to stay in cache.
_BLOCK_ROWS = 2048
# Elements of such a block where rows come slice by slice: half of a second-level cache.
_BLOCK_ELEMENTS = 2**18
# From this dimension on, a call per slice costs less than gathering.
_SLICED_DIMENSION = 64
# Runs of such slices that threads share.
_N_PARTS = 8
# Orderings of a sorted multiset, by its size and its number of distinct elements.
_ORDERINGS = {2: np.array([0, 1, 2]), 3: np.array([0, 1, 3, 6])}


class PackedTensor:
    """T(b, c, .., :) for all sorted (b <= c <= ..), times the number of orderings of (b, c, ..).

    Contractions are then exact at 1/2 (order 3) or 1/6 (order 4) of the flops and memory of the full flattening: one
    GEMM per block of rows, against the Khatri-Rao rows v_b v_c .. gathered from the vectors.

    Parameters
    ----------
    array : symmetric array of order 3 or 4
    scale : float
        What entries are divided by, so that they fit any precision.
    dtype : float32 or float64
    """

    def __init__(self, array: NDArray[Any], scale: float, dtype: Any) -> None:
        self.order = array.ndim
        self.dimension = array.shape[0]
        self.indices = _sorted_multisets(self.dimension, self.order - 1)
        distinct = 1 + np.count_nonzero(np.diff(self.indices, axis=0), axis=0)
        self.orderings = _ORDERINGS[self.order - 1][distinct]
        self.rows = np.empty((self.orderings.size, self.dimension), dtype=dtype)
        if self.order == 3:
            self._pack_slices(array, scale)
        else:
            for block in self._blocks():
                entries = array[tuple(self.indices[:, block])]
                np.multiply(entries, self.orderings[block, None] / scale, out=self.rows[block], casting="same_kind")

    def _pack_slices(self, array: NDArray[Any], scale: float) -> None:
        """Order 3: all rows with the same smallest index are one slice, copied several times faster than gathered."""
        low = 0
        for b in range(self.dimension):
            high = low + self.dimension - b
            np.multiply(array[b, b:], 2.0 / scale, out=self.rows[low:high], casting="same_kind")
            self.rows[low] /= 2
            low = high

    def _blocks(self) -> Iterator[slice]:
        for low in range(0, self.orderings.size, _BLOCK_ROWS):
            yield slice(low, min(low + _BLOCK_ROWS, self.orderings.size))

    def power_map(self, vectors: NDArray[Any]) -> NDArray[Any]:
        """T(I, v, .., v) / scale for every column v."""
        columns = np.ascontiguousarray(vectors, dtype=self.rows.dtype)
        if self.order == 4 or self.dimension < _SLICED_DIMENSION:
            return self._contracted(columns, self._gathered_products(columns))
        # Runs of slices of about as many rows, the same for any number of threads.
        shares = 1 - np.sqrt(np.linspace(1, 0, _N_PARTS + 1))
        edges = np.rint(self.dimension * shares).astype(int)
        work = lambda t: self._contracted(columns, self._sliced_products(columns, edges[t], edges[t + 1]))  # noqa: E731
        with single_threaded_blas():
            first, *others = map_parts(work, _N_PARTS)
        return np.asarray(sum(others, start=first))

    def _contracted(self, columns: NDArray[Any], products: Iterator[tuple[slice, NDArray[Any]]]) -> NDArray[Any]:
        """What some blocks of rows add to the power map."""
        result = np.zeros(columns.shape, dtype=columns.dtype)
        for block, product in products:
            result += self.rows[block].T @ product
        return result

    def _gathered_products(self, columns: NDArray[Any]) -> Iterator[tuple[slice, NDArray[Any]]]:
        """Blocks of rows and their Khatri-Rao rows v_b v_c .., gathered index by index."""
        shape = (min(_BLOCK_ROWS, self.orderings.size), columns.shape[1])
        product, factor = np.empty(shape, columns.dtype), np.empty(shape, columns.dtype)
        for block in self._blocks():
            size = block.stop - block.start
            np.take(columns, self.indices[0, block], axis=0, out=product[:size], mode="clip")
            for index in self.indices[1:]:
                np.take(columns, index[block], axis=0, out=factor[:size], mode="clip")
                product[:size] *= factor[:size]
            yield block, product[:size]

    def _sliced_products(self, columns: NDArray[Any], first: int, last: int) -> Iterator[tuple[slice, NDArray[Any]]]:
        """The same at order 3, for a run of smallest indices one by one: one product instead of two gathers and one."""
        n, r = columns.shape
        target = max(_BLOCK_ELEMENTS // r, 1)
        product = np.empty((min(target + n, self.orderings.size), r), columns.dtype)
        low = high = first * n - first * (first - 1) // 2
        for b in range(first, last):
            np.multiply(columns[b], columns[b:], out=product[high - low : high - low + n - b])
            high += n - b
            if high - low >= target or b == last - 1:
                yield slice(low, high), product[: high - low]
                low = high

    def gram(self) -> Floats:
        """T1 T1' / scale^2 for the full flattening T1 (n, n^(p-1)): a SYRK per block."""

        def part(run: slice) -> Floats:
            result = np.zeros((self.dimension, self.dimension))
            for low in range(run.start, run.stop, _BLOCK_ROWS):
                block = slice(low, min(low + _BLOCK_ROWS, run.stop))
                rooted = self.rows[block] / np.sqrt(self.orderings[block, None])
                result += rooted.T @ rooted
            return result

        return np.asarray(sum(by_parts(part, self.orderings.size)))


def _sorted_multisets(n: int, size: int) -> NDArray[np.intp]:
    """All (b <= c <= ..) of `size` elements below n, one per column."""
    everything = np.indices((n,) * size).reshape(size, -1)
    return np.ascontiguousarray(everything[:, np.all(np.diff(everything, axis=0) >= 0, axis=0)])
