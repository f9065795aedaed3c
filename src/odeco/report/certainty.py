"""The section of a report on how sure a model is: replication of its parts, and tables of intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from odeco.models.cards import known_card
from odeco.report.charts import colour
from odeco.report.svg import number

if TYPE_CHECKING:
    from odeco.uncertainty import Intervals

Floats = NDArray[np.float64]

_MOST_COLUMNS = 30  # of a table; of more, those with the largest values anywhere
_MOST_TABLES = 12


def certainty(
    model: Any, found: Intervals, vocabulary: Sequence[Any] | None, feature_names: Sequence[Any] | None
) -> dict[str, Any]:
    """What the section shows."""
    names = vocabulary if vocabulary is not None else feature_names
    tables = [table for name in found.value for table in _tables(found, name, names)]
    return {
        "words": f"{str(found)[:1].upper()}{str(found)[1:]}.",
        "part": known_card(model).part.capitalize(),
        "parts": [_part(i, float(value), bool(found.replicated[i])) for i, value in enumerate(found.replication)],
        "tables": tables[:_MOST_TABLES],
    }


def _part(i: int, value: float, replicated: bool) -> dict[str, Any]:
    known = np.isfinite(value)
    return {
        "number": i,
        "colour": colour(i),
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
    rows = [
        (str(i), [f"{number(value[i, j])} [{number(low[i, j])}, {number(high[i, j])}]" for j in shown])
        for i in range(len(value))
    ]
    left_out = width - len(shown)
    caption = f"Estimates with {found.level:.0%} intervals" + (f"; {left_out:,} columns left out" if left_out else "")
    corner = found.component if has_parts else ""
    return {"title": title, "caption": caption, "corner": corner, "columns": columns, "rows": rows}
