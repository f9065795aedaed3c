"""What a model says of each row, as named columns, batch by batch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from odeco.cli.data import Data
from odeco.fitting.card import Card

Columns = dict[str, NDArray[Any]]


def answers(card: Card, estimator: Any, data: Data) -> Iterator[Columns]:
    """Columns of the output: names of the rows, the most probable part where rows have one, and a number per part."""
    if data.keys:  # items, steps of sequences: what is said of one depends on others
        yield _of_the_whole(card.part, estimator, data)
    elif hasattr(estimator, "predict_proba"):
        for rows in row_blocks(data.arguments[0]):
            chances = np.asarray(estimator.predict_proba(rows))
            yield {card.part: chances.argmax(axis=1), **_numbered(card.part, chances)}
    else:  # shares of topics, values of sources: no row belongs to one of them
        for rows in row_blocks(data.arguments[0]):
            yield _numbered(card.part, np.asarray(estimator.transform(rows)))


def row_blocks(whole: Any) -> Iterator[Any]:
    """What a model predicts on: one block that is held, or those of a file, one after the other."""
    if hasattr(whole, "reiterable"):  # a source of counts
        yield from (batch.counts for batch in whole)
    elif callable(whole):
        yield from whole()
    else:
        yield whole


def _numbered(part: str, values: NDArray[Any], names: Any = None) -> Columns:
    names = range(values.shape[1]) if names is None else np.asarray(names).tolist()
    return {f"{part}_{name}": values[:, i] for i, name in enumerate(names)}


def _of_the_whole(part: str, estimator: Any, data: Data) -> Columns:
    """What `predict` says (the most probable sequence of states, by Viterbi), and the posterior of each part."""
    return {
        **data.keys,
        part: np.asarray(estimator.predict(*data.arguments)),
        **_numbered(part, np.asarray(estimator.predict_proba(*data.arguments)), getattr(estimator, "classes_", None)),
    }
