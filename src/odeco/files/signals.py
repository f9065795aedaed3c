"""`read_signals`: channels of the same signal, for ICA."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from odeco.files import arrays as numpy_files
from odeco.files.opening import InputFile, PathLike
from odeco.files.reading import TABLES, open_as
from odeco.files.stored import BATCH_NUMBERS
from odeco.files.tables import table_of
from odeco.files.wav import read_wav

FORMATS = ("wav", *TABLES, "npy", "npz")

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Signals:
    """Channels of a signal.

    Attributes
    ----------
    source : function
        Returns a new iterator over arrays (samples, channels) at each call: what `ICA.fit` takes.
    rate : float or None
        Samples per second, where the file says so.
    names : list of str
        Of the channels.
    format : str
    """

    source: Callable[[], Iterator[Array]] = field(repr=False)
    rate: float | None
    names: list[str]
    format: str

    @property
    def X(self) -> Array:  # noqa: N802  (what scikit-learn calls it)
        """All samples (n, d)."""
        return np.concatenate(list(self.source()))


def read_signals(
    paths: PathLike | Sequence[PathLike],
    *,
    format: str = "auto",
    columns: Sequence[str] | None = None,
    encoding: str = "utf-8",
) -> Signals:
    """Read signals: a row for each sample, a column for each channel.

    Parameters
    ----------
    paths : path, "-" for the standard input, or a list of paths
        WAV (whole numbers become fractions of the largest one), CSV, TSV, JSON lines, Parquet, .npy, .npz (the arrays X
        and fs). Several WAV files of the same rate are channels one beside the other, cut to the shortest.
    format : str
        "auto" looks at the content and the name; else one of "wav", "csv", "tsv", "jsonl", "parquet", "npy", "npz".
    columns : list of str, optional
        The channels to use.
    encoding : str
        Of CSV and JSON lines.
    """
    if isinstance(paths, Sequence) and not isinstance(paths, (str, bytes)):
        files = [open_as(path, "wav" if format == "auto" else format, ("wav",))[0] for path in paths]
        if not files:
            raise ValueError("paths is empty: give at least one file.")
        return _wav(files, columns)
    file, found = open_as(paths, format, FORMATS)
    if found == "wav":
        return _wav([file], columns)
    table = table_of(file, found, columns, encoding)
    if not table.is_numeric:
        text = [name for name, kind in zip(table.names, table.kinds, strict=True) if kind == "label"]
        raise file.error(f"signals are numbers, and these columns hold text: {', '.join(text)}.")
    rate = None
    if found == "npz":
        stored = numpy_files.load_npz(file).get("fs")
        rate = float(stored) if stored is not None and stored.size == 1 and stored.dtype.kind in "iuf" else None
    return Signals(lambda: _blocks(file, table.source, table.names), rate, table.names, found)


def _blocks(file: InputFile, source: Callable[[], Iterator[Any]], names: list[str]) -> Iterator[Array]:
    n_rows = 0
    for batch in source():
        block = np.asarray(batch)
        block = block if block.dtype.kind == "f" else block.astype(np.float64)
        if not np.isfinite(block).all():
            row, column = np.argwhere(~np.isfinite(block))[0]
            raise file.error(f"row {n_rows + row + 1} has no number in the column {names[column]!r}.")
        n_rows += len(block)
        yield block


def _wav(files: Sequence[InputFile], columns: Sequence[str] | None) -> Signals:
    sounds = [read_wav(file) for file in files]
    rates = sorted({sound.format.rate for sound in sounds})
    if len(rates) > 1:
        raise files[0].error(f"the files have different rates, {rates}: resample them first.")
    names = [
        f"channel{j}" if len(files) == 1 else file.path.stem + (f".{j}" if sound.format.n_channels > 1 else "")
        for file, sound in zip(files, sounds, strict=True)
        for j in range(sound.format.n_channels)
    ]
    places = list(range(len(names)))
    if columns is not None:
        unknown = [name for name in columns if name not in names]
        if unknown:
            raise files[0].error(f"there is no channel {unknown[0]!r}, there are {', '.join(names)}.")
        places = [names.index(name) for name in columns]

    def read() -> Iterator[Array]:
        step = max(BATCH_NUMBERS // len(names), 1)
        for blocks in zip(*(sound.batches(step) for sound in sounds), strict=False):  # up to the end of the shortest
            n_samples = min(map(len, blocks))
            yield np.hstack([block[:n_samples] for block in blocks])[:, places]

    return Signals(read, float(rates[0]), [names[place] for place in places], "wav")
