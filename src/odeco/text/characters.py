r"""Texts as code points, and what each code point is to a token: a letter, in lower case, or the end of a word.

The rule is that of scikit-learn's CountVectorizer: ``(?u)\b\w\w+\b`` after `str.lower`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

_ALL, _LATIN = 0x110000, 256
# The two characters whose lower case is not always one and the same character: the capital I with a dot becomes two,
# and sigma has a form of its own at the end of a word. Texts that have them are left to `str.lower`.
_DOTTED, _SIGMA = "\u0130", "\u03a3"


@cache
def letters(lowercase: bool, n_codes: int = _ALL) -> NDArray[np.uint32]:
    """For each code point the letter that it stands for in a word, 0 where it is none."""
    text = decode(np.arange(n_codes, dtype=np.uint32))
    if lowercase:
        text = text.replace(_DOTTED, "i").replace(_SIGMA, "\u03c3").lower()
    table = np.zeros(n_codes, dtype=np.uint32)
    for run in re.finditer(r"\w+", text):
        table[run.start() : run.end()] = encode(run.group())
    return table


def code_points(
    texts: Sequence[str], lowercase: bool
) -> tuple[NDArray[np.integer], NDArray[np.int64], NDArray[np.uint32]]:
    """All texts in one array of code points, where each of them ends, and the letters that the codes stand for."""
    joined = "".join(texts)
    if lowercase and not joined.isascii() and (_DOTTED in joined or _SIGMA in joined):
        texts, lowercase = [text.lower() for text in texts], False
        joined = "".join(texts)
    ends = np.cumsum(np.fromiter(map(len, texts), dtype=np.int64, count=len(texts)))
    try:
        return np.frombuffer(joined.encode("latin-1"), dtype=np.uint8), ends, letters(lowercase, _LATIN)
    except UnicodeEncodeError:
        return encode(joined), ends, letters(lowercase)


def encode(text: str) -> NDArray[np.uint32]:
    """The code points of a text, lone surrogates included."""
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4").astype(np.uint32, copy=False)


def decode(codes: NDArray[np.uint32]) -> str:
    """The text of code points."""
    return codes.astype("<u4", copy=False).tobytes().decode("utf-32-le", "surrogatepass")
