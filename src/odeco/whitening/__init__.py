"""Whitening: explicit and randomized, W and its lift in one object (sections 4.3 and 6.1.2 of the paper)."""

from __future__ import annotations

from odeco.whitening.randomized import WordRange, whiten_words, word_range
from odeco.whitening.slices import definite_combination, whiten_fourth
from odeco.whitening.whitener import Whitener, whiten

__all__ = [
    "Whitener",
    "WordRange",
    "definite_combination",
    "whiten",
    "whiten_fourth",
    "whiten_words",
    "word_range",
]
