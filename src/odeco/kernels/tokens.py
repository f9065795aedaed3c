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

import numpy as np
from numpy.typing import NDArray

from odeco.kernels._native import (
    add_grams,
    count_documents,
    drop_stop_words,
    join_grams,
    merge_grams,
    number_words,
    rehash,
    sorted_rows,
    spell_tokens,
)

Lexicon = tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.uint64]]

__all__ = [
    "Lexicon",
    "add_grams",
    "count_documents",
    "drop_stop_words",
    "join_grams",
    "merge_grams",
    "number_words",
    "rehash",
    "sorted_rows",
    "spell_tokens",
]
