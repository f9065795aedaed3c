"""Labels that many annotators gave to the same items: wide tables or long rows, as one sparse indicator matrix."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from odeco.kernels.products import by_parts, joined_parts
from odeco.kernels.threads import map_parts
from odeco.sources.values import EXACT, is_frame, is_missing, plain_array, plain_column, refuse_inexact, symbol_of

Values = NDArray[Any]

NO_LABELS = "X has no labels: every entry is NaN or -1."
# Text that stands for no label: what numpy makes of NaN and of None among strings.
_NO_TEXT = ("", "nan", "<NA>", "NaT")

# Labels that are numbers below this are looked up in a table, which is quicker than sorting them.
_COUNTED = 2**16
# Entries of a table from which on its columns are shared between threads.
_MANY = 2**17

# Names that a long DataFrame may give its three columns.
_ITEMS = ("item", "items", "task", "question", "example", "unit", "object", "instance")
_WORKERS = ("worker", "workers", "annotator", "rater", "user", "labeler", "coder", "performer")
_LABELS = ("label", "labels", "answer", "response", "rating", "class", "annotation")


@dataclass(frozen=True, eq=False)
class CrowdLabels:
    """Who gave which label to what.

    Attributes
    ----------
    votes : (n, W * L) CSR array
        1 where worker w gave item i the label l, in column ``w * L + l``; 2 where he did so twice.
    items, workers, classes : arrays (n,), (W,), (L,)
        Their names, sorted; numbers of rows and columns for a wide table without names.
    layout : "wide" or "long"
    """

    votes: sparse.csr_array = field(repr=False)
    items: Values = field(repr=False)
    workers: Values = field(repr=False)
    classes: Values
    layout: str

    def __len__(self) -> int:
        return int(self.votes.shape[0])

    @property
    def n_labels(self) -> NDArray[np.float64]:
        """How many labels each item has, (n,)."""
        return np.asarray(self.votes.sum(axis=1)).ravel()


def read_labels(
    X: Any,
    layout: str = "auto",
    *,
    workers: Values | None = None,
    classes: Values | None = None,
    require: bool = True,
) -> CrowdLabels:
    """Check labels and put them into one form.

    Parameters
    ----------
    X : array or DataFrame
        Wide: (items, annotators), NaN, None or -1 where none was given. Long: rows (item, worker, label).
    layout : {"auto", "wide", "long"}
        "auto": long for a DataFrame with columns item, worker and label (or usual synonyms), and for a table of three
        columns whose pairs (first, second) never repeat while the first has more values than the third, and others;
        else wide.
    workers, classes : arrays, optional
        Of an earlier reading: others are an error.
    require : bool
        Whether a table without any label is an error; a part of one may have none.
    """
    table, names = _as_table(X)
    if layout not in ("auto", "wide", "long"):
        raise ValueError(f"layout must be 'auto', 'wide' or 'long', got {layout!r}.")
    long = layout == "long" or (layout == "auto" and _looks_long(table, names))
    found = (_read_long if long else _read_wide)(table, names, workers, classes)
    if require and found.votes.nnz == 0:
        raise ValueError(NO_LABELS)
    return found


def _as_table(X: Any) -> tuple[list[Values], list[str] | None]:
    """Columns of X, and their names where it has any."""
    if sparse.issparse(X):
        raise ValueError("X is a sparse matrix, in which 0 and no label cannot be told apart: pass long rows instead.")
    if hasattr(X, "columns") and hasattr(X, "to_numpy"):
        parts = [X.iloc[:, j] if is_frame(X) else X[name] for j, name in enumerate(X.columns)]
        names = [str(name) for name in X.columns]
        if not names:
            raise ValueError("X is empty: it has no columns, and at least one annotator is needed.")
        return [_plain(part, f"column {name!r} of X") for part, name in zip(parts, names, strict=True)], names
    array = plain_array(X)
    if array.ndim != 2:
        raise ValueError(
            f"X must be two-dimensional, (items, annotators) or rows (item, worker, label), got shape {array.shape}."
        )
    if array.shape[0] == 0 or array.shape[1] == 0:
        raise ValueError(f"X is empty: its shape is {array.shape}, and at least one item and one annotator are needed.")
    if array.dtype.kind in "biuf":  # there is nothing to say of one column of numbers
        return _by_column(lambda column: _plain(column, "X"), list(array.T)), None
    return [_plain(array[:, j], f"column {j} of X") for j in range(array.shape[1])], None


def _plain(raw: Any, what: str) -> Values:
    """Numbers as float64, or as the integers they are where it cannot hold them; text as objects, None for nothing."""
    column = plain_column(raw, what)
    if column.dtype.kind in "iu" and column.size and max(int(column.max()), -int(column.min())) > EXACT:
        return column
    if column.dtype.kind in "biuf":
        return column.astype(np.float64)
    names = np.empty(len(column), dtype=object)
    names[:] = [None if is_missing(name) or name in _NO_TEXT else name for name in column.tolist()]
    return names if any(name is not None for name in names) else np.full(len(names), np.nan)


def _missing(column: Values) -> NDArray[np.bool_]:
    """Where no label was given."""
    if column.dtype == object:
        return np.array([value is None for value in column])
    return np.asarray(np.isnan(column) | (column == -1))


def _looks_long(columns: list[Values], names: list[str] | None) -> bool:
    if names is not None:
        return named_columns(names) is not None
    if len(columns) != 3:
        return False
    first, second, third = columns
    if any(_missing(column).any() for column in (first, second)):
        return False
    items, workers = _codes(first)[1], _codes(second)[1]
    labels, n_labels = _known(_codes(third)[0], _missing(third)), len(set(third.tolist()))
    n_workers = int(workers.max()) + 1
    distinct = np.unique(items * n_workers + workers).size == len(first)
    return distinct and int(items.max()) + 1 > n_labels and not set(first.tolist()) <= set(labels.tolist())


def _known(values: Values, missing: NDArray[np.bool_]) -> Values:
    return values if not missing.any() else np.array([v for v in values.tolist() if v is not None and v == v])


def named_columns(names: Sequence[str]) -> tuple[int, int, int] | None:
    """Where item, worker and label stand, by their names."""
    lower = [name.strip().lower().removesuffix("_id").removesuffix("id") or name.lower() for name in names]
    places = [next((i for i, name in enumerate(lower) if name in known), -1) for known in (_ITEMS, _WORKERS, _LABELS)]
    return None if -1 in places else (places[0], places[1], places[2])


def _codes(column: Values) -> tuple[Values, NDArray[np.intp]]:
    """Distinct values, sorted, and the number of each entry among them; whole numbers become integers."""
    try:
        values, codes = np.unique(column, return_inverse=True)
    except TypeError:
        kinds = sorted({type(value).__name__ for value in column})
        raise ValueError(f"X mixes values that cannot be sorted, {' and '.join(kinds)}: use one kind.") from None
    if values.dtype.kind == "f" and (np.abs(values) < 2**63).all() and (values == np.round(values)).all():
        values = values.astype(np.int64)
    elif values.dtype == object and all(isinstance(value, str) for value in values):
        values = values.astype(str)
    return values, codes


def name_codes(given: Any) -> Values:
    """Names that a caller lists, in the form in which they are found in data."""
    objects = np.empty(len(given), dtype=object)
    objects[:] = list(given)
    return _codes(_plain(objects, "a list of names"))[0]


def _labels(column: Values, classes: Values | None) -> tuple[Values, NDArray[np.intp]]:
    """Codes of labels that were given."""
    if column.dtype != object:
        _check_labels(column)
    return _match(column, classes, "label", "The classes are those seen in fit; fit again, or leave it out.")


def _check_labels(given: Values) -> None:
    """Raise for a number that is no label."""
    sound = np.isfinite(given) & (given == np.round(given)) & (given >= 0)
    if not sound.all():
        raise ValueError(
            f"X has the label {given[~sound][0]}: labels are categories, given as whole numbers from 0 on or as "
            "strings, with NaN or -1 where none was given."
        )


def _match(column: Values, known: Values | None, what: str, advice: str) -> tuple[Values, NDArray[np.intp]]:
    """Codes of a column; among known values where there are any."""
    if known is not None and known.dtype.kind in "iu" and column.dtype == np.float64:  # no need to sort them again
        places = np.minimum(np.searchsorted(known, column), len(known) - 1)
        if (known[places] == column).all():
            return known, places
    values, codes = _codes(column)
    if known is None:
        return values, codes
    lookup = {value: i for i, value in enumerate(known.tolist())}
    new = [value for value in values.tolist() if value not in lookup]
    if new:
        shown = ", ".join(repr(value) for value in new[:5])
        raise ValueError(f"X has the {what}{'s' * (len(new) > 1)} {shown}, never seen before. {advice}")
    return known, np.array([lookup[value] for value in values.tolist()], dtype=np.intp)[codes]


def _read_wide(
    columns: list[Values], names: list[str] | None, workers: Values | None, classes: Values | None
) -> CrowdLabels:
    own: Values = np.arange(len(columns)) if names is None else np.array(names)
    if workers is not None:
        if len(columns) != len(workers):
            raise ValueError(f"X has {len(columns)} annotators, but DawidSkene was fitted on {len(workers)}.")
        if names is not None and workers.dtype.kind == "U" and list(workers) != names:
            raise ValueError("X has other annotators, or in another order, than those of fit: use the same columns.")
        own = workers
    for column in columns:
        refuse_inexact(column, "X")  # joined below, beside floats
    items = np.arange(len(columns[0]))
    if any(column.dtype == object for column in columns) or (classes is not None and classes.dtype.kind == "U"):
        columns = [column if column.dtype == object else _named(column) for column in columns]  # all of them by name
    elif (numbered := _numbered(columns, classes)) is not None:
        return CrowdLabels(numbered[1], items, own, numbered[0], "wide")
    given = [~_missing(column) for column in columns]
    chosen = np.concatenate([column[mask] for column, mask in zip(columns, given, strict=True)])
    kinds, codes = _labels(chosen, classes)
    rows = np.concatenate([np.flatnonzero(mask) for mask in given])
    who = np.repeat(np.arange(len(columns)), [int(mask.sum()) for mask in given])
    return CrowdLabels(_votes(rows, who, codes, len(items), len(own), len(kinds)), items, own, kinds, "wide")


def _numbered(columns: list[Values], classes: Values | None) -> tuple[Values, sparse.csr_array] | None:
    """Labels and votes of columns of small whole numbers, which need no sorting; None where some are large."""
    seen = _by_column(_seen_labels, columns)
    n_numbers = max(map(len, seen))
    if n_numbers > _COUNTED:
        return None
    numbers = np.flatnonzero(np.any([np.pad(each, (0, n_numbers - len(each))) for each in seen], axis=0))
    kinds, codes = _labels(numbers.astype(np.float64), classes)
    places = np.full(n_numbers + 1, -1, dtype=np.int32)  # the last one is that of no label, -1
    places[numbers] = codes
    firsts = len(kinds) * np.arange(len(columns), dtype=_index_type(len(columns) * len(kinds)))

    def run(part: slice) -> tuple[NDArray[np.integer[Any]], NDArray[np.intp]]:
        block = np.stack([column[part] for column in columns], axis=1)
        none = _missing(block)
        block[none] = -1
        given = ~none
        return (places[block.astype(np.intp)] + firsts)[given], np.count_nonzero(given, axis=1)

    found = by_parts(run, len(columns[0]))
    indices, ends = joined_parts([part[0] for part in found]), np.concatenate([[0], *(part[1] for part in found)])
    ones = joined_parts([np.broadcast_to(1.0, len(part[0])) for part in found])
    shape = (len(columns[0]), len(columns) * len(kinds))
    votes = sparse.csr_array((ones, indices, ends.cumsum(dtype=_index_type(len(ones)))), shape=shape)
    votes.has_canonical_format = True  # a worker has one label for an item, and columns ascend with the workers
    return kinds, votes


def _seen_labels(column: Values) -> NDArray[np.bool_]:
    """Whether each number from 0 to the largest label is one of them; too long, and of no use, where one is large."""
    given = column[~_missing(column)]
    _check_labels(given)
    seen = np.zeros(1 + int(min(given.max(initial=-1), _COUNTED)), dtype=bool)
    if len(seen) <= _COUNTED:
        seen[given.astype(np.intp)] = True
    return seen


def _by_column(work: Callable[[Values], Values], columns: Sequence[Values]) -> list[Values]:
    """What each column gives, on threads where that is worth the while."""
    if len(columns) * len(columns[0]) < _MANY:
        return [work(column) for column in columns]
    return map_parts(lambda j: work(columns[j]), len(columns))


def _named(column: Values) -> Values:
    names = [None if m else symbol_of(value) for value, m in zip(column, _missing(column), strict=True)]
    return np.array(names, dtype=object)


def _read_long(
    columns: list[Values], names: list[str] | None, workers: Values | None, classes: Values | None
) -> CrowdLabels:
    places = (0, 1, 2) if names is None else named_columns(names) or (0, 1, 2)
    if len(columns) < 3 or (len(columns) > 3 and (names is None or named_columns(names) is None)):
        raise ValueError(f"long rows are (item, worker, label), three columns, got {len(columns)}.")
    item, worker, label = (columns[place] for place in places)
    for column, what in ((item, "item"), (worker, "worker")):
        nothing = [value is None for value in column] if column.dtype == object else np.isnan(column)
        if np.any(nothing):
            raise ValueError(f"X has {int(np.sum(nothing))} rows without {what}: drop them, or name it.")
    items, rows = _codes(item)
    advice = "His confusions are not known: fit again, leave him out, or name all annotators in the first partial_fit."
    own, who = _match(worker, workers, "worker", advice)
    given = ~_missing(label)
    kinds, codes = _labels(label[given], classes)
    return CrowdLabels(
        _votes(rows[given], who[given], codes, len(items), len(own), len(kinds)), items, own, kinds, "long"
    )


def _votes(
    rows: NDArray[np.intp], who: NDArray[np.intp], codes: NDArray[np.intp], n: int, n_workers: int, n_classes: int
) -> sparse.csr_array:
    shape = (n, n_workers * n_classes)
    whole = _index_type(max(*shape, len(rows)))
    places = rows.astype(whole), (who * n_classes + codes).astype(whole)
    votes = sparse.coo_array((np.ones(len(rows)), places), shape=shape).tocsr()
    votes.sum_duplicates()
    return votes


def _index_type(largest: int) -> type[np.integer[Any]]:
    """What compiled loops read without a copy, where it is enough."""
    return np.int32 if largest < 2**31 else np.int64
