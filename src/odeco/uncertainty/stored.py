"""Intervals in files: a table with a row for each number, as CSV or JSON, that can be read again."""

from __future__ import annotations

import csv
import io
import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from odeco.files.output import writing
from odeco.uncertainty.result import Intervals

FORMATS = (".csv", ".json")
_COLUMNS = ("attribute", "item", "index", "part", "value", "standard_error", "low", "high", "replication")
_ABOUT = ("level", "method", "n_replicates", "component")


def write_intervals(found: Intervals, path: str | os.PathLike[str]) -> None:
    """Write intervals: a table (.csv, or "-" for the standard output) or JSON (.json).

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import odeco
    >>> from odeco.uncertainty import read_intervals, write_intervals
    >>> x = np.random.default_rng(0).normal(size=(50, 1))
    >>> model = odeco.GaussianMixture(1, random_state=0).fit(x)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_intervals(odeco.intervals(model, x, replication=False), f"{folder}/sure.csv")
    ...     read_intervals(f"{folder}/sure.csv").method
    'sandwich'
    """
    suffix = check_name(path)
    text = json.dumps(_as_json(found), indent=1) + "\n" if suffix == ".json" else _as_csv(found)
    with writing(path) as file:
        file.write(text.encode("utf-8"))


def check_name(path: str | os.PathLike[str]) -> str:
    """The suffix that says the format; ValueError for another."""
    if str(path) == "-":
        return ".csv"
    suffix = Path(path).suffix.lower()
    if suffix not in FORMATS:
        raise ValueError(f"{os.fspath(path)}: intervals are written as {' or '.join(FORMATS)}, say which by the name.")
    return suffix


def read_intervals(path: str | os.PathLike[str]) -> Intervals:
    """Intervals from a file that `write_intervals` has written; see there for an example."""
    try:
        text = Path(path).read_text(encoding="utf-8")
        if check_name(path) == ".json":
            stored = json.loads(text)
            return _from_rows(stored["rows"], stored, stored["replication"])
        rows = list(csv.DictReader(io.StringIO(text)))
        return _from_rows(rows, rows[0], None)
    except (KeyError, IndexError, TypeError, json.JSONDecodeError, UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"{os.fspath(path)} does not hold intervals: make them with odeco intervals.") from error


def _rows(found: Intervals) -> list[dict[str, Any]]:
    """Records of text and numbers."""
    rows = []
    for row in found.rows():
        part = row.pop(found.component)
        place = None if row["item"] is None else int(row["item"])
        replication = None if part is None else _number(found.replication[part])
        index = " ".join(map(str, row["index"]))
        rows.append({**row, "item": place, "index": index, "part": part, "replication": replication})
    return rows


def _number(value: Any) -> float | None:
    return float(value) if np.isfinite(value) else None


def _about(found: Intervals) -> dict[str, Any]:
    return {name: getattr(found, name) for name in _ABOUT}


def _as_json(found: Intervals) -> dict[str, Any]:
    rows = [{name: _plain(value) for name, value in row.items()} for row in _rows(found)]
    return {**_about(found), "replication": [_number(value) for value in found.replication], "rows": rows}


def _plain(value: Any) -> Any:
    return _number(value) if isinstance(value, float) else value


def _as_csv(found: Intervals) -> str:
    stream = io.StringIO()
    writer = csv.DictWriter(stream, [*_COLUMNS, *_ABOUT], lineterminator="\n")
    writer.writeheader()
    for row in _rows(found):
        writer.writerow({**row, **_about(found)})
    return stream.getvalue()


def _from_rows(rows: list[dict[str, Any]], about: dict[str, Any], replication: Any) -> Intervals:
    groups: dict[tuple[str, int | None], list[dict[str, Any]]] = {}
    for row in rows:
        item = None if row["item"] in (None, "") else int(row["item"])
        groups.setdefault((row["attribute"], item), []).append(row)
    arrays = {name: _gathered(groups, name) for name in ("value", "standard_error", "low", "high")}
    if replication is None:
        replication = _replication(rows)
    return Intervals(
        **arrays,
        replication=np.array([np.nan if value in (None, "") else float(value) for value in replication]),
        level=float(about["level"]),
        method=str(about["method"]),
        n_replicates=int(about["n_replicates"]),
        component=str(about["component"]),
        axes=_axes(groups),
    )


def _replication(rows: list[dict[str, Any]]) -> list[Any]:
    by_part = {int(row["part"]): row["replication"] for row in rows if row["part"] not in (None, "")}
    return [by_part[part] for part in sorted(by_part)]


def _gathered(groups: dict[tuple[str, int | None], list[dict[str, Any]]], column: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for (name, item), rows in groups.items():
        places = [tuple(map(int, str(row["index"]).split())) for row in rows]
        shape = tuple(np.max(places, axis=0) + 1) if places[0] else ()
        array = np.full(shape, np.nan)
        for place, row in zip(places, rows, strict=True):
            array[place] = np.nan if row[column] in (None, "") else float(row[column])
        if item is None:
            found[name] = array
        else:
            items = found.setdefault(name, [])
            items += [None] * (item + 1 - len(items))
            items[item] = array
    return found


def _axes(groups: dict[tuple[str, int | None], list[dict[str, Any]]]) -> dict[str, tuple[int, ...]]:
    """Axes of the components: where the index of every row is that of its component."""
    found: dict[str, tuple[int, ...]] = {}
    for (name, _), rows in groups.items():
        if rows[0]["part"] in (None, ""):
            found[name] = ()
            continue
        places = np.array([tuple(map(int, str(row["index"]).split())) for row in rows])
        parts = np.array([int(row["part"]) for row in rows])
        found[name] = tuple(int(axis) for axis in np.flatnonzero((places == parts[:, None]).all(axis=0)))
    return found
