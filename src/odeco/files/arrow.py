"""pyarrow, which is imported where it is needed, and its columns as arrays of numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from odeco.exceptions import InputFileError


def import_arrow(name: str, what: str) -> Any:
    """The module pyarrow, or an error that says how to get it."""
    try:
        import pyarrow
        import pyarrow.compute
        import pyarrow.csv
        import pyarrow.parquet
    except ImportError as error:
        raise InputFileError(f"{name}: {what} needs pyarrow, which is missing: pip install pyarrow.") from error
    return pyarrow


def kind_of(arrow: Any, dtype: Any) -> str | None:
    """What a column holds: "integer", "number", "truth", "label", or None for what no model takes."""
    types = arrow.types
    if types.is_dictionary(dtype):
        return kind_of(arrow, dtype.value_type)
    if types.is_integer(dtype):
        return "integer"
    if types.is_floating(dtype) or types.is_decimal(dtype) or types.is_null(dtype):
        return "number"
    if types.is_boolean(dtype):
        return "truth"
    if types.is_string(dtype) or types.is_large_string(dtype) or str(dtype) == "string_view":
        return "label"
    return None


def to_numpy(arrow: Any, column: Any, kind: str) -> NDArray[Any]:
    """A column as an array: NaN where a number is missing, None where a label is."""
    if arrow.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if kind == "label":
        return np.array(column.to_pylist(), dtype=object)
    if kind == "number" and column.type != arrow.float32():
        column = column.cast(arrow.float64())
    if column.null_count:
        column = column.cast(arrow.float64()).fill_null(np.nan)
    return np.asarray(column.to_numpy(zero_copy_only=False))
