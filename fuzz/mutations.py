"""Small changes to bytes, arrays and documents: what damage and malice look like."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np

Rng = np.random.Generator

TOKENS = [
    b"-1", b"0", b"9" * 20, b"4294967297", b"1e400", b"-1e-400", b"nan", b"inf", b"NA", b"null", b"true", b"1:1", b"",
    b"\0", b"\xff", b"\xef\xbb\xbf", b"\xed\xa0\x80", "é".encode(), "\U0001f600".encode(), b"\n", b"\r", b"\r\n",
    b'"', b",", b"\t", b":", b" ", b"#", b"%", b"{", b"}", b"[" * 99, b"x" * 5000,
]  # fmt: skip
NUMBERS = [0, 1, -1, 2, 3, 7, 255, 2**31 - 1, 2**31, 2**63 - 1, -(2**63), 2**64, 10**30]
FLOATS = [0.0, -0.0, 0.5, 1.0, -1.0, 1e-300, 1e300, -1e300, float("nan"), float("inf"), float("-inf"), 5e-324]
ODD = [None, True, False, "", "auto", "x", [], {}, 0.5, *NUMBERS[:8]]


def choose(rng: Rng, items: Any) -> Any:
    """One of several items, as it is."""
    items = list(items)
    return items[int(rng.integers(len(items)))]


def mutate_bytes(rng: Rng, content: bytes) -> bytes:
    """Some places replaced, cut out, repeated or filled, or the end cut off."""
    for _ in range(int(rng.geometric(0.5))):
        content = choose(rng, _BYTE_STEPS)(rng, content)
    return content


def _place(rng: Rng, content: bytes) -> int:
    return int(rng.integers(len(content) + 1))


def _flip(rng: Rng, content: bytes) -> bytes:
    if not content:
        return content
    changed = bytearray(content)
    for place in rng.integers(len(content), size=int(rng.geometric(0.3))):
        changed[place] = int(rng.integers(256))
    return bytes(changed)


def _insert(rng: Rng, content: bytes) -> bytes:
    place = _place(rng, content)
    return content[:place] + choose(rng, TOKENS) + content[place:]


def _replace(rng: Rng, content: bytes) -> bytes:
    place, token = _place(rng, content), choose(rng, TOKENS)
    return content[:place] + token + content[place + max(len(token), 1) :]


def _cut_out(rng: Rng, content: bytes) -> bytes:
    low, high = sorted((_place(rng, content), _place(rng, content)))
    return content[:low] + content[min(high, low + 200) :]


def _repeat(rng: Rng, content: bytes) -> bytes:
    low, high = sorted((_place(rng, content), _place(rng, content)))
    return content[:high] + content[low : min(high, low + 500)] * int(rng.integers(1, 20)) + content[high:]


def _truncate(rng: Rng, content: bytes) -> bytes:
    return content[: _place(rng, content)]


def _field(rng: Rng, content: bytes) -> bytes:
    """One of the fields of a text replaced as a whole."""
    separator = choose(rng, [b",", b" ", b"\t", b"\n", b":"])
    fields = content.split(separator)
    fields[int(rng.integers(len(fields)))] = choose(rng, TOKENS)
    return separator.join(fields)


_BYTE_STEPS = (_flip, _insert, _replace, _cut_out, _repeat, _truncate, _field, _field)


def mutate_array(rng: Rng, array: Any) -> Any:
    """Another dtype, shape, order, or other values here and there."""
    how = choose(rng, ("value", "value", "value", "dtype", "shorter", "longer", "axis", "order", "scale", "constant"))
    if how == "value" and array.size:
        return _with_value(rng, array)
    if how == "dtype":
        with np.errstate(all="ignore"):
            return _as_type(
                array, choose(rng, ("f4", "f8", "f2", "i1", "i4", "i8", "u1", "u4", "u8", "c16", "?", "U3"))
            )
    if how == "shorter" and array.ndim:
        return np.delete(array, -1, axis=int(rng.integers(array.ndim))) if array.size else array
    if how == "longer" and array.ndim and array.size:
        return np.repeat(array, int(rng.integers(2, 5)), axis=int(rng.integers(array.ndim)))
    if how == "axis":
        return array[None] if rng.integers(2) else array.reshape(-1)
    if how == "order":
        return np.asfortranarray(array)
    if how == "scale" and array.dtype.kind in "if":
        return array * np.array(choose(rng, (0, -1, 2, 100)), dtype=array.dtype)
    return np.zeros_like(array)


def _with_value(rng: Rng, array: Any) -> Any:
    changed = array.copy()
    places = rng.integers(array.size, size=int(rng.geometric(0.5)))
    if array.dtype.kind == "f":
        changed.flat[places] = np.array(choose(rng, FLOATS)).astype(array.dtype)
    elif array.dtype.kind in "iu":
        information = np.iinfo(array.dtype)
        value = choose(rng, [*NUMBERS, information.min, information.max, int(array.max()) + 1])
        changed.flat[places] = min(max(value, information.min), information.max)
    elif array.dtype.kind == "b":
        changed.flat[places] ^= True
    return changed


def _as_type(array: Any, dtype: str) -> Any:
    try:
        return array.astype(dtype)
    except (TypeError, ValueError):
        return array


def mutate_document(rng: Rng, document: Any) -> None:
    """Change a nested document in place: a value replaced, removed, moved, or put somewhere else."""
    places = list(_places(document))
    if not places:
        return
    holder, key = choose(rng, places)
    how = choose(rng, ("replace", "replace", "remove", "move", "rename"))
    if how == "remove":
        del holder[key]
    elif how == "move":
        other, place = choose(rng, places)
        holder[key] = deepcopy(other[place])
    elif how == "rename" and isinstance(holder, dict):
        holder[choose(rng, [*holder, "weights_", "_stream", "x"])] = holder.pop(key)
    else:
        holder[key] = _other(rng, holder[key])


def _other(rng: Rng, value: Any) -> Any:
    if isinstance(value, bool) or value is None or rng.random() < 0.2:
        return choose(rng, ODD)
    if isinstance(value, int):
        return choose(rng, [*NUMBERS, value + 1, value - 1])
    if isinstance(value, float):
        return choose(rng, [x for x in FLOATS if np.isfinite(x)])
    if isinstance(value, str):
        return choose(rng, [value + "x", "", "0", "1", "2", "array", "objects", "sparse", "same", "é", "x" * 500])
    return choose(rng, ODD)


def _places(node: Any) -> Any:
    """All (holder, key) of a nested document."""
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, value in list(items):
        yield node, key
        yield from _places(value)
