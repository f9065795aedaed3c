"""Counts in Parquet: a row is a document, its words and their counts are two lists of the same length.

The columns are ``words: list<int32>`` and ``counts: list<int32 | float64>``, the vocabulary is in the metadata of the
schema. A list column is, in memory, one array of values and one of offsets: just the parts of a CSR matrix, which is
therefore read without a loop over documents. Row groups hold about 2^20 entries each, whatever the lengths.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from odeco.files.arrow import import_arrow
from odeco.files.parquet import ParquetInput
from odeco.files.rows import SparseRows, check_width, csr_part, rows_per_batch
from odeco.sources.base import Source

WORDS, COUNTS = "words", "counts"
_METADATA = b"odeco"
_VERSION = 1


def has_counts(parquet: ParquetInput) -> bool:
    """Whether the columns of this layout are there."""
    types = parquet.arrow.types
    names = parquet.schema.names
    return all(
        name in names and _is_list(types, parquet.schema.field(name).type) and _holds_numbers(types, parquet, name)
        for name in (WORDS, COUNTS)
    )


def parquet_count_rows(parquet: ParquetInput) -> SparseRows:
    """Documents of a file that `write_parquet_counts` (or somebody else) has written."""
    n_rows = parquet.n_rows
    width, vocabulary, n_nonzeros = _described(parquet)
    if width is None:
        width, n_nonzeros = _scanned(parquet)
    check_width(parquet.file, width)
    per_batch = rows_per_batch(n_rows, n_nonzeros)

    def read() -> Iterator[sparse.csr_array]:
        row = 1
        for values, words, indptr in _parts(parquet):
            yield csr_part(parquet.file, values, words, indptr, width, row)
            row += len(indptr) - 1

    return SparseRows(parquet.file, "parquet", width, read, vocabulary, per_batch)


def _described(parquet: ParquetInput) -> tuple[int | None, list[str] | None, int]:
    """Number of columns, vocabulary and number of entries, where the metadata say them."""
    metadata = (parquet.schema.metadata or {}).get(_METADATA)
    if metadata is None:
        return None, None, 0
    try:
        said = json.loads(metadata)
        version, width, words, entries = (said[key] for key in ("version", "n_features", "vocabulary", "n_nonzeros"))
        if not (isinstance(version, int) and isinstance(width, int) and isinstance(entries, int)):
            raise TypeError("a number is not one")
        if words is not None and (len(words) != width or not all(isinstance(word, str) for word in words)):
            raise TypeError("the vocabulary is not as long as it should be")
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise parquet.file.error(f"the metadata of its counts are damaged ({error}).") from error
    if version > _VERSION:
        raise parquet.file.error(f"its counts are of version {version}, this odeco reads up to {_VERSION}: update it.")
    return width, words, entries


def _scanned(parquet: ParquetInput) -> tuple[int, int]:
    """Number of columns and of entries, from the data."""
    width, n_nonzeros = 0, 0
    for _, words, _ in _parts(parquet):
        width = max(width, int(words.max()) + 1) if words.size else width
        n_nonzeros += len(words)
    if n_nonzeros == 0:
        raise parquet.file.error("its documents have no words.")
    return width, n_nonzeros


def _parts(parquet: ParquetInput) -> Iterator[tuple[NDArray[Any], NDArray[Any], NDArray[Any]]]:
    """Values, columns and row pointers of each batch; they share pyarrow's memory."""
    row = 1
    for batch in parquet.batches([WORDS, COUNTS]):
        lists = [batch.column(name) for name in (WORDS, COUNTS)]
        for name, column in zip((WORDS, COUNTS), lists, strict=True):
            if column.null_count or column.values.null_count:
                raise parquet.file.error(f"from row {row} on the column {name!r} has missing values.")
        (words, starts), (counts, others) = map(_list_parts, lists)
        if not np.array_equal(starts, others):
            raise parquet.file.error(f"from row {row} on a document has more words than counts, or fewer.")
        yield counts, words, starts
        row += len(starts) - 1


def _list_parts(column: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    offsets = column.offsets.to_numpy()
    return column.values.to_numpy()[offsets[0] : offsets[-1]], offsets - offsets[0]


def _is_list(types: Any, dtype: Any) -> bool:
    return bool(types.is_list(dtype) or types.is_large_list(dtype))


def _holds_numbers(types: Any, parquet: ParquetInput, name: str) -> bool:
    inner = parquet.schema.field(name).type.value_type
    return bool(types.is_integer(inner) or (name == COUNTS and types.is_floating(inner)))


def write_parquet_counts(stream: IO[bytes], name: str, source: Source, vocabulary: list[str] | None) -> None:
    """Write documents batch by batch; integers where all counts of the source are."""
    arrow = import_arrow(name, "writing Parquet")
    whole, n_nonzeros = True, 0
    for batch in source:
        data = batch.counts.data
        whole = whole and are_whole(data, 2**31)
        n_nonzeros += len(data)
    value_type = arrow.int32() if whole else arrow.float64()
    fields = [_list_field(arrow, WORDS, arrow.int32()), _list_field(arrow, COUNTS, value_type)]
    described = {"version": _VERSION, "n_features": source.n_features, "n_nonzeros": n_nonzeros}
    metadata = {_METADATA: json.dumps({**described, "vocabulary": vocabulary}, ensure_ascii=False)}
    schema = arrow.schema(fields, metadata=metadata)
    # Word numbers hardly repeat within a page and compress little: plain ones read fastest. Counts are mostly 1.
    options = {"use_dictionary": [f"{COUNTS}.list.element"], "compression": "zstd", "compression_level": 1}
    with arrow.parquet.ParquetWriter(stream, schema, **options) as writer:
        for batch in source:
            for part in _groups(batch.counts):
                values = part.data.astype(np.int32 if whole else np.float64)
                lists = [
                    _list_array(arrow, part.indptr, *pair) for pair in zip((part.indices, values), fields, strict=True)
                ]
                writer.write_table(arrow.Table.from_arrays(lists, schema=schema))


def are_whole(values: NDArray[Any], below: int = 2**63) -> bool:
    """Whether values, which are not negative, are integers that a type of integers holds."""
    return bool((values == np.floor(values)).all() and (values < below).all())


def _list_array(arrow: Any, indptr: NDArray[Any], values: NDArray[Any], field: Any) -> Any:
    return arrow.ListArray.from_arrays(
        arrow.array(indptr, arrow.int32()), arrow.array(values, field.type.value_type), type=field.type
    )


def _list_field(arrow: Any, name: str, inner: Any) -> Any:
    return arrow.field(name, arrow.list_(arrow.field("element", inner, nullable=False)), nullable=False)


def _groups(counts: sparse.csr_array) -> Iterator[sparse.csr_array]:
    """Rows with about as many entries as a row group should have."""
    step = rows_per_batch(counts.shape[0], max(counts.nnz, 1) * 2)  # half of the 2^21 of a batch
    for start in range(0, counts.shape[0], step):
        yield counts[start : start + step]
