"""Results as what JSON knows."""

from __future__ import annotations

import dataclasses
from enum import Enum
from typing import Any


def as_plain(value: Any) -> Any:
    """Turn a result into what JSON knows: lists, numbers, strings; what is not a number becomes null."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: as_plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Enum):
        return as_plain(value.value)
    if hasattr(value, "tolist"):  # NumPy arrays and scalars
        return as_plain(value.tolist())
    if hasattr(value, "items"):
        return {str(key): as_plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [as_plain(item) for item in value]
    if isinstance(value, float):
        return value if abs(value) < float("inf") else None
    return value if value is None or isinstance(value, (str, int)) else str(value)
