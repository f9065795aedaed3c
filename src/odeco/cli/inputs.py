"""Reading the data of a command: one reader per kind of data, each with the options that it understands.

`fit` keeps these options in the model file, so that `transform` and `report` read other files in the same way.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from odeco.cli import readers
from odeco.cli.console import Stage
from odeco.cli.data import Data, Options
from odeco.cli.options import option, share_or_count

FORMAT = option("format", str, "Format of the input, where its name and content do not tell.")
ENCODING = option("encoding", str, "Encoding of text; UTF-8 if left out.")
COLUMN = option("column", str, "Column that holds the text, of a table.", "--column", "-c")
COLUMNS = option("columns", str, "Columns to use, names between commas; all if left out.", metavar="A,B,...")
SEQUENCE = option("sequence", str, "Column that names the sequence of each row; all rows are one if left out.")
TEXT = (
    option("min_df", str, "Leave out words of fewer documents (5), or a smaller share of them (0.001); 1 if left out.",
           parser=share_or_count, metavar="NUMBER"),
    option("max_df", str, "Leave out words of more documents (500), or a larger share of them; 0.5 if left out.",
           parser=share_or_count, metavar="NUMBER"),
    option("max_features", int, "Keep that many words, the most frequent.", "--max-words", min=1),
    option("stop_words", str, "Words to leave out: auto (if left out) finds the language of the texts and takes its; a "
           "language (en, de, es, fr, it, nl, pt); none; a file with one on each line.", metavar="auto|en|none|FILE"),
    option("ngrams", int, "Count runs of up to that many words as well.", min=1, max=5),
)  # fmt: skip
VOCABULARY = option(
    "vocabulary", str, "File with the words of the columns, one on each line, for formats of counts.", metavar="FILE"
)


@dataclass(frozen=True)
class Reader:
    """How one kind of data is read: ``read(paths, options, known, stage)``, `known` is the metadata of a model."""

    read: Callable[[Sequence[str], Options, Options, Stage], Data]
    settings: tuple[inspect.Parameter, ...]
    rows: str  # what its rows are called
    what: str
    several: bool = False


def files_read(paths: Sequence[str], options: Options) -> list[str | Path]:
    """Every file that `read` may open: the inputs, those that options name, and the words beside counts."""
    from odeco.files.vocabulary import places_beside

    named = [
        options[name] for name in ("stop_words", "vocabulary") if name in options
    ]  # a language is no file: no harm
    beside = [place for path in paths if "vocabulary" not in options for place in places_beside(Path(path))]
    return [*paths, *named, *beside]


def read(kind: str, paths: Sequence[str], options: Options, stage: Stage, known: Options | None = None) -> Data:
    """Read files as one kind of data; `known` is the metadata of the model that they are for, if there is one."""
    reader = READERS[kind]
    if len(paths) > 1 and not reader.several:
        raise ValueError(f"one INPUT is expected, got {len(paths)}: {', '.join(paths)}.")
    return reader.read(paths, options, known or {}, stage)


_TABLES = "CSV, TSV, JSON lines, Parquet"
_ARRAYS = ".npy, .npz"
_VIEW = option("view", list[str], "Columns of one view, names between commas; repeat it.", metavar="A,B,...")
_LAYOUT = option(
    "layout", str, "A column per annotator, or rows (item, worker, label).", choices=("auto", "wide", "long")
)
_UNIT = option("unit", str, "What a symbol of a text is.", choices=("auto", "characters", "tokens"))

READERS = {
    "counts": Reader(
        readers.read_counts,
        (COLUMN, *TEXT, VOCABULARY, FORMAT, ENCODING),
        "documents",
        f"Documents: text with one on each line, a folder of texts, {_TABLES} with a column of text; or counts: UCI "
        f"docword, LDA-C, SVMlight, Matrix Market, {_ARRAYS}. - is stdin.",
    ),
    "table": Reader(
        readers.read_table,
        (COLUMNS, FORMAT, ENCODING),
        "rows",
        f"Rows of numbers: {_TABLES}, {_ARRAYS}, SVMlight, Matrix Market. - is stdin.",
    ),
    "mixed": Reader(
        readers.read_mixed,
        (COLUMNS, FORMAT, ENCODING),
        "rows",
        f"Rows of answers, codes, counts, numbers: {_TABLES}, {_ARRAYS}. - is stdin.",
    ),
    "views": Reader(
        readers.read_views,
        (_VIEW, FORMAT, ENCODING),
        "rows",
        f"A file for each view, with the same rows: {_TABLES}, {_ARRAYS}, SVMlight, Matrix Market; or one table whose "
        "columns are called VIEW.NAME, or are divided by --view; or one .npz with an array for each view.",
        several=True,
    ),
    "labels": Reader(
        readers.read_labels,
        (_LAYOUT, COLUMNS, FORMAT, ENCODING),
        "items",
        f"Labels: rows (item, worker, label) or a column for each annotator: {_TABLES}, {_ARRAYS}. - is stdin.",
    ),
    "symbols": Reader(
        readers.read_symbols,
        (_UNIT, COLUMNS, SEQUENCE, FORMAT, ENCODING),
        "steps",
        f"Sequences of symbols: text with one on each line; {_TABLES} with a row for each step; {_ARRAYS}. - is stdin.",
    ),
    "features": Reader(
        readers.read_features,
        (COLUMNS, SEQUENCE, FORMAT, ENCODING),
        "steps",
        f"Sequences of measurements, a row for each step: {_TABLES}, .npy, .npz with X and lengths. - is stdin.",
    ),
    "events": Reader(
        readers.read_events,
        (COLUMNS, SEQUENCE, FORMAT, ENCODING),
        "steps",
        f"Sequences of counts, a row for each step: {_TABLES}, .npy, .npz with X and lengths. - is stdin.",
    ),
    "signals": Reader(
        readers.read_signals,
        (COLUMNS, FORMAT, ENCODING),
        "samples",
        f"Mixed signals, a column for each channel: WAV (or several), {_TABLES}, {_ARRAYS}. - is stdin.",
        several=True,
    ),
}
