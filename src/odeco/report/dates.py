"""Dates of documents: years, days or times, in any form that ISO 8601 has, and the stretches of time they fall into."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

_BINS = 48  # at most


@dataclass(frozen=True, eq=False)
class Timeline:
    """Documents along time.

    Attributes
    ----------
    places : (n,) int
        The stretch of each document.
    n_bins : int
    first, last : str
        The dates at which it begins and ends.
    names : list of str
        The date of each document, as it is shown.
    """

    places: NDArray[np.intp] = field(repr=False)
    n_bins: int
    first: str
    last: str
    names: list[str] = field(repr=False)


def timeline(dates: Iterable[Any]) -> Timeline:
    """Put dates on a line of equal stretches, as many as there are dates, no more than 48.

    Examples
    --------
    >>> from odeco.report.dates import timeline
    >>> found = timeline([1790, 1801, 1790, 2021])
    >>> found.first, found.last, found.places.tolist()
    ('1790', '2021', [0, 0, 0, 2])
    """
    parsed = [_parsed(value, row) for row, value in enumerate(dates)]
    if not parsed:
        raise ValueError("dates is empty: give one for each document.")
    values, names = np.array([value for value, _ in parsed]), [name for _, name in parsed]
    low, high = values.argmin(), values.argmax()
    n_bins = int(min(_BINS, np.unique(values).size))
    span = max(float(values[high] - values[low]), 1e-9)
    places = np.minimum(((values - values[low]) / span * n_bins).astype(np.intp), n_bins - 1)
    return Timeline(places, n_bins, names[low], names[high], names)


def _parsed(value: Any, row: int) -> tuple[float, str]:
    """A date as a number of years, and as it is shown."""
    if isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool) and value == int(value):
        return float(value), str(int(value))
    if isinstance(value, np.datetime64):
        value = value.astype("datetime64[s]").item()
    if isinstance(value, str):
        text = value.strip()
        if text.lstrip("-").isdigit() and len(text) <= 4:
            return float(text), text
        try:
            value = datetime.fromisoformat(text)
        except ValueError:
            value = None
    if not isinstance(value, date):
        raise ValueError(f"dates must be years or dates as 2021-06-30, and row {row} is another: leave dates out.")
    return _years(value), value.date().isoformat() if isinstance(value, datetime) else value.isoformat()


def _years(value: date) -> float:
    """The time in years, of 365.2425 days from the beginning of the calendar."""
    if isinstance(value, datetime):
        moment = value.replace(tzinfo=None) if value.tzinfo is None else value.astimezone(UTC).replace(tzinfo=None)
        return (moment.toordinal() + moment.hour / 24 + moment.minute / 1440) / 365.2425
    return value.toordinal() / 365.2425
