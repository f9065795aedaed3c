"""Sequences that are not in memory: sums over them are taken where they are, and samples of their steps come here.

What fits a hidden Markov model asks its data for little: how many steps there are, a sample of them, and sums over all
of them. `ChainSource` gives these of sequences that are read in batches, or lie in partitions of Dask; a sequence lies
in one batch or partition as a whole.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy, deepcopy
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from odeco.sources.partitions import ALL, Partitioned, Partitions, Piece, Rows
from odeco.sources.sequences import (
    BATCH_STEPS,
    Extent,
    Joined,
    Sequences,
    join_array,
    join_list,
    join_sequences,
    spread_steps,
)
from odeco.sources.values import plain_array, weight_array

Floats = NDArray[np.float64]

Look = Callable[[Joined], Extent]
Encode = Callable[[Joined], Sequences]


class ChainSource(ABC):
    """Sequences elsewhere. `prepare` comes first: nothing else is known before."""

    extent: Extent
    checkpoint: Any = None
    _encode: Encode | None = None

    def prepare(self, look: Look, make_encode: Callable[[Extent], Encode]) -> Self:
        """Find the extent, in one pass, and with it what encodes batches; returns self."""
        found = [extent for extent in self._look(look) if extent is not None]
        if not found:
            raise ValueError("X holds no observation: every partition, batch or sequence is empty.")
        self.extent = reduce(Extent.merge, found)
        if not self.extent.weight > 0:
            raise ValueError("sequence_weight must be positive for at least one sequence that is not empty.")
        self._samples: dict[int, Sequences] = {}
        self._encode = make_encode(self.extent)
        return self

    @property
    def total_weight(self) -> float:
        """Number of steps, each as often as its sequence counts."""
        return self.extent.weight

    def __len__(self) -> int:
        return self.extent.n_steps

    def sample(self, n_steps: int) -> Sequences:
        """All steps, or about so many of them in windows spread evenly, brought here: those of `Sequences.sample`."""
        if n_steps not in self._samples:
            n = len(self)
            steps = np.arange(n) if n <= n_steps else spread_steps(n, n_steps)
            assert self._encode is not None
            self._samples[n_steps] = self._encode(join_pieces(self._take(steps)))
        return self._samples[n_steps]

    def part(self, n_steps: int) -> Self:
        """A source of the same steps, which stay where they are."""
        if len(self) <= n_steps:
            return self
        steps = spread_steps(len(self), n_steps)
        weight = steps.size * self.extent.weight / self.extent.n_steps  # a scale: what it divides has no other
        found = self._only(steps)
        found.extent = Extent(steps.size, 0, weight, 0, self.extent.smallest, self.extent.largest)
        return found

    @abstractmethod
    def add_to(self, sums: Any) -> Any:
        """Add all sequences to `sums`, which must be empty; one pass."""

    @abstractmethod
    def _look(self, look: Look) -> Iterable[Extent | None]:
        """The extents of all parts."""

    @abstractmethod
    def _take(self, steps: NDArray[np.intp]) -> list[Joined]:
        """Some steps, ascending, as they are."""

    @abstractmethod
    def _only(self, steps: NDArray[np.intp]) -> Self:
        """A source of these steps."""


Chains = Sequences | ChainSource


class PartitionedChains(Partitioned, ChainSource):
    """Sequences in partitions, each of them one `Joined`; rows of partitions are steps."""

    def __init__(self, partitions: Partitions, pieces: Sequence[Piece] | None = None) -> None:
        self.partitions, self.pieces, self.functions = partitions, pieces, ()

    def __iter__(self) -> Iterator[Any]:
        """Batches, brought here one partition at a time."""
        return self._fetch()

    def _look(self, look: Look) -> Iterable[Extent | None]:
        found = self.partitions.fetch(partial(_look_at, look), self.partitions.everything())
        self.partitions._sizes = [0 if extent is None else extent.n_steps for extent in found]
        return found

    def _take(self, steps: NDArray[np.intp]) -> list[Joined]:
        found = self.partitions.fetch(ReadChains(None), self.partitions.find(steps))
        return [joined for batches in found for joined in batches]

    def _only(self, steps: NDArray[np.intp]) -> Self:
        return self.only(steps)

    def _reader(self) -> Any:
        return ReadChains(self._encode)


def _look_at(look: Look, partition: Joined, rows: Rows) -> Extent | None:
    return look(partition) if len(partition) else None


@dataclass(frozen=True, eq=False)
class ReadChains:
    """Makes a batch of a partition: none where it is empty."""

    encode: Encode | None

    def __call__(self, partition: Joined, rows: Rows) -> list[Any]:
        """All of it."""
        return list(self.batches(partition, rows))

    def batches(self, partition: Joined, rows: Rows) -> Iterator[Any]:
        """The same as an iterator."""
        if not len(partition):
            return
        if not (isinstance(rows, slice) and rows == ALL):
            partition = partition.take(np.arange(len(partition))[rows])
        yield partition if self.encode is None else self.encode(partition)


class StreamedChains(ChainSource):
    """Sequences from a function that returns a new iterator over batches of them at each call."""

    def __init__(self, read: Callable[[], Iterable[Any]], weights: ArrayLike | None = None) -> None:
        self._read = read
        self._weights = None if weights is None else np.atleast_1d(weight_array(weights, "sequence_weight"))
        self._steps: NDArray[np.intp] | None = None

    def __iter__(self) -> Iterator[Any]:
        """Clean batches; as they are before `prepare`."""
        batches = self._joined() if self._steps is None else self._some(self._steps)
        return batches if self._encode is None else map(self._encode, batches)

    def add_to(self, sums: Any) -> Any:
        from odeco.kernels.threads import sum_batches

        if self.checkpoint is not None:
            return self.checkpoint.total(sums, self._after)
        return sum_batches(iter(self), partial(deepcopy, sums))

    def _after(self, n_batches: int) -> Iterator[Sequences]:
        for index, batch in enumerate(self):
            if index >= n_batches:
                yield batch

    def _look(self, look: Look) -> Iterable[Extent | None]:
        return map(look, self._joined())

    def _take(self, steps: NDArray[np.intp]) -> list[Joined]:
        return list(self._some(steps))

    def _only(self, steps: NDArray[np.intp]) -> Self:
        found = copy(self)
        found._steps = steps
        return found

    def _some(self, steps: NDArray[np.intp]) -> Iterator[Joined]:
        """The batches' share of some steps."""
        first = 0
        for joined in self._joined():
            low, high = np.searchsorted(steps, (first, first + len(joined)))
            if high > low:
                yield joined.take(steps[low:high] - first)
            first += len(joined)

    def _joined(self) -> Iterator[Joined]:
        """All sequences, in batches of about one size whatever those are that arrive."""
        waiting: list[Joined] = []
        n_steps = n_sequences = 0
        for batch in self._read():
            joined, n_given = self._check(batch, n_sequences)
            n_sequences, n_steps = n_sequences + n_given, n_steps + len(joined)
            if len(joined):
                waiting.append(joined)
            if sum(map(len, waiting)) >= BATCH_STEPS:
                yield join_pieces(waiting)
                waiting = []
        if waiting:
            yield join_pieces(waiting)
        self._check_end(n_steps, n_sequences)

    def _check(self, batch: Any, first: int) -> tuple[Joined, int]:
        """A batch as arrays, and its number of sequences, empty ones included."""
        if isinstance(batch, Joined):
            return batch, batch.offsets.size - 1
        if isinstance(batch, tuple) and len(batch) == 2:
            array, lengths = plain_array(batch[0]), np.atleast_1d(np.asarray(batch[1]))
            return join_array(array, lengths, self._weights_of(first, lengths.size)), lengths.size
        items = [batch] if isinstance(batch, np.ndarray) else sequence_list(batch)
        return join_list(items, self._weights_of(first, len(items))), len(items)

    def _weights_of(self, first: int, n: int) -> Floats | None:
        if self._weights is None:
            return None
        if first + n > self._weights.size:
            raise ValueError(f"sequence_weight has {self._weights.size} numbers, and there are more sequences.")
        return self._weights[first : first + n]

    def _check_end(self, n_steps: int, n_sequences: int) -> None:
        if self._weights is not None and n_sequences != self._weights.size:
            raise ValueError(
                f"sequence_weight must hold one number for each of the {n_sequences} sequences, got "
                f"{self._weights.size}."
            )
        if hasattr(self, "extent") and self._steps is None and n_steps != self.extent.n_steps:
            raise ValueError(
                f"the source gave {n_steps} steps, {self.extent.n_steps} in an earlier pass: the function must return "
                "a new iterator over the same sequences at each call."
            )


def sequence_list(items: Any) -> list[NDArray[Any]]:
    """Elements of a bag, or of a batch, as sequences: (T,) or (T, d) each."""
    if isinstance(items, (np.ndarray, str, bytes, dict)) or not hasattr(items, "__iter__"):
        shape = f" of shape {items.shape}" if isinstance(items, np.ndarray) else ""
        raise ValueError(
            f"a partition or batch must be a list of sequences, got {type(items).__name__}{shape}: put a single "
            "sequence into a list."
        )
    found = []
    for item in items:
        array = plain_array(item, "a sequence")
        if array.ndim == 0:
            raise ValueError(
                f"a partition or batch must be a list of sequences, and this one holds {item!r}: a sequence is an "
                "array of shape (T,) or (T, d)."
            )
        found.append(array)
    return found


def join_pieces(parts: list[Joined]) -> Joined:
    """Sequences of several arrays in one."""
    if len(parts) == 1:
        return parts[0]
    shapes = {part.array.shape[1:] for part in parts}
    arrays = [part.array.reshape(len(part), -1) if shapes == {(), (1,)} else part.array for part in parts]
    if len({array.shape[1:] for array in arrays}) > 1:
        raise ValueError(f"the sequences of X differ in the shape of their observations: {sorted(shapes)}.")
    lengths = np.concatenate([np.diff(part.offsets) for part in parts])
    weights = None
    if any(part.weights is not None for part in parts):
        given = [np.ones(part.offsets.size - 1) if part.weights is None else part.weights for part in parts]
        weights = np.concatenate(given)
    return Joined(np.concatenate(arrays), np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64), weights)


def open_stream(data: Any, lengths: ArrayLike | None, weights: ArrayLike | None) -> StreamedChains:
    """What `out_of_core` and `checkpointed` were given: a function, a list of batches, or sequences in memory."""
    if isinstance(data, Iterator):
        raise ValueError("an iterator can be read only once: pass a function that returns a new iterator at each call.")
    if callable(data) or _is_list_of_batches(data):
        if lengths is not None:
            raise ValueError("lengths goes with one array: a batch is a list of sequences, or a pair (X, lengths).")
        return StreamedChains(data if callable(data) else lambda: iter(data), weights)
    whole = join_sequences(data, lengths, weights)
    return StreamedChains(lambda: iter([whole]))


def _is_list_of_batches(data: Any) -> bool:
    return (
        isinstance(data, list)
        and bool(data)
        and all(isinstance(batch, (list, tuple)) for batch in data)
        and any(isinstance(item, np.ndarray) for batch in data for item in batch[:1])
    )
