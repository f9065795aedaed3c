"""The law of the moments: sums that can be updated, merged and read."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from functools import partial
from operator import add
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from odeco.kernels.threads import sum_batches


@dataclass(frozen=True, eq=False)
class PackedSums:
    """Sums alone, as they travel and are stored: arrays by name, those that add up (CSR arrays among them) and those of
    which the largest counts. What they are sums on (a basis, a model) is known at both ends and does not travel.
    """

    sums: dict[str, Any] = field(repr=False)
    maxima: dict[str, NDArray[Any]] = field(default_factory=dict, repr=False)

    def __add__(self, other: PackedSums) -> PackedSums:
        return PackedSums(
            {name: value + other.sums[name] for name, value in self.sums.items()},
            {name: np.maximum(value, other.maxima[name]) for name, value in self.maxima.items()},
        )

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        arrays = [value for part in (self.sums, self.maxima) for value in part.values()]
        return sum(_nbytes(value) for value in arrays)

    def __sizeof__(self) -> int:
        """For engines, which weigh what it costs to move a result."""
        return object.__sizeof__(self) + self.nbytes


def _nbytes(value: Any) -> int:
    return int(
        value.data.nbytes + value.indices.nbytes + value.indptr.nbytes if sparse.issparse(value) else value.nbytes
    )


class Packable:
    """Sums that travel and are stored, whoever made them.

    Subclasses name the attributes that add up in `_sums`, and those of which the largest counts in `_maxima`: numbers,
    arrays, other sums, or lists and dictionaries of these (None is left out). `_on` names the arguments of the
    constructor, which are attributes too: what these are sums on.
    """

    _sums: ClassVar[tuple[str, ...]] = ()
    _maxima: ClassVar[tuple[str, ...]] = ()
    _on: ClassVar[tuple[str, ...]] = ()

    def emptied(self) -> Self:
        """Sums on the same basis without any samples."""
        return type(self)(**{name: getattr(self, name) for name in self._on})

    def merge(self, other: Self) -> Self:
        """Add other sums of the same kind; returns self."""
        return self.unpack(other.pack())

    def pack(self) -> PackedSums:
        """The sums, ready to travel."""
        return PackedSums(dict(_flat("", self, "_sums")), dict(_flat("", self, "_maxima")))

    def unpack(self, packed: PackedSums) -> Self:
        """Add packed sums of the same kind; returns self."""
        _join("", self, "_sums", packed.sums, add)
        _join("", self, "_maxima", packed.maxima, np.maximum)
        return self


class Additive(Packable, ABC):
    """Anything that adds up over batches: the one thing that a pass over a source makes.

    `_by_threads` says that threads share the batches of a pass, each with sums of its own, because `update` itself
    uses none.
    """

    _by_threads: ClassVar[bool] = False

    @abstractmethod
    def update(self, batch: Any) -> Any:
        """Add the samples of a batch."""

    def update_all(self, batches: Any) -> Self:
        """Empty sums with every batch of a source added where its rows are: one pass. These, or others like them."""
        add_to = getattr(batches, "add_to", None)
        if add_to is not None:
            added: Self = add_to(self)
            return added
        if self._by_threads:
            return sum_batches(batches, self.emptied if self._on else partial(deepcopy, self))
        for batch in batches:
            self.update(batch)
        return self


class Together(Additive):
    """Several sums over the same samples, as one; subclasses name them in `_parts`."""

    _parts: ClassVar[tuple[str, ...]] = ()

    @property
    def parts(self) -> dict[str, Additive]:
        """The sums by name."""
        return {name: getattr(self, name) for name in self._parts}

    def update(self, batch: Any) -> Self:
        """Add the samples of a batch to all of them; returns self."""
        for part in self.parts.values():
            part.update(batch)
        return self

    def merge(self, other: Self) -> Self:
        for name, part in self.parts.items():
            part.merge(other.parts[name])
        return self

    def pack(self) -> PackedSums:
        packed = {name: part.pack() for name, part in self.parts.items()}
        return PackedSums(
            {f"{name}.{key}": value for name, part in packed.items() for key, value in part.sums.items()},
            {f"{name}.{key}": value for name, part in packed.items() for key, value in part.maxima.items()},
        )

    def unpack(self, packed: PackedSums) -> Self:
        for name, part in self.parts.items():
            part.unpack(PackedSums(_named_so(packed.sums, name), _named_so(packed.maxima, name)))
        return self


def _named_so(arrays: dict[str, Any], name: str) -> dict[str, Any]:
    """The arrays of one of several sums."""
    return {key.removeprefix(f"{name}."): value for key, value in arrays.items() if key.startswith(f"{name}.")}


def _parts(value: Any, kind: str) -> dict[Any, Any] | None:
    """What a value of `Packable` is made of, by name; None for a number or an array."""
    if isinstance(value, Packable):
        return {name: getattr(value, name) for name in getattr(value, kind)}
    if isinstance(value, (list, tuple)):
        return dict(enumerate(value))
    return value if isinstance(value, dict) else None


def _named(path: str, part: Any) -> str:
    """The name of a part, which may be a number, a word or several of them."""
    name = "-".join(map(str, part)) if isinstance(part, tuple) else str(part)
    return f"{path}.{name}" if path else name


def _flat(path: str, value: Any, kind: str) -> Iterator[tuple[str, Any]]:
    """The arrays in a value, each with its name."""
    parts = _parts(value, kind)
    if parts is not None:
        for name, part in parts.items():
            yield from _flat(_named(path, name), part, kind)
    elif value is not None:
        yield path, value if sparse.issparse(value) else np.asarray(value)


def _join(path: str, value: Any, kind: str, arrays: dict[str, Any], join: Callable[[Any, Any], Any]) -> Any:
    """The value with the arrays of these names joined to its own."""
    parts = _parts(value, kind)
    if parts is None:
        return value if value is None or path not in arrays else _like(value, join(value, arrays[path]))
    found = {name: _join(_named(path, name), part, kind, arrays, join) for name, part in parts.items()}
    if isinstance(value, Packable):
        for name, part in found.items():
            setattr(value, name, part)
        return value
    return found if isinstance(value, dict) else type(value)(found.values())


def _like(old: Any, value: Any) -> Any:
    """Numbers stay numbers."""
    return value if isinstance(old, np.ndarray) or sparse.issparse(old) else type(old)(value)


class Moments(Additive):
    """Sums over samples. Division happens only when they are read.

    Any chunking of the samples into batches and any order of merges give the same statistics. The basis
    on which a moment is projected travels with it: merging moments of different bases is an error.
    """

    _sums: ClassVar[tuple[str, ...]] = ("n",)

    def __init__(self, n_features: int, basis: NDArray[np.floating] | None = None) -> None:
        self.n_features = n_features
        self.basis = basis
        self.n = 0
        """The number of samples seen, whatever their weights."""

    def update(self, batch: Any) -> Self:
        """Add the samples of a batch, of the kind that the subclass takes; returns self."""
        if batch.n_features != self.n_features:
            raise ValueError(f"the batch has {batch.n_features} columns, the moments {self.n_features}.")
        self._update(batch)
        self.n += len(batch)
        return self

    def merge(self, other: Self) -> Self:
        """Add the sums of ``other``, which is left as it is; returns self."""
        if type(other) is not type(self):
            raise ValueError(f"cannot merge {type(other).__name__} into {type(self).__name__}.")
        if other.n_features != self.n_features or not _same_basis(self.basis, other.basis):
            raise ValueError(
                "cannot merge moments of different bases: create both from the same array, learned once, before "
                "the data are split."
            )
        self._merge(other)
        self.n += other.n
        return self

    @abstractmethod
    def _update(self, batch: Any) -> None:
        """Add the samples of a checked batch."""

    @abstractmethod
    def _merge(self, other: Self) -> None:
        """Add the sums of moments that were checked to be alike."""

    def __repr__(self) -> str:
        width = "" if self.basis is None else f", basis of {self.basis.shape[1]}"
        return f"{type(self).__name__}(n={self.n}, n_features={self.n_features}{width})"


def _same_basis(first: NDArray[np.floating] | None, second: NDArray[np.floating] | None) -> bool:
    if first is second:
        return True
    return first is not None and second is not None and np.array_equal(first, second)
