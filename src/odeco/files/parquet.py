"""Parquet: one file or a folder of parts, read by batches of rows that stay small whatever the row groups."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from odeco.files.arrow import import_arrow, kind_of
from odeco.files.opening import InputFile, open_input

# Bytes (uncompressed) and rows of a batch.
_BATCH_BYTES, _BATCH_ROWS = 2**25, 65_536


@dataclass(frozen=True, eq=False)
class ParquetInput:
    """A Parquet file, or the parts of a folder one after the other."""

    file: InputFile
    parts: Sequence[InputFile] = field(repr=False)

    @cached_property
    def arrow(self) -> Any:
        """The library."""
        return import_arrow(self.file.name, "reading Parquet")

    @cached_property
    def schema(self) -> Any:
        """Names, types and metadata; those of all parts are the same."""
        schemas = []
        for part in self.parts:
            with self._guard(part), self._open(part) as opened:
                schemas.append(opened.schema_arrow)
        for part, schema in zip(self.parts, schemas, strict=True):
            if schema.names != schemas[0].names or schema.types != schemas[0].types:
                raise part.error(f"its columns differ from those of {self.parts[0].name}.")
        if len(set(schemas[0].names)) < len(schemas[0].names):
            raise self.file.error("two of its columns have the same name.")
        return schemas[0]

    @cached_property
    def kinds(self) -> dict[str, str | None]:
        """What each column holds, as `odeco.files.arrow.kind_of` says."""
        return {name: kind_of(self.arrow, self.schema.field(name).type) for name in self.schema.names}

    @cached_property
    def n_rows(self) -> int:
        """Rows of all parts."""
        total = 0
        for part in self.parts:
            with self._guard(part), self._open(part) as opened:
                total += int(opened.metadata.num_rows)
        if total == 0:
            raise self.file.error("it has no rows.")
        return total

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """Record batches of some columns."""
        for part in self.parts:
            n_rows = 0
            with self._guard(part), self._open(part) as opened:
                for batch in opened.iter_batches(_rows_at_a_time(opened), columns=list(columns), use_threads=True):
                    n_rows += batch.num_rows
                    yield batch
                if n_rows != opened.metadata.num_rows:
                    raise part.error(f"it is damaged: {n_rows} of its {opened.metadata.num_rows} rows can be read.")

    def _open(self, part: InputFile) -> Any:
        # Pages are read one by one: a row group of any size passes through a buffer of this size.
        return self.arrow.parquet.ParquetFile(part.path, buffer_size=2**20, pre_buffer=False)

    @contextmanager
    def _guard(self, part: InputFile) -> Iterator[None]:
        """pyarrow's errors are of its own kinds besides those of Python."""
        try:
            with part.guard():
                yield
        except (self.arrow.ArrowException, KeyError, TypeError, IndexError) as error:
            raise part.error(f"damaged, or of a kind that cannot be read ({error}).") from error


def open_parquet(file: InputFile) -> ParquetInput:
    """The parts of a folder, or the file itself."""
    if not file.path.is_dir():
        return ParquetInput(file, [file])
    parts = [open_input(path) for path in sorted(file.path.rglob("*.parquet")) if is_visible(path, file.path)]
    if not parts:
        raise file.error("the folder holds no .parquet files.")
    return ParquetInput(file, parts)


def is_visible(path: Path, folder: Path) -> bool:
    """Whether neither the file nor a folder on the way is hidden, or set aside by Spark (_SUCCESS, _temporary)."""
    return not any(name.startswith((".", "_")) for name in path.relative_to(folder).parts)


def _rows_at_a_time(opened: Any) -> int:
    groups = [opened.metadata.row_group(i) for i in range(opened.metadata.num_row_groups)]
    n_bytes, n_rows = sum(group.total_byte_size for group in groups), sum(group.num_rows for group in groups)
    return int(np.clip(_BATCH_BYTES * max(n_rows, 1) // max(n_bytes, 1), 16, _BATCH_ROWS))
