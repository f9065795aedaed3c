"""Latent classes as a table of estimates and standard errors, as users of poLCA and StepMix know it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from odeco.uncertainty.result import Intervals


def class_table(model: Any, found: Intervals) -> Any:
    """Shares of the classes and of the answers in each class, with standard errors and intervals: a pandas DataFrame.

    Parameters
    ----------
    model : a fitted `ProductMixture`
    found : Intervals
        What `odeco.intervals` gave for it.

    Examples
    --------
    >>> import numpy as np
    >>> import odeco
    >>> from odeco.uncertainty import class_table
    >>> rng = np.random.default_rng(0)
    >>> answers = rng.random((500, 5)) < np.array([[0.9] * 5, [0.2] * 5])[rng.integers(2, size=500)]
    >>> classes = odeco.ProductMixture(2, random_state=0).fit(answers.astype(float))
    >>> table = class_table(classes, odeco.intervals(classes, answers.astype(float), random_state=0))
    >>> table.columns.tolist()
    ['class', 'column', 'category', 'estimate', 'standard_error', 'low', 'high']
    >>> len(table)  # two shares, and two answers to five questions in two classes
    22
    """
    import pandas as pd

    if not hasattr(model, "class_tables") or "weights_" not in found.value:
        raise ValueError(f"model must be a fitted ProductMixture with its intervals, got {type(model).__name__}.")
    return pd.DataFrame(list(_rows(model, found)))


def _rows(model: Any, found: Intervals) -> Iterator[dict[str, Any]]:
    k = len(model.weights_)
    for i in range(k):
        yield _row(found, "weights_", None, (i,), i, "", "")
    place = 0
    for j, column in enumerate(model._schema.columns):
        names = np.asarray(column.categories).tolist()
        for i in range(k):
            if column.family == "categorical":
                yield from (
                    _row(found, "probabilities_", place, (i, c), i, column.name, name) for c, name in enumerate(names)
                )
            elif column.family == "bernoulli":
                no, yes = [*names, 0, 1][:2]
                answer = _row(found, "means_", None, (i, j), i, column.name, yes)
                yield {**answer, **_complement(answer), "category": no}
                yield answer
            else:
                yield _row(found, "means_", None, (i, j), i, column.name, "mean")
        place += column.family == "categorical"


def _row(
    found: Intervals, name: str, item: int | None, index: Any, i: int, column: str, category: Any
) -> dict[str, Any]:
    values = {
        key: (each[name] if item is None else each[name][item])[index]
        for key, each in (
            ("estimate", found.value),
            ("standard_error", found.standard_error),
            ("low", found.low),
            ("high", found.high),
        )
    }
    return {"class": i, "column": column, "category": category, **{key: float(value) for key, value in values.items()}}


def _complement(answer: dict[str, Any]) -> dict[str, Any]:
    """The other of two answers."""
    return {"estimate": 1 - answer["estimate"], "low": 1 - answer["high"], "high": 1 - answer["low"]}
