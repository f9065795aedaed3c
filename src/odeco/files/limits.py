"""What a file may claim: a few kilobytes must not take gigabytes, or hours, by what they say of themselves.

Whoever means it raises a limit by an environment variable: ``ODECO_MAX_`` and its name, as ``ODECO_MAX_LINE_BYTES``.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, fields


@dataclass(frozen=True)
class Limits:
    """The limits of all readers."""

    # A line of a text format, a row of CSV: it is held as a whole, and what is made of it is up to 30 times as large.
    line_bytes: int = 2**24
    # Columns of a table or a view: each has a name, and a row of a table has a value for each.
    table_columns: int = 2**20
    # Rows that are declared beyond the number of entries: nothing in the file stands for them.
    empty_rows: int = 10**7
    # Cells of JSON lines that no value stands for, beyond a hundred for each value: names that each occur once.
    empty_cells: int = 2**25
    # Entries of a Matrix Market file that is read at once: more are streamed, and their rows must come in order.
    market_entries: int = 2**23
    # Bytes of compressed arrays and sounds once they are unpacked; those that are not compressed are what they are.
    unpacked_bytes: int = 2**31


def limits() -> Limits:
    """The limits that hold now: those of the environment before those above."""
    usual = Limits()
    return Limits(*(_given(variable(field.name), getattr(usual, field.name)) for field in fields(usual)))


def variable(name: str) -> str:
    """The environment variable that raises a limit."""
    return f"ODECO_MAX_{name.upper()}"


def _given(name: str, default: int) -> int:
    value = os.environ.get(name, "").strip()
    if not value:
        return default
    if not (value.isascii() and value.isdigit() and int(value) > 0):
        raise ValueError(f"the environment variable {name} must be a whole number above 0, got {value!r}.")
    return int(value)
