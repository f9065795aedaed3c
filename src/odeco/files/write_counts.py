"""`write_counts`: documents in any format of counts, with the words beside them."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from pathlib import Path
from typing import IO, Any

import numpy as np
from scipy import sparse

from odeco.files.opening import PathLike
from odeco.files.output import writing
from odeco.files.parquet_counts import are_whole, write_parquet_counts
from odeco.files.vocabulary import beside
from odeco.files.write_tables import output_format
from odeco.sources import Source, as_source

FORMATS = ("parquet", "npz", "mtx", "svmlight", "ldac", "uci")
# Those that are text: they may be compressed, and their words lie in a file beside them.
_TEXT = ("mtx", "svmlight", "ldac", "uci")


def write_counts(
    path: PathLike,
    source: Any,
    vocabulary: Sequence[str] | None = None,
    format: str = "auto",
    *,
    replace_vocabulary: bool = False,
) -> list[Path]:
    """Write documents; all files are there as a whole in the end, or none.

    Parameters
    ----------
    path : path, or "-" for the standard output
        A text format whose name ends in .gz is compressed.
    source : Source, or what `odeco.sources.as_source` takes
        Read twice where the format begins with the number of entries.
    vocabulary : list of str, optional
        The words of the columns: within Parquet and .npz, in a file beside the others (`vocab.NAME.txt` for
        `docword.NAME.txt`, `NAME.vocab.txt` elsewhere).
    format : str
        "auto" goes by the name (UCI for "-"); else one of "parquet", "npz", "mtx", "svmlight", "ldac", "uci".
    replace_vocabulary : bool
        Whether a file of other words that lies beside is replaced, as `path` is; an error by default, since nobody
        has named that file.

    Returns
    -------
    list of Path
        The files that were written; empty for "-".
    """
    chosen = output_format(path, format, FORMATS, "uci")
    documents = as_source(source)
    words = None if vocabulary is None else [str(word) for word in vocabulary]
    if words is not None and len(words) != documents.n_features:
        raise ValueError(f"vocabulary has {len(words)} words for {documents.n_features} columns.")
    writers: dict[str, Callable[[IO[bytes]], None]] = {
        "parquet": lambda stream: write_parquet_counts(stream, str(path), documents, words),
        "npz": lambda stream: _write_npz(stream, documents, words),
        "mtx": lambda stream: _write_triplets(stream, documents, _market_header),
        "uci": lambda stream: _write_triplets(stream, documents, _uci_header),
        "svmlight": lambda stream: _write_pairs(stream, documents, first=lambda n: 0, base=1),
        "ldac": lambda stream: _write_pairs(stream, documents, first=lambda n: n, base=0),
    }
    written: list[Path] = [] if str(path) == "-" else [Path(path)]
    with ExitStack() as stack:
        if words is not None and (place := vocabulary_file(path, chosen)) is not None:
            _check_words(words)
            listed = "".join(f"{word}\n" for word in words).encode()
            if not replace_vocabulary:
                _check_beside(place, listed)
            stack.enter_context(writing(place)).write(listed)
            written.append(place)
        stream = stack.enter_context(writing(path))
        with _compressed(stream, chosen, str(path)) as packed:
            writers[chosen](packed)
    return written


def vocabulary_file(path: PathLike, format: str = "auto") -> Path | None:
    """The file beside `path` that its words are written to; None where they go within, or to the standard output."""
    chosen = output_format(path, format, FORMATS, "uci")
    return beside(Path(path)) if chosen in _TEXT and str(path) != "-" else None


def _check_beside(path: Path, listed: bytes) -> None:
    """A file that is there already is left alone unless it holds the very same words."""
    if path.exists() and (path.stat().st_size != len(listed) or path.read_bytes() != listed):
        raise ValueError(
            f"{path} is there already and holds other words: move it away, name another output, or ask for it to be "
            "replaced (replace_vocabulary)."
        )


def _check_words(words: Sequence[str]) -> None:
    wrong = next((word for word in words if not word or word != word.strip() or len(word.splitlines()) > 1), None)
    if wrong is not None:
        raise ValueError(f"the word {wrong!r} does not fit on a line of its own: write Parquet or .npz instead.")


@contextmanager
def _compressed(stream: IO[bytes], format: str, path: str) -> Iterator[IO[bytes]]:
    if format in _TEXT and path.endswith(".gz"):
        with gzip.GzipFile(fileobj=stream, mode="wb", compresslevel=6, mtime=0, filename="") as packed:
            yield packed  # type: ignore[misc]
    else:
        yield stream


def _write_npz(stream: IO[bytes], documents: Source, words: list[str] | None) -> None:
    """The keys of scipy.sparse.save_npz, and the words: both scipy and this library read it."""
    whole = sparse.csr_array(sparse.vstack([batch.counts for batch in documents], format="csr"))
    arrays: dict[str, Any] = {"indices": whole.indices, "indptr": whole.indptr, "data": _integers(whole.data)}
    arrays |= {"format": np.array(b"csr"), "shape": np.array(whole.shape)}
    if words is not None:
        arrays["vocab"] = np.array(words, dtype=str)
    np.savez_compressed(stream, **arrays)


def _integers(values: Any) -> Any:
    """Whole numbers as integers."""
    return values.astype(np.int64) if are_whole(values) else values


def _sizes(documents: Source) -> tuple[int, int, bool]:
    """Rows, entries, and whether all counts are whole numbers."""
    n_rows, n_entries, whole = 0, 0, True
    for batch in documents:
        n_rows, n_entries = n_rows + len(batch), n_entries + batch.counts.nnz
        whole = whole and are_whole(batch.counts.data)
    return n_rows, n_entries, whole


def _uci_header(n_rows: int, n_columns: int, n_entries: int, whole: bool) -> str:
    if not whole:
        raise ValueError(
            "UCI docword takes whole counts below 2^63, and these have fractions or more: use Parquet or Matrix Market."
        )
    return f"{n_rows}\n{n_columns}\n{n_entries}\n"


def _market_header(n_rows: int, n_columns: int, n_entries: int, whole: bool) -> str:
    kind = "integer" if whole else "real"
    return f"%%MatrixMarket matrix coordinate {kind} general\n{n_rows} {n_columns} {n_entries}\n"


def _write_triplets(stream: IO[bytes], documents: Source, header: Callable[[int, int, int, bool], str]) -> None:
    n_rows, n_entries, whole = _sizes(documents)
    stream.write(header(n_rows, documents.n_features, n_entries, whole).encode())
    first = 1
    for batch in documents:
        counts = batch.counts
        rows = first + np.repeat(np.arange(len(batch)), np.diff(counts.indptr))
        values = counts.data.astype(np.int64) if whole else counts.data.astype(np.float64)
        lines = map(
            "%d %d %s\n".__mod__, zip(rows.tolist(), (counts.indices + 1).tolist(), values.tolist(), strict=True)
        )
        stream.write("".join(lines).encode())
        first += len(batch)


def _write_pairs(stream: IO[bytes], documents: Source, first: Callable[[int], int], base: int) -> None:
    for batch in documents:
        counts = batch.counts
        values = _integers(counts.data.astype(np.float64))
        if base == 0 and values.dtype.kind == "f":
            raise ValueError(
                "LDA-C takes whole counts below 2^63, and these have fractions: use Parquet, .npz or SVMlight."
            )
        pairs = list(map(" %d:%s".__mod__, zip((counts.indices + base).tolist(), values.tolist(), strict=True)))
        ends = counts.indptr.tolist()
        lines = (f"{first(stop - start)}{''.join(pairs[start:stop])}\n" for start, stop in pairwise(ends))
        stream.write("".join(lines).encode())
