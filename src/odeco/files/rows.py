"""Sparse rows from a file, batch by batch: what every format of counts becomes, and the source made of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from odeco.files.opening import InputFile
from odeco.files.prefetch import prefetched
from odeco.sources.base import Batch
from odeco.sources.counts import as_batch
from odeco.sources.streams import StreamSource

# Word numbers are 32-bit integers.
MOST_COLUMNS = 2**31 - 2
# Rows and nonzeros of a batch at most: 2^21 nonzeros are 16 MiB.
BATCH_ROWS, BATCH_NONZEROS = 65_536, 2**21


@dataclass(frozen=True, eq=False)
class SparseRows:
    """Rows of a file as CSR pieces of any size; `read` starts anew at each call. Values may be negative here."""

    file: InputFile
    format: str
    n_features: int
    read: Callable[[], Iterator[sparse.csr_array]] = field(repr=False)
    vocabulary: list[str] | None = field(default=None, repr=False)
    rows_per_batch: int = BATCH_ROWS

    def with_columns(self, n_features: int | None, vocabulary: list[str] | None) -> SparseRows:
        """The same rows with as many columns as are asked for: those beyond the file's own are empty."""
        wanted = len(vocabulary) if vocabulary is not None else n_features
        if vocabulary is not None and n_features is not None and len(vocabulary) != n_features:
            raise ValueError(f"the vocabulary has {len(vocabulary)} words, n_features is {n_features}.")
        if wanted is None or (wanted == self.n_features and vocabulary is None):
            return self
        if wanted < self.n_features:
            what = f"the vocabulary has {wanted} words" if vocabulary is not None else f"{wanted} are expected"
            raise self.file.error(f"it has {self.n_features} columns, but {what}.")

        def widened() -> Iterator[sparse.csr_array]:
            for part in self.read():
                part.resize((part.shape[0], wanted))
                yield part

        names = vocabulary if vocabulary is not None else None
        return replace(self, n_features=wanted, read=widened, vocabulary=names)

    def source(self) -> FileCounts:
        """The rows as a source of counts, checked, one batch read ahead."""
        return FileCounts(self.file, self._checked, self.n_features, self.rows_per_batch)

    def _checked(self) -> Iterator[Batch]:
        first = 1
        for part in self.read():
            if part.shape[0]:
                yield checked_counts(self.file, part, first)
            first += part.shape[0]


class FileCounts(StreamSource):
    """Counts of a file: the number of columns is known before anything is read."""

    def __init__(self, file: InputFile, read: Callable[[], Iterator[Any]], n_features: int, batch_size: int) -> None:
        super().__init__(lambda: prefetched(read()), batch_size)
        self._file = file  # a temporary copy of a pipe lives as long as its source
        self._n_features = n_features


def checked_counts(file: InputFile, part: sparse.csr_array, first_row: int) -> Batch:
    """Counts as a batch; the first that is negative or not finite is an error that names its row."""
    values = part.data
    if values.dtype.kind not in "biuf":
        raise file.error(f"counts must be numbers, found {values.dtype}.")
    if values.size:
        low, high = values.min(), values.max()
        if not (low >= 0 and high < np.inf):  # NaN fails the first
            wrong = np.flatnonzero(~((values >= 0) & (values < np.inf)))[0]
            row = first_row + int(np.searchsorted(part.indptr, wrong, side="right")) - 1
            raise file.error(f"row {row} has the count {values[wrong]}: counts must be finite and not negative.")
    with file.guard():
        return as_batch(part)


def csr_part(
    file: InputFile, values: NDArray[Any], columns: NDArray[Any], indptr: NDArray[Any], n_features: int, first_row: int
) -> sparse.csr_array:
    """A CSR array of clean parts; a column outside 0, ..., n_features - 1 is an error that names its row."""
    if columns.size:
        low, high = int(columns.min()), int(columns.max())
        if low < 0 or high >= n_features:
            wrong = np.flatnonzero((columns < 0) | (columns >= n_features))[0]
            row = first_row + int(np.searchsorted(indptr, wrong, side="right")) - 1
            raise file.error(
                f"row {row} has the word number {columns[wrong]} (counted from 0), outside 0 to {n_features - 1}."
            )
    part = sparse.csr_array((len(indptr) - 1, n_features), dtype=values.dtype)
    part.data = values
    part.indices = columns.astype(np.int32, copy=False)
    part.indptr = indptr.astype(np.int32 if len(values) < 2**31 else np.int64, copy=False)
    return part


def check_width(file: InputFile, n_features: int) -> int:
    """The number of columns, if it is one."""
    if not 0 < n_features <= MOST_COLUMNS:
        raise file.error(f"it has {n_features} columns, and 1 to {MOST_COLUMNS} can be read.")
    return int(n_features)


def check_rows(file: InputFile, n_rows: int, n_entries: int) -> None:
    """Refuse rows that are only declared: they would be read for ever, or take all memory."""
    what = f"it declares {n_rows} rows and only {n_entries} entries (damaged?): empty rows are too many"
    file.check_limit("empty_rows", n_rows - n_entries, what)


def row_slices(whole: sparse.csr_array, n_rows: int) -> Iterator[sparse.csr_array]:
    """Pieces of a matrix in memory."""
    for start in range(0, whole.shape[0], n_rows):
        yield whole[start : start + n_rows]


def rows_per_batch(n_rows: int, n_nonzeros: int) -> int:
    """Rows of a batch for about 2^21 nonzeros."""
    mean = max(n_nonzeros / max(n_rows, 1), 1.0)
    return int(np.clip(BATCH_NONZEROS / mean, 16, BATCH_ROWS))
