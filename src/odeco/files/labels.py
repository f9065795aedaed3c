"""`read_labels`: who gave which label to what, for DawidSkene."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from odeco.files import arrays as numpy_files
from odeco.files.frames import Frame, TableInput
from odeco.files.opening import InputFile, PathLike
from odeco.files.reading import TABLES, open_as, table_input
from odeco.sources.crowd import read_labels as check_labels

FORMATS = (*TABLES, "npy", "npz")
# How the column with the names of the items begins a wide table; "" is what is left of "id".
_ITEMS = ("", "item", "items", "task", "question", "example", "unit", "object", "instance", "index")


@dataclass(frozen=True, eq=False)
class Labels:
    """Labels of a file.

    Attributes
    ----------
    X : array or Frame
        For `DawidSkene.fit`.
    items : array or None
        Names of the items, where the wide layout has a column of them (called item, id, ...); it is not in X then.
    layout : {"wide", "long"}
        A column for each annotator, or rows (item, worker, label): for ``DawidSkene(layout=...)``.
    names : list of str or None
        Of the columns.
    format : str
    """

    X: Any = field(repr=False)
    layout: str
    names: list[str] | None
    format: str
    items: Any = field(default=None, repr=False)


def read_labels(
    path: PathLike,
    *,
    format: str = "auto",
    layout: str = "auto",
    columns: Sequence[str] | None = None,
    encoding: str = "utf-8",
) -> Labels:
    """Read labels that several annotators gave to the same items.

    Parameters
    ----------
    path : path, or "-" for the standard input
        CSV, TSV, JSON lines or Parquet; .npy, or .npz with the array "X" or "crowd".
    format : str
        "auto" looks at the content and the name; else one of "csv", "tsv", "jsonl", "parquet", "npy", "npz".
    layout : {"auto", "wide", "long"}
        "auto": long where columns are called item, worker and label (or usual synonyms), or three columns look so.
    columns : list of str, optional
        The columns to use: item, worker and label in this order for the long layout, annotators for the wide one.
    encoding : str
        Of CSV and JSON lines.
    """
    if layout not in ("auto", "wide", "long"):
        raise ValueError(f"layout must be 'auto', 'wide' or 'long', got {layout!r}.")
    file, found = open_as(path, format, FORMATS)
    if found in TABLES:
        data, names = _columns(table_input(file, found, encoding), columns)
        if columns is not None and layout == "long":
            data = _as_long(file, data)
    else:
        data, names = _array(file, found), None
        if columns is not None:
            raise file.error(f"its columns have no names: columns cannot be chosen from {found}.")
    with file.guard():
        checked = check_labels(data, layout)
        items = None
        if checked.layout == "wide" and names is not None and columns is None:
            data, items = _without_items(data)
            check_labels(data, "wide")
    return Labels(data, checked.layout, names if items is None else list(data.columns), found, items)


def _without_items(data: Frame) -> tuple[Frame, Any]:
    """The annotators, and the names of the items where the first column is called so."""
    if data.columns[0].strip().lower().replace("_", "").removesuffix("id") not in _ITEMS or len(data.parts) < 2:
        return data, None
    return Frame(data.columns[1:], data.parts[1:]), data.parts[0]


def _columns(table: TableInput, columns: Sequence[str] | None) -> tuple[Frame, list[str]]:
    names = table.choose(columns)
    batches = list(table.read(names))
    parts = tuple(np.concatenate(column) for column in zip(*batches, strict=True))
    return Frame(tuple(names), parts), names


def _as_long(file: InputFile, data: Frame) -> Frame:
    if len(data.parts) != 3:
        raise file.error(f"long rows are (item, worker, label), three columns, and {len(data.parts)} are named.")
    return Frame(("item", "worker", "label"), data.parts)


def _array(file: InputFile, format: str) -> Any:
    if format == "npy":
        return numpy_files.dense_rows(file, numpy_files.load_npy(file))
    arrays = numpy_files.load_npz(file)
    return numpy_files.dense_rows(file, arrays["crowd"] if "crowd" in arrays else numpy_files.main_array(file, arrays))
