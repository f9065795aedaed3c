"""Units that can be drawn again: rows, documents, items, sequences, blocks of steps or of time, in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from odeco.sources.base import Batch
from odeco.sources.dense import DenseBatch
from odeco.sources.rows import COUNTS, VECTORS, VIEWS, VOTES, RowKind
from odeco.sources.sequences import Sequences
from odeco.sources.views import ViewBatch
from odeco.sources.votes import VoteBatch

_KINDS: tuple[tuple[type, RowKind[Any]], ...] = (
    (Batch, COUNTS),
    (DenseBatch, VECTORS),
    (ViewBatch, VIEWS),
    (VoteBatch, VOTES),
)


@dataclass(frozen=True, eq=False)
class Units:
    """Units of some data, each a list of places.

    Attributes
    ----------
    data : what `take` cuts
    n : int
        Number of units.
    kind : {"rows", "views", "blocks", "sequences"}
    weights : (n,) or None
    uncut : list or None
        Of blocks of steps, the sequences that they were cut from.
    share : float
        How much of all the data these are: less than 1 where not all of them may be held.
    """

    data: Any = field(repr=False)
    n: int
    kind: str
    weights: NDArray[np.float64] | None = field(default=None, repr=False)
    uncut: list[Any] | None = field(default=None, repr=False)
    share: float = 1.0

    def take(self, places: NDArray[np.intp]) -> tuple[Any, dict[str, Any]]:
        """Some units, any number of times, and arguments of `fit` beside them."""
        if self.kind == "sequences":
            given = {} if self.weights is None else {"sequence_weight": self.weights[places]}
            return [self.data[place] for place in places], given
        if self.kind == "blocks":
            return np.concatenate([self.data[place] for place in places]), {}
        given = {} if self.weights is None else {"sample_weight": self.weights[places]}
        if self.kind == "views":
            return [view[places] for view in self.data], given
        return self.data[places], given

    @cached_property
    def whole(self) -> tuple[Any, dict[str, Any]]:
        """All of them, in order; sequences as they came."""
        if self.uncut is not None:
            return self.uncut, {}
        return self.take(np.arange(self.n))


def units_of_rows(model: Any, batches: Sequence[Any], share: float = 1.0) -> Units:
    """Independent rows, whatever they are; those without weight are nobody's."""
    whole = _join([positive(batch) for batch in batches])
    data, kind = _rows_of(model, whole), "views" if isinstance(whole, ViewBatch) else "rows"
    return Units(data, len(whole), kind, whole.weights, share=share)


def units_of_time(batches: Sequence[DenseBatch], n_blocks: int, share: float = 1.0) -> Units:
    """Samples in time as blocks: neighbours may depend on each other."""
    blocks = np.array_split(_join(batches).rows, n_blocks)
    return Units(blocks, n_blocks, "blocks", share=share)


def units_of_sequences(batches: Sequence[Sequences], length: int | None, share: float = 1.0) -> Units:
    """Whole sequences, or blocks of about so many steps of them."""
    uncut = [piece for batch in batches for piece in _pieces(batch)]
    weights = None
    if any(batch.weights is not None for batch in batches):
        weights = np.concatenate([np.ones(b.n_sequences) if b.weights is None else b.weights for b in batches])
        uncut, weights = [piece for piece, w in zip(uncut, weights, strict=True) if w > 0], weights[weights > 0]
    if length is None:
        return Units(uncut, len(uncut), "sequences", weights, share=share)
    pieces = [piece for batch in batches for piece in _pieces(cut_steps(batch, length))]
    return Units(pieces, len(pieces), "sequences", uncut=uncut, share=share)


def cut_steps(data: Sequences, length: int) -> Sequences:
    """The same steps with each sequence cut into blocks of about one length."""
    edges = [
        np.linspace(low, high, max(int(high - low) // length, 1) + 1).astype(np.int64)
        for low, high in pairwise(data.offsets)
    ]
    offsets = np.concatenate([edges[0][:1], *(each[1:] for each in edges)])
    weights = None if data.weights is None else np.repeat(data.weights, [len(each) - 1 for each in edges])
    return Sequences(data.values, data.codes, offsets, weights)


def positive(batch: Any) -> Any:
    """The rows of a batch that have any weight."""
    return batch if batch.weights is None or (batch.weights > 0).all() else batch.take(np.flatnonzero(batch.weights))


def _join(batches: Sequence[Any]) -> Any:
    kind = next((kind for of, kind in _KINDS if isinstance(batches[0], of)), None)
    if kind is None:
        raise ValueError(f"batches of {type(batches[0]).__name__} cannot be drawn from again: give rows of numbers.")
    return kind.join(list(batches))


def _pieces(data: Sequences) -> list[Any]:
    observed = data.values if data.codes is None else data.values[data.codes]
    return [observed[low:high] for low, high in pairwise(data.offsets)]


def _rows_of(model: Any, batch: Any) -> Any:
    """A batch as the coded copy of a model takes it."""
    if isinstance(batch, Batch):
        return sparse.csr_array(batch.counts)
    if isinstance(batch, ViewBatch):
        return list(batch.blocks)
    return _wide(batch, len(model.annotators_)) if isinstance(batch, VoteBatch) else batch.rows


def _wide(batch: VoteBatch, n_workers: int) -> NDArray[np.int64]:
    """Items as wide rows of codes, -1 where there is none: a draw of one takes all its labels."""
    votes = batch.votes.toarray().reshape(len(batch), n_workers, -1)
    if votes.size and votes.max() > 1:
        raise ValueError(
            "X has labels of one annotator on one item that come twice, and items are drawn with one each: leave the "
            "others out, or ask for method='sandwich' and replication=False."
        )
    return np.where(votes.sum(axis=2) > 0, votes.argmax(axis=2), -1)
