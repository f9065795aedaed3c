"""Sums of a stream by blocks of the data, made wherever the data are: what replicates of sums are drawn from."""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from odeco.fitting.stream import MomentStream
from odeco.moments.base import Additive, PackedSums, Together
from odeco.moments.passes import fill
from odeco.sources.sequences import Sequences
from odeco.uncertainty.opened import Opened, batches_of, blocks_by_lot, stretches
from odeco.uncertainty.units import cut_steps, positive


class BlockSums(Together):
    """Sums on one basis for each block of the units: by lot, for what stands beside each other may be alike.

    Parameters
    ----------
    model : the coded copy of a model
    empty : sums of its stream
    n_blocks, seed : int
    length : int or None
        Steps of a sequence, or samples in time, that are one unit.
    """

    _on: ClassVar[tuple[str, ...]] = ("model", "empty", "n_blocks", "seed", "length")

    def __init__(self, model: Any, empty: Additive, n_blocks: int, seed: int, length: int | None) -> None:
        self.model, self.empty, self.n_blocks, self.seed, self.length = model, empty, n_blocks, seed, length
        self.blocks = [empty.emptied() for _ in range(n_blocks)]
        self.counts = np.zeros(n_blocks, dtype=np.int64)

    @property
    def parts(self) -> dict[str, Additive]:
        return {str(place): block for place, block in enumerate(self.blocks)}

    def update(self, batch: Any) -> Self:
        """Add the units of a batch, each to its block."""
        batch, unit = self._units(batch)
        n = int(unit[-1]) + 1 if len(unit) else 0
        lots = blocks_by_lot(batch, n, self.n_blocks, self.seed)
        for place in np.unique(lots).tolist():
            chunk = self.model._chunk_of(batch.take(np.flatnonzero(lots[unit] == place)))
            self.blocks[place].update(chunk)
            self.counts[place] += len(chunk)
        return self

    def _units(self, batch: Any) -> tuple[Any, NDArray[np.intp]]:
        """What is cut, and which unit each of its parts belongs to."""
        if isinstance(batch, Sequences):
            batch = batch if self.length is None else cut_steps(batch, self.length)
            return batch, np.arange(batch.n_sequences)
        batch = positive(batch)
        return batch, stretches(batch, self.length)

    def merge(self, other: Self) -> Self:
        self.counts = self.counts + other.counts
        return super().merge(other)

    def pack(self) -> PackedSums:
        packed = super().pack()
        return PackedSums({**packed.sums, "counts": self.counts}, packed.maxima)

    def unpack(self, packed: PackedSums) -> Self:
        self.counts = self.counts + packed.sums["counts"]
        return super().unpack(packed)


def parts_of(data: Opened, names: Iterable[str], n_blocks: int, rng: np.random.Generator) -> list[Any]:
    """Sums of blocks of units on one basis, each in a model of its own that has not learned `names` yet: one pass."""
    basis = _with_basis(data, names)
    sums = fill(BlockSums(data.model, basis._stream.sums, n_blocks, int(rng.integers(2**31)), data.length), data.source)
    return [_part(basis, block, n) for block, n in zip(sums.blocks, sums.counts.tolist(), strict=True) if n]


def _with_basis(data: Opened, names: Iterable[str]) -> Any:
    """A model whose stream has learned its basis from the first rows, and seen nothing."""
    basis = copy(data.model)
    for name in names:
        vars(basis).pop(name, None)
    seed = basis.random_state
    basis.random_state = seed if isinstance(seed, (int, np.integer)) else 0
    basis._stream = MomentStream(basis._stream_seed(), {name: getattr(basis, name) for name in basis._stream_options})
    plan = basis._plan()
    for batch in batches_of(data.source):
        basis._stream.update(basis._chunk_of(batch), plan)
        if basis._stream.started:
            break
    basis._stream = basis._stream.emptied(plan)
    return basis


def _part(basis: Any, sums: Additive, n: int) -> Any:
    part = copy(basis)
    part._stream = copy(basis._stream)
    part._stream.sums, part._stream.n = sums, n
    return part
