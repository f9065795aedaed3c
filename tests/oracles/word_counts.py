"""Counts of words by the plainest means: a regular expression and a dictionary."""

from __future__ import annotations

import re
from collections import Counter

TOKEN = re.compile(r"(?u)\b\w\w+\b")


def count_words(
    documents: list[str], *, lowercase: bool = True, stop_words: list[str] | None = None, ngram_range=(1, 1)
) -> list[Counter[str]]:
    """How often each n-gram of words occurs in each document."""
    rows = []
    for document in documents:
        words = TOKEN.findall(document.lower() if lowercase else document)
        words = [word for word in words if word not in set(stop_words or ())]
        grams = [
            " ".join(words[i : i + n])
            for n in range(ngram_range[0], ngram_range[1] + 1)
            for i in range(len(words) - n + 1)
        ]
        rows.append(Counter(grams))
    return rows
