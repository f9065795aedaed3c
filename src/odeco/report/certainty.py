"""The section of a report on how sure a model is: replication of its parts, and tables of intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from odeco.models.cards import known_card
from odeco.plots.crowds import annotators
from odeco.report.charts import colour
from odeco.report.svg import number

if TYPE_CHECKING:
    from odeco.uncertainty import Intervals

Floats = NDArray[np.float64]

_MOST_COLUMNS = 30  # of a table; of more, those with the largest values anywhere
_MOST_TABLES = 12
_MOST_ROWS = 120


def certainty(
    model: Any, found: Intervals, vocabulary: Sequence[Any] | None, feature_names: Sequence[Any] | None
) -> dict[str, Any]:
    """What the section shows."""
    names = vocabulary if vocabulary is not None else feature_names
    tables = [
        *_class_table(model, found, feature_names),
        *_confusions(model, found),
        *(table for name in found.value for table in _tables(found, name, names)),
    ]
    return {
        "words": f"{str(found)[:1].upper()}{str(found)[1:]}.",
        "part": known_card(model).part.capitalize(),
        "parts": [_part(i, float(value), bool(found.replicated[i])) for i, value in enumerate(found.replication)],
        "tables": tables[:_MOST_TABLES],
    }


def _class_table(model: Any, found: Intervals, feature_names: Sequence[Any] | None) -> list[dict[str, Any]]:
    """Latent classes with standard errors, as users of other libraries know them."""
    if not hasattr(model, "class_tables"):
        return []
    from odeco.uncertainty.classes import class_records

    records = list(class_records(model, found, feature_names))
    rows = [
        (
            str(row["class"]),
            [
                str(row["column"]) or "share of the class",
                str(row["category"]),
                number(row["estimate"]),
                number(row["standard_error"]),
                f"{number(row['low'])} to {number(row['high'])}",
            ],
        )
        for row in records[:_MOST_ROWS]
    ]
    columns = ["column", "category", "estimate", "standard error", f"{found.level:.0%} interval"]
    caption = _caption("Estimates with standard errors", len(records) - len(rows), "rows")
    return [
        {"title": "Classes and their answers", "caption": caption, "corner": "class", "columns": columns, "rows": rows}
    ]


def _confusions(model: Any, found: Intervals) -> list[dict[str, Any]]:
    """Confusions of the annotators: what they say of each class."""
    if "confusion_" not in found.value:
        return []
    people = annotators(model)
    classes, labels = ([str(c) for c in np.asarray(each).tolist()] for each in (model.classes_, model.given_labels_))
    arrays = [np.asarray(each["confusion_"]) for each in (found.value, found.low, found.high)]
    rows = [
        (name, [true, *(_cell(*(array[worker, a, b] for array in arrays)) for b in range(len(labels)))])
        for name, worker in zip(people.names, people.order.tolist(), strict=True)
        for a, true in enumerate(classes)
    ]
    caption = _caption(f"Shares of labels with {found.level:.0%} intervals", len(rows) - _MOST_ROWS, "rows")
    shown = {"corner": "annotator", "columns": ["true class", *labels], "rows": rows[:_MOST_ROWS]}
    return [{"title": "confusion_", "caption": caption, **shown}]


def _caption(text: str, left_out: int, what: str) -> str:
    return f"{text}; {left_out:,} {what} left out" if left_out > 0 else text


def _cell(value: float, low: float, high: float) -> str:
    return f"{number(value)} [{number(low)}, {number(high)}]"


def _part(i: int, value: float, replicated: bool) -> dict[str, Any]:
    known = np.isfinite(value)
    return {
        "number": i,
        "colour": colour(i) if replicated else f"{colour(i)} lost",
        "bar": value if known else 0.0,
        "value": f"{value:.2f}" if known else "not looked for",
        "words": "" if replicated else "did not replicate",
    }


def _tables(found: Intervals, name: str, names: Sequence[Any] | None) -> list[dict[str, Any]]:
    """One table for each array of an attribute, components in rows."""
    values, lows, highs = (_items(each[name]) for each in (found.value, found.low, found.high))
    tables = []
    for place, (value, low, high) in enumerate(zip(values, lows, highs, strict=True)):
        if value is None or np.ndim(value) > 2:
            continue
        axis = found.axes.get(name, ())
        arrays = [_in_rows(np.asarray(each), axis) for each in (value, low, high)]
        title = f"{name}, item {place}" if len(values) > 1 else name
        tables.append(_table(title, found, arrays, names, is_chain=len(axis) == 2, has_parts=bool(axis)))
    return tables


def _items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _in_rows(array: Floats, axes: tuple[int, ...]) -> Floats:
    """Components in rows, one column at least."""
    array = np.moveaxis(array, axes[0], 0) if axes else array
    return array.reshape(len(array), -1) if array.ndim and axes else array.reshape(1, -1) if array.ndim < 2 else array


def _table(
    title: str, found: Intervals, arrays: list[Floats], names: Sequence[Any] | None, *, is_chain: bool, has_parts: bool
) -> dict[str, Any]:
    value, low, high = arrays
    width = value.shape[1]
    shown = np.sort(np.argsort(-np.abs(value).max(axis=0), kind="stable")[:_MOST_COLUMNS])
    known = names is not None and len(names) == width and not is_chain
    columns = [str(names[j]) if known and names is not None else str(j) for j in shown] if width > 1 else ["value"]
    rows = [(str(i), [_cell(value[i, j], low[i, j], high[i, j]) for j in shown]) for i in range(len(value))]
    caption = _caption(f"Estimates with {found.level:.0%} intervals", width - len(shown), "columns")
    corner = found.component if has_parts else ""
    return {"title": title, "caption": caption, "corner": corner, "columns": columns, "rows": rows}
