"""What a model says of each row, as named columns, batch by batch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from odeco.cli.data import Data
from odeco.cli.models import Model

Columns = dict[str, NDArray[Any]]


def answers(model: Model, estimator: Any, data: Data) -> Iterator[Columns]:
    """Columns of the output: names of the rows, the most probable part where rows have one, and a number per part."""
    if model.part == "state":
        yield _states(estimator, data)
    elif model.name == "dawid-skene":
        yield _classes(estimator, data)
    elif model.name in ("lda", "ica"):  # shares of topics, values of sources: no row belongs to one of them
        for rows in _blocks(data.arguments[0]):
            yield _numbered(model.part, np.asarray(estimator.transform(rows)))
    else:
        for rows in _blocks(data.arguments[0]):
            chances = np.asarray(estimator.predict_proba(rows))
            yield {model.part: chances.argmax(axis=1), **_numbered(model.part, chances)}


def _blocks(whole: Any) -> Iterator[Any]:
    """What a model predicts on: one block that is held, or those of a file, one after the other."""
    if hasattr(whole, "reiterable"):  # a source of counts
        yield from (batch.counts for batch in whole)
    elif callable(whole):
        yield from whole()
    else:
        yield whole


def _numbered(part: str, values: NDArray[Any]) -> Columns:
    return {f"{part}_{i}": values[:, i] for i in range(values.shape[1])}


def _states(estimator: Any, data: Data) -> Columns:
    """The most probable sequence of states (Viterbi), and the posterior of each state at each step."""
    return {
        **data.keys,
        "state": np.asarray(estimator.predict(*data.arguments)),
        **_numbered("state", np.asarray(estimator.predict_proba(*data.arguments))),
    }


def _classes(estimator: Any, data: Data) -> Columns:
    chances = np.asarray(estimator.predict_proba(*data.arguments))
    names = np.asarray(estimator.classes_)
    columns = {f"class_{name}": chances[:, i] for i, name in enumerate(names.tolist())}
    return {**data.keys, "class": names[chances.argmax(axis=1)], **columns}
