"""Rows of numbers as they lie in a file, read a batch at a time.

They are read and never mapped: when a file is cut while it is read, a read comes short and an error can say so, but a
map ends the process.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from odeco.files.opening import InputFile

# Numbers of a batch of dense rows: 2^21 of them are 16 MiB.
BATCH_NUMBERS = 2**21


@dataclass(frozen=True, eq=False)
class StoredRows:
    """Rows of a file from an offset on, one after the other, or column after column."""

    file: InputFile
    offset: int
    shape: tuple[int, int]
    dtype: np.dtype[Any] = field(repr=False)
    by_columns: bool = False

    def batches(self, step: int | None = None) -> Iterator[NDArray[Any]]:
        """So many rows at a time; each call starts anew."""
        n_rows, n_columns = self.shape
        step = step or max(BATCH_NUMBERS // n_columns, 1)
        with self.file.guard(), self.file.unpacked() if self.by_columns else self.file.open() as stream:
            stream.seek(self.offset)
            for start in range(0, n_rows, step):
                n = min(step, n_rows - start)
                yield native(self._columns(stream, start, n) if self.by_columns else self._rows(stream, n))

    def _rows(self, stream: BinaryIO, n: int) -> NDArray[Any]:
        return self._numbers(stream, n * self.shape[1]).reshape(n, self.shape[1])

    def _columns(self, stream: BinaryIO, start: int, n: int) -> NDArray[Any]:
        block = np.empty((n, self.shape[1]), self.dtype)
        for j in range(self.shape[1]):
            stream.seek(self.offset + (j * self.shape[0] + start) * self.dtype.itemsize)
            block[:, j] = self._numbers(stream, n)
        return block

    def _numbers(self, stream: BinaryIO, n: int) -> NDArray[Any]:
        content = stream.read(n * self.dtype.itemsize)
        if len(content) < n * self.dtype.itemsize:
            raise self.file.error("it is cut short: there are fewer numbers in it than its header says.")
        return np.frombuffer(content, self.dtype).copy()


def check_size(file: InputFile, offset: int, n_bytes: int) -> None:
    """Refuse a file that is shorter than its header says. (Compressed ones are found out when they are read.)"""
    size = os.path.getsize(file.path)
    if not file.compressed and size < offset + n_bytes:
        raise file.error(f"it is cut short: its header says {offset + n_bytes} bytes, and it has {size}.")


def native(array: NDArray[Any]) -> NDArray[Any]:
    """Numbers in the byte order of the machine, and of a precision that models compute in."""
    kind, size = array.dtype.kind, array.dtype.itemsize
    if kind == "f" and size not in (4, 8):
        return array.astype(np.float32 if size == 2 else np.float64)
    return array.astype(array.dtype.newbyteorder("="), copy=False)
