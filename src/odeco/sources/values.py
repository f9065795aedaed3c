"""What cells may hold, whichever library brings them: numbers, text, or nothing.

Everything that estimators take as Python objects comes through here. What is none of the three (dates, complex numbers,
records) is an error that says what was found; masked entries, None and pandas' NA are missing; nothing is rounded or
wrapped on the way to a name.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Values = NDArray[Any]

# Whole numbers up to here are exact in float64: larger ones may become one another there.
EXACT = 2**53
_NUMBERS = (bool, int, float, np.bool_, np.integer, np.floating, Decimal, Fraction)
_NOTHING = ("NoneType", "NAType", "NaTType", "MaskedConstant")  # those of pandas, without importing it
_DATES = ("datetime", "date", "time", "timedelta", "Timestamp", "Timedelta", "Period", "datetime64", "timedelta64")


def is_missing(value: Any) -> bool:
    """Whether a value stands for none: None, NaN, NaT, pandas' NA, a masked entry."""
    if type(value).__name__ in _NOTHING:
        return True
    unequal = value != value
    return isinstance(unequal, (bool, np.bool_)) and bool(unequal)


def symbol_of(value: Any) -> str:
    """The name of a symbol, label or category: other values have other names, whole numbers no point."""
    if isinstance(value, (float, np.floating)):
        number = float(value)
        return str(int(number)) if number.is_integer() and abs(number) < 2**63 else repr(number)
    return str(value)


def is_frame(X: Any) -> bool:
    """Whether X has columns of different types: a DataFrame, or `odeco.files.frames.Frame`."""
    return hasattr(X, "dtypes") and hasattr(X, "iloc") and len(getattr(X, "shape", ())) == 2


def plain_array(X: Any, what: str = "X") -> Values:
    """X as an array of numpy's own class and the machine's byte order, of numbers, text or objects.

    A masked entry becomes NaN, or None beside anything but floats. Numbers are neither converted nor copied.
    """
    if sparse.issparse(X):
        raise ValueError(f"{what} is a sparse matrix, and a dense array is needed: give {what}.toarray().")
    if isinstance(X, (list, tuple)) and any(isinstance(row, np.ma.MaskedArray) for row in X):
        X = np.ma.asarray(X)
    if is_frame(X):
        for j, dtype in enumerate(X.dtypes):
            refuse_kind(dtype, f"column {X.columns[j]!r} of {what}")
    masked = isinstance(X, np.ma.MaskedArray)
    array = _unmasked(X) if masked else _as_array(X.to_numpy() if hasattr(X, "to_numpy") else X, what)
    refuse_kind(array.dtype, what)
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def number_array(X: Any, what: str = "X") -> Values:
    """The same where it must hold numbers: booleans, integers or floats; objects become float64, NaN where missing."""
    if is_frame(X) and not all(isinstance(dtype, np.dtype) for dtype in X.dtypes):
        return np.column_stack([number_array(column, name) for name, column in _plain_columns(X, what)])
    array = plain_array(X, what)
    if array.dtype.kind in "UST":
        raise ValueError(_text_for_numbers(what, array.ravel().tolist()))
    return numbers_of(array, what) if array.dtype == object else array


def number_block(X: Any) -> Any:
    """X as it may go on to scikit-learn's checks: a DataFrame of numbers, which has names, or an array of them."""
    if sparse.issparse(X):
        return X  # they say that it is not taken
    if not hasattr(X, "columns"):
        return number_array(X)
    if all(getattr(dtype, "kind", "O") in "biuf" for dtype in X.dtypes):
        return X
    numbers = number_array(X)
    return type(X)(numbers, columns=X.columns, index=X.index) if hasattr(X, "index") else X


def weight_array(weights: Any, what: str = "sample_weight") -> NDArray[np.float64]:
    """Weights as float64."""
    return np.asarray(number_array(weights, what), dtype=np.float64)


def plain_column(raw: Any, what: str) -> Values:
    """One column of a table as `plain_array` gives it; objects that are all numbers as float64.

    pandas' own types of numbers become those of numpy, float64 where a value is missing.
    """
    dtype = getattr(raw, "dtype", None)
    refuse_kind(dtype, what)
    if hasattr(dtype, "numpy_dtype") and getattr(dtype, "kind", "O") in "biuf":
        return _of_nullable(raw, dtype, what)
    values = plain_array(raw.astype(object) if hasattr(dtype, "categories") else raw, what)
    if values.dtype != object or hasattr(dtype, "categories"):
        return values
    kinds = object_kinds(values, what)
    if kinds == {"number", "text"}:
        raise ValueError(f"{what} mixes numbers and text: make it one of them, astype(float) or astype(str).")
    return values if "text" in kinds else numbers_of(values, what)


def _plain_columns(X: Any, what: str) -> Iterator[tuple[str, Values]]:
    for j in range(X.shape[1]):
        name = f"column {X.columns[j]!r} of {what}"
        yield name, plain_column(X.iloc[:, j], name)


def object_kinds(values: Values, what: str) -> set[str]:
    """Which of "number" and "text" objects are; missing ones are neither, and others are an error."""
    return {_kind_of(kind, what) for kind in {type(item) for item in values.ravel().tolist() if not is_missing(item)}}


def numbers_of(values: Values, what: str) -> Values:
    """An array of objects as float64, NaN where missing."""
    items = values.ravel().tolist()
    if "text" in object_kinds(values, what):
        raise ValueError(_text_for_numbers(what, items))
    _refuse_beyond(max((int(item) for item in items if isinstance(item, (int, np.integer))), key=abs, default=0), what)
    return np.array([np.nan if is_missing(item) else float(item) for item in items]).reshape(values.shape)


def refuse_kind(dtype: Any, what: str) -> None:
    """Raise for a type of array or column that holds neither numbers nor text."""
    kind, name = getattr(dtype, "kind", "O"), str(dtype)
    if kind in "mM" or name.startswith("period"):
        raise ValueError(_no_dates(what, name))
    if kind == "c":
        raise ValueError(f"{what} holds complex numbers ({name}). Complex data not supported: give real numbers.")
    if kind == "V":
        fields = f"records with the fields {', '.join(dtype.names)}" if dtype.names else f"raw bytes ({name})"
        raise ValueError(f"{what} holds {fields}: give a DataFrame, or an array with a column for each field.")
    if name.startswith("interval"):
        raise ValueError(f"{what} holds intervals ({name}): make it a category, or give their middles as numbers.")


def _kind_of(kind: type, what: str) -> str:
    if issubclass(kind, (str, bytes)):
        return "text"
    if issubclass(kind, _NUMBERS) and kind.__name__ not in _DATES:  # numpy counts a timedelta64 among the integers
        return "number"
    if kind.__name__ in _DATES:
        raise ValueError(_no_dates(what, kind.__name__))
    raise TypeError(f"{what} holds a value of the type {kind.__name__}: the argument must be a string or a number.")


def _as_array(X: Any, what: str) -> Values:
    try:
        return np.asarray(X)
    except ValueError as error:  # nested lists of several lengths
        raise ValueError(f"{what} must have one shape of observation at all rows or steps: {error}") from error


def _unmasked(X: Any) -> Values:
    """The data of a masked array, what is masked replaced."""
    mask, values = np.ma.getmaskarray(X), np.asarray(X.data)
    if values.dtype.names or not mask.any():
        return values
    if values.dtype.kind == "f":
        return np.where(mask, np.array(np.nan, values.dtype), values)
    objects = values.astype(object)
    objects[mask] = None
    return objects


def _of_nullable(raw: Any, dtype: Any, what: str) -> Values:
    known = raw.dropna().to_numpy(dtype=dtype.numpy_dtype)  # exact
    if len(known) == len(raw):
        return np.asarray(known)
    refuse_inexact(known, what)
    return np.asarray(raw.to_numpy(dtype=np.float64, na_value=np.nan))


def refuse_inexact(known: Values, what: str) -> None:
    """Raise for an array of integers that float64, which also holds what is missing, cannot tell apart."""
    if known.dtype.kind in "iu" and known.size:
        _refuse_beyond(max(int(known.max()), int(known.min()), key=abs), what)


def _refuse_beyond(farthest: int, what: str) -> None:
    if abs(farthest) > EXACT:
        raise ValueError(
            f"{what} has the whole number {farthest}, beyond 2**53, where floats cannot tell neighbours apart: give "
            "identifiers as text, or leave them out."
        )


def _text_for_numbers(what: str, items: list[Any]) -> str:
    found = next((item for item in items if isinstance(item, (str, bytes))), "")
    return f"{what} must hold numbers, and holds the text {found!r}: use astype(float), or code categories as numbers."


def _no_dates(what: str, name: str) -> str:
    return (
        f"{what} holds dates or times ({name}), which are neither numbers nor categories. Leave them out, or give what "
        "matters of them: a number (days since a beginning) or a category (the month)."
    )
