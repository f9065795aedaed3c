"""Pairs and triples of consecutive symbols, over all sequences and never across a boundary (section 3.3.3)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from odeco.exceptions import MomentError
from odeco.moments.base import Moments
from odeco.sources.sequences import Sequences

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]

_BLOCK = 1 << 16  # steps looked at at a time
_DENSE = 1024  # alphabets up to this size keep their pairs in a full matrix


@dataclass(frozen=True, eq=False)
class Window:
    """Symbols of consecutive steps that lie within one sequence, none of them missing: (m,) each."""

    symbols: tuple[Ints, ...]
    weights: Floats


class SequenceMoments(Moments):
    """Sums over tuples of consecutive symbols of an alphabet of d: codes from d on are missing symbols."""

    def update(self, batch: Sequences) -> Self:
        """Add whole sequences; returns self."""
        if batch.codes is None:
            raise ValueError("the moments of symbols need encoded sequences.")
        self._update(batch)
        self.n += len(batch)
        return self

    def _windows(self, batch: Sequences, order: int) -> Iterator[Window]:
        """The tuples of `order` symbols, block by block."""
        codes, offsets = batch.codes, batch.offsets
        assert codes is not None
        reach = order - 1
        for low in range(0, len(batch) - reach, _BLOCK):
            steps = np.arange(low, min(low + _BLOCK, len(batch) - reach))
            sequence = np.searchsorted(offsets, steps, side="right") - 1
            symbols = [codes[low + lag : low + lag + steps.size].astype(np.int32) for lag in range(order)]
            valid = steps + reach < offsets[sequence + 1]
            for column in symbols:
                valid &= column < self.n_features
            weights = np.empty(0) if batch.weights is None else batch.weights[sequence[valid]]
            yield Window(tuple(column[valid] for column in symbols), weights)


class SymbolPairs(SequenceMoments):
    """How often each symbol occurs, begins a sequence, and follows another."""

    _sums: ClassVar[tuple[str, ...]] = ("n", "_counts", "_single", "_first", "_weight")

    def __init__(self, n_features: int) -> None:
        super().__init__(n_features)
        self._counts: Any = np.zeros((n_features,) * 2) if n_features <= _DENSE else sparse.csr_array((n_features,) * 2)
        self._single = np.zeros(n_features)
        self._first = np.zeros(n_features)
        self._weight = 0.0

    @property
    def weight(self) -> float:
        """Number of pairs, each as often as its sequence counts."""
        return self._weight

    @property
    def frequencies(self) -> Floats:
        """Probability of each symbol, (d,)."""
        total = self._single.sum()
        if not total > 0:
            raise MomentError("there are no symbols: every observation is missing.")
        return np.asarray(self._single / total)

    @property
    def n_seen(self) -> int:
        """Different symbols that occur."""
        return int(np.count_nonzero(self.frequencies))

    @property
    def first(self) -> Floats:
        """How often each symbol begins a sequence, (d,)."""
        return self._first

    @property
    def joint(self) -> Any:
        """``E[x1 (x) x2]`` (d, d): a full matrix for small alphabets, otherwise a sparse one."""
        if not self._weight > 0:
            raise MomentError("no two consecutive symbols were given: the chain cannot be seen. Use longer sequences.")
        return self._counts / self._weight

    def _update(self, batch: Sequences) -> None:
        d = self.n_features
        for window in self._windows(batch, 1):
            self._single += np.bincount(window.symbols[0], window.weights if window.weights.size else None, d)
        for window in self._windows(batch, 2):
            before, after = window.symbols
            weights = window.weights if window.weights.size else None
            if isinstance(self._counts, np.ndarray):
                pairs = before.astype(np.int64) * d + after
                self._counts += np.bincount(pairs, weights, d * d).reshape(d, d)
            else:
                values = np.ones(before.size) if weights is None else weights
                self._counts = self._counts + sparse.coo_array((values, (before, after)), shape=(d, d)).tocsr()
            self._weight += float(before.size if weights is None else weights.sum())
        assert batch.codes is not None
        begin = batch.codes[batch.offsets[:-1]].astype(np.int64)
        known = begin < d
        self._first += np.bincount(begin[known], None if batch.weights is None else batch.weights[known], d)

    def _merge(self, other: Self) -> None:
        self._counts = self._counts + other._counts
        self._single = self._single + other._single
        self._first = self._first + other._first
        self._weight += other._weight


class SymbolTriples(SequenceMoments):
    """``E[x1 (x) x2 (x) x3](V, V, V)`` of three consecutive symbols on a basis V (d, r), grouped by the middle one."""

    _sums: ClassVar[tuple[str, ...]] = ("n", "_core", "_weight")

    def __init__(self, basis: ArrayLike) -> None:
        block = np.ascontiguousarray(basis, dtype=np.float64)
        if block.ndim != 2 or block.size == 0:
            raise ValueError(f"basis must have shape (n_features, r), got {block.shape}.")
        super().__init__(block.shape[0], block)
        self.basis: Floats = block
        self._core = np.zeros((block.shape[1],) * 3)
        self._weight = 0.0

    @property
    def core(self) -> Floats:
        """The third moment, (r, r, r)."""
        if not self._weight > 0:
            raise MomentError("no three consecutive symbols were given: the third moment needs longer sequences.")
        return np.asarray(self._core / self._weight)

    def _update(self, batch: Sequences) -> None:
        from odeco.kernels.sequences import add_triples
        from odeco.kernels.threads import map_parts, thread_count

        for window in self._windows(batch, 3):
            size = window.symbols[0].size
            n_parts = max(min(thread_count(), size // 4096), 1)
            bounds = np.linspace(0, size, n_parts + 1).astype(int)

            def part(p: int, window: Window = window, bounds: NDArray[np.int64] = bounds) -> Floats:
                core, steps = np.zeros_like(self._core), slice(bounds[p], bounds[p + 1])
                before, middle, after = (column[steps] for column in window.symbols)
                add_triples(before, middle, after, window.weights[steps], self.basis, core)
                return core

            for core in map_parts(part, n_parts):
                self._core += core
            self._weight += float(window.weights.sum() if window.weights.size else size)

    def _merge(self, other: Self) -> None:
        self._core = self._core + other._core
        self._weight += other._weight
