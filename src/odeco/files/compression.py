"""Compressed files, known by their first bytes: gzip, bzip2, xz and Zstandard."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

from odeco.files.arrow import import_arrow

SUFFIXES = (".gz", ".bz2", ".xz", ".zst")
MAGIC_BYTES = 10  # that tell one from the other
_OPENERS: Mapping[str, Any] = {"gzip": gzip.open, "bz2": bz2.open, "xz": lzma.open}
# What is raised for files that are damaged or cut short.
DAMAGED = (EOFError, zlib.error, gzip.BadGzipFile, lzma.LZMAError)


def codec_of(head: bytes) -> str:
    """What a file that begins like this is compressed by; nothing for others."""
    if head.startswith(b"\x1f\x8b"):
        return "gzip"
    if head.startswith(b"BZh") and head[4:10] in (b"1AY&SY", b"\x17rE8P\x90"):  # a block, or the end of an empty file
        return "bz2"
    if head.startswith(b"\xfd7zXZ\x00"):
        return "xz"
    return "zstd" if head.startswith(b"\x28\xb5\x2f\xfd") else ""


def without_suffix(name: str) -> str:
    """The name of a file without that of its compression."""
    return next((name.removesuffix(suffix) for suffix in SUFFIXES if name.endswith(suffix)), name)


def open_packed(path: Path, codec: str, name: str, buffer_bytes: int) -> BinaryIO:
    """The bytes of a compressed file, as they are needed. Zstandard is pyarrow's: Python has it from 3.14 on."""
    if codec == "zstd":
        arrow = import_arrow(name, "reading Zstandard")
        return io.BufferedReader(arrow.input_stream(str(path), compression="zstd"), buffer_bytes)
    return io.BufferedReader(_OPENERS[codec](path, "rb"), buffer_bytes)
