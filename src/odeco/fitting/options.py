"""Checks of constructor arguments, with one wording for all models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def check_choice(name: str, value: Any, allowed: Sequence[str | None]) -> None:
    """Raise unless an option is one of the allowed values."""
    if not (value is None or isinstance(value, str)) or value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, allowed))}, got {value!r}.")


def check_integer(name: str, value: Any, least: int = 1) -> None:
    """Raise unless an option is an integer of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        kind = "a positive integer" if least == 1 else f"an integer of at least {least}"
        raise ValueError(f"{name} must be {kind}, got {value!r}.")


def check_number(name: str, value: Any) -> None:
    """Raise unless an option is a finite number, 0 or positive."""
    number = isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
    if not number or not np.isfinite(value) or value < 0:
        raise ValueError(f"{name} must be a finite number, 0 or positive, got {value!r}.")


def check_enough(n_samples: int, n_components: int) -> None:
    """Raise where there are fewer samples than components."""
    if n_samples < n_components:
        raise ValueError(
            f"n_samples={n_samples} is smaller than n_components={n_components}: use more samples or fewer components."
        )
