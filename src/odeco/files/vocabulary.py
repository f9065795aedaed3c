"""The words beside a file of counts: one on each line, in the order of the columns."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from odeco.files.compression import without_suffix
from odeco.files.opening import InputFile, PathLike, open_input


def read_vocabulary(path: PathLike, encoding: str = "utf-8") -> list[str]:
    """Words of a file, one on each line."""
    file = open_input(path)
    words = [word.strip() for _, lines in file.text_blocks(encoding) for word in lines]
    while words and not words[-1]:
        words.pop()
    if "" in words:
        raise file.error("the line is empty, and each must hold a word.", words.index("") + 1)
    if not words:
        raise file.error("it holds no words.")
    return words


def as_vocabulary(vocabulary: PathLike | Sequence[str], encoding: str = "utf-8") -> list[str]:
    """A list of words, or the file that holds them."""
    if isinstance(vocabulary, (str, Path)) or hasattr(vocabulary, "__fspath__"):
        return read_vocabulary(vocabulary, encoding)
    words = [str(word) for word in vocabulary]
    if not words:
        raise ValueError("vocabulary is empty: give the words in the order of the columns, or a file of them.")
    return words


def beside(path: Path) -> Path:
    """Where the words of a file are written: vocab.NAME.txt for docword.NAME.txt.gz, NAME.vocab.txt for others."""
    name = without_suffix(path.name)
    if name.startswith("docword"):
        return path.with_name(f"vocab{name.removeprefix('docword')}")
    return path.with_name(f"{Path(name).stem}.vocab.txt")


def places_beside(path: Path) -> list[Path]:
    """Where the words of a file are looked for; nowhere for the standard input or a folder without a name."""
    if path.name in ("", "-"):
        return []
    return [place for place in (beside(path), path.with_name("vocab.txt")) if place != path]


def find_vocabulary(file: InputFile, n_features: int, encoding: str = "utf-8") -> list[str] | None:
    """The words that lie beside a file, where there are as many as columns (or more, where columns go unused)."""
    if file.spool is not None:
        return None
    for path in places_beside(file.path):
        if path.is_file():
            words = read_vocabulary(path, encoding)
            if path.name != "vocab.txt" and len(words) < n_features:
                raise file.error(
                    f"it has {n_features} columns, but {path.name} beside it has {len(words)} words: name another file "
                    "of words, or move this one away."
                )
            if len(words) >= n_features:
                return words
    return None
