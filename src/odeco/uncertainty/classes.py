"""Latent classes as a table of estimates and standard errors, as users of poLCA and StepMix know it."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from odeco.files.output import writing
from odeco.uncertainty.result import Intervals

COLUMNS = ("class", "column", "category", "estimate", "standard_error", "low", "high")


def class_table(model: Any, found: Intervals, feature_names: Sequence[Any] | None = None) -> Any:
    """Shares of the classes and of the answers in each class, with standard errors and intervals: a pandas DataFrame.

    Parameters
    ----------
    model : a fitted `ProductMixture`
    found : Intervals
        What `odeco.intervals` gave for it.
    feature_names : names of the columns, optional
        Those of the fit, where they had any.

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

    return pd.DataFrame(list(class_records(model, found, feature_names)))


def write_class_table(
    model: Any, found: Intervals, path: str | os.PathLike[str], feature_names: Sequence[Any] | None = None
) -> None:
    """The same as a CSV file; "-" is the standard output.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> import odeco
    >>> from odeco.uncertainty import write_class_table
    >>> answers = np.random.default_rng(0).integers(2, size=(200, 2)).astype(float)
    >>> classes = odeco.ProductMixture(1, random_state=0).fit(answers)
    >>> found = odeco.intervals(classes, answers, replication=False)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_class_table(classes, found, f"{folder}/classes.csv", ["tea", "milk"])
    ...     Path(f"{folder}/classes.csv").read_text().splitlines()[0]
    'class,column,category,estimate,standard_error,low,high'
    """
    stream = io.StringIO()
    writer = csv.DictWriter(stream, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(class_records(model, found, feature_names))
    with writing(path) as file:
        file.write(stream.getvalue().encode("utf-8"))


def class_records(model: Any, found: Intervals, feature_names: Sequence[Any] | None = None) -> Iterator[dict[str, Any]]:
    """The rows of the table."""
    if not hasattr(model, "class_tables") or "weights_" not in found.value:
        raise ValueError(f"model must be a fitted ProductMixture with its intervals, got {type(model).__name__}.")
    columns = model._schema.columns
    names = [column.name for column in columns] if feature_names is None else [str(name) for name in feature_names]
    if len(names) != len(columns):
        raise ValueError(f"feature_names must hold {len(columns)} names, one for each column, got {len(names)}.")
    yield from _rows(model, found, names)


def _rows(model: Any, found: Intervals, titles: Sequence[str]) -> Iterator[dict[str, Any]]:
    k = len(model.weights_)
    for i in range(k):
        yield _row(found, "weights_", None, (i,), i, "", "")
    place = 0
    for j, column in enumerate(model._schema.columns):
        names = np.asarray(column.categories).tolist()
        for i in range(k):
            if column.family == "categorical":
                yield from (
                    _row(found, "probabilities_", place, (i, c), i, titles[j], name) for c, name in enumerate(names)
                )
            elif column.family == "bernoulli":
                no, yes = [*names, 0, 1][:2]
                answer = _row(found, "means_", None, (i, j), i, titles[j], yes)
                yield {**answer, **_complement(answer), "category": no}
                yield answer
            else:
                yield _row(found, "means_", None, (i, j), i, titles[j], "mean")
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
