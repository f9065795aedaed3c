"""Text of any encoding: a byte order mark says which one it is of Unicode's, where the user has named no other."""

from __future__ import annotations

import codecs
import io

# Longest first: the mark of UTF-16 is the beginning of that of UTF-32.
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_LONGEST = 4


def marked_encoding(head: bytes) -> str | None:
    """The encoding that a byte order mark tells, where it is not UTF-8."""
    return next((name for mark, name in _MARKS if head.startswith(mark)), None)


def text_decoder(encoding: str) -> codecs.IncrementalDecoder:
    """A strict decoder that drops a byte order mark; where UTF-8 is expected, the mark of another is believed."""
    try:
        io.TextIOWrapper(io.BytesIO(), encoding=encoding)  # refuses codecs that are not text
        name = codecs.lookup(encoding).name
    except LookupError:
        raise ValueError(f"encoding {encoding!r} is not known: try 'utf-8', 'latin-1' or 'utf-16'.") from None
    return _ByMark() if name == "utf-8" else codecs.getincrementaldecoder(name)("strict")


class _ByMark(codecs.IncrementalDecoder):
    """UTF-8, or what the first bytes say; these wait for one another."""

    def __init__(self) -> None:
        super().__init__("strict")
        self._head = b""
        self._decoder: codecs.IncrementalDecoder | None = None

    def decode(self, input: bytes, final: bool = False) -> str:  # type: ignore[override]
        """The text of the next bytes."""
        if self._decoder is None:
            self._head += input
            if len(self._head) < _LONGEST and not final:
                return ""
            self._decoder = codecs.getincrementaldecoder(marked_encoding(self._head) or "utf-8-sig")("strict")
            input = self._head
        return self._decoder.decode(input, final)
