"""JSON lines, one object on each line; or an array of objects."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from odeco.files.encodings import text_decoder
from odeco.files.frames import Array, TableInput, column_of, joined_kind
from odeco.files.json_arrays import array_items, is_array
from odeco.files.opening import InputFile
from odeco.files.stored import BATCH_NUMBERS


def read_jsonl(file: InputFile, encoding: str = "utf-8") -> TableInput:
    """The columns of JSON lines; one pass over them finds out what they hold."""
    kinds: dict[str, str | None] = {}
    odd: set[str] = set()
    n_rows, n_values, n_given = 0, 0, Counter[str]()
    for objects in _objects(file, encoding):
        n_rows += len(objects)
        for row in objects:
            n_values += len(row)
            for name, value in row.items():
                if name not in kinds:
                    file.check_limit("table_columns", len(kinds) + 1, "its rows have too many different names")
                kinds[name] = joined_kind(kinds.get(name), _kind(value))
                n_given[name] += value is not None
                if isinstance(value, (list, dict)):
                    odd.add(name)
    if n_rows == 0 or not kinds:
        raise file.error("it holds no objects with values.")
    what = f"its {n_rows} rows of {len(kinds)} columns hold only {n_values} values: empty cells are too many"
    file.check_limit("empty_cells", n_rows * len(kinds) - 100 * n_values, what)
    usable = {name: None if name in odd else kind or "number" for name, kind in kinds.items()}
    # Whole numbers with gaps are floats in every batch, also in one without a gap: large ones are refused in all.
    read_as = {n: "number" if kind == "integer" and n_given[n] < n_rows else kind for n, kind in usable.items()}
    return TableInput(file, "jsonl", list(kinds), list(usable.values()), partial(_read, file, encoding, read_as))


def _objects(file: InputFile, encoding: str) -> Iterator[list[dict[str, Any]]]:
    with file.guard():
        beginning = text_decoder(encoding).decode(file.head())
    if is_array(beginning):
        for items in array_items(file, encoding):
            with file.guard():
                yield _whole_text(items)
        return
    for first, lines in file.text_blocks(encoding):
        objects = []
        for line, text in enumerate(lines, first):
            if not text.strip():
                continue
            try:
                row = json.loads(text)
                if "\\u" in text:
                    _whole_text(row)
            except (ValueError, RecursionError) as error:
                raise file.error(f"it is not JSON ({error}).", line) from error
            if not isinstance(row, dict):
                raise file.error(f"an object {{...}} is expected on each line, found a {type(row).__name__}.", line)
            objects.append(row)
        if objects:
            yield objects


def _whole_text(rows: Any) -> Any:
    """The rows, unless half of a pair of surrogates is in them, which is no text."""
    json.dumps(rows, ensure_ascii=False).encode()
    return rows


def _read(file: InputFile, encoding: str, kinds: dict[str, str | None], names: Sequence[str]) -> Iterator[list[Array]]:
    step = max(BATCH_NUMBERS // len(names), 1)  # rows that hold few of many names take as much as full ones
    for objects in _objects(file, encoding):
        for start in range(0, len(objects), step):
            rows = objects[start : start + step]
            with file.guard():
                yield [column_of([row.get(name) for row in rows], kinds[name] or "number") for name in names]


def _kind(value: Any) -> str | None:
    if value is None:
        return None
    if isinstance(value, bool):
        return "truth"
    if isinstance(value, int):
        return "integer" if abs(value) < 2**63 else "number"
    return "number" if isinstance(value, float) else "label"
