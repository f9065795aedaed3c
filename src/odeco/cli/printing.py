"""What goes to a terminal: text of files and models, made harmless; answers as lines or as JSON."""

from __future__ import annotations

import json
import re
from typing import Any

import typer

from odeco.cli.as_json import as_plain

# What a terminal obeys instead of showing it: control characters (escape sequences begin with one), ends of lines,
# changes of the direction of writing; and halves of characters, which cannot be printed at all.
_COMMANDS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: str) -> str:
    """One line of text with nothing in it that a terminal would obey; such characters are spelled as JSON does."""
    return _COMMANDS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def print_lines(*lines: str) -> None:
    """Lines on stdout; what they hold of files and models starts no line of its own."""
    for line in lines:
        typer.echo(printable(line))


def print_json(value: Any) -> None:
    """A result as JSON on stdout, in one line."""
    print_lines(json.dumps(as_plain(value), allow_nan=False, ensure_ascii=False))
