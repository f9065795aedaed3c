"""Which format a file has: by its content first, then by its name."""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from collections.abc import Collection
from pathlib import Path

from odeco.files.compression import without_suffix
from odeco.files.encodings import marked_encoding
from odeco.files.opening import InputFile

# What users may say, and what is meant.
FORMATS = ("text", "folder", "csv", "tsv", "jsonl", "parquet", "uci", "ldac", "svmlight", "mtx", "npz", "npy", "wav")
_ALIASES = {
    "txt": "text",
    "lines": "text",
    "json": "jsonl",
    "ndjson": "jsonl",
    "docword": "uci",
    "lda-c": "ldac",
    "libsvm": "svmlight",
    "svm": "svmlight",
    "matrix-market": "mtx",
    "pq": "parquet",
}
_MAGIC = {
    b"PAR1": "parquet",
    b"\x93NUMPY": "npy",
    b"PK\x03\x04": "npz",
    b"PK\x05\x06": "npz",
    b"%%MatrixMarket": "mtx",
}
_BY_MAGIC = ("parquet", "npy", "npz", "mtx", "wav")
_SUFFIXES = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".ldac": "ldac",
    ".lda-c": "ldac",
    ".svmlight": "svmlight",
    ".libsvm": "svmlight",
    ".svm": "svmlight",
    ".mtx": "mtx",
    ".npz": "npz",
    ".npy": "npy",
    ".wav": "wav",
    ".txt": "text",
    ".text": "text",
    ".md": "text",
}
_NUMBER = rb"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?"
_UCI = re.compile(rb"\s*\d+[ \t\r]*\n\s*\d+[ \t\r]*\n\s*\d+[ \t\r]*\n\s*\d+[ \t]+\d+[ \t]+-?\d+\s")
_ARRAY = re.compile(rb"\s*\[\s*\{")  # of JSON
_PAIRS = re.compile(rb"%s(,%s)*(\s+(qid|\d+):%s)+\s*(#.*)?" % (_NUMBER, _NUMBER, _NUMBER))


def canonical_format(format: str, allowed: Collection[str]) -> str:
    """A format that a user has named, or "auto"."""
    name = _ALIASES.get(str(format).lower(), str(format).lower())
    if name != "auto" and name not in allowed:
        known = ", ".join(repr(known) for known in FORMATS if known in allowed)
        raise ValueError(f"format must be 'auto' or of {known}, got {format!r}.")
    return name


def detect(file: InputFile, allowed: Collection[str]) -> str:
    """The format of a file, among those that make sense; an error where it has another."""
    head = file.head()
    named = suffix_format(file.path if file.spool is None else Path(""))
    found = _by_content(head)
    if found is None and named in _BY_MAGIC:
        raise file.error(f"it is named like a {named} file and does not begin like one: damaged?")
    if found is None:
        found = _text_format(_as_utf8(file, head), named)
    if found not in allowed:
        if found == "text" and "csv" in allowed:
            return "csv"  # a table without a suffix: its delimiter is looked for
        known = ", ".join(known for known in FORMATS if known in allowed)
        raise file.error(f"it looks like {found}, and one of {known} is needed: name its format if it is another.")
    return found


def suffix_format(path: Path) -> str | None:
    """What the name says, that of a compression left out."""
    name = without_suffix(path.name.lower())
    return "uci" if name.startswith("docword") else _SUFFIXES.get(Path(name).suffix)


def _by_content(head: bytes) -> str | None:
    if head[:4] in (b"RIFF", b"RIFX") and head[8:12] == b"WAVE":
        return "wav"
    return next((name for magic, name in _MAGIC.items() if head.startswith(magic)), None)


def _as_utf8(file: InputFile, head: bytes) -> bytes:
    """The first bytes of a text; those of another encoding are known by its mark."""
    marked = marked_encoding(head)
    if marked is not None:
        return head[: len(head) // 4 * 4].decode(marked, "ignore").encode()
    if b"\0" in head:
        raise file.error("it holds binary data of a kind that is not known, and text is expected.")
    return head.removeprefix(BOM_UTF8)


def _text_format(head: bytes, named: str | None) -> str:
    if _UCI.match(head):
        return "uci"
    lines = [line.strip() for line in head.split(b"\n")[:20] if line.strip()]
    if len(head) >= 2**16:
        lines = lines[:-1] or lines  # the last may be cut
    pairs = [line for line in lines if not line.startswith(b"#")]
    # A document without words is a number alone.
    if any(b":" in line for line in pairs) and all(_PAIRS.fullmatch(line) or line.isdigit() for line in pairs):
        return _kind_of_pairs(pairs, named)
    if named in (None, "text") and lines and (all(line.startswith(b"{") for line in lines) or _ARRAY.match(head)):
        return "jsonl"
    return named or "text"


def _kind_of_pairs(lines: list[bytes], named: str | None) -> str:
    """LDA-C says how many pairs follow; a label that does so on every line by chance is told by the name."""
    if named in ("ldac", "svmlight"):
        return named
    counted = all(line.split()[0] == b"%d" % line.count(b":") for line in lines)
    return "ldac" if counted else "svmlight"
