"""Labels of a crowd in batches: all at once, out of core, or in partitions elsewhere, with names that all share.

Who the annotators are and which labels there are must be known before votes can be counted, so a first pass looks for
them; every pass after that sees rows of the same columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from odeco.sources.arrays import row_slice
from odeco.sources.counts import check_weights
from odeco.sources.crowd import NO_LABELS, CrowdLabels, Values, read_labels
from odeco.sources.kinds import Checkpointed, OutOfCore, is_remote, out_of_core
from odeco.sources.values import plain_array, symbol_of

Floats = NDArray[np.float64]

# Items that are worked on at a time: posteriors of all starts of EM stay in or near the cache.
_ITEMS = 16_384


@dataclass(frozen=True, eq=False)
class VoteBatch:
    """Some items: votes (n, W * L) as in `CrowdLabels`, and their weights, None for ones."""

    votes: sparse.csr_array = field(repr=False)
    weights: Floats | None = field(default=None, repr=False)

    def __len__(self) -> int:
        return int(self.votes.shape[0])

    @property
    def n_features(self) -> int:
        """Columns: annotators times labels."""
        return int(self.votes.shape[1])

    def row_weights(self) -> Floats:
        """The weights, ones where none were given."""
        return np.ones(len(self)) if self.weights is None else self.weights

    def take(self, rows: slice | NDArray[np.intp]) -> VoteBatch:
        """Some of the items."""
        return VoteBatch(self.votes[rows], None if self.weights is None else self.weights[rows])

    def pieces(self) -> Iterator[VoteBatch]:
        """The same items, few at a time."""
        if len(self) <= _ITEMS:
            yield self
            return
        for start in range(0, len(self), _ITEMS):
            stop = min(start + _ITEMS, len(self))
            weights = None if self.weights is None else self.weights[start:stop]
            yield VoteBatch(row_slice(self.votes, start, stop), weights)


@dataclass(frozen=True, eq=False)
class CrowdNames:
    """What the columns of votes are.

    Attributes
    ----------
    layout : "wide" or "long"
    workers, classes : arrays (W,), (L,)
    last : the last item of long rows that come in sorted order, else None
    """

    layout: str
    workers: Values = field(repr=False)
    classes: Values
    last: Any = None

    @classmethod
    def of(cls, crowd: CrowdLabels) -> CrowdNames:
        """Those of one part of the labels."""
        return cls(crowd.layout, crowd.workers, crowd.classes)

    def joined(self, other: CrowdNames) -> CrowdNames:
        """Names of two parts together."""
        if self.layout == "wide":
            if len(self.workers) != len(other.workers):
                widths = sorted({len(self.workers), len(other.workers)})
                raise ValueError(f"parts of X differ in their number of columns, one for each annotator: {widths}.")
            if list(self.workers) != list(other.workers):
                raise ValueError("parts of X have other annotators, or in another order: use the same columns.")
            first, second = _one_kind(self.classes, other.classes)
            return replace(self, classes=_union(first, second, "labels"))
        workers = _union(self.workers, other.workers, "workers")
        return replace(self, workers=workers, classes=_union(self.classes, other.classes, "labels"))

    def read(self, rows: Any) -> sparse.csr_array:
        """The votes in a part of the labels."""
        return read_labels(rows, self.layout, workers=self.workers, classes=self.classes, require=False).votes

    def check(self) -> CrowdNames:
        """Raise where no label was ever given."""
        if len(self.classes) == 0:
            raise ValueError(NO_LABELS)
        return self


def _one_kind(first: Values, second: Values) -> tuple[Values, Values]:
    """Numbers beside strings: all of them by name, as the columns of one table are."""
    if not len(first) or not len(second) or first.dtype.kind == second.dtype.kind:
        return first, second
    return _by_name(first), _by_name(second)


def _by_name(labels: Values) -> Values:
    return labels if labels.dtype.kind == "U" else np.unique(np.array([symbol_of(label) for label in labels.tolist()]))


def _union(first: Values, second: Values, what: str) -> Values:
    if not len(first) or not len(second):
        return first if len(first) else second
    kinds = {"strings" if values.dtype.kind in "UO" else "numbers" for values in (first, second)}
    if len(kinds) > 1:
        raise ValueError(f"the {what} are numbers in some parts of X and strings in others: use one kind.")
    return np.unique(np.concatenate([first, second]))


class VoteSource:
    """Batches of votes, in the same order at every reading. Made by :func:`open_votes`."""

    def __init__(self, read: Callable[[], Iterable[VoteBatch]], names: CrowdNames, items: Values | None = None) -> None:
        self._read, self.names = read, names.check()
        self.items: Values = np.zeros(0, dtype=np.intp) if items is None else items
        """Names of the items where they are at hand."""

    def __iter__(self) -> Iterator[VoteBatch]:
        return (piece for batch in self._read() for piece in batch.pieces())


def open_votes(
    X: Any, layout: str, sample_weight: ArrayLike | None = None, known: CrowdNames | None = None
) -> VoteSource:
    """A source of votes.

    Parameters
    ----------
    X : what `read_labels` takes, batches of wide rows, `out_of_core` or `checkpointed` data, a Dask or Spark collection
    layout : {"auto", "wide", "long"}
    sample_weight : (n_items,) array, optional
        For wide Dask arrays also a Dask array with the same chunks; the name of a column for Spark.
    known : CrowdNames, optional
        Annotators and labels of a fit, which X must not go beyond; those of X if left out.
    """
    if isinstance(X, Checkpointed):
        from odeco.sources.checkpoints import keep

        return keep(open_votes(out_of_core(X.data), layout, sample_weight, known), X)  # type: ignore[no-any-return]
    if isinstance(X, OutOfCore) and not is_remote(X.data):
        return _stream_votes(X.data, layout, sample_weight, known)
    X = X.data if isinstance(X, OutOfCore) else X
    if is_remote(X):
        from odeco.sources.remote_votes import remote_votes

        return remote_votes(X, layout, sample_weight, known)
    workers, classes = (None, None) if known is None else (known.workers, known.classes)
    crowd = read_labels(joined(X), layout, workers=workers, classes=classes)
    weights = None if sample_weight is None else check_weights(sample_weight, len(crowd))
    batches = list(VoteBatch(crowd.votes, weights).pieces())
    return VoteSource(lambda: batches, CrowdNames.of(crowd), crowd.items)


def joined(X: Any) -> Any:
    """Batches of wide rows as one table; everything else as it is."""
    if callable(X):
        X = list(X())
    elif isinstance(X, Iterator):
        X = list(X)
    if isinstance(X, (list, tuple)) and X and hasattr(X[0], "shape") and len(X[0].shape) == 2:
        return np.vstack([plain_array(block) for block in X])
    return X


def _stream_votes(X: Any, layout: str, sample_weight: ArrayLike | None, known: CrowdNames | None = None) -> VoteSource:
    """Batches of which nothing is kept: wide rows, or long ones in the order of their items."""
    read = _batches_of(X)
    names: CrowdNames | None = None
    n_items = 0
    for rows in read():
        if len(rows) == 0:
            continue
        crowd = read_labels(rows, layout if names is None else names.layout, require=False)
        found = replace(CrowdNames.of(crowd), last=crowd.items[-1] if crowd.layout == "long" else None)
        if names is not None and crowd.layout == "long" and not crowd.items[0] > names.last:
            raise ValueError(
                f"item {crowd.items[0]!r} comes after item {names.last!r}: long rows out of core must be sorted by "
                "item, all labels of an item in one batch. Sort them and cut between items, or use a Dask DataFrame."
            )
        names = found if names is None else replace(names.joined(found), last=found.last)
        n_items += len(crowd)
    if names is None:
        raise ValueError("X is empty: the source gave no batches.")
    weights = None if sample_weight is None else check_weights(sample_weight, n_items)
    names = known or names
    return VoteSource(lambda: _vote_batches(read, names, weights), names)


def _batches_of(X: Any) -> Callable[[], Iterable[Any]]:
    if callable(X):
        read: Callable[[], Iterable[Any]] = X
        return read
    if isinstance(X, Iterator):
        raise ValueError("an iterator can be read only once: pass a function that returns a new iterator at each call.")
    several = isinstance(X, (list, tuple)) and X and hasattr(X[0], "shape") and len(X[0].shape) == 2
    return (lambda: X) if several else (lambda: [X])


def _vote_batches(read: Callable[[], Iterable[Any]], names: CrowdNames, weights: Floats | None) -> Iterator[VoteBatch]:
    start = 0
    for rows in read():
        if len(rows):
            votes = names.read(rows)
            yield VoteBatch(votes, None if weights is None else weights[start : start + votes.shape[0]])
            start += votes.shape[0]
