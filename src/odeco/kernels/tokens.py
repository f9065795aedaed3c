"""Words of texts as numbers: tokens, n-grams and counts per document.

A *lexicon* gives every distinct word and n-gram a number, by a hash table with open addressing. It is three arrays:

    slots   (2^b,) int32   the number of an entry, -1 where free
    entries (m, 4) int64   hash; of a word: 1, where it begins in `spelling`, its letters;
                           of an n-gram: n, the number of all but its last word, the number of its last word
    spelling (c,) uint64   all words, one after the other, three letters (code points of 21 bits) in a number

Entries are compared by what they are, not by their hashes alone: no two words are ever taken for one. `used` counts
entries and numbers of `spelling`. A loop that finds no room returns before it has changed anything for the token at
hand, and goes on from there when it is called with more.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from odeco.kernels.compiling import njit

Ints = NDArray[np.integer]
Lexicon = tuple[Ints, Ints, Ints]

_OPTIONS = {"cache": True, "nogil": True}
_SEED, _FACTOR = np.uint64(0xCBF29CE484222325), np.uint64(0x9E3779B97F4A7C15)
_MIX, _HALF = np.uint64(0xFF51AFD7ED558CCD), np.uint64(32)  # the last step of MurmurHash
_LETTER = np.uint64(21)


@njit(**_OPTIONS)
def spell_tokens(
    text: Ints, ends: Ints, letter_of: Ints, digests: Ints, lengths: Ints, spelling: Ints, token_ends: Ints
) -> int:
    """The tokens of documents, runs of two word characters or more: hash, length and spelling. Returns their number.

    `letter_of` maps a code point to its letter (in lower case, say), 0 where it is no word character.
    """
    n, size, at = 0, 0, 0
    for document in range(ends.size):
        end = ends[document]
        while at < end:
            begin, place, filled, three, key = at, size, 0, np.uint64(0), _SEED
            while at < end:
                letter = letter_of[text[at]]
                if letter == 0:
                    break
                three = (three << _LETTER) | np.uint64(letter)
                filled, at = filled + 1, at + 1
                if filled == 3:
                    spelling[place], key = three, (key ^ three) * _FACTOR
                    place, filled, three = place + 1, 0, np.uint64(0)
            length = at - begin
            at += 1
            if length < 2:
                continue
            if filled:
                spelling[place], key = three, (key ^ three) * _FACTOR
                place += 1
            digests[n], lengths[n] = _mixed(key), length
            n, size = n + 1, place
        token_ends[document] = n
        at = end
    return n


@njit(**_OPTIONS)
def number_words(
    digests: Ints, lengths: Ints, words: Ints, lexicon: Lexicon, used: Ints, frozen: bool, numbers: Ints, state: Ints
) -> bool:
    """Numbers of words, given by hash, length and spelling (one after the other in `words`). True when all is done.

    New words are added; `frozen`: they get -1 and the lexicon stays as it is. `state` is where to go on: word, place in
    `words`.
    """
    slots, entries, spelling = lexicon
    mask = slots.size - 1
    begin = state[1]
    for w in range(state[0], digests.size):
        digest, length = digests[w], lengths[w]
        size = (length + 2) // 3
        slot = digest & mask
        entry = np.int64(slots[slot])
        while entry >= 0:
            if entries[entry, 0] == digest and entries[entry, 1] == 1 and entries[entry, 3] == length:
                i, start = 0, entries[entry, 2]
                while i < size and spelling[start + i] == words[begin + i]:
                    i += 1
                if i == size:
                    break
            slot = (slot + 1) & mask
            entry = np.int64(slots[slot])
        if entry < 0 and not frozen:
            if used[0] >= len(entries) or used[1] + size > spelling.size:
                state[0], state[1] = w, begin
                return False
            spelling[used[1] : used[1] + size] = words[begin : begin + size]
            entry = _add(slots, entries, used, slot, digest, 1, used[1], length)
            used[1] += size
        numbers[w] = entry
        begin += size
    return True


@njit(**_OPTIONS)
def drop_stop_words(numbers: Ints, token_ends: Ints, n_stop: int) -> int:
    """Take the first `n_stop` entries out of the tokens of documents, in place. The number of those that stay."""
    n, start = 0, 0
    for document in range(token_ends.size):
        for at in range(start, token_ends[document]):
            if numbers[at] < 0 or numbers[at] >= n_stop:
                numbers[n] = numbers[at]
                n += 1
        start, token_ends[document] = token_ends[document], n
    return n


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
    tokens: Ints, token_ends: Ints, n_stop: int, n_before: int, tally: Ints, entries: Ints, counts: Ints, row_ends: Ints
) -> int:
    """Each document's distinct entries and how often they occur, in the order of their first occurrence.

    Unknown words (-1) and the first `n_stop` entries are left out. `n_before` documents came before these. `tally`
    (m, 4) remembers of each entry its last document (from 1), the place of its count there, its documents and its
    occurrences. Returns the number of counts.
    """
    size, start = 0, 0
    for document in range(token_ends.size):
        stamp = n_before + document + 1
        for at in range(start, token_ends[document]):
            entry = tokens[at]
            if entry < n_stop:
                continue
            if tally[entry, 0] != stamp:
                tally[entry, 0], tally[entry, 1] = stamp, size
                tally[entry, 2] += 1
                entries[size], counts[size] = entry, 0
                size += 1
            counts[tally[entry, 1]] += 1
            tally[entry, 3] += 1
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
def merge_grams(other: Ints, lexicon: Lexicon, used: Ints, renamed: Ints) -> None:
    """Add the n-grams of another lexicon's entries, for which there must be room.

    `renamed` has the numbers of its words here, and gets those of its n-grams; their parts come before them.
    """
    slots, entries, _ = lexicon
    for entry in range(len(other)):
        n, prefix, word = other[entry, 1], other[entry, 2], other[entry, 3]
        if n > 1:
            renamed[entry] = _gram(renamed[prefix], renamed[word], n, slots, entries, used, False)


@njit(**_OPTIONS)
def rehash(entries: Ints, n: int, slots: Ints) -> None:
    """Put the first n entries into an empty table."""
    mask = slots.size - 1
    for entry in range(n):
        slot = entries[entry, 0] & mask
        while slots[slot] >= 0:
            slot = (slot + 1) & mask
        slots[slot] = entry


@njit(**_OPTIONS)
def _mixed(key: Any) -> Any:
    """The hash with low bits that depend on all others (slots are chosen by them), as a signed number.

    Signed numbers need a name of their own: numba makes floats of a name that is once signed and once not.
    """
    mixed = (key ^ (key >> _HALF)) * _MIX
    return np.int64(mixed ^ (mixed >> _HALF))


@njit(**_OPTIONS)
def _gram(prefix: int, word: int, n: int, slots: Ints, entries: Ints, used: Ints, frozen: bool) -> Any:
    """The number of an n-gram of a shorter one and a word; -1 where it is unknown to a frozen lexicon."""
    if prefix < 0 or word < 0:
        return np.int64(-1)
    key = _mixed(np.uint64(_mixed(_SEED ^ np.uint64(prefix))) * _FACTOR ^ np.uint64(word))
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


@njit(**_OPTIONS)
def _add(slots: Ints, entries: Ints, used: Ints, slot: int, key: int, n: int, first: int, second: int) -> Any:
    entry = used[0]
    slots[slot] = entry
    entries[entry, 0], entries[entry, 1], entries[entry, 2], entries[entry, 3] = key, n, first, second
    used[0] += 1
    return np.int64(entry)
