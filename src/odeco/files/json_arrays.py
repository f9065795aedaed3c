"""JSON arrays of objects, ``[{...}, {...}]``, read piece by piece: no more than one object and a piece is held."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from odeco.files.opening import InputFile

_SPACE = re.compile(r"\s*")
_BEGINNING = re.compile(r'\s*\[\s*[{"\]]')


def is_array(text: str) -> bool:
    """Whether a text begins as an array."""
    return _BEGINNING.match(text) is not None


def array_items(file: InputFile, encoding: str) -> Iterator[list[Any]]:
    """Items of the array of a file, some at a time; texts are objects with the text alone."""
    reader = _Reader(file)
    for text in file.text_pieces(encoding):
        if items := reader.read(text):
            yield items
    reader.finish()


class _Reader:
    """The place in an array: before it, before an item, behind one, behind the array."""

    def __init__(self, file: InputFile) -> None:
        self._file, self._decoder = file, json.JSONDecoder()
        self._rest, self._place, self._n_items = "", "start", 0

    def read(self, text: str) -> list[Any]:
        """All items that end in this piece of text."""
        self._rest += text
        items: list[Any] = []
        position = 0
        while (position := self._after_space(position)) < len(self._rest):
            if self._place in ("first", "item") and not (self._place == "first" and self._rest[position] == "]"):
                item, end = self._item(position)
                if end is None:  # it goes on in the next piece
                    break
                items.append(item)
                position, self._place = end, "next"
            else:
                self._place = self._sign(self._rest[position])
                position += 1
        self._rest = self._rest[position:]
        self._file.check_limit("line_bytes", len(self._rest), f"item {self._n_items + 1} is too long, or is not closed")
        return items

    def finish(self) -> None:
        """Raise where the array has not ended."""
        if self._rest and self._place in ("first", "item"):
            try:
                self._decoder.raw_decode(self._rest)
            except (ValueError, RecursionError) as error:
                raise self._file.error(f"it is not JSON (item {self._n_items + 1}: {error}).") from error
        if self._place != "end":
            raise self._file.error(f"the JSON array ends after {self._n_items} items without its ]: cut short?")

    def _after_space(self, position: int) -> int:
        found = _SPACE.match(self._rest, position)
        assert found is not None
        return found.end()

    def _sign(self, sign: str) -> str:
        """The place behind a sign of the array itself."""
        after = {("start", "["): "first", ("first", "]"): "end", ("next", ","): "item", ("next", "]"): "end"}
        place = after.get((self._place, sign))
        if place is None:
            raise self._file.error(f"it is not JSON: {sign!r} where an array begins, goes on or has ended.")
        return place

    def _item(self, position: int) -> tuple[Any, int | None]:
        if self._rest[position] not in '{"':
            found = self._rest[position : position + 20]
            raise self._file.error(f"item {self._n_items + 1} of the array must be an object {{...}}, found {found!r}.")
        try:
            item, end = self._decoder.raw_decode(self._rest, position)
        except (ValueError, RecursionError):
            return None, None
        self._n_items += 1
        return {"text": item} if isinstance(item, str) else item, end
