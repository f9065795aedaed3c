"""Third moments of words on a basis of k directions (section 6.1.1 of the paper)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from odeco.kernels.alignment import in_lines, whole_lines
from odeco.moments.base import Moments, PackedSums
from odeco.moments.cubes import ROWS_PER_BLOCK, add_cubes, fill_symmetric, mixed_cubes
from odeco.moments.scatter import CsrParts, ScatterSum
from odeco.moments.words import as_basis, column_sums, require_documents, tuple_weights
from odeco.sources import Batch
from odeco.tensors import symmetrize

Floats = NDArray[np.floating]


@dataclass(frozen=True, eq=False)
class ProjectedMoments:
    """Raw word moments on a basis W: ``W^T E[x1]``, ``W^T E[x1 (x) x2] W`` and ``E[x1 (x) x2 (x) x3](W, W, W)``."""

    first: NDArray[np.float64] = field(repr=False)
    pairs: NDArray[np.float64] = field(repr=False)
    triples: NDArray[np.float64] = field(repr=False)


class WordTriples(Moments):
    """First, second and third moments of words on a basis W, in one pass.

    A document with counts c of length l, ``y = W^T c`` and w_i the rows of W adds to the third moment, over its number
    of ordered triples,

        y (x) y (x) y - sum_i c_i (w_i (x) w_i (x) y + two permutations) + 2 sum_i c_i w_i (x) w_i (x) w_i.

    The cubes of all y are one compiled loop. The other two terms need only ``Z = C^T (weights * Y)`` and
    the weighted sum of the counts, of size d x k and d, and become one product when the tensor is read: nothing of
    size n x k^2 or d x k^2 is ever formed.

    Parameters
    ----------
    basis : (d, k) array
        W. Its dtype is that of the work, as for `WordPairs`.
    """

    def __init__(self, basis: ArrayLike) -> None:
        block = as_basis(basis)
        super().__init__(block.shape[0], block)
        self.basis: Floats = block
        d, k = block.shape
        self._mixed = ScatterSum((d, k), block.dtype, extra_bytes=8 * k**3)
        self._parts = [_Sums(k)]  # one per thread, made when it is needed
        self._diagonals = np.zeros((2, d))
        self._weights = np.zeros(3)

    def read(self) -> ProjectedMoments:
        """The three moments."""
        return ProjectedMoments(self.first, self.pairs, self.triples)

    @property
    def first(self) -> NDArray[np.float64]:
        """``W^T M1``, shape (k,)."""
        require_documents(self._weights[0], order=1)
        return np.asarray(self._first_sum() / self._weights[0])

    @property
    def pairs(self) -> NDArray[np.float64]:
        """``E[x1 (x) x2](W, W)``, shape (k, k)."""
        require_documents(self._weights[1], order=2)
        pairs = self._pair_sum()
        return np.asarray(
            (pairs + pairs.T) / (2 * self._weights[1])
        )  # single precision products are symmetric to 1e-7 only

    @property
    def triples(self) -> NDArray[np.float64]:
        """``E[x1 (x) x2 (x) x3](W, W, W)``, shape (k, k, k), symmetric."""
        require_documents(self._weights[2], order=3)
        return symmetrize(self._triple_sum() / self._weights[2])  # diagonal blocks: as for the pairs

    def _first_sum(self) -> NDArray[np.float64]:
        return np.asarray(np.sum([part.first for part in self._parts], axis=0))

    def _pair_sum(self) -> NDArray[np.float64]:
        basis = self.basis.astype(np.float64, copy=False)
        return np.asarray(np.sum([part.pairs for part in self._parts], axis=0) - (basis.T * self._diagonals[0]) @ basis)

    def _triple_sum(self) -> NDArray[np.float64]:
        cubes = fill_symmetric(np.sum([part.cubes for part in self._parts], axis=0))
        if not self._diagonals[1].any():  # nothing but unpacked sums
            return cubes
        # 2 q w^3 is the sum over the three permutations of w (x) w (x) (2/3 q w): it joins the mixed term.
        others = (2 / 3) * self._diagonals[1][:, None] * self.basis - self._mixed.total
        return np.asarray(cubes + mixed_cubes(self.basis, others.astype(self.basis.dtype, copy=False)))

    def pack(self) -> PackedSums:
        """O(k^3) numbers: what the d x k sums correct is corrected here, so that they need not travel."""
        sums = {"n": np.asarray(self.n), "weights": self._weights, "first": self._first_sum()}
        return PackedSums({**sums, "pairs": self._pair_sum(), "cubes": symmetrize(self._triple_sum())})

    def unpack(self, packed: PackedSums) -> Self:
        found, part = packed.sums, self._parts[0]
        self.n += int(found["n"])
        self._weights = self._weights + found["weights"]
        part.first += found["first"]
        part.pairs += found["pairs"]
        part.cubes += found["cubes"]
        return self

    def _update(self, batch: Batch) -> None:
        from odeco.kernels.threads import single_threaded_blas

        orders = [tuple_weights(batch, order) for order in (1, 2, 3)]
        parts = CsrParts.of(batch, self.basis.dtype)
        rows = np.array([scaled for _, scaled in orders], dtype=self.basis.dtype)
        self.basis = in_lines(self.basis)
        basis, sums = whole_lines(self.basis), self._parts
        sums.extend(_Sums(self.basis.shape[1]) for _ in range(self._mixed.parts_for(parts) - len(sums)))
        with single_threaded_blas():
            self._mixed.scatter(
                parts, lambda t, start, stop, out: _add_rows(sums[t], parts, rows, basis, start, stop, out)
            )
        for row, (_, scaled) in zip(self._diagonals, orders[1:], strict=True):
            row += column_sums(parts, scaled, self.n_features)
        self._weights += [weights.sum() for weights, _ in orders]

    def _merge(self, other: Self) -> None:
        self._mixed.merge(other._mixed)
        for part in other._parts:
            self._parts[0].add(part)
        self._diagonals = self._diagonals + other._diagonals
        self._weights = self._weights + other._weights


class _Sums:
    """What one thread adds up."""

    def __init__(self, k: int) -> None:
        self.first, self.pairs, self.cubes = np.zeros(k), np.zeros((k, k)), np.zeros((k, k, k))

    def add(self, other: _Sums) -> None:
        self.first += other.first
        self.pairs += other.pairs
        self.cubes += other.cubes


def _add_rows(
    sums: _Sums, parts: CsrParts, weights: Floats, basis: Floats, start: int, stop: int, mixed: Floats
) -> None:
    """Add the documents start to stop: ``weights`` (3, n) holds the weights of the orders 1, 2, 3 over the tuples.

    The basis and ``mixed`` are in whole lines (`kernels.lines`), of which the first k numbers count.
    """
    from odeco.kernels.sparse import project_rows, scatter_rows

    k, most_rows = len(sums.first), min(ROWS_PER_BLOCK, stop - start)
    block = np.empty((most_rows, basis.shape[1]), dtype=basis.dtype)
    scaled = np.empty((most_rows, k), dtype=basis.dtype)
    for begin in range(start, stop, ROWS_PER_BLOCK):
        end = min(begin + ROWS_PER_BLOCK, stop)
        project_rows(parts.indptr, parts.columns, parts.values, basis, begin, end, block[: end - begin])
        scatter_rows(parts.indptr, parts.columns, parts.values, weights[2], block[: end - begin], begin, end, mixed)
        projected = block[: end - begin, :k]
        sums.first += weights[0, begin:end] @ projected
        weighted = np.multiply(projected, weights[1, begin:end, None], out=scaled[: end - begin])
        sums.pairs += weighted.T @ projected
        add_cubes(sums.cubes, projected, weights[2, begin:end])
