"""Tables of mixed columns: numbers, codes and labels, values missing here and there.

Every column gets a family (Gaussian, Bernoulli, categorical, Poisson), given or guessed, and every block of rows
becomes one float array in which categories are numbered from 0 and NaN means missing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from odeco.kernels.columns import turned
from odeco.sources.chunks import once
from odeco.sources.counts import check_weights
from odeco.sources.dense import DENSE_BATCH_SIZE, DenseBatch, DenseSource, OutOfCoreRows, is_matrix
from odeco.sources.kinds import Checkpointed, OutOfCore, is_remote
from odeco.sources.scale import check_magnitude, check_size
from odeco.sources.values import (
    is_frame,
    is_missing,
    number_array,
    plain_array,
    plain_column,
    refuse_inexact,
    weight_array,
)

Floats = NDArray[np.float64]

Family = str | Sequence[str] | Mapping[str, str]  # of all columns, of each in turn, of some by their names

FAMILIES = ("gaussian", "bernoulli", "categorical", "poisson")
# Whole numbers with more values than this are counts rather than codes, where "auto" has to guess.
_MOST_CODES = 10
# Categories of one column at most: each is a feature.
_MOST_CATEGORIES = 1000
# Rows from which on a column that is constant, or different in every row, is no accident: 30 draws of a Poisson
# variable of mean 100 were never all different in 200,000 trials. Real numbers differ by nature: nobody asks.
_FEW_ROWS = 30
# Columns that are copied together to be looked at: the numbers of a cache line.
_CHUNK = 8


@dataclass(frozen=True)
class Column:
    """One column: its family and, where it is categorical, the values that its codes 0, 1, ... stand for."""

    name: str
    family: str
    categories: tuple[Any, ...] = ()
    missing: bool = False

    @property
    def n_categories(self) -> int:
        """2 for Bernoulli columns, 0 for numbers."""
        return 2 if self.family == "bernoulli" else len(self.categories)


class ColumnSummary:
    """What has been seen of one column: merges over batches, and becomes a `Column`."""

    def __init__(self, name: str, family: str) -> None:
        self.name, self.family = name, family
        self.values: set[Any] = set()
        self.n = 0
        self.labels = self.boolean = self.missing = False
        self.rising = True
        self.integers, self.whole, self.overflow = True, True, False
        self.low, self.high = np.inf, -np.inf
        self.declared: tuple[Any, ...] | None = None

    def update(self, raw: Any) -> None:
        """Take over one array of values (or pandas column)."""
        dtype: Any = getattr(raw, "dtype", None)
        values = plain_column(raw, f"column {self.name!r}")
        if hasattr(dtype, "categories"):
            self.declared = tuple(dtype.categories)
        if hasattr(dtype, "categories") or values.dtype.kind in "OUST":
            self._update_labels(values)
            return
        kind = getattr(dtype, "kind", values.dtype.kind)  # of a column of pandas without what is missing
        kind = values.dtype.kind if kind == "O" else kind
        self.boolean |= kind == "b"
        self.integers &= kind in "biu"
        if self.family != "gaussian":
            refuse_inexact(values, f"column {self.name!r}")
        known: NDArray[Any] = values.astype(np.uint8) if values.dtype.kind == "b" else values
        if values.dtype.kind == "f":
            gone = np.isnan(known)
            if gone.any():
                self.missing, known = True, known[~gone]
        if known.size:
            self._update_numbers(known)

    def _update_labels(self, values: Any) -> None:
        self.labels = True
        present = ~_is_missing_label(values)
        self.missing |= not bool(present.all())
        self.n += int(present.sum())
        self.values |= set(values[present].tolist())

    def _update_numbers(self, known: NDArray[Any]) -> None:
        low, high = float(known.min()), float(known.max())
        self.n += known.size
        self.rising = self.rising and low > self.high and bool((known[1:] > known[:-1]).all())
        self.low, self.high = min(self.low, low), max(self.high, high)
        if self.whole and known.dtype.kind == "f":  # the first rows decide for most columns of measurements
            self.whole = bool((known[:64] == np.floor(known[:64])).all()) and bool((known == np.floor(known)).all())
        if self.overflow:
            return
        if self.whole and low == 0 and high == 1:
            self.values |= {0.0, 1.0}
            return
        if not self.whole and self.family in ("auto", "gaussian"):
            self.overflow = True  # numbers: nobody asks which
            return
        if self.whole and high - low <= 10 * _MOST_CATEGORIES:
            present = np.flatnonzero(np.bincount((known - low).astype(np.int64))) + low
        else:
            present = np.unique(known[:10_000])
            present = present if present.size > _MOST_CATEGORIES else np.unique(known)
        self.values |= set(present.astype(np.float64).tolist())
        self.overflow = len(self.values) > 10 * _MOST_CATEGORIES

    def merge(self, other: ColumnSummary) -> None:
        """Take over what has been seen elsewhere."""
        self.n += other.n
        self.rising = self.rising and other.rising and other.low > self.high
        self.values |= other.values
        self.labels |= other.labels
        self.boolean |= other.boolean
        self.missing |= other.missing
        self.integers &= other.integers
        self.whole &= other.whole
        self.low, self.high = min(self.low, other.low), max(self.high, other.high)
        self.declared = self.declared if other.declared is None else other.declared
        self.overflow |= other.overflow or len(self.values) > 10 * _MOST_CATEGORIES

    def column(self) -> Column:
        """The column under its family, or under the one that its values suggest."""
        chosen = self._guess() if self.family == "auto" else self.family
        minus_one = chosen != "gaussian" and -1.0 in self.values
        missing, known = self.missing or minus_one, self.values - {-1.0} if minus_one else self.values
        if self.labels and chosen not in ("categorical", "bernoulli"):
            raise ValueError(f"column {self.name!r} holds labels, family {chosen!r} needs numbers: use 'categorical'.")
        if chosen in ("gaussian", "poisson") and self.low <= self.high:
            check_size(max(abs(self.low), abs(self.high)), f"column {self.name!r}")
        if chosen == "bernoulli":
            if self.labels or not known <= {0.0, 1.0} or self.overflow:
                raise ValueError(
                    f"column {self.name!r} is Bernoulli but has values other than 0 and 1 "
                    f"({_some(known)}): use 'categorical', or code them 0 and 1."
                )
        elif chosen == "poisson":
            if (known and min(known) < 0) or not self.whole:
                raise ValueError(f"column {self.name!r} is Poisson but has values that are not counts 0, 1, 2, ...")
        elif chosen == "categorical":
            return Column(self.name, chosen, self._categories(known), missing)
        return Column(self.name, chosen, (), missing)

    def notes(self) -> list[str]:
        """What of the column says nothing of the rows' classes, or too much, where the guess is ours."""
        if self.n == 0:
            return [f"column {self.name!r} has no values: every one is missing. Leave it out."]
        if self.n < _FEW_ROWS:
            return []
        if self.low == self.high or (self.labels and len(self.values) == 1):
            return [f"column {self.name!r} is constant: it says nothing of the components. Leave it out."]
        different = len(self.values) == self.n or (self.rising and not self.labels)
        if self.family not in ("auto", "categorical") or not self.whole or not different:
            return []
        advice = "" if self.labels else ", or name its family if it measures or counts something"
        return [
            f"column {self.name!r} has another value in each of {self.n} rows, as identifiers have: they say nothing "
            f"of the components. Leave it out{advice}."
        ]

    def _categories(self, known: set[Any]) -> tuple[Any, ...]:
        found = self.declared if self.declared is not None else tuple(sorted(known, key=_label_order))
        if not found:
            raise ValueError(f"column {self.name!r} has no values at all: every one is missing. Remove it.")
        if len(found) > _MOST_CATEGORIES or self.overflow:
            raise ValueError(
                f"column {self.name!r} has more than {_MOST_CATEGORIES} categories: use 'gaussian' or 'poisson' for "
                "numbers, or join rare categories."
            )
        if self.integers and not self.labels:
            found = tuple(int(value) for value in found)
        return found

    def _guess(self) -> str:
        if self.labels:
            return "categorical"
        if self.boolean:
            return "bernoulli"
        if not self.whole or self.overflow or not self.values:
            return "gaussian"
        codes = self.values - {-1.0} if self.integers else self.values
        if min(codes, default=0) < 0:
            return "gaussian"
        if codes <= {0.0, 1.0}:
            return "bernoulli"
        return "categorical" if self.high < _MOST_CODES else "poisson"


@dataclass(frozen=True, eq=False)
class Schema:
    """The columns of a table; turns blocks of raw rows into floats. `notes`: what a user should know of the columns."""

    columns: tuple[Column, ...]
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, summaries: Iterable[ColumnSummary]) -> Schema:
        """What follows from a look at all rows."""
        seen = list(summaries)
        return cls(tuple(each.column() for each in seen), tuple(note for each in seen for note in each.notes()))

    def __len__(self) -> int:
        return len(self.columns)

    def with_missing(self, values: Floats) -> Schema:
        """The same, with columns marked that have missing values here."""
        gone = np.atleast_1d(np.isnan(values).any(axis=0))
        return Schema(tuple(replace(c, missing=c.missing or bool(g)) for c, g in zip(self.columns, gone, strict=True)))

    def coded(self) -> Schema:
        """The same columns with numbers for their categories: what reads values that were read already."""
        return Schema(tuple(replace(c, categories=tuple(range(len(c.categories)))) for c in self.columns))

    @property
    def families(self) -> tuple[str, ...]:
        """The family of each column."""
        return tuple(column.family for column in self.columns)

    def read(self, X: Any, *, trusted: bool = False) -> Floats:
        """Values (m, J): NaN where missing, categories by number. Raises where a value does not fit its column.

        `trusted`: the schema was inferred from these very rows. They may then be returned as they are, not copied.
        """
        X = X if is_frame(X) else plain_array(X)
        width = X.shape[1] if len(X.shape) == 2 else 0
        if width != len(self.columns):
            raise ValueError(f"X has {width} features, but {len(self.columns)} features were expected.")
        plain = isinstance(X, np.ndarray) and X.dtype.kind in "fiub" and "categorical" not in self.families
        if plain and trusted and not any(column.missing for column in self.columns):
            return np.asarray(X, dtype=np.float64)
        if plain:  # one pass for all
            values = np.array(X, dtype=np.float64)
        else:
            values = np.empty((X.shape[0], width))

            def read(j: int, part: Any) -> None:
                column = self.columns[j]
                values[:, j] = _codes(column, part) if column.family == "categorical" else _numbers(column, part)

            _each_column(X, read)
        self._check_numbers(values)
        return values

    def _check_numbers(self, values: Floats) -> None:
        if np.isinf(values).any():
            raise ValueError("X contains infinity: replace it by NaN where the value is missing.")
        check_magnitude(values)
        families = np.array(self.families)
        discrete = np.flatnonzero((families == "bernoulli") | (families == "poisson"))
        if discrete.size:
            part = values[:, discrete]
            if (part < 0).any():
                part[part == -1] = np.nan
                values[:, discrete] = part
            wrong = part < 0
            wrong |= np.where(families[discrete] == "bernoulli", part > 1, False) | (part != np.floor(part)) & (
                ~np.isnan(part)
            )
            if wrong.any():
                row, place = np.argwhere(wrong)[0]
                column = self.columns[discrete[place]]
                kinds = {"bernoulli": "0 and 1", "poisson": "counts 0, 1, 2, ..."}
                raise ValueError(
                    f"column {column.name!r} is {column.family} and takes {kinds[column.family]} (-1 or NaN where "
                    f"missing), but row {row} has {part[row, place]}."
                )


def infer_schema(batches: Iterable[Any], family: Family, names: Sequence[str] | None = None) -> Schema:
    """One pass over raw batches: the family and the categories of every column."""
    return Schema.of(summarize_columns(batches, family, names))


def summarize_columns(
    batches: Iterable[Any], family: Family, names: Sequence[str] | None = None
) -> list[ColumnSummary]:
    """What is to be seen of every column."""
    summaries: list[ColumnSummary] = []
    for batch in batches:
        rows = batch[0] if isinstance(batch, tuple) and len(batch) == 2 else batch
        width = np.shape(rows)[-1] if len(np.shape(rows)) == 2 else None
        if not summaries and width is not None:
            labels = list(names) if names is not None else [str(name) for name in column_names(rows, width)]
            given = check_families(family, width, labels)
            summaries = [ColumnSummary(label, kind) for label, kind in zip(labels, given, strict=True)]
        if width is not None and width != len(summaries):
            raise ValueError(f"batches differ in their number of columns: {len(summaries)}, then {width}.")
        _update_all(summaries, rows)
    if not summaries:
        raise ValueError("X is empty: the source gave no batches.")
    return summaries


def _update_all(summaries: list[ColumnSummary], rows: Any) -> None:
    """Take over the columns of one block of rows."""
    _each_column(rows if is_frame(rows) else _two_dimensional(rows), lambda j, part: summaries[j].update(part))


def _each_column(rows: Any, work: Callable[[int, Any], None]) -> None:
    """Call ``work(place, column)`` for all columns of a block of rows, on threads where it is an array."""
    from odeco.kernels.threads import map_parts

    if is_frame(rows):
        for j, part in enumerate(raw_columns(rows)):
            work(j, part)
        return

    def some(chunk: int) -> None:
        for place, part in enumerate(raw_columns(rows[:, chunk * _CHUNK : (chunk + 1) * _CHUNK])):
            work(chunk * _CHUNK + place, part)

    map_parts(some, -(-rows.shape[1] // _CHUNK))


def check_families(family: Family, n_columns: int, names: Sequence[str] = ()) -> list[str]:
    """One family per column; columns that a mapping does not name are guessed."""
    if isinstance(family, Mapping):
        family = _by_name(family, [str(name) for name in names])
    if not isinstance(family, (str, list, tuple, np.ndarray)):
        raise ValueError(f"family must be a name, a list of one per column or a dict by column, got {family!r}.")
    given = [family] * n_columns if isinstance(family, str) else list(family)
    if len(given) != n_columns:
        raise ValueError(f"family has length {len(given)}, X has {n_columns} columns: give one, or one per column.")
    for kind in given:
        if kind != "auto" and kind not in FAMILIES:
            raise ValueError(f"family must be 'auto' or of {', '.join(map(repr, FAMILIES))}, got {kind!r}.")
    return given


def _by_name(family: Mapping[Any, str], names: Sequence[str]) -> list[str]:
    given = {str(name): kind for name, kind in family.items()}
    unknown = [name for name in given if name not in names]
    if unknown:
        some = ", ".join(map(repr, names[:8])) + (", ..." if len(names) > 8 else "")
        raise ValueError(f"family names the column {unknown[0]!r}, which X does not have: it has {some}.")
    return [given.get(name, "auto") for name in names]


def raw_columns(X: Any) -> Iterator[Any]:
    """The columns of one block of rows, one after the other."""
    if is_frame(X):
        yield from (X.iloc[:, j] for j in range(X.shape[1]))
        return
    array = _two_dimensional(X)
    for start in range(0, array.shape[1], _CHUNK):  # together: rows are contiguous, columns are not
        yield from turned(array[:, start : start + _CHUNK])


def _two_dimensional(X: Any) -> NDArray[Any]:
    array = plain_array(X)
    if array.ndim != 2:
        raise ValueError(f"X must be two-dimensional (samples x columns), got shape {array.shape}.")
    return array


def column_names(X: Any, n_columns: int) -> list[Any]:
    """Names of the columns, x0, x1, ... where there are none."""
    return list(X.columns) if hasattr(X, "columns") else [f"x{j}" for j in range(n_columns)]


class TableSource(DenseSource):
    """Batches of a table's rows as floats (`Schema.read`), in the same order at every reading."""

    def __init__(self, schema: Schema, read: Callable[[], Iterable[Any]], **options: Any) -> None:
        super().__init__(read, **options)
        self.schema = schema

    def _check(self, item: Any) -> DenseBatch:
        if not isinstance(item, DenseBatch):
            rows, weights = item if isinstance(item, tuple) and len(item) == 2 else (item, None)
            values = self.schema.read(rows)
            item = DenseBatch(values, None if weights is None else check_weights(weights, len(values)))
        return super()._check(item)


class OutOfCoreTable(OutOfCoreRows):
    """Rows of a table, of which nothing is kept but sums."""

    def __init__(self, schema: Schema, read: Callable[[], Iterable[Any]]) -> None:
        super().__init__(read)
        self.schema = schema


def open_table(
    X: Any,
    family: Family = "auto",
    sample_weight: ArrayLike | None = None,
    *,
    schema: Schema | None = None,
    names: Sequence[str] | None = None,
    batch_size: int = DENSE_BATCH_SIZE,
) -> Any:
    """A source of a table's rows: one matrix or DataFrame, a list of them, or a function that returns an iterator."""
    if is_remote(X):
        from odeco.sources.remote import remote_table

        return remote_table(X, family, sample_weight, schema=schema, names=names, batch_size=batch_size)
    weights = None if sample_weight is None else weight_array(sample_weight)
    if isinstance(X, DenseSource) and hasattr(X, "schema"):
        return X
    if isinstance(X, OutOfCore):
        inner = open_table(X.data, family, sample_weight, schema=schema, names=names, batch_size=batch_size)
        return inner if isinstance(inner, OutOfCoreRows) else OutOfCoreTable(inner.schema, lambda: inner)
    if isinstance(X, Checkpointed):
        from odeco.sources.checkpoints import keep

        inner = open_table(X.data, family, sample_weight, schema=schema, names=names, batch_size=batch_size)
        return keep(inner, X)
    if is_matrix(X):
        trusted = schema is None
        schema = schema or infer_schema([X], family, names)
        values = schema.read(X, trusted=trusted)
        if weights is not None:
            check_weights(weights, len(values))
        return TableSource(schema, lambda: [DenseBatch(values)], batch_size=batch_size, sample_weight=weights)
    if weights is not None:
        check_weights(weights, weights.shape[0] if weights.ndim else 0)
    read, again = _reader(X)
    if schema is None:
        if not again:
            raise ValueError(
                "families and categories take a pass of their own, but an iterator can be read only once: pass a "
                "function that returns a new iterator at each call (or a list of batches), or use partial_fit."
            )
        schema = infer_schema(_raw(read()), family, names)
    return TableSource(schema, read, batch_size=batch_size, sample_weight=weights, reiterable=again)


def _reader(X: Any) -> tuple[Callable[[], Iterable[Any]], bool]:
    """A function that reads the batches, and whether it can be called again."""
    if callable(X):
        return X, True
    if isinstance(X, DenseSource):
        return lambda: X, X.reiterable
    if hasattr(X, "__next__"):
        return once(X), False
    if hasattr(X, "__iter__") and not isinstance(X, (str, bytes, dict)):
        return lambda: X, True
    raise ValueError(f"X must be a table or batches of one, got {type(X).__name__}.")


def _raw(batches: Iterable[Any]) -> Iterable[Any]:
    return (batch.rows if isinstance(batch, DenseBatch) else batch for batch in batches)


def _is_missing_label(values: Any) -> NDArray[np.bool_]:
    return np.array([is_missing(value) for value in values.tolist()], dtype=bool)


def _label_order(value: Any) -> tuple[str, Any]:
    return ("", value) if isinstance(value, (int, float)) else (type(value).__name__, str(value))


def _some(values: set[Any]) -> str:
    shown = sorted(values, key=_label_order)[:5]
    return ", ".join(map(str, shown)) + (", ..." if len(values) > 5 else "")


def _numbers(column: Column, raw: Any) -> Floats:
    what = f"column {column.name!r}"
    return np.asarray(number_array(plain_column(raw, what), what), dtype=np.float64)


def _codes(column: Column, raw: Any) -> Floats:
    """Category numbers, NaN where missing; a value never seen before is an error."""
    values = plain_column(raw, f"column {column.name!r}")
    known = column.categories
    numbers = all(isinstance(value, (int, float)) for value in known) and list(known) == sorted(known)
    if values.dtype.kind in "biuf" and numbers:
        codes = _number_codes(np.asarray(values, np.float64), np.asarray(known, np.float64))
    else:
        places = {value: code for code, value in enumerate(known)}
        missing = _is_missing_label(values) if values.dtype.kind in "OUST" else np.isnan(values)
        codes = np.array(
            [np.nan if gone else places.get(value, -1) for value, gone in zip(values.tolist(), missing, strict=True)],
            dtype=np.float64,
        )
    if (codes < 0).any():
        value = values.tolist()[int(np.argmax(codes < 0))]
        raise ValueError(
            f"column {column.name!r} has the category {value!r}, which the fit has not seen (it knows "
            f"{_some(set(known))}): replace it by a missing value, or fit on data that have it."
        )
    return codes


def _number_codes(values: Floats, known: Floats) -> Floats:
    if known[0] == 0 and known[-1] == known.size - 1 and values.min() >= 0:  # codes already; NaN fails the comparison
        return np.where((values < known.size) & (values == np.floor(values)), values, -1.0)
    missing = np.isnan(values) | ((values == -1) & ~np.isin(-1.0, known))
    places = np.searchsorted(known, np.where(missing, known[0], values)).clip(max=known.size - 1)
    codes = np.where(known[places] == values, places, -1.0)
    codes[missing] = np.nan
    return codes
