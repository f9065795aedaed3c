"""Rows of named columns of several kinds: what a DataFrame is to the models, without its library."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from odeco.files.opening import InputFile
from odeco.sources.values import numbers_of

Array = NDArray[Any]

KINDS = ("integer", "number", "truth", "label")


@dataclass(frozen=True, eq=False)
class Frame:
    """Columns of the same length. Models read it as they read a DataFrame: `columns`, `shape`, `dtypes`, `iloc`."""

    columns: tuple[str, ...]
    parts: tuple[Array, ...] = field(repr=False)

    def __len__(self) -> int:
        return len(self.parts[0])

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return len(self), len(self.parts)

    @property
    def dtypes(self) -> list[np.dtype[Any]]:
        """The type of each column."""
        return [part.dtype for part in self.parts]

    @property
    def iloc(self) -> _Places:
        """Columns by number, ``frame.iloc[:, 3]``, or some of the rows, ``frame.iloc[:100]``."""
        return _Places(self)

    def __getitem__(self, name: str) -> _Column:
        return _Column(self.parts[self.columns.index(name)])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return self.to_numpy() if dtype is None else self.to_numpy().astype(dtype)

    def to_numpy(self) -> Array:
        """One array: of numbers where all columns hold numbers, of objects elsewhere."""
        if all(part.dtype.kind in "biuf" for part in self.parts):
            return np.column_stack(self.parts)
        objects = np.empty(self.shape, dtype=object)
        for j, part in enumerate(self.parts):
            objects[:, j] = part
        return objects


@dataclass(frozen=True, eq=False)
class _Places:
    frame: Frame

    def __getitem__(self, place: Any) -> Any:
        if not isinstance(place, tuple):
            return Frame(self.frame.columns, tuple(part[place] for part in self.frame.parts))
        rows, column = place
        return self.frame.parts[column][rows]


@dataclass(frozen=True, eq=False)
class _Column:
    values: Array

    def to_numpy(self) -> Array:
        return self.values


@dataclass(frozen=True, eq=False)
class TableInput:
    """Columns of a file, in batches: `read(names)` starts anew at each call and gives one array per name."""

    file: InputFile
    format: str
    names: list[str]
    kinds: list[str | None]  # None: of no kind that a model takes
    read: Callable[[Sequence[str]], Iterator[Sequence[Array]]] = field(repr=False)

    def choose(self, columns: Sequence[str] | None) -> list[str]:
        """The columns asked for, or all; they must be there and hold what can be used."""
        chosen = list(self.names) if columns is None else list(columns)
        for name in chosen:
            if name not in self._kind_of:
                raise self.file.error(f"there is no column {name!r}, it has {listed(self.names)}.")
            if self.kind(name) is None:
                raise self.file.error(
                    f"the column {name!r} holds neither numbers nor text: name the columns to use without it."
                )
        if len(set(chosen)) < len(chosen):
            raise self.file.error(f"a column is named twice among {listed(chosen)}.")
        if not chosen:
            raise self.file.error("no columns are chosen.")
        return chosen

    def kind(self, name: str) -> str | None:
        """What a column holds."""
        return self._kind_of[name]

    def values(self, name: str) -> list[Any]:
        """All values of a column, read anew."""
        return [value for (part,) in self.read(self.choose([name])) for value in part.tolist()]

    @cached_property
    def _kind_of(self) -> dict[str, str | None]:
        return dict(zip(self.names, self.kinds, strict=True))


def column_names(file: InputFile, n_columns: int) -> list[str]:
    """Names for the columns of a table that has none: x0, x1, ..."""
    file.check_limit("table_columns", n_columns, f"it has {n_columns} columns")
    return [f"x{j}" for j in range(n_columns)]


def listed(names: Sequence[str], most: int = 12) -> str:
    """Names for a message, not too many."""
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown}, ... ({len(names)} in all)"


def column_of(values: Sequence[Any], kind: str) -> Array:
    """Python values as an array of a kind: NaN where a number is missing, None where a label is."""
    if kind == "label":
        column = np.empty(len(values), dtype=object)
        column[:] = [None if value is None else value if isinstance(value, str) else str(value) for value in values]
        return column
    if any(value is None for value in values) or kind == "number":
        return numbers_of(np.array(values, dtype=object), "a column")
    return np.array(values, dtype=bool if kind == "truth" else np.int64)


def joined_kind(one: str | None, other: str | None) -> str | None:
    """The kind that holds values of both; None stands for nothing seen yet, "comma" for numbers with decimal commas."""
    if one is None or other is None or one == other:
        return one or other
    if {one, other} == {"integer", "comma"}:
        return "comma"
    return "number" if {one, other} == {"integer", "number"} else "label"
