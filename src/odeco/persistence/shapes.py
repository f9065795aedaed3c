"""The words in which it is said what a file may hold: "simplex k d" is an array, "WordPairs d r" an object.

A word for the kind is followed by sizes. A letter is a size of its own, the same wherever it stands in one object;
`d+1` is one more, a digit itself, `*` any size, and `w#` a letter for each item of a list. What follows `<` bounds what
an array of places points to. "list v of ..." has v items ("list of ..." any number), "stream a; b" is that of
`partial_fit`, of sums a over chunks b, "(a; b)" is a pair, "a|b" is either, and "?" allows None. What depends on a size
that nothing has told does not fit. Cards (`odeco.fitting.card`) are written in these words; what may be absent from a
model has "maybe" before them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from scipy import sparse

from odeco.fitting.card import Stored, resolve

# Rows that a model has put on the simplex add up to 1 within far less; users who set them by hand may round.
_ROW_SUM = 1e-6

Sizes = dict[str, int]


class Shapes:
    """Compares values with words.

    Parameters
    ----------
    name_of : callable
        The name of an object's class, or None.
    classes : mapping
        What is declared of each class.
    """

    def __init__(self, name_of: Callable[[object], str | None], classes: Mapping[str, Stored]) -> None:
        self._name_of, self._classes = name_of, classes

    def fits(self, value: Any, expected: str, sizes: Sizes) -> bool:
        """Whether a value is what is expected; sizes that it tells of are added to those that are known."""
        if expected.startswith("?"):
            return value is None or self.fits(value, expected[1:], sizes)
        if expected.startswith("("):
            parts = expected[1:-1].split("; ")
            pair = isinstance(value, (list, tuple)) and len(value) == len(parts)
            return pair and all(self.fits(*both, sizes) for both in zip(value, parts, strict=True))
        if matched := re.fullmatch(r"list(?: (\w+))? of (.*)", expected):
            return self._list_fits(value, matched[1], matched[2], sizes)
        if "|" in expected:
            return any(self.fits(value, one, sizes) for one in expected.split("|"))
        if expected.startswith("stream "):
            sums, chunk = expected.removeprefix("stream ").split("; ")
            return self._stream_fits(value, sums, chunk, sizes)
        kind, *shape = expected.split()
        if kind == "among":
            return isinstance(value, str) and value in shape
        if kind in ("value", "mapping"):
            return (kind == "value" or isinstance(value, dict)) and self._is_sound(value)
        if kind in _SCALARS:
            return bool(_SCALARS[kind](value)) and (not shape or _agree((int(value),), shape, sizes))
        if kind in _ARRAYS:
            return _array_fits(value, kind, shape, sizes)
        return kind == self._name_of(value) and self._object_fits(value, kind, shape, sizes)

    def _is_sound(self, value: Any) -> bool:
        """Whether objects fit that stand where anything may."""
        if isinstance(value, dict):
            return all(map(self._is_sound, value.values()))
        if isinstance(value, (list, tuple)):
            return all(map(self._is_sound, value))
        name = self._name_of(value)
        return name is None or self._object_fits(value, name, [], {})

    def _list_fits(self, value: Any, length: str | None, item: str, sizes: Sizes) -> bool:
        if not isinstance(value, (list, tuple)) or (length and not _agree((len(value),), [length], sizes)):
            return False
        return all(self.fits(one, item.replace("#", str(place)), sizes) for place, one in enumerate(value))

    def _stream_fits(self, value: Any, sums: str, chunk: str, sizes: Sizes) -> bool:
        """Whether a value is a stream of such sums over such chunks."""
        if self._name_of(value) != "MomentStream" or not self.fits(value.sums, f"?{sums}", sizes):
            return False
        held = self.fits(value._waiting, f"list of {chunk}", sizes) and self.fits(value.first, f"?{chunk}", sizes)
        return held and self._object_fits(value, "MomentStream", [], {})

    def _object_fits(self, value: Any, kind: str, arguments: list[str], sizes: Sizes) -> bool:
        stored = self._classes[kind]
        names = stored.sizes.split()[: len(arguments)]
        inner = {name: sizes[a] for name, a in zip(names, arguments, strict=True) if a in sizes}
        if not all(self.fits(getattr(value, name), expected, inner) for name, expected in stored.attributes.items()):
            return False
        told = [(inner[name], argument) for name, argument in zip(names, arguments, strict=True) if name in inner]
        agree = _agree(tuple(size for size, _ in told), [argument for _, argument in told], sizes)
        return agree and (stored.rule is None or bool(resolve(stored.rule)(value)))


def _anything(value: object) -> bool:
    return True


def _array_fits(value: Any, kind: str, shape: list[str], sizes: Sizes) -> bool:
    if "<" in shape:
        *shape, _, letter = shape
        bound = int(letter) if letter.isdigit() else sizes.get(letter, 0)
        if not isinstance(value, np.ndarray) or value.dtype.kind not in "iu":
            return False
        if value.size and not (value.min() >= 0 and value.max() < bound):
            return False
    holder = sparse.issparse if kind == "sparse" else lambda found: isinstance(found, np.ndarray)
    return holder(value) and _agree(value.shape, shape, sizes) and bool(_ARRAYS[kind](value))


def _agree(shape: tuple[int, ...], letters: list[str], sizes: Sizes) -> bool:
    """Whether a shape agrees with what is known of the sizes; what it adds to that is remembered."""
    if len(shape) != len(letters):
        return False
    found = dict(sizes)
    for length, letter in zip(shape, letters, strict=True):
        name, _, more = letter.partition("+")
        rest = length - int(more or 0)
        if name != "*" and rest != (int(name) if name.isdigit() else found.setdefault(name, rest)):
            return False
    sizes.update(found)
    return True


def _is_float(value: Any) -> bool:
    """Whether an array has a type that compiled loops know."""
    return bool(value.dtype in (np.float64, np.float32))


def _is_finite(value: Any) -> bool:
    return _is_float(value) and bool(np.isfinite(value).all())


def _is_nonnegative(value: Any) -> bool:
    return _is_finite(value) and bool((value >= 0).all())


def _is_simplex(value: Any) -> bool:
    return _is_nonnegative(value) and bool((abs(value.sum(axis=-1) - 1) <= _ROW_SUM).all())


def _is_number(value: Any) -> bool:
    return isinstance(value, (float, int, np.floating)) and not isinstance(value, bool)


def _is_whole(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool) and bool(value >= 0)


def _is_plain(value: Any) -> bool:
    if isinstance(value, dict):
        return all(isinstance(key, str) and _is_plain(item) for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, (bool, int, float, str, np.integer))


_ARRAYS: Mapping[str, Callable[[Any], bool]] = {
    "any": _anything,
    "places": lambda value: value.dtype.kind in "iu",
    "integers": lambda value: value.dtype == np.int64,  # to be added to
    "flags": lambda value: value.dtype == bool,
    "float": _is_float,
    "values": lambda value: _is_float(value) and not np.isinf(value).any(),  # NaN where one is missing
    "finite": _is_finite,
    "nonnegative": _is_nonnegative,
    "positive": lambda value: _is_nonnegative(value) and bool(value.all()),
    "simplex": _is_simplex,  # along the last axis
    "sparse": lambda value: _is_finite(value.data),
}
_SCALARS: Mapping[str, Callable[[Any], bool]] = {
    "whole": _is_whole,  # "whole d" is a number that must be d
    "positive-whole": lambda value: _is_whole(value) and value > 0,
    "number": _is_number,
    "finite-number": lambda value: _is_number(value) and bool(np.isfinite(value)),
    "flag": lambda value: isinstance(value, (bool, np.bool_)),
    "text": lambda value: isinstance(value, str),
    "plain": _is_plain,
    "none": lambda value: value is None,
}
