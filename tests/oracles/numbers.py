"""Numbers of lines, one expression and one conversion at a time."""

from __future__ import annotations

import re

_NUMBER = re.compile(rb"[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?|nan|inf|infinity)", re.IGNORECASE)


def numbers_of(block: bytes) -> list[list[list[float]]] | None:
    """For each line that has some: its fields, each the numbers that colons join. None where anything is no number."""
    lines = []
    for line in block.split(b"\n"):
        fields = [field.split(b":") for field in line.split()]
        if not all(_NUMBER.fullmatch(number) for field in fields for number in field):
            return None
        if fields:
            lines.append([[float(number) for number in field] for field in fields])
    return lines
