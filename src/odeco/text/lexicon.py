"""All distinct words and n-grams with their numbers: the hash table of `odeco.kernels.tokens`, with room to grow."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from odeco.kernels import tokens as kernels
from odeco.text.characters import code_points, decode

_LEAST_ENTRIES, _LEAST_SPELLING = 1 << 12, 1 << 14
_LETTER = 21  # bits
_TOKEN = re.compile(r"\w\w+")


@dataclass(frozen=True, eq=False)
class Tokens:
    """Tokens of documents, one after the other: hash, number of letters and spelling; where each document ends."""

    digests: NDArray[np.int64] = field(repr=False)
    lengths: NDArray[np.int64] = field(repr=False)
    spelling: NDArray[np.uint64] = field(repr=False)
    ends: NDArray[np.int64] = field(repr=False)

    def __len__(self) -> int:
        return self.digests.size


class Workspace:
    """Arrays that are used again: memory that is new costs more to be handed out than to be filled."""

    def __init__(self) -> None:
        self._arrays: dict[str, NDArray[Any]] = {}

    def take(self, name: str, size: int, dtype: type[np.generic] = np.int64) -> NDArray[Any]:
        """An array with anything in it; what was taken under the same name before is overwritten."""
        if name not in self._arrays or self._arrays[name].size < size:
            self._arrays[name] = np.empty(size + size // 4, dtype=dtype)
        return self._arrays[name][:size]


def spell(texts: Sequence[str], lowercase: bool, workspace: Workspace | None = None) -> Tokens:
    """The tokens of texts, in arrays of the workspace where one is given."""
    space = workspace or Workspace()
    text, ends, letters = code_points(texts, lowercase)
    most = text.size // 2 + 1
    digests, lengths, token_ends = (
        space.take("digests", most),
        space.take("lengths", most),
        space.take("ends", len(texts)),
    )
    spelling = space.take("spelling", most, np.uint64)
    n = kernels.spell_tokens(text, ends, letters, digests, lengths, spelling, token_ends)
    return Tokens(digests[:n], lengths[:n], spelling, token_ends)


class Lexicon:
    """Numbers 0, 1, ... for words and n-grams, in the order of their arrival.

    ``frozen``: nothing is added any more, and several threads may look things up at a time.
    """

    def __init__(self, stop_words: Iterable[str] = ()) -> None:
        self.used = np.zeros(2, dtype=np.int64)  # entries, numbers of their spelling
        self.frozen = False
        self._slots = np.full(2 * _LEAST_ENTRIES, -1, dtype=np.int32)
        self._entries = np.empty((_LEAST_ENTRIES, 4), dtype=np.int64)
        self._spelling = np.empty(_LEAST_SPELLING, dtype=np.uint64)
        self.add_words(list(stop_words))
        self.n_stop = len(self)

    def __len__(self) -> int:
        return int(self.used[0])

    @property
    def capacity(self) -> int:
        """Entries that there is room for."""
        return len(self._entries)

    @property
    def arrays(self) -> kernels.Lexicon:
        """What the kernels see."""
        return self._slots, self._entries, self._spelling

    def reserve(self, n_entries: int, n_letters: int) -> None:
        """Make room for so many more entries, with so many letters in all."""
        if (entries := len(self) + n_entries) > self.capacity:
            self._entries = _longer(self._entries, 1 << (entries - 1).bit_length())
            self._slots = np.full(2 * self.capacity, -1, dtype=np.int32)
            kernels.rehash(self._entries, len(self), self._slots)
        if (size := int(self.used[1]) + n_letters // 3 + n_entries) > self._spelling.size:
            self._spelling = _longer(self._spelling, max(size, 2 * self._spelling.size))

    def grow(self, n_letters: int) -> None:
        """Twice the room for entries, and room for so many more letters."""
        self.reserve(self.capacity - len(self) + 1, n_letters)

    def number(self, tokens: Tokens, workspace: Workspace | None = None) -> NDArray[np.int64]:
        """The numbers of words; those that are new get one, or -1 where the lexicon is frozen."""
        numbers, state = (workspace or Workspace()).take("numbers", len(tokens)), np.zeros(2, dtype=np.int64)
        words = (tokens.digests, tokens.lengths, tokens.spelling)
        while not kernels.number_words(*words, self.arrays, self.used, self.frozen, numbers, state):
            self.grow(tokens.spelling.size)
        return numbers

    def add_words(self, words: Sequence[str]) -> NDArray[np.int64]:
        """The numbers of words; -1 for what no token can ever be."""
        proper = np.fromiter((_TOKEN.fullmatch(word) is not None for word in words), dtype=bool, count=len(words))
        numbers = np.full(len(words), -1, dtype=np.int64)
        numbers[proper] = self.number(spell([word for word, ok in zip(words, proper, strict=True) if ok], False))
        return numbers

    def add_terms(self, terms: Sequence[str]) -> NDArray[np.int64]:
        """The numbers of words and of n-grams, which are words with a space between them."""
        split = [term.split(" ") for term in terms]
        words = self.add_words([word for parts in split for word in parts])
        self.reserve(len(words), 0)
        numbers, ends = np.empty(len(terms), dtype=np.int64), np.fromiter(accumulate(map(len, split)), dtype=np.int64)
        kernels.add_grams(words, ends, self.arrays, self.used, numbers)
        return numbers

    def merge(self, other: Lexicon) -> NDArray[np.int64]:
        """Add all entries of another lexicon; their numbers here."""
        entries = other._entries[: len(other)]
        words = entries[:, 1] == 1
        renamed = np.full(len(other), -1, dtype=np.int64)
        spelling = other._spelling[: other.used[1]]
        renamed[words] = self.number(
            Tokens(entries[words, 0], entries[words, 3], spelling, np.empty(0, dtype=np.int64))
        )
        self.reserve(len(other), 0)
        kernels.merge_grams(entries, self.arrays, self.used, renamed)
        return renamed

    def names(self, entries: NDArray[np.integer]) -> list[str]:
        """The words and n-grams with these numbers as text."""
        text, starts = self._spelled()
        order, first, second = self._entries[: len(self), 1:].T.tolist()

        names: dict[int, str] = {}

        def name(entry: int) -> str:
            if entry not in names:
                a, b = first[entry], second[entry]
                names[entry] = text[starts[a] : starts[a] + b] if order[entry] == 1 else f"{name(a)} {name(b)}"
            return names[entry]

        return [name(entry) for entry in entries.tolist()]

    def _spelled(self) -> tuple[str, list[int]]:
        """All words as one text, and where in it each number of the spelling begins."""
        threes = self._spelling[: self.used[1], None]
        letters = (threes >> np.array([2 * _LETTER, _LETTER, 0], dtype=np.uint64)) & np.uint64((1 << _LETTER) - 1)
        there = letters > 0
        starts = np.cumsum(there.sum(axis=1)) - there.sum(axis=1)
        return decode(letters[there].astype(np.uint32)), starts.tolist()


def _longer(array: NDArray[Any], size: int) -> NDArray[Any]:
    grown = np.empty((size, *array.shape[1:]), dtype=array.dtype)
    grown[: len(array)] = array
    return grown
