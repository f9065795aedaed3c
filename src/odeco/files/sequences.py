"""`read_sequences`: symbols, measurements or counts in their order, for hidden Markov models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from odeco.files import arrays as numpy_files
from odeco.files.frames import TableInput, listed
from odeco.files.opening import InputFile, PathLike
from odeco.files.reading import TABLES, open_as, table_input
from odeco.sources.sequences import check_lengths
from odeco.sources.values import symbol_of

FORMATS = ("text", *TABLES, "npy", "npz")
KINDS = ("symbols", "features", "counts")
UNITS = ("auto", "characters", "tokens")
# How a column is called that says to which sequence a row belongs.
_SEQUENCE = ("sequence", "seq", "id", "group", "chain", "session", "episode", "utterance")

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class SequenceData:
    """Sequences one after the other, as hidden Markov models take them: ``fit(data.X, data.lengths)``.

    Attributes
    ----------
    X : (n,) or (n, d) array
        Numbers of symbols (-1 where missing), or measurements, or counts.
    lengths : (s,) array
        Of the sequences.
    symbols : list of str or None
        What the numbers stand for.
    names : list of str or None
        Of the columns of measurements.
    format : str
    unit : str or None
        "characters" or "tokens", for text.
    """

    X: Array = field(repr=False)
    lengths: NDArray[np.int64] = field(repr=False)
    symbols: list[str] | None
    names: list[str] | None
    format: str
    unit: str | None = None


def read_sequences(
    path: PathLike,
    kind: str = "symbols",
    *,
    format: str = "auto",
    unit: str = "auto",
    symbols: Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
    sequence: str | None = None,
    encoding: str = "utf-8",
) -> SequenceData:
    """Read sequences.

    Parameters
    ----------
    path : path, or "-" for the standard input
        Text with a sequence on each line (symbols only); CSV, TSV, JSON lines or Parquet with a row for each step; .npy
        with one sequence; .npz with arrays X and lengths.
    kind : {"symbols", "features", "counts"}
        For CategoricalHMM, GaussianHMM and PoissonHMM.
    format : str
        "auto" looks at the content and the name; else one of "text", "csv", "tsv", "jsonl", "parquet", "npy", "npz".
    unit : {"auto", "characters", "tokens"}
        What a symbol of a text is. "auto": what stands between spaces where some line has spaces, else a character.
    symbols : list of str, optional
        Those of an earlier reading: others are an error.
    columns : list of str, optional
        The columns of a table that are observed; all but `sequence` by default.
    sequence : str, optional
        The column that says to which sequence a row belongs; one that is called so by default (sequence, id, ...).
    encoding : str
        Of text, CSV and JSON lines.
    """
    if kind not in KINDS:
        raise ValueError(f"kind must be one of {', '.join(map(repr, KINDS))}, got {kind!r}.")
    if unit not in UNITS:
        raise ValueError(f"unit must be one of {', '.join(map(repr, UNITS))}, got {unit!r}.")
    file, found = open_as(path, format, FORMATS if kind == "symbols" else FORMATS[1:])
    if found == "text":
        return _from_text(file, unit, symbols, encoding)
    if found in TABLES:
        return _from_table(table_input(file, found, encoding), kind, symbols, columns, sequence)
    if columns is not None or sequence is not None:
        raise file.error(f"its columns have no names: columns cannot be chosen from {found}.")
    return _from_arrays(file, found, kind, symbols)


def _from_text(file: InputFile, unit: str, symbols: Sequence[str] | None, encoding: str) -> SequenceData:
    lines: list[str] = []
    for first, block in file.text_blocks(encoding):
        if first == 1 and any("\0" in text for text in block[:1000]):
            raise file.error("it holds binary data (NUL bytes), and lines of text are expected.")
        lines.extend(text.strip() for text in block if text.strip())
    if not lines:
        raise file.error("it holds no text, only empty lines.")
    if unit == "auto":
        unit = "tokens" if any(len(text.split(maxsplit=1)) > 1 for text in lines) else "characters"
    if unit == "tokens":
        parts = [text.split() for text in lines]
        values: Array = np.array([token for part in parts for token in part], dtype=object)
        lengths = np.array([len(part) for part in parts])
    else:
        values = np.frombuffer("".join(lines).encode("utf-32-le"), dtype=np.uint32)
        lengths = np.array([len(text) for text in lines])
    codes, names = _encoded(file, values, symbols)
    return SequenceData(codes, lengths, names, None, "text", unit)


def _encoded(file: InputFile, values: Array, symbols: Sequence[str] | None) -> tuple[NDArray[np.int32], list[str]]:
    """Numbers of the values among the symbols: those given, or all that occur, sorted; -1 for None."""
    if values.dtype == np.uint32:
        present = np.flatnonzero(np.bincount(values))
        found, places = [chr(point) for point in present], np.searchsorted(present, values)
    else:
        found = sorted({value for value in values.tolist() if value is not None})
        number = {value: code for code, value in enumerate(found)}
        places = np.array([number.get(value, -1) for value in values.tolist()])
    if not found:
        raise file.error("every symbol is missing.")
    if symbols is None:
        return places.astype(np.int32), found
    known = {str(symbol): code for code, symbol in enumerate(symbols)}
    new = [symbol for symbol in found if symbol not in known]
    if new:
        raise file.error(f"it has symbols that are not known: {listed([repr(s) for s in new], 5)}.")
    codes = np.array([*(known[symbol] for symbol in found), -1], dtype=np.int32)  # the last one for those missing
    return codes[places], [str(symbol) for symbol in symbols]


def _from_table(
    table: TableInput, kind: str, symbols: Sequence[str] | None, columns: Sequence[str] | None, sequence: str | None
) -> SequenceData:
    if sequence is None and columns is None and len(table.names) > 1:
        sequence = next((n for n in table.names if n.lower().removesuffix("_id") in _SEQUENCE), None)
    observed = table.choose(columns if columns is not None else [n for n in table.names if n != sequence])
    if sequence is not None:
        table.choose([sequence])
    if kind == "symbols" and len(observed) != 1:
        raise table.file.error(f"which column holds the symbols? Name one of {listed(observed)}.")
    labels = [name for name in observed if table.kind(name) == "label"]
    if kind != "symbols" and labels:
        raise table.file.error(f"{kind} are numbers, and these columns hold text: {listed(labels)}.")
    wanted = [*observed, sequence] if sequence is not None else observed
    parts = [np.concatenate(part) for part in zip(*table.read(list(dict.fromkeys(wanted))), strict=True)]
    rows = np.column_stack(parts[: len(observed)])
    truth = table.kind(observed[0]) == "truth"
    values = _text_of(parts[0], truth) if kind == "symbols" else _numbers(table.file, rows, kind)
    lengths = np.array([len(values)])
    if sequence is not None:
        order, lengths = _grouped(parts[-1])
        values = values[order]
    if kind == "symbols":
        codes, names = _encoded(table.file, values, symbols)
        return SequenceData(codes, lengths, names, None, table.format)
    return SequenceData(values, lengths, None, observed, table.format)


def _text_of(values: Array, truth: bool) -> Array:
    """Symbols as text, whole numbers without a point; None where missing. Beside that, `truth` is 1.0 and 0.0."""
    if values.dtype == object:
        return values
    texts = np.empty(len(values), dtype=object)
    texts[:] = [None if v != v else symbol_of(bool(v) if truth else v) for v in values.tolist()]
    return texts


def _grouped(ids: Array) -> tuple[NDArray[np.intp], NDArray[np.int64]]:
    """The order of rows that puts each sequence together, first come first, and their lengths."""
    number: dict[Any, int] = {}
    codes = np.array([number.setdefault(value if value == value else None, len(number)) for value in ids.tolist()])
    return np.argsort(codes, kind="stable"), np.bincount(codes).astype(np.int64)


def _from_arrays(file: InputFile, format: str, kind: str, symbols: Sequence[str] | None) -> SequenceData:
    arrays = {"X": numpy_files.load_npy(file)} if format == "npy" else numpy_files.load_npz(file)
    values = np.array(arrays["X"] if "X" in arrays else numpy_files.main_array(file, arrays))
    if values.ndim == 0:
        raise file.error("X is a single number, and a sequence is needed.")
    lengths = arrays.get("lengths", np.array([len(values)])).ravel()
    with file.guard():
        lengths = check_lengths(lengths, len(values))
    if kind == "symbols":
        return _symbol_array(file, format, values, lengths, symbols, numpy_files.named(arrays, ("vocab", "symbols")))
    rows = _numbers(file, numpy_files.dense_rows(file, values), kind)
    names = numpy_files.column_names(arrays, rows.shape[1])
    return SequenceData(rows, lengths, None, names, format)


def _symbol_array(
    file: InputFile,
    format: str,
    values: Array,
    lengths: NDArray[np.int64],
    symbols: Sequence[str] | None,
    named: list[str] | None,
) -> SequenceData:
    """Numbers of symbols stay what they are; strings get numbers."""
    values = values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values
    if values.ndim != 1 or values.size == 0:
        raise file.error(f"symbols are one for each step, and X has the shape {values.shape}.")
    if values.dtype.kind == "U":
        codes, names = _encoded(file, values.astype(object), symbols)
        return SequenceData(codes, lengths, names, None, format)
    if values.dtype.kind not in "iub":
        raise file.error(f"symbols are whole numbers from 0 on, or strings, and X holds {values.dtype}.")
    known = [str(symbol) for symbol in symbols] if symbols is not None else named
    highest = int(values.max())
    if highest >= 2**31:
        raise file.error(
            f"it has the symbol {highest}: symbols are numbered from 0 on, below 2**31. Number those there are."
        )
    if known is not None and highest >= len(known):
        raise file.error(f"it has the symbol {highest}, and there are names for {len(known)}, counted from 0.")
    codes = np.maximum(values.astype(np.int64), -1).astype(np.int32)
    return SequenceData(codes, lengths, known, None, format)


def _numbers(file: InputFile, rows: Array, kind: str) -> Array:
    if kind == "counts":
        known = rows[np.isfinite(rows)] if rows.dtype.kind == "f" else rows
        if (known < 0).any() or (known != np.floor(known)).any():
            raise file.error("it has values that are not counts 0, 1, 2, ...")
    return rows
