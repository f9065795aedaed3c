"""Samples that arrive in chunks and are not kept: what `partial_fit` and files of moments need, for every model.

The first samples, as many whatever the chunks, are held. A model learns a basis from them and makes empty sums on it.
From then on all samples, the first ones included, only enter these sums: memory does not grow with their number. Sums
are made over blocks of one size, so that the result, rounding included, does not depend on the chunks either.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np

from odeco.moments.base import Additive
from odeco.sources.rows import RowKind

Chunk = TypeVar("Chunk")
Sums = TypeVar("Sums", bound=Additive)


@dataclass(frozen=True)
class StreamPlan(Generic[Chunk, Sums]):
    """How a model takes chunks.

    Attributes
    ----------
    rows : RowKind
        How chunks are joined, cut and copied.
    n_first : int
        Samples that the basis is learned from.
    learn : function
        From those samples and a generator of its own to empty sums on a basis.
    block : int or None
        Samples that are added to the sums at a time; None adds chunks as they come (sequences cannot be cut).
    keep_first : bool
        Whether the first samples stay, as part of the basis: to judge estimates by.
    """

    rows: RowKind[Chunk]
    n_first: int
    learn: Callable[[Chunk, np.random.Generator], Sums]
    block: int | None = 8192
    keep_first: bool = False


class MomentStream(Generic[Chunk, Sums]):
    """The state of a stream: samples that wait, then sums. It holds data alone; the model's plan comes with each call.

    Attributes
    ----------
    seed : int
        What `learn` is given: reading twice gives the same.
    options : dict
        What the sums were begun for: constructor arguments that cannot change on the way.
    n : int
        Samples seen.
    sums : Additive or None
        None as long as the samples seen are no more than the first.
    first : chunk or None
        The first samples, where the plan keeps them.
    """

    def __init__(self, seed: int, options: dict[str, Any]) -> None:
        self.seed, self.options = seed, options
        self.n = 0
        self.sums: Sums | None = None
        self.first: Chunk | None = None
        self._waiting: list[Chunk] = []

    @property
    def started(self) -> bool:
        """Whether the basis is final."""
        return self.sums is not None

    def update(self, chunk: Chunk, plan: StreamPlan[Chunk, Sums]) -> None:
        """Add a chunk (copied where it has to wait: the caller may reuse his arrays)."""
        size = plan.rows.size(chunk)
        self.n += size
        if self.sums is not None and plan.block is None:
            self.sums.update(chunk)
            return
        self._waiting.append(plan.rows.copy(chunk))
        held = self._n_waiting(plan)
        if self.sums is None and (held > plan.n_first or (held == plan.n_first and not plan.keep_first)):
            self._start(plan)
        if self.sums is not None and self._n_waiting(plan) >= (plan.block or 1):
            self._add_blocks(self.sums, plan)

    def waiting(self, plan: StreamPlan[Chunk, Sums]) -> Chunk | None:
        """The samples that are not in the sums yet, as one chunk; None where there are none."""
        return plan.rows.join(self._waiting) if self._waiting else None

    def held(self, plan: StreamPlan[Chunk, Sums]) -> Chunk:
        """The samples that wait: all there are as long as the stream has not started."""
        waiting = self.waiting(plan)
        if waiting is None:
            raise ValueError("no samples have been seen yet.")
        return waiting

    def read(self, plan: StreamPlan[Chunk, Sums]) -> Sums:
        """Sums over all samples so far; more may follow."""
        # A copy: what waits for its block is counted here, and again when the block is full.
        sums = self._learn(self.held(plan), plan) if self.sums is None else deepcopy(self.sums)
        if self._waiting:
            sums.update(self.held(plan))
        return sums

    def settle(self, plan: StreamPlan[Chunk, Sums]) -> None:
        """Fix the basis, on what there is if need be, and count what waits: no samples are held any more."""
        if not self._waiting:
            return
        waiting = self.held(plan)
        if self.sums is None:
            self.sums = self._learn(waiting, plan)
            self.first = waiting if plan.keep_first else None
        self.sums.update(waiting)
        self._waiting = []

    def emptied(self, plan: StreamPlan[Chunk, Sums]) -> MomentStream[Chunk, Sums]:
        """A stream on the same basis that has seen nothing."""
        self.settle(plan)
        if self.sums is None:
            raise ValueError("no samples have been seen yet.")
        empty: MomentStream[Chunk, Sums] = MomentStream(self.seed, self.options)
        empty.sums, empty.first = self.sums.emptied(), self.first
        return empty

    def merge(self, other: MomentStream[Chunk, Sums], plan: StreamPlan[Chunk, Sums]) -> None:
        """Add the samples of a stream on the same basis."""
        self.settle(plan)
        other.settle(plan)
        if self.sums is None or other.sums is None:
            raise ValueError("streams without a basis cannot be merged: make one from a sample first.")
        self.sums.merge(other.sums)
        self.n += other.n

    def _n_waiting(self, plan: StreamPlan[Chunk, Sums]) -> int:
        return sum(map(plan.rows.size, self._waiting))

    def _learn(self, first: Chunk, plan: StreamPlan[Chunk, Sums]) -> Sums:
        return plan.learn(first, np.random.default_rng(self.seed))

    def _start(self, plan: StreamPlan[Chunk, Sums]) -> None:
        """Learn from the first samples; they are counted at once, where they can be cut off from the others."""
        whole = plan.rows.join(self._waiting)
        first = plan.rows.cut(whole, 0, plan.n_first)
        self.sums = self._learn(first, plan)
        self.first = plan.rows.copy(first) if plan.keep_first else None
        if plan.block is not None:
            self.sums.update(first)
            rest = plan.rows.size(whole) - plan.n_first
            self._waiting = [plan.rows.cut(whole, plan.n_first, plan.n_first + rest)] if rest else []

    def _add_blocks(self, sums: Sums, plan: StreamPlan[Chunk, Sums]) -> None:
        whole = plan.rows.join(self._waiting)
        size = plan.rows.size(whole)
        block = size if plan.block is None else plan.block
        full = size - size % block
        for start in range(0, full, block):
            sums.update(whole if block == size else plan.rows.cut(whole, start, start + block))
        self._waiting = [plan.rows.cut(whole, full, size)] if full < size else []
