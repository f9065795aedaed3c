"""What sums that are kept are of: the fit, all rows it reads, and what each pass sums on.

The first two are a `Signature`, equal or not. What a pass sums on (a basis, a model) is the same to rounding only where
a fit is repeated, and is described by a few numbers.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from odeco.sources.partitions import Partitioned, Read, Rows

# Repeating a fit reproduces a basis to rounding, magnified by the condition of what it comes from.
_TOLERANCE = 1e-5
_DEPTH = 4
# Bytes of a digest that are kept: two of 1e9 batches are alike by chance once in 1e20 fits.
_BYTES = 16
_SHOWN = 60  # characters of a value in an error


@dataclass(frozen=True, eq=False)
class Signature:
    """All that determines the result of a fit.

    Attributes
    ----------
    fit : dict
        The estimator and its arguments, as text.
    rows : (m,) int64
        Rows (steps of sequences) of each batch, or of each partition elsewhere.
    digests : (m, 16) uint8
        Of the values in each, weights and lengths of sequences included.
    """

    fit: dict[str, str]
    rows: NDArray[np.int64] = field(repr=False)
    digests: NDArray[np.uint8] = field(repr=False)

    def __post_init__(self) -> None:
        if self.rows.ndim != 1 or self.digests.shape != (self.rows.size, _BYTES):
            raise ValueError(f"rows of shape {self.rows.shape} and digests of shape {self.digests.shape}")

    @classmethod
    def of(cls, source: Any, fit: dict[str, str]) -> Self:
        """That of a fit to a source: all rows are read once, where they are."""
        if isinstance(source, Partitioned):
            parts = source.partitions.fetch(SignRows(source._reader()), source.partitions.everything())
        else:
            parts = [signed([batch]) for batch in source]
        digests = np.frombuffer(b"".join(digest for _, digest in parts), dtype=np.uint8).reshape(-1, _BYTES)
        schema = getattr(source, "schema", None)
        named = fit if schema is None else {**fit, "schema": repr(schema)}
        return cls(named, np.array([n for n, _ in parts], dtype=np.int64), digests)

    @property
    def digest(self) -> str:
        """All of it in a word."""
        text = json.dumps(self.fit, sort_keys=True).encode()
        return hashlib.sha256(text + self.rows.astype("<i8").tobytes() + self.digests.tobytes()).hexdigest()

    def difference(self, before: Signature) -> str | None:
        """How it differs from an earlier one, in words; None where it does not."""
        for name in {**before.fit, **self.fit}:
            old, new = before.fit.get(name), self.fit.get(name)
            if old != new:
                return f"{name} was {_short(old)} and is {_short(new)}"
        n = min(self.rows.size, before.rows.size)
        same = (self.rows[:n] == before.rows[:n]) & (self.digests[:n] == before.digests[:n]).all(axis=1)
        if same.all() and self.rows.size == before.rows.size:
            return None
        first = int(self.rows[: n if same.all() else int(np.argmin(same))].sum())
        return (
            f"X or its weights differ, or come in other batches, in or after row {first:,} ({before.rows.sum():,} rows "
            f"then, {self.rows.sum():,} now)"
        )


def _short(text: str | None) -> str:
    return "not given" if text is None else text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


@dataclass(frozen=True, eq=False)
class SignRows:
    """Signs the rows of a partition where it is."""

    read: Read

    def __call__(self, partition: Any, rows: Rows) -> tuple[int, bytes]:
        """Their number and digest."""
        return signed(self.read.batches(partition, rows))


def signed(batches: Iterable[Any]) -> tuple[int, bytes]:
    """The number of rows of some batches, and a digest of the values in all their fields.

    The same for the same values of the same type, however they lie in memory.
    """
    digest, n_rows = hashlib.sha256(), 0
    for batch in batches:
        n_rows += len(batch)
        digest.update(type(batch).__name__.encode())
        for part in fields(batch):
            _add(digest, getattr(batch, part.name))
    return n_rows, digest.digest()[:_BYTES]


def _add(digest: Any, value: Any) -> None:
    """Add the values of an array, dense or sparse, or of several: with type and shape, so that none run together."""
    if value is None or isinstance(value, tuple):
        digest.update(b"none" if value is None else b"%d of them" % len(value))
        for part in value or ():
            _add(digest, part)
    elif sparse.issparse(value):
        digest.update(repr(value.shape).encode())
        columns = np.int32 if value.shape[1] <= np.iinfo(np.int32).max else np.int64
        for part in (np.diff(value.indptr).astype(np.int64), value.indices.astype(columns, copy=False), value.data):
            _add(digest, part)
    else:
        array = np.asarray(value)
        if array.dtype.kind == "O":
            array = np.array([repr(item) for item in array.ravel().tolist()]).reshape(array.shape)
        array = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        digest.update(array.view(np.uint8).data if array.size else b"")


def described(estimator: Any) -> dict[str, str]:
    """An estimator and its arguments as text, the same in every process."""
    arguments = estimator.get_params(deep=False)
    arguments.pop("verbose", None)  # what a fit says changes nothing of it
    return {"estimator": type(estimator).__name__, **{name: _text(value) for name, value in arguments.items()}}


def _text(value: Any) -> str:
    if isinstance(value, (np.ndarray, np.generic)):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_text, value))}]"
    if isinstance(value, (bool, int, float, str, type(None))):
        return repr(value)
    return str(getattr(value, "__qualname__", type(value).__qualname__))  # a generator of random numbers has no text


def signature(sums: Any) -> dict[str, Any]:
    """The class of empty sums and, of every number and array they hold, its shape and a few of its sums."""
    found: dict[str, Any] = {"": type(sums).__name__}
    _describe(sums, "", found, 0)
    return found


def _describe(value: Any, path: str, found: dict[str, Any], depth: int) -> None:
    if isinstance(value, (bool, str, int, type(None))):
        found[path] = value
    elif isinstance(value, (float, np.number, np.ndarray)):
        found[path] = _numbers(np.asarray(value))
    elif depth < _DEPTH and isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            _describe(item, f"{path}.{index}", found, depth + 1)
    elif depth < _DEPTH and hasattr(value, "__dict__") and type(value).__name__ != "ScatterSum":
        for name, item in vars(value).items():
            _describe(item, f"{path}.{name}", found, depth + 1)


def _numbers(array: Any) -> list[Any]:
    if array.dtype.kind not in "biuf":
        return [list(array.shape), str(array.dtype)]
    flat = np.nan_to_num(np.asarray(array, dtype=np.float64).ravel(), posinf=1e300, neginf=-1e300)
    wave = np.cos(np.arange(flat.size))
    scale = float(np.sqrt(np.mean(flat**2))) if flat.size and np.abs(flat).max() < 1e150 else 0.0
    return [list(array.shape), scale, float(flat @ wave / max(flat.size, 1) ** 0.5) if scale else 0.0]


def same_signature(first: dict[str, Any], second: dict[str, Any]) -> bool:
    """Whether two signatures are of sums that may be added."""
    return set(first) == set(second) and all(_same(first[name], second[name]) for name in first)


def _same(first: Any, second: Any) -> bool:
    if not isinstance(first, list) or not isinstance(second, list) or len(first) != 3 or len(second) != 3:
        return bool(first == second)
    if first[0] != second[0]:
        return False
    size = max(abs(first[1]), abs(second[1]), 1e-300)
    return all(abs(a - b) <= _TOLERANCE * size for a, b in zip(first[1:], second[1:], strict=True))
