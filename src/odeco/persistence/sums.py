"""Shapes of what a model file holds, in words: "float k d" is an array, "WordPairs d r" an object with such shapes.

The sums of `partial_fit` go on in compiled loops that trust their shapes, so those of a file are compared first.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy import sparse

from odeco.persistence.registry import name_of

# Of a class: the letters of its sizes, and what its attributes are in terms of them. "?" allows None.
_OBJECTS: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "WordStream": (
        "d",
        {
            "n_features": "size d",
            "frequencies": "WordFrequencies d",
            "_sums": "?WordSums d r",
            "_waiting": "list of Batch d",
        },
    ),
    "WordSums": ("d r", {"pairs": "WordPairs d r", "triples": "WordTriples d r"}),
    "WordFrequencies": ("d", {"n_features": "size d", "_sum": "float d", "n_at_least": "any *"}),
    "WordPairs": (
        "d r",
        {"n_features": "size d", "basis": "float d r", "_diagonal": "float d", "_products": "ScatterSum d r"},
    ),
    "WordTriples": (
        "d r",
        {
            "n_features": "size d",
            "basis": "float d r",
            "_diagonals": "float * d",
            "_weights": "float *",
            "_mixed": "ScatterSum d r",
            "_parts": "list of TripleSums r",
        },
    ),
    "ScatterSum": ("d r", {"_total": "float d r", "_copies": "float * d r"}),
    "TripleSums": ("r", {"first": "float r", "pairs": "float r r", "cubes": "float r r r"}),
    "Batch": ("d", {"counts": "sparse n d", "lengths": "any n", "weights": "?float n"}),
    "SymbolStream": (
        "s",
        {"n_symbols": "size s", "pairs": "SymbolPairs s", "triples": "?SymbolTriples s r", "_head": "?Sequences"},
    ),
    "SymbolPairs": (
        "s",
        {"n_features": "size s", "_single": "float s", "_first": "float s", "_counts": "float s s|sparse s s"},
    ),
    "SymbolTriples": ("s r", {"n_features": "size s", "basis": "float s r", "_core": "float r r r"}),
    "FeatureStream": ("", {"_head": "?Sequences"}),
}


def fits(value: Any, expected: str, sizes: dict[str, int]) -> bool:
    """Whether a value is what is expected; sizes that it tells of are added to those that are known."""
    if "|" in expected:
        return any(fits(value, one, sizes) for one in expected.split("|"))
    if expected.startswith("list of "):
        inner = expected.removeprefix("list of ")
        return isinstance(value, (list, tuple)) and all(fits(item, inner, sizes) for item in value)
    if expected.startswith("?"):
        return value is None or fits(value, expected.removeprefix("?"), sizes)
    if expected in _SIMPLE:
        return bool(_SIMPLE[expected](value))
    kind, *shape = expected.split()
    if kind == "size":
        return bool(_SIMPLE["whole number"](value)) and _agree((int(value),), shape, sizes)
    if kind == "sparse":
        return sparse.issparse(value) and value.dtype.kind == "f" and _agree(value.shape, shape, sizes)
    if kind == "any":
        return isinstance(value, np.ndarray) and _agree(value.shape, shape, sizes)
    if kind == "float":
        real = isinstance(value, np.ndarray) and value.dtype in (np.float64, np.float32)
        return real and _agree(value.shape, shape, sizes)
    return name_of(value) == kind and _object_fits(value, kind, shape, sizes)


def _object_fits(value: Any, kind: str, arguments: list[str], sizes: dict[str, int]) -> bool:
    if kind == "Sequences":
        return _is_sequences(value)
    letters, attributes = _OBJECTS.get(kind, ("", {}))
    inner = {letter: sizes[a] for letter, a in zip(letters.split(), arguments, strict=False) if a in sizes}
    if not all(fits(getattr(value, name), expected, inner) for name, expected in attributes.items()):
        return False
    return _agree(tuple(inner[letter] for letter in letters.split()[: len(arguments)]), arguments, sizes)


def _agree(shape: tuple[int, ...], letters: list[str], sizes: dict[str, int]) -> bool:
    """Whether a shape agrees with what is known of the sizes; what it adds to that is remembered."""
    if len(shape) != len(letters):
        return False
    found = dict(sizes)
    for length, letter in zip(shape, letters, strict=True):
        if letter != "*" and found.setdefault(letter, length) != length:
            return False
    sizes.update(found)
    return True


def _is_sequences(value: Any) -> bool:
    """Offsets that ascend from 0 to the number of steps, and codes that are rows of the values."""
    offsets, codes, values = value.offsets, value.codes, value.values
    if not all(isinstance(part, np.ndarray) for part in (offsets, values)) or offsets.dtype.kind != "i":
        return False
    if offsets.ndim != 1 or offsets.size == 0 or offsets[0] != 0 or (np.diff(offsets) < 0).any():
        return False
    if codes is None:
        return bool(offsets[-1] == len(values))
    whole = isinstance(codes, np.ndarray) and codes.dtype.kind == "i" and codes.shape == (offsets[-1],)
    return whole and bool(((codes >= 0) & (codes < max(len(values), 1))).all())


def _is_plain(value: Any) -> bool:
    if isinstance(value, dict):
        return all(isinstance(key, str) and _is_plain(item) for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, (bool, int, float, str, np.integer))


_SIMPLE = {
    "number": lambda value: isinstance(value, (float, int, np.floating)) and not isinstance(value, bool),
    "whole number": lambda value: isinstance(value, (int, np.integer)) and not isinstance(value, bool) and value >= 0,
    "flag": lambda value: isinstance(value, (bool, np.bool_)),
    "plain": _is_plain,
}
