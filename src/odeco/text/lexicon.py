"""All distinct words and n-grams with their numbers: the hash table of `odeco.kernels.tokens`, with room to grow."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from odeco.kernels import tokens as kernels
from odeco.text.characters import decode, word_letters

_LEAST_ENTRIES, _LEAST_LETTERS = 1 << 12, 1 << 15


class Lexicon:
    """Numbers 0, 1, ... for words and n-grams, in the order of their arrival.

    ``frozen``: nothing is added any more, and several threads may look things up at a time.
    """

    def __init__(self, stop_words: Iterable[str] = ()) -> None:
        self.used = np.zeros(2, dtype=np.int64)  # entries, letters
        self.frozen = False
        self._slots = np.full(2 * _LEAST_ENTRIES, -1, dtype=np.int32)
        self._entries = np.empty((_LEAST_ENTRIES, 4), dtype=np.int64)
        self._letters = np.empty(_LEAST_LETTERS, dtype=np.uint32)
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
        return self._slots, self._entries, self._letters

    def reserve(self, n_entries: int, n_letters: int) -> None:
        """Make room for so many more."""
        if (entries := len(self) + n_entries) > self.capacity:
            self._entries = _longer(self._entries, 1 << (entries - 1).bit_length())
            self._slots = np.full(2 * self.capacity, -1, dtype=np.int32)
            kernels.rehash(self._entries, len(self), self._slots)
        if (size := int(self.used[1]) + n_letters) > self._letters.size:
            self._letters = _longer(self._letters, max(size, 2 * self._letters.size))

    def grow(self, n_letters: int) -> None:
        """Twice the room for entries, and room for so many more letters."""
        self.reserve(self.capacity - len(self) + 1, n_letters)

    def add_words(self, words: Sequence[str]) -> NDArray[np.int64]:
        """The numbers of words, as they are."""
        letters, ends = word_letters(words)
        self.reserve(len(words), letters.size)
        numbers = np.empty(len(words), dtype=np.int64)
        kernels.add_words(letters, ends, self.arrays, self.used, numbers)
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
        self.reserve(len(other), int(other.used[1]))
        renamed = np.empty(len(other), dtype=np.int64)
        kernels.merge_entries(other.arrays, len(other), self.arrays, self.used, renamed)
        return renamed

    def names(self, entries: NDArray[np.integer]) -> list[str]:
        """The words and n-grams with these numbers as text."""
        text = decode(self._letters[: self.used[1]])
        order, first, second = self._entries[: len(self), 1:].T.tolist()

        def name(entry: int) -> str:
            words = []
            while order[entry] > 1:
                words.append(second[entry])
                entry = first[entry]
            words.append(entry)
            return " ".join(text[first[w] : first[w] + second[w]] for w in reversed(words))

        return [name(entry) for entry in entries.tolist()]


def _longer(array: NDArray[Any], size: int) -> NDArray[Any]:
    grown = np.empty((size, *array.shape[1:]), dtype=array.dtype)
    grown[: len(array)] = array
    return grown
