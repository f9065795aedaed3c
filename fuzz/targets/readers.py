"""Data files of every format, damaged: each door reads them or says in one line why not."""

from __future__ import annotations

import gzip
import json
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from scipy import sparse
from scipy.io import wavfile

from fuzz.mutations import Rng, choose, mutate_bytes
from odeco import files
from odeco.exceptions import InputFileError
from tests.file_cases import COUNT_FILES, TABLE_FILES, small_counts, small_rows

_LONGEST_LINE = 1000
_ENCODINGS = ["utf-8", "utf-8", "utf-8", "latin-1", "utf-16", "ascii"]


def generate(rng: Rng, folder: Path) -> dict[str, Any]:
    valid = _valid()
    name = choose(rng, valid)
    content = valid[name]
    packed = name.endswith(".gz") and rng.integers(2)
    content = mutate_bytes(rng, gzip.decompress(content) if packed else content)
    if rng.integers(12) == 0:
        name = choose(rng, valid)  # of another format
    (folder / name).write_bytes(gzip.compress(content) if packed else content)
    options = {} if rng.integers(3) else {"format": choose(rng, files.FORMATS)}
    options |= {} if rng.integers(4) else {"encoding": choose(rng, _ENCODINGS)}
    return {"file": name, "door": choose(rng, _DOORS), "options": options}


def run(case: dict[str, Any], folder: Path) -> None:
    try:
        _DOORS[case["door"]](folder / case["file"], case["options"])
    except InputFileError as error:
        if "\n" in str(error) or len(str(error)) > _LONGEST_LINE:
            raise AssertionError("a message of many lines, or one that nobody reads to its end") from error
        raise


def _counts(path: Path, options: dict[str, Any]) -> None:
    from odeco.text import Vectorizer

    read = files.read_counts(path, vectorizer=Vectorizer, **options)
    for _ in range(2):
        for batch in read.source:
            _check_sparse(batch.counts, read.source.n_features)
    assert read.vocabulary is None or len(read.vocabulary) == read.source.n_features


def _table(path: Path, options: dict[str, Any]) -> None:
    read = files.read_table(path, **options)
    for block in read.source():
        assert block.shape[1] == len(read.names)


def _views(path: Path, options: dict[str, Any]) -> None:
    _check_views(files.read_views(path, **options))


def _three_views(path: Path, options: dict[str, Any]) -> None:
    _check_views(files.read_views([path] * 3, **options))


def _labels(path: Path, options: dict[str, Any]) -> None:
    files.read_labels(path, **options)


def _symbols(path: Path, options: dict[str, Any]) -> None:
    read = files.read_sequences(path, **options)
    assert int(np.sum(read.lengths)) == len(read.X)


def _features(path: Path, options: dict[str, Any]) -> None:
    read = files.read_sequences(path, "features", **options)
    assert int(np.sum(read.lengths)) == len(read.X)


def _signals(path: Path, options: dict[str, Any]) -> None:
    for block in files.read_signals(path, **options).source():
        assert np.isfinite(np.asarray(block, dtype=float)).all(), "signals that are not finite"


_DOORS = {
    "counts": _counts,
    "table": _table,
    "views": _views,
    "three views": _three_views,
    "labels": _labels,
    "symbols": _symbols,
    "features": _features,
    "signals": _signals,
}


def _check_sparse(counts: Any, n_features: int) -> None:
    assert counts.shape[1] == n_features
    sparse.csr_array(counts).check_format(full_check=True)
    assert np.isfinite(counts.data).all(), "counts that are not finite"
    assert (counts.data >= 0).all(), "negative counts"


def _check_views(read: Any) -> None:
    for blocks in read.source():
        assert len({block.shape[0] for block in blocks}) == 1
        assert [block.shape[1] for block in blocks] == [len(names) for names in read.names]


@cache
def _valid() -> dict[str, bytes]:
    """A small file of every kind, by name."""
    with TemporaryDirectory() as place:
        folder = Path(place)
        for name in COUNT_FILES:
            files.write_counts(folder / name, small_counts(8), [f"w{j}" for j in range(12)])
        for name in TABLE_FILES:
            files.write_table(folder / f"t{name}", np.round(small_rows(6), 2), ["u.a", "v.a", "w.a"])
        mixed = {"id": [1, 2, 3], "worker": ["a", "b", "a"], "label": ["x", "y", "é"], "n": [0.5, 2, np.nan]}
        for name in ("m.csv", "m.jsonl", "m.parquet"):
            files.write_table(folder / name, {key: np.array(value) for key, value in mixed.items()})
        (folder / "n.jsonl").write_text(json.dumps({"id": 1, "text": "é", "more": [1]}) + "\n" + '{"id": null}\n')
        (folder / "a.txt").write_text("one two three one\nthree two\nfour\n")
        (folder / "quoted.csv").write_text('a,b\n"x, y",1\n"two\nlines",2\n')
        (folder / "wide.txt").write_bytes("eins zwei\ndrei\n".encode("utf-16"))
        np.save(folder / "symbols.npy", np.arange(12) % 3)
        np.savez(folder / "s.npz", X=small_rows(4), lengths=[2, 2], fs=8.0)
        np.savez(folder / "v.npz", X1=small_rows(4), X2=small_rows(4), X3=small_rows(4))
        for dtype in (np.int16, np.uint8, np.float32):
            wave = (np.arange(20).reshape(10, 2) % 2).astype(dtype)
            wavfile.write(folder / f"{np.dtype(dtype).name}.wav", 8000, wave)
        return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}
