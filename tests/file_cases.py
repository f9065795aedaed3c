"""What the tests of files share: small data, and one way to read a whole source."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

WORDS = [f"word{j}" for j in range(12)]
COUNT_FILES = ["a.parquet", "a.npz", "a.mtx", "a.svm", "a.ldac", "docword.a.txt", "docword.b.txt.gz", "b.mtx.gz"]
TABLE_FILES = ["a.csv", "a.tsv", "a.jsonl", "a.parquet", "a.npy"]


def small_counts(n: int = 40, seed: int = 0) -> sparse.csr_array:
    """Counts with an empty document, and a last one and a last word that are used."""
    counts = np.random.default_rng(seed).poisson(0.4, (n, len(WORDS)))
    counts[3] = 0
    counts[-1, -1] = 2
    return sparse.csr_array(counts)


def small_rows(n: int = 30, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, 3))


def whole(source: Any) -> np.ndarray:
    """All rows of a source of counts, dense."""
    return np.vstack([batch.counts.toarray() for batch in source])


def write(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


class LetterCounter:
    """As little of a vectorizer as `read_counts` asks for: the columns are letters."""

    def fit_batches(self, batches: Any) -> Any:
        from odeco.sources import as_source

        letters = sorted({letter for batch in batches for text in batch for letter in text})
        self.vocabulary_ = {letter: j for j, letter in enumerate(letters)}
        return as_source(lambda: map(self.transform, batches))

    def transform(self, texts: list[str]) -> sparse.csr_array:
        counts = np.zeros((len(texts), len(self.vocabulary_)))
        for i, text in enumerate(texts):
            for letter in text:
                counts[i, self.vocabulary_[letter]] += 1
        return sparse.csr_array(counts)

    def get_feature_names_out(self) -> np.ndarray:
        return np.array(sorted(self.vocabulary_))
