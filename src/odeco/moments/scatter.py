"""The one loop over nonzeros that all word moments share, with threads and mixed precision."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from odeco.kernels.alignment import in_lines, whole_lines, zero_lines
from odeco.kernels.products import by_rows
from odeco.kernels.threads import balanced_parts, map_parts, thread_count
from odeco.sources import Batch

Floats = NDArray[np.floating]

# Threads beyond this add output copies and no speed: the products are bound by memory.
_MOST_PARTS = 16
# Bytes that the output copies of all threads may take.
_MOST_BYTES = 2**30
# Below this number of nonzeros threads cost more than they save.
_LEAST_NONZEROS = 20_000
# Single precision sums are emptied into double ones after this many nonzeros per row of the output: the pass over
# the output then costs a few percent, and the rounding of the product was 2e-6 over 200,000 documents.
_NONZEROS_PER_ROW = 128


@dataclass(frozen=True, eq=False)
class CsrParts:
    """A batch as the kernels want it: int64 row pointers, int32 columns, values of one dtype."""

    indptr: NDArray[np.int64]
    columns: NDArray[np.int32]
    values: Floats

    @classmethod
    def of(cls, batch: Batch, dtype: np.dtype[Any]) -> Self:
        """The parts of a batch; copies only where a dtype differs."""
        return cls.of_counts(batch.counts, dtype)

    @classmethod
    def of_counts(cls, counts: sparse.csr_array, dtype: np.dtype[Any]) -> Self:
        """The same of its counts."""
        return cls(
            counts.indptr.astype(np.int64, copy=False),
            counts.indices.astype(np.int32, copy=False),
            counts.data.astype(dtype, copy=False),
        )

    @property
    def n_nonzeros(self) -> int:
        """The number of stored counts."""
        return len(self.columns)


class ScatterSum:
    """A (d, r) sum to which threads scatter rows, each into its own copy, in the dtype of the work.

    The copies stay from one batch to the next and are emptied into a double precision total in a fixed order now and
    then: small batches cost no more than large ones, and the result is the same bit for bit for the same threads.
    ``extra_bytes`` is what else a thread needs for itself.
    """

    def __init__(self, shape: tuple[int, int], dtype: np.dtype[Any], *, extra_bytes: int = 0) -> None:
        self._total = np.zeros(shape)
        copy_bytes = shape[0] * shape[1] * dtype.itemsize + extra_bytes
        n_copies = int(min(thread_count(), _MOST_PARTS, max(1, _MOST_BYTES // copy_bytes)))
        self._copies = zero_lines((n_copies, *shape), dtype)
        self._n_pending = 0

    def __getstate__(self) -> dict[str, Any]:
        """The total alone, and nothing of it while it is zero: the copies are made anew where the sum arrives."""
        total = self.total if self.total.any() else None
        return {"shape": self._total.shape, "total": total, "dtype": self._copies.dtype, "n_copies": len(self._copies)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._total = np.zeros(state["shape"]) if state["total"] is None else state["total"]
        n_copies = min(state["n_copies"], thread_count())
        self._copies = zero_lines((n_copies, *state["shape"]), state["dtype"])
        self._n_pending = 0

    def scatter(self, parts: CsrParts, work: Callable[[int, int, int, Floats], None]) -> None:
        """Call ``work(part, start, stop, copy)`` for runs of rows, one thread and one copy (in whole lines) each."""
        self._copies = in_lines(self._copies)
        copies = whole_lines(self._copies)
        n_parts = self.parts_for(parts)
        bounds = balanced_parts(parts.indptr, n_parts)
        map_parts(lambda t: work(t, int(bounds[t]), int(bounds[t + 1]), copies[t]), n_parts)
        self._n_pending += parts.n_nonzeros
        if self._n_pending > _NONZEROS_PER_ROW * len(self._total):
            self._empty()

    def parts_for(self, parts: CsrParts) -> int:
        """The number of threads that `scatter` uses for a batch."""
        return len(self._copies) if parts.n_nonzeros >= _LEAST_NONZEROS else 1

    @property
    def total(self) -> NDArray[np.float64]:
        """The sum so far."""
        if self._n_pending:
            self._empty()
        return self._total

    @total.setter
    def total(self, total: NDArray[np.float64]) -> None:
        if self._n_pending:  # otherwise they are zero, and may never have been touched
            self._copies[:], self._n_pending = 0, 0
        self._total = total

    def merge(self, other: ScatterSum) -> None:
        """Add another sum."""
        self._total = self.total + other.total

    def _empty(self) -> None:
        def empty(rows: slice) -> None:
            for copy in self._copies:
                self._total[rows] += copy[rows]
            self._copies[:, rows] = 0

        by_rows(empty, self._total)
        self._n_pending = 0
