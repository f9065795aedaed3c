"""Documents of text, batch by batch: lines of a file, files of a folder, a column of a table."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from odeco.files.frames import TableInput, listed
from odeco.files.opening import InputFile, open_input
from odeco.files.parquet import is_visible
from odeco.files.prefetch import prefetched

# Characters of a batch of documents from a folder.
_BATCH_CHARACTERS = 2**22
# How a column of text is called.
_TEXT_NAMES = ("text", "document", "documents", "body", "content", "abstract", "description", "message", "comment")


@dataclass(frozen=True, eq=False)
class TextBatches:
    """Batches (lists) of documents; every iteration starts anew."""

    file: InputFile
    format: str
    read: Callable[[], Iterator[list[str]]] = field(repr=False)
    column: str | None = None
    table: TableInput | None = field(default=None, repr=False)

    def __iter__(self) -> Iterator[list[str]]:
        return prefetched(self.read())

    def documents(self) -> Iterator[str]:
        """The documents one by one."""
        for batch in self:
            yield from batch


def text_lines(file: InputFile, encoding: str = "utf-8") -> TextBatches:
    """Every line is a document, an empty one too: rows of the answer are lines of the file."""

    def read() -> Iterator[list[str]]:
        filled = False
        for _, lines in file.text_blocks(encoding):
            filled = filled or any(text.strip() for text in lines)
            yield lines
        if not filled:
            raise file.error("it holds no text, only empty lines.")

    return TextBatches(file, "text", read)


def text_folder(folder: InputFile, encoding: str = "utf-8") -> TextBatches:
    """Every file of a folder, and of the folders in it, is a document; in the order of their names."""
    with folder.guard():
        paths = sorted(p for p in folder.path.rglob("*") if p.is_file() and is_visible(p, folder.path))
    if not paths:
        raise folder.error("the folder holds no files.")

    def read() -> Iterator[list[str]]:
        batch: list[str] = []
        size = 0
        for path in paths:
            if path.stat().st_size == 0:
                batch.append("")  # an empty document
                continue
            file = open_input(path)
            text = "\n".join(line for _, lines in file.text_blocks(encoding) for line in lines)
            batch.append(text)
            size += len(text)
            if size > _BATCH_CHARACTERS:
                yield batch
                batch, size = [], 0
        if batch:
            yield batch

    return TextBatches(folder, "folder", read)


def text_column(table: TableInput, column: str | None = None) -> TextBatches | None:
    """The column of text of a table; None where no column is named and all hold numbers."""
    name = _choose(table, column)
    if name is None:
        return None

    def read() -> Iterator[list[str]]:
        for (values,) in table.read([name]):
            yield ["" if value is None else value for value in values.tolist()]

    return TextBatches(table.file, table.format, read, name, table)


def _choose(table: TableInput, column: str | None) -> str | None:
    labels = [name for name, kind in zip(table.names, table.kinds, strict=True) if kind == "label"]
    if column is not None:
        (name,) = table.choose([column])
        if name not in labels:
            raise table.file.error(f"the column {name!r} holds numbers, and text is expected.")
        return name
    if len(labels) > 1:
        known = [name for name in labels if name.lower() in _TEXT_NAMES]
        if len(known) != 1:
            raise table.file.error(f"which column holds the text? Name one of {listed(labels)}.")
        return known[0]
    return labels[0] if labels else None
