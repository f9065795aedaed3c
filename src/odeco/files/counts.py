"""`read_counts`: documents as counts of words, from texts or from any format of counts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse

from odeco.exceptions import InputFileError
from odeco.files.frames import TableInput
from odeco.files.opening import InputFile, PathLike
from odeco.files.reading import SPARSE, TABLES, open_as, parquet_counts_or_table, sparse_input, table_input
from odeco.files.rows import BATCH_ROWS, FileCounts, SparseRows, check_width
from odeco.files.texts import TextBatches, text_column, text_folder, text_lines
from odeco.files.vocabulary import as_vocabulary, find_vocabulary
from odeco.sources import Source

FORMATS = ("text", "folder", *TABLES, *SPARSE)


@dataclass(frozen=True, eq=False)
class Counts:
    """Documents of a file.

    Attributes
    ----------
    source : Source
        For `fit`; ``for batch in source`` gives batches with `counts` (CSR).
    vocabulary : list of str or None
        The words of the columns.
    documents : function or None
        Returns an iterator over the texts, where there are texts.
    format : str
        What the file was read as.
    column : str or None
        The column of a table that held the texts.
    vectorizer : odeco.text.Vectorizer or None
        The fitted one, where texts were counted.
    table : TableInput or None
        The table that held the texts: `names` of its columns, and `values(name)` of one.
    """

    source: Source
    vocabulary: list[str] | None = field(repr=False)
    documents: Callable[[], Iterator[str]] | None = field(repr=False)
    format: str
    column: str | None = None
    vectorizer: Any = field(default=None, repr=False)
    table: TableInput | None = field(default=None, repr=False)


def read_counts(
    path: PathLike,
    *,
    format: str = "auto",
    column: str | None = None,
    vocabulary: PathLike | Sequence[str] | None = None,
    vectorizer: Any = None,
    n_features: int | None = None,
    encoding: str = "utf-8",
) -> Counts:
    """Read documents as counts of words; nothing larger than a batch (and the vocabulary) is held in memory.

    Parameters
    ----------
    path : path, or "-" for the standard input
        Text (a document on each line, or a folder of files), CSV, TSV, JSON lines or Parquet with a column of text, or
        all of whose columns are counts; Parquet with lists of words and counts, UCI docword, LDA-C, SVMlight, Matrix
        Market, .npz, .npy. Text formats may be compressed.
    format : str
        "auto" looks at the content and the name; else one of "text", "folder", "csv", "tsv", "jsonl", "parquet", "uci",
        "ldac", "svmlight", "mtx", "npz", "npy".
    column : str, optional
        The column of a table that holds the texts.
    vocabulary : path or list of str, optional
        The words of the columns, for formats of counts: a file has one on each line. Found by itself where it lies
        beside as vocab.NAME.txt (UCI), NAME.vocab.txt or vocab.txt. For texts: the words to count.
    vectorizer : odeco.text.Vectorizer, or a function that returns one, optional
        Counts the words of texts. One that is fitted is used as it is, another is fitted first. With a file of counts
        it is an error, unless it is a function, which is called where there are texts.
    n_features : int, optional
        Number of columns, where the file may use fewer.
    encoding : str
        Of text, CSV and JSON lines.
    """
    if n_features is not None and (isinstance(n_features, bool) or n_features < 1):
        raise ValueError(f"n_features must be a positive integer, got {n_features!r}.")
    words = None if vocabulary is None else as_vocabulary(vocabulary, encoding)
    file, found = open_as(path, format, FORMATS)
    opened = _opened(file, found, column, n_features, encoding)
    if isinstance(opened, TextBatches):
        if n_features is not None:
            raise ValueError("n_features is for formats of counts; texts have as many columns as the vocabulary words.")
        return _counted(opened, words, vectorizer)
    for name, value in (("column", column), ("vectorizer", None if callable(vectorizer) else vectorizer)):
        if value is not None:
            raise file.error(f"{name} is for texts, and this {found} file holds counts.")
    if words is None and opened.vocabulary is None and found in SPARSE:
        words = find_vocabulary(file, opened.n_features, encoding)
    rows = opened.with_columns(n_features, words)
    return Counts(rows.source(), rows.vocabulary, None, found)


def _opened(
    file: InputFile, format: str, column: str | None, n_features: int | None, encoding: str
) -> TextBatches | SparseRows:
    if format == "text":
        return text_lines(file, encoding)
    if format == "folder":
        return text_folder(file, encoding)
    if format in SPARSE:
        return sparse_input(file, format, n_features)
    table = parquet_counts_or_table(file) if format == "parquet" else table_input(file, format, encoding)
    if isinstance(table, SparseRows):
        return table
    return text_column(table, column) or _numeric_columns(table)


def _numeric_columns(table: TableInput) -> SparseRows:
    """A table all of whose columns are counts: each is a word."""
    names = table.choose(None)
    check_width(table.file, len(names))

    def read() -> Iterator[sparse.csr_array]:
        for columns in table.read(names):
            yield sparse.csr_array(np.column_stack(columns))

    return SparseRows(table.file, table.format, len(names), read, names)


def _counted(texts: TextBatches, words: list[str] | None, vectorizer: Any) -> Counts:
    """Count the words of texts, by a vectorizer that is fitted or will be."""
    if words is not None and vectorizer is not None:
        raise ValueError("vocabulary and vectorizer both say which words to count: give one of them.")
    chosen = vectorizer() if callable(vectorizer) else vectorizer
    if chosen is None:
        from odeco.text import Vectorizer

        chosen = Vectorizer() if words is None else Vectorizer.from_dict({}, words)
    if hasattr(chosen, "vocabulary_"):
        width = len(chosen.vocabulary_)
        source: Source = FileCounts(texts.file, lambda: map(chosen.transform, texts.read()), width, BATCH_ROWS)
    else:
        try:
            source = chosen.fit_batches(texts)
        except InputFileError:
            raise
        except ValueError as error:
            raise texts.file.error(str(error)) from error
    names = [str(word) for word in chosen.get_feature_names_out()]
    return Counts(source, names, texts.documents, texts.format, texts.column, chosen, texts.table)
