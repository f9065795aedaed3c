"""Data as units that can be drawn again: rows, documents, items, sequences or blocks of steps."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from odeco.fitting.card import Card
from odeco.sources.counts import check_weights
from odeco.sources.crowd import read_labels
from odeco.sources.kinds import is_dask
from odeco.sources.sequences import join_sequences
from odeco.sources.values import is_frame
from odeco.sources.views import is_views

SEQUENCES = ("symbols", "features", "events")
# Sequences fewer than this are cut into so many blocks of steps; of samples in time as many blocks are drawn.
BLOCKS = 100
# Steps of a block at least: what a block has of the chain must outweigh what is cut off at its ends.
_STEPS = 20


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
    """

    data: Any = field(repr=False)
    n: int
    kind: str
    weights: NDArray[np.float64] | None = field(default=None, repr=False)
    uncut: list[Any] | None = field(default=None, repr=False)

    def take(self, places: NDArray[np.intp]) -> tuple[Any, dict[str, Any]]:
        """Some units, any number of times, and arguments of `fit` beside them."""
        if self.kind == "sequences":
            given = {} if self.weights is None else {"sequence_weight": self.weights[places]}
            return [self.data[place] for place in places], given
        if self.kind == "blocks":
            return np.concatenate([self.data[place] for place in places]), {}
        given = {} if self.weights is None else {"sample_weight": self.weights[places]}
        if self.kind == "views":
            return [_rows(view, places) for view in self.data], given
        return _rows(self.data, places), given

    @cached_property
    def whole(self) -> tuple[Any, dict[str, Any]]:
        """All of them, in order; sequences as they came."""
        if self.uncut is not None:
            return self.uncut, {}
        return self.take(np.arange(self.n))

    def groups(self, n_groups: int, rng: np.random.Generator) -> list[NDArray[np.intp]]:
        """So many groups of units: at random, for what stands beside each other may be alike; blocks in their order."""
        order = np.arange(self.n) if self.kind == "blocks" else rng.permutation(self.n)
        return [np.sort(group) for group in np.array_split(order, n_groups)]


def units_of(card: Card, model: Any, X: Any, lengths: Any, weights: ArrayLike | None) -> Units:
    """The units of data that a model can be fitted to."""
    X = _gathered(X, card)
    if card.rows in SEQUENCES:
        return _sequences(X, lengths, weights)
    if lengths is not None:
        raise ValueError(
            f"lengths says nothing to {card.class_name}, whose {card.rows} are no sequences: leave it out."
        )
    if card.rows == "labels":
        return _items(X, model, weights)
    if card.rows == "views":
        return _weighted(list(X), _length(X[0]), "views", weights)
    if card.rows == "signals":
        independent = model.diagnostics_.details.get("effective_samples", 0) > 0.9 * len(X)
        return _weighted(X, len(X), "rows", weights) if independent else _stretches(np.asarray(X), weights)
    return _weighted(X, _length(X), "rows", weights)


def _weighted(data: Any, n: int, kind: str, weights: ArrayLike | None) -> Units:
    return Units(data, n, kind, None if weights is None else check_weights(weights, n))


def _gathered(X: Any, card: Card) -> Any:
    """Batches as one; what can be read only once, or lies where rows cannot be drawn, is refused."""
    if is_dask(X):
        return X.compute()
    if callable(X):
        X = list(X())
    if hasattr(X, "__next__"):
        raise ValueError(
            "X is an iterator, which can be read only once, and intervals read the data again and again: give an "
            "array, a list of batches, or a function that returns a new iterator at each call."
        )
    if card.rows in SEQUENCES or card.rows == "views":
        return _joined_views(X) if card.rows == "views" else X
    if isinstance(X, list) and X and (sparse.issparse(X[0]) or np.ndim(X[0]) == 2):
        return _stack(X)
    if not (hasattr(X, "shape") or isinstance(X, (list, tuple))):
        raise ValueError(
            f"X of type {type(X).__name__} cannot be drawn from again: give rows in memory (a sample of some thousand "
            "tells the same), or files of moments."
        )
    return X


def _joined_views(X: Any) -> Any:
    if is_views(X):
        return X
    if isinstance(X, list) and X and all(is_views(batch) for batch in X):
        return [_stack(list(parts)) for parts in zip(*X, strict=True)]
    raise ValueError(f"X must be a list of views [X1, X2, ...] with the same rows, got {type(X).__name__}.")


def _stack(parts: list[Any]) -> Any:
    if is_frame(parts[0]):
        import pandas as pd

        return pd.concat(parts, ignore_index=True)
    return sparse.vstack(parts, format="csr") if sparse.issparse(parts[0]) else np.vstack(parts)


def _length(X: Any) -> int:
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def _rows(X: Any, places: NDArray[np.intp]) -> Any:
    if is_frame(X):
        return X.iloc[places] if hasattr(X, "iloc") else X[places]
    if sparse.issparse(X):
        return sparse.csr_array(X)[places]
    return np.asarray(X)[places]


def _items(X: Any, model: Any, weights: ArrayLike | None) -> Units:
    """Items as wide rows of codes: a draw of one takes all its labels."""
    crowd = read_labels(X, model.layout_, workers=model.annotators_, classes=model.given_labels_)
    votes = crowd.votes.toarray().reshape(len(crowd), len(model.annotators_), -1)
    if votes.size and votes.max() > 1:
        raise ValueError("X has labels of one annotator on one item that come twice: intervals need one each.")
    codes = np.where(votes.sum(axis=2) > 0, votes.argmax(axis=2), -1)
    wide = np.where(codes >= 0, model.given_labels_[codes], -1) if _numbers(model) else _named(codes, model)
    return _weighted(wide, len(wide), "rows", weights)


def _numbers(model: Any) -> bool:
    return bool(model.given_labels_.dtype.kind in "iuf")


def _named(codes: NDArray[np.intp], model: Any) -> NDArray[Any]:
    names = np.array([*model.given_labels_.tolist(), None], dtype=object)
    return np.asarray(names[codes])


def _sequences(X: Any, lengths: Any, weights: ArrayLike | None) -> Units:
    """Whole sequences where there are enough, else blocks of steps."""
    joined = join_sequences(X, lengths, weights)
    whole = _pieces(joined.array, joined.offsets)
    if joined.weights is not None or len(whole) >= BLOCKS:
        return Units(whole, len(whole), "sequences", joined.weights)
    length = max(len(joined.array) // BLOCKS, _STEPS)
    pieces = _pieces(joined.array, np.unique(np.concatenate(list(_cuts(joined.offsets, length)))))
    return Units(pieces, len(pieces), "sequences", uncut=whole)


def _pieces(array: Any, edges: NDArray[np.int64]) -> list[Any]:
    return [array[low:high] for low, high in pairwise(edges)]


def _cuts(edges: NDArray[np.int64], length: int) -> Iterable[NDArray[np.int64]]:
    """Places that cut each sequence into blocks of about one length."""
    for low, high in pairwise(edges):
        n_blocks = max(int(high - low) // length, 1)
        yield np.linspace(low, high, n_blocks + 1).astype(np.int64)


def _stretches(X: NDArray[Any], weights: ArrayLike | None) -> Units:
    """Samples in time as blocks: neighbours may depend on each other."""
    if weights is not None:
        raise ValueError("sample_weight is not used for intervals of signals, which are drawn in blocks: leave it out.")
    return Units(np.array_split(X, max(min(BLOCKS, len(X)), 1)), max(min(BLOCKS, len(X)), 1), "blocks")
