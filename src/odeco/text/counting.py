"""Counts of the words of documents, batch by batch, each thread with a lexicon of its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from odeco.kernels import tokens as kernels
from odeco.text.lexicon import Lexicon, Workspace, spell

_BATCH_LETTERS = 1 << 18
"""Characters of a batch: its arrays stay in the processor's cache."""
_BATCH_DOCUMENTS = 1 << 16
_READ = 32  # documents that are taken from the caller's iterable at a time


@dataclass(frozen=True, eq=False)
class Block:
    """Counts of some documents: entries of the lexicon of one thread, in no order within a document."""

    thread: int
    entries: NDArray[np.int32] = field(repr=False)
    counts: NDArray[np.integer] = field(repr=False)
    row_ends: NDArray[np.int64] = field(repr=False)

    def __len__(self) -> int:
        return self.row_ends.size

    @property
    def nbytes(self) -> int:
        """Memory that it takes."""
        return self.entries.nbytes + self.counts.nbytes + self.row_ends.nbytes


@dataclass(frozen=True)
class Rule:
    """What counts as a term."""

    lowercase: bool
    least: int
    most: int


class Counter:
    """Counts documents with a lexicon, and in how many documents and how often each entry occurs."""

    def __init__(self, rule: Rule, lexicon: Lexicon, thread: int = 0) -> None:
        self.rule, self.lexicon, self.thread = rule, lexicon, thread
        self._tally = np.zeros((lexicon.capacity, 4), dtype=np.int64)
        self._n_documents = 0
        self._space = Workspace()

    def count(self, texts: Sequence[str]) -> Block:
        """The counts of some documents."""
        tokens, ends = self._grams(*self._tokens(texts))
        self._make_room()
        row_ends = np.empty(len(texts), dtype=np.int64)
        entries, counts = (self._space.take(name, tokens.size, np.int32) for name in ("entries", "counts"))
        size = kernels.count_documents(
            tokens, ends, self.lexicon.n_stop, self._n_documents, self._tally, entries, counts, row_ends
        )
        self._n_documents += len(texts)
        counts = counts[:size]
        small = np.uint8 if counts.max(initial=0) < 256 else np.int32
        return Block(self.thread, entries[:size].copy(), counts.astype(small), row_ends)

    def _tokens(self, texts: Sequence[str]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        tokens = spell(texts, self.rule.lowercase, self._space)
        return self.lexicon.number(tokens, self._space), tokens.ends

    def _grams(self, tokens: NDArray[np.int64], ends: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        least, most, lexicon = self.rule.least, self.rule.most, self.lexicon
        if most == 1:
            return tokens, ends
        tokens = tokens[: kernels.drop_stop_words(tokens, ends, lexicon.n_stop)]
        grams, gram_ends = self._space.take("grams", tokens.size * (most - least + 1)), np.empty_like(ends)
        state = np.zeros(3, dtype=np.int64)
        fixed = (lexicon.frozen, grams, gram_ends, state)
        while not kernels.join_grams(tokens, ends, least, most, lexicon.arrays, lexicon.used, *fixed):
            lexicon.grow(0)
        return grams[: state[2]], gram_ends

    def _make_room(self) -> None:
        missing = self.lexicon.capacity - len(self._tally)
        if missing > 0:
            self._tally = np.concatenate([self._tally, np.zeros((missing, 4), dtype=np.int64)])

    @property
    def totals(self) -> NDArray[np.int64]:
        """In how many documents each entry was, and how often it occurred."""
        return self._tally[: len(self.lexicon), 2:]


def batches_of(documents: Iterable[str]) -> Iterator[list[str]]:
    """Documents in lists of about as many characters; what is not text is refused by its number."""
    if isinstance(documents, (str, bytes)):
        raise ValueError(f"documents must be an iterable of texts, got one {type(documents).__name__}.")
    iterator = iter(documents)
    batch: list[str] = []
    n_seen, size = 0, 0
    while read := list(islice(iterator, _READ)):
        if set(map(type, read)) != {str}:
            _check_texts(read, n_seen)
        n_seen, size = n_seen + len(read), size + sum(map(len, read))
        batch += read
        if size >= _BATCH_LETTERS or len(batch) >= _BATCH_DOCUMENTS:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _check_texts(documents: Sequence[Any], n_before: int) -> None:
    for number, document in enumerate(documents, n_before):
        if not isinstance(document, str):
            raise ValueError(
                f"documents must be texts (str), document {number} is {document!r:.60} ({type(document).__name__})."
            )


def count_blocks(batches: Iterable[Sequence[str]], counters: Sequence[Counter]) -> Iterator[Block]:
    """The counts of all batches in their order, each counter on a thread of its own."""
    from odeco.kernels.threads import map_parts

    iterator = iter(batches)
    while group := list(islice(iterator, len(counters))):
        yield from map_parts(lambda t, g=group: counters[t].count(g[t]), len(group))  # type: ignore[misc]
