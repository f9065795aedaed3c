"""What of a fitted model gets intervals: the numbers among its learned attributes, as the card describes them.

The words of a card ("simplex k d", "list v of finite k w#") say which axes of an array are components, letter k, and
between what bounds its numbers lie. Bounds that differ from column to column a model tells itself (`_ranges`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from odeco.fitting.card import ByOption, Card
from odeco.fitting.free import POSITIVE, REAL, SHARE

Floats = NDArray[np.float64]

_KINDS = {"simplex": SHARE, "nonnegative": POSITIVE, "positive": POSITIVE, "finite": REAL, "finite-number": REAL}


@dataclass(frozen=True, eq=False)
class Learned:
    """One array among the learned attributes.

    Attributes
    ----------
    name : str
        The attribute.
    place : int or None
        Which item of it, where it is a list.
    axes : tuple of int
        Axes along which components stand.
    ranges : array like the values
        REAL, POSITIVE or SHARE for each number.
    """

    name: str
    place: int | None
    axes: tuple[int, ...]
    ranges: NDArray[np.int64]

    def of(self, model: Any) -> Floats:
        """Its values in a model."""
        value = getattr(model, self.name)
        return np.asarray(value if self.place is None else value[self.place], dtype=np.float64)

    def permuted(self, values: Floats, order: NDArray[np.intp], signs: Floats) -> Floats:
        """Values with the components in another order, and turned where they have a sign."""
        for axis in self.axes:
            values = np.take(values, order, axis=axis)
        if (signs < 0).any():
            for axis in self.axes:
                values = values * np.expand_dims(signs, [a for a in range(values.ndim) if a != axis])
        return values


def learned_arrays(model: Any, card: Card) -> list[Learned]:
    """All that gets intervals."""
    own = model._ranges()
    found: list[Learned] = []
    for name, given in card.learned.items():
        words = given.shapes[getattr(model, given.name)] if isinstance(given, ByOption) else given
        if not name.startswith("_") and "|" not in words and "*" not in words and hasattr(model, name):
            found += _arrays(name, words, getattr(model, name), own.get(name))
    return found


def _arrays(name: str, words: str, value: Any, own: Any) -> list[Learned]:
    if matched := re.fullmatch(r"list(?: \w+)? of \??(.*)", words):
        return [
            _array(name, place, matched[1], item, None if own is None else own[place])
            for place, item in enumerate(value)
            if item is not None and matched[1].split()[0] in _KINDS
        ]
    return [_array(name, None, words, value, own)] if words.split()[0] in _KINDS else []


def _array(name: str, place: int | None, words: str, value: Any, own: Any) -> Learned:
    kind, *sizes = words.split()
    ranges = np.broadcast_to(_KINDS[kind] if own is None else np.asarray(own), np.shape(value))
    return Learned(name, place, tuple(axis for axis, size in enumerate(sizes) if size == "k"), ranges)
