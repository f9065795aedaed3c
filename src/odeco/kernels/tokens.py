"""Words of texts as numbers: tokens, n-grams and counts per document.

A *lexicon* gives every distinct word and n-gram a number, by a hash table with open addressing. It is three arrays:

    slots   (2^b,) int32   the number of an entry, -1 where free
    entries (m, 4) int64   hash; of a word: 1, where it begins in `letters`, its length;
                           of an n-gram: n, the number of all but its last word, the number of its last word
    letters (c,) uint32    the code points of all words, one after the other

Entries are compared by what they are, not by their hashes alone: no two words are ever taken for one. `used` counts
entries and letters. A loop that finds no room returns before it has changed anything for the token at hand, and goes on
from there when it is called with more.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

Ints = NDArray[np.integer]
Lexicon = tuple[Ints, Ints, Ints]

_OPTIONS = {"cache": True, "nogil": True}
# Inlined before it is compiled: a call of its own counts references to each array, which takes longer than the look-up.
_INLINE = {**_OPTIONS, "inline": "always"}
_SEED, _PRIME = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3)  # FNV-1a
_MIX, _HALF = np.uint64(0xFF51AFD7ED558CCD), np.uint64(32)  # ... and MurmurHash's last step


@njit(**_OPTIONS)
def tokenize(
    text: Ints, ends: Ints, letter_of: Ints, lexicon: Lexicon, used: Ints, n_stop: int, frozen: bool,
    tokens: Ints, token_ends: Ints, state: Ints,
) -> bool:  # fmt: skip
    """Numbers of the tokens of documents: runs of two word characters or more. True when all is done.

    `letter_of` maps a code point to its letter (in lower case, say), 0 where it is no word character. The first
    `n_stop` entries are stop words, which are left out. `frozen`: unknown words get -1 and the lexicon stays as it is.
    `state` is where to go on: document, position in the text, tokens written.
    """
    slots, entries, letters = lexicon
    document, at, n_tokens = state
    word = np.empty(_longest(ends), np.uint32)
    while document < ends.size:
        end = ends[document]
        while at < end:
            length, key = 0, _SEED
            while at < end:
                letter = letter_of[text[at]]
                if letter == 0:
                    break
                word[length] = letter
                key = (key ^ np.uint64(letter)) * _PRIME
                length, at = length + 1, at + 1
            at += 1
            if length < 2:
                continue
            key = _mixed(key)
            slot, entry = _find_word(word, length, key, slots, entries, letters)
            if entry < 0 and not frozen:
                if used[0] >= len(entries) or used[1] + length > letters.size:
                    state[0], state[1], state[2] = document, at - 1 - length, n_tokens
                    return False
                entry = _add_word(word, length, slot, key, slots, entries, letters, used)
            if entry < 0 or entry >= n_stop:
                tokens[n_tokens] = entry
                n_tokens += 1
        token_ends[document] = n_tokens
        document, at = document + 1, end
    state[2] = n_tokens
    return True


@njit(**_OPTIONS)
def join_grams(
    tokens: Ints, token_ends: Ints, least: int, most: int, lexicon: Lexicon, used: Ints, frozen: bool,
    grams: Ints, gram_ends: Ints, state: Ints,
) -> bool:  # fmt: skip
    """Numbers of all n-grams of `least` to `most` tokens, -1 where a frozen lexicon does not know one.

    `state` is where to go on: document, token, n-grams written. True when all is done.
    """
    slots, entries, _ = lexicon
    document, at, n_grams = state
    while document < token_ends.size:
        end = token_ends[document]
        while at < end:
            if not frozen and used[0] + most > len(entries):
                state[0], state[1], state[2] = document, at, n_grams
                return False
            entry = np.int64(tokens[at])
            for n in range(1, min(most, end - at) + 1):
                if n > 1:
                    entry = _gram(entry, np.int64(tokens[at + n - 1]), n, slots, entries, used, frozen)
                if n >= least:
                    grams[n_grams] = entry
                    n_grams += 1
            at += 1
        gram_ends[document] = n_grams
        document += 1
    state[2] = n_grams
    return True


@njit(**_OPTIONS)
def count_documents(
    tokens: Ints, token_ends: Ints, last: Ints, place: Ints, totals: Ints, n_before: int,
    entries: Ints, counts: Ints, row_ends: Ints,
) -> int:  # fmt: skip
    """Each document's distinct entries and how often they occur, in the order of their first occurrence.

    `last` and `place` (m,) remember the last document of an entry and where its count stands; `n_before` documents came
    before these. `totals` (m, 2) gains documents and occurrences of each entry. Returns the number of counts.
    """
    size, start = 0, 0
    for document in range(token_ends.size):
        stamp = n_before + document + 1
        for at in range(start, token_ends[document]):
            entry = tokens[at]
            if entry < 0:
                continue
            if last[entry] != stamp:
                last[entry], place[entry] = stamp, size
                entries[size], counts[size] = entry, 0
                totals[entry, 0] += 1
                size += 1
            counts[place[entry]] += 1
            totals[entry, 1] += 1
        start = token_ends[document]
        row_ends[document] = size
    return size


@njit(**_OPTIONS)
def sorted_rows(
    entries: Ints,
    counts: Ints,
    row_ends: Ints,
    column_of: Ints,
    n_columns: int,
    columns: Ints,
    values: Ints,
    ends: Ints,
) -> int:
    """Rows of a matrix: columns in ascending order, entries without a column (-1) left out. Returns the size.

    Put in the order of the columns by counting, and from there back into rows: no row is sorted.
    """
    starts, row_of = np.zeros(n_columns + 1, np.int64), np.empty(entries.size, np.int32)
    size, start = 0, 0
    for row in range(row_ends.size):
        ends[row] = size  # for now, where the row begins
        for at in range(start, row_ends[row]):
            row_of[at] = row
            column = column_of[entries[at]]
            if column >= 0:
                starts[column + 1] += 1
                size += 1
        start = row_ends[row]
    for column in range(n_columns):
        starts[column + 1] += starts[column]
    by_column = np.empty(size, np.int64)
    for at in range(entries.size):
        column = column_of[entries[at]]
        if column >= 0:
            by_column[starts[column]] = at
            starts[column] += 1
    for place in range(size):
        at = by_column[place]
        row = row_of[at]
        columns[ends[row]], values[ends[row]] = column_of[entries[at]], counts[at]
        ends[row] += 1
    return size


@njit(**_OPTIONS)
def add_words(letters: Ints, ends: Ints, lexicon: Lexicon, used: Ints, numbers: Ints) -> None:
    """Numbers of words that are given by their letters; those that are new are added, and there must be room."""
    slots, known, all_letters = lexicon
    start = 0
    for w in range(ends.size):
        word = letters[start : ends[w]]
        key = _SEED
        for letter in word:
            key = (key ^ np.uint64(letter)) * _PRIME
        key = _mixed(key)
        slot, numbers[w] = _find_word(word, word.size, key, slots, known, all_letters)
        if numbers[w] < 0:
            numbers[w] = _add_word(word, word.size, slot, key, slots, known, all_letters, used)
        start = ends[w]


@njit(**_OPTIONS)
def add_grams(words: Ints, ends: Ints, lexicon: Lexicon, used: Ints, numbers: Ints) -> None:
    """Numbers of n-grams that are given by the numbers of their words; there must be room for all their parts."""
    slots, entries, _ = lexicon
    start = 0
    for g in range(ends.size):
        entry = np.int64(words[start])
        for n in range(2, ends[g] - start + 1):
            entry = _gram(entry, np.int64(words[start + n - 1]), n, slots, entries, used, False)
        numbers[g], start = entry, ends[g]


@njit(**_OPTIONS)
def merge_entries(other: Lexicon, n_other: int, lexicon: Lexicon, used: Ints, renamed: Ints) -> None:
    """Add the entries of another lexicon, for which there must be room; `renamed` gets their numbers in this one."""
    slots, entries, letters = lexicon
    others, other_letters = other[1], other[2]
    for entry in range(n_other):
        key, n, first, second = others[entry]
        if n > 1:  # its parts have smaller numbers: they are there already
            prefix, last = np.int64(renamed[first]), np.int64(renamed[second])
            renamed[entry] = _gram(prefix, last, n, slots, entries, used, False)
            continue
        word = other_letters[first : first + second]
        slot, renamed[entry] = _find_word(word, second, key, slots, entries, letters)
        if renamed[entry] < 0:
            renamed[entry] = _add_word(word, second, slot, key, slots, entries, letters, used)


@njit(**_OPTIONS)
def rehash(entries: Ints, n: int, slots: Ints) -> None:
    """Put the first n entries into an empty table."""
    mask = slots.size - 1
    for entry in range(n):
        slot = entries[entry, 0] & mask
        while slots[slot] >= 0:
            slot = (slot + 1) & mask
        slots[slot] = entry


@njit(**_INLINE)
def _longest(ends: Ints) -> int:
    longest, start = 0, 0
    for end in ends:
        longest, start = max(longest, end - start), end
    return longest


@njit(**_INLINE)
def _mixed(key: Any) -> Any:
    """The hash with low bits that depend on all others (slots are chosen by them), as a signed number."""
    key = (key ^ (key >> _HALF)) * _MIX
    return np.int64(key ^ (key >> _HALF))


@njit(**_INLINE)
def _find_word(word: Ints, length: int, key: int, slots: Ints, entries: Ints, letters: Ints) -> Any:
    """The slot of a word, and its number; -1 where it is unknown, and then the slot is free for it."""
    mask = slots.size - 1
    slot = key & mask
    while slots[slot] >= 0:
        entry = slots[slot]
        if entries[entry, 0] == key and entries[entry, 1] == 1 and entries[entry, 3] == length:
            i, start = 0, entries[entry, 2]
            while i < length and letters[start + i] == word[i]:
                i += 1
            if i == length:
                return slot, np.int64(entry)
        slot = (slot + 1) & mask
    return slot, np.int64(-1)


@njit(**_INLINE)
def _add_word(
    word: Ints, length: int, slot: int, key: int, slots: Ints, entries: Ints, letters: Ints, used: Ints
) -> Any:
    start = used[1]
    for i in range(length):
        letters[start + i] = word[i]
    used[1] += length
    return _add(slots, entries, used, slot, key, 1, start, length)


@njit(**_INLINE)
def _gram(prefix: int, word: int, n: int, slots: Ints, entries: Ints, used: Ints, frozen: bool) -> Any:
    """The number of an n-gram of a shorter one and a word; -1 where it is unknown to a frozen lexicon."""
    if prefix < 0 or word < 0:
        return np.int64(-1)
    key = _mixed(np.uint64(_mixed(_SEED ^ np.uint64(prefix))) * _PRIME ^ np.uint64(word))
    mask = slots.size - 1
    slot = key & mask
    while slots[slot] >= 0:
        entry = slots[slot]
        found = entries[entry]
        if found[0] == key and found[1] == n and found[2] == prefix and found[3] == word:
            return np.int64(entry)
        slot = (slot + 1) & mask
    if frozen:
        return np.int64(-1)
    return _add(slots, entries, used, slot, key, n, prefix, word)


@njit(**_INLINE)
def _add(slots: Ints, entries: Ints, used: Ints, slot: int, key: int, n: int, first: int, second: int) -> Any:
    entry = used[0]
    slots[slot] = entry
    entries[entry, 0], entries[entry, 1], entries[entry, 2], entries[entry, 3] = key, n, first, second
    used[0] += 1
    return np.int64(entry)
