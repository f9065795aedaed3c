"""WAV: samples of sound, whole or real numbers of any usual width, streamed."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from odeco.files.opening import InputFile
from odeco.files.stored import StoredRows, check_size

_WHOLE, _REAL, _EXTENSIBLE = 1, 3, 0xFFFE
_STREAMED = 0xFFFFFFFF  # the length that recorders write who do not know it yet


@dataclass(frozen=True)
class Format:
    """How samples are stored."""

    tag: int
    n_channels: int
    rate: int
    sample_bytes: int
    order: str  # of bytes: "<" or ">"

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the numbers that are read: bytes where samples have three of them."""
        kind = "f" if self.tag == _REAL else "u" if self.sample_bytes in (1, 3) else "i"
        return np.dtype(f"{self.order}{kind}{1 if self.sample_bytes == 3 else self.sample_bytes}")


@dataclass(frozen=True, eq=False)
class Sound:
    """Samples (n, channels) of a file; whole numbers are fractions of the largest one."""

    format: Format
    rows: StoredRows

    def batches(self, n: int) -> Iterator[NDArray[np.float64]]:
        """So many samples at a time; each call starts anew."""
        for block in self.rows.batches(n):
            yield _fractions(_of_three_bytes(block, self.format) if self.format.sample_bytes == 3 else block)


def read_wav(file: InputFile) -> Sound:
    """The header of a WAV file: its samples are read later."""
    with file.guard(), file.unpacked() as stream:
        order = ">" if stream.read(12)[:4] == b"RIFX" else "<"
        found: Format | None = None
        while len(head := stream.read(8)) == 8:
            name, size = head[:4], struct.unpack(f"{order}I", head[4:])[0]
            if name == b"data" and found is not None:
                return _sound(file, found, stream, size)
            begin = stream.tell()
            if name == b"fmt ":
                found = _format(file, stream.read(min(size, 40)), order)
            stream.seek(begin + size + size % 2)
    raise file.error("the WAV file is damaged or cut short: it has no samples behind a description of them.")


def _format(file: InputFile, content: bytes, order: str) -> Format:
    if len(content) < 16:
        raise file.error("the WAV file is damaged: the description of its samples is cut short.")
    tag, n_channels, rate, _, frame_bytes, bits = struct.unpack(f"{order}HHIIHH", content[:16])
    if tag == _EXTENSIBLE and len(content) >= 26:
        tag = struct.unpack(f"{order}H", content[24:26])[0]
    size = frame_bytes // n_channels if n_channels else 0
    known = size in {_WHOLE: (1, 2, 3, 4, 8), _REAL: (4, 8)}.get(tag, ())
    if not known or frame_bytes % n_channels or not 0 < bits <= 8 * size or rate == 0:
        raise file.error(
            f"it has {n_channels} channels of {bits} bits in {frame_bytes} bytes at {rate} per second, of kind {tag}: "
            "damaged, or compressed sound. Convert it to WAV of whole or real numbers."
        )
    return Format(tag, n_channels, rate, size, order)


def _sound(file: InputFile, found: Format, stream: BinaryIO, size: int) -> Sound:
    offset = stream.tell()
    if size == _STREAMED:
        size = stream.seek(0, 2) - offset
    check_size(file, offset, size)
    n_samples = size // (found.n_channels * found.sample_bytes)
    if n_samples == 0:
        raise file.error("it holds no samples.")
    width = found.n_channels * found.sample_bytes // found.dtype.itemsize
    return Sound(found, StoredRows(file, offset, (n_samples, width), found.dtype))


def _of_three_bytes(block: NDArray[np.uint8], found: Format) -> NDArray[np.int32]:
    """The three upper bytes of whole numbers of four."""
    wide = np.zeros((len(block), found.n_channels, 4), np.uint8)
    wide[:, :, slice(1, 4) if found.order == "<" else slice(0, 3)] = block.reshape(len(block), found.n_channels, 3)
    return wide.view(f"{found.order}i4")[:, :, 0].astype(np.int32)


def _fractions(samples: NDArray[Any]) -> NDArray[np.float64]:
    if samples.dtype.kind == "f":
        return samples.astype(np.float64)
    if samples.dtype == np.uint8:
        return (samples.astype(np.float64) - 128.0) / 127.0
    return samples.astype(np.float64) / float(np.iinfo(samples.dtype).max)
