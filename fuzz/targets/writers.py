"""Tables and counts, written and read again: refused when they are written, or the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from fuzz.mutations import Rng, choose
from odeco import files
from tests.file_cases import COUNT_FILES, TABLE_FILES, whole

_AMBIGUOUS = ["", "NA", "nan", "1", "-1", "true"]  # in CSV these are numbers, or nothing
_WORDS = ["a", "b c", "é", "a,b", '"', "x\ny", "\t", "\U0001f600", " a", "a ", "#", ":", "\r"]
_VALUES = [0.0, -0.0, 1.0, -1.5, 1e-300, 1e300, 5e-324, 0.1, float("nan"), float("inf"), 2.0**53 + 2, 1e22]
_COUNTS = [0, 0, 0, 1, 2, 255, 2**31, 2**53, 0.5, -1, float("nan")]


def generate(rng: Rng, folder: Path) -> dict[str, Any]:
    n, d = int(rng.integers(1, 7)), int(rng.integers(1, 5))
    if rng.integers(2):
        values = [[choose(rng, _COUNTS if rng.integers(4) == 0 else _COUNTS[:6]) for _ in range(d)] for _ in range(n)]
        values[-1][-1] = 1  # rows without any entry are nothing to fit
        words = [choose(rng, _WORDS) if rng.integers(2) else f"w{j}" for j in range(d)] if rng.integers(2) else None
        return {"kind": "counts", "file": choose(rng, COUNT_FILES), "values": values, "d": d, "words": words}
    name = choose(rng, TABLE_FILES)
    words = _WORDS if name in ("a.csv", "a.tsv") else _WORDS + _AMBIGUOUS
    columns = [_column(rng, n, words) if name != "a.npy" else _numbers(rng, n) for _ in range(d)]
    # CSV takes blanks about names for layout, and one name of blanks alone tells no delimiter.
    names = [choose(rng, _WORDS).strip() if rng.integers(3) == 0 else f"c{j}" for j in range(d)]
    names = [f"c{j}" if not name or name in names[:j] else name for j, name in enumerate(names)]
    return {"kind": "table", "file": name, "columns": columns, "names": names}


def _column(rng: Rng, n: int, words: list[str]) -> list[Any]:
    kinds = {"numbers": _VALUES, "labels": [*words, None], "whole": [0, 1, -7, 2**53], "flags": [True, False]}
    kind = choose(rng, kinds)
    column = [choose(rng, kinds[kind]) for _ in range(n)]
    return ["first", *column[1:]] if kind == "labels" else column  # a column of nothing has no kind


def _numbers(rng: Rng, n: int) -> list[float]:
    return [choose(rng, _VALUES) for _ in range(n)]


def run(case: dict[str, Any], folder: Path) -> None:
    (_counts if case["kind"] == "counts" else _table)(case, folder / case["file"])


def _counts(case: dict[str, Any], path: Path) -> None:
    values = np.array(case["values"], dtype=float).reshape(-1, case["d"])
    files.write_counts(path, sparse.csr_array(values), case["words"])
    read = _again(lambda: files.read_counts(path, n_features=case["d"] if path.suffix in (".svm", ".ldac") else None))
    found = whole(read.source)
    assert np.array_equal(found, values), f"{found.tolist()} was read"
    if case["words"] is not None:
        assert read.vocabulary == case["words"], f"{read.vocabulary} was read"


def _table(case: dict[str, Any], path: Path) -> None:
    columns = dict(zip(case["names"], map(_array, case["columns"]), strict=True))
    if path.suffix == ".npy":
        files.write_table(path, np.column_stack([np.array(column, dtype=float) for column in case["columns"]]))
    else:
        files.write_table(path, columns)
    read = _again(lambda: files.read_table(path, columns=None if path.suffix == ".npy" else list(columns)).read())
    for j, (name, column) in enumerate(columns.items()):
        found = read[:, j] if isinstance(read, np.ndarray) else read.parts[j]
        expected = [None if path.suffix == ".jsonl" and value == float("inf") else value for value in column.tolist()]
        assert _same(found.tolist(), expected), f"{name!r}: {found.tolist()} was read"  # JSON has no infinity


def _again(read: Any) -> Any:
    """What was written without an error is read without one."""
    try:
        return read()
    except Exception as error:
        raise AssertionError(f"written, and not read: {error}") from error


def _array(values: list[Any]) -> Any:
    return np.array(values, dtype=object if any(isinstance(v, str) or v is None for v in values) else None)


def _same(found: list[Any], given: list[Any]) -> bool:
    """Equal, where no label and no number may be missing."""
    missing = [(None if value is None or value != value else value) for value in found]
    return missing == [(None if value is None or value != value else value) for value in given]
