"""Sequences of observations, one after the other in one array, as every part of the hidden Markov models sees them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from odeco.sources.values import EXACT, number_array, plain_array, weight_array

Floats = NDArray[np.float64]

WINDOW = 1_000  # steps of a sample that stay together
BATCH_STEPS = 65_536  # of sequences read one after the other; a longer one is a batch of its own
_FOLDED = 512  # numbers that are compared side by side: a few columns at a time take forty times as long


@dataclass(frozen=True, eq=False)
class Extent:
    """How much there is, and between what bounds.

    Attributes
    ----------
    n_steps, n_sequences : int
    weight : float
        Steps, each as often as its sequence counts.
    n_seen : int
        Steps at which something was observed.
    smallest, largest : (d,)
        Of each column; NaN where nothing was observed.
    """

    n_steps: int
    n_sequences: int
    weight: float
    n_seen: int
    smallest: Floats = field(repr=False)
    largest: Floats = field(repr=False)

    @classmethod
    def of(cls, columns: NDArray[Any], offsets: NDArray[np.int64], weights: Floats | None) -> Self:
        """Of observations (n, d), NaN where one is missing."""
        from odeco.kernels.threads import map_parts

        def look(block: int) -> tuple[int, Floats, Floats]:
            part = columns[BATCH_STEPS * block : BATCH_STEPS * (block + 1)]
            missing = np.isnan(part)
            seen = len(part) - (int(np.count_nonzero(missing.all(axis=1))) if missing.any() else 0)
            return seen, *column_bounds(part)

        # In blocks, so that it takes no memory for every step.
        seen, low, high = zip(*map_parts(look, max(-(-len(columns) // BATCH_STEPS), 1)), strict=True)
        weight = float(offsets[-1]) if weights is None else float(weights @ np.diff(offsets))
        bounds = np.fmin.reduce(low, axis=0), np.fmax.reduce(high, axis=0)
        return cls(len(columns), offsets.size - 1, weight, sum(seen), *(np.asarray(b, dtype=float) for b in bounds))

    def merge(self, other: Extent) -> Extent:
        """That of both together."""
        if self.largest.size != other.largest.size:
            raise ValueError(
                f"sequences differ in their number of columns: {self.largest.size}, then {other.largest.size}."
            )
        return Extent(
            self.n_steps + other.n_steps, self.n_sequences + other.n_sequences, self.weight + other.weight,
            self.n_seen + other.n_seen, np.fmin(self.smallest, other.smallest), np.fmax(self.largest, other.largest),
        )  # fmt: skip


def column_bounds(values: NDArray[Any]) -> tuple[Floats, Floats]:
    """Smallest and largest of each column of one row or more, NaN where nothing is there."""
    d = values.shape[1]
    folds = max(min(_FOLDED // d, len(values)), 1)
    cut = len(values) // folds * folds
    wide = values[:cut].reshape(-1, folds * d)

    def bound(of: np.ufunc) -> Floats:
        sides = of.reduce(wide, axis=0).reshape(folds, d)
        return np.asarray(of.reduce(np.concatenate([sides, values[cut:]]), axis=0))

    return bound(np.fmin), bound(np.fmax)


@dataclass(frozen=True, eq=False)
class Sequences:
    """Clean observations of all sequences, concatenated.

    Attributes
    ----------
    values : (m, ...) array
        With `codes` the distinct observations, otherwise all of them in order (m = n).
    codes : (n,) integers, or None
        Row of `values` of each step: families with few distinct observations compute each likelihood once. May be the
        caller's own array, of any type of integers: nothing of the size of the data is made.
    offsets : (s + 1,) int64
        Where each sequence begins, and n; no sequence is empty.
    weights : (s,) or None
        How often each sequence counts.
    """

    values: NDArray[Any] = field(repr=False)
    codes: NDArray[np.integer] | None = field(repr=False)
    offsets: NDArray[np.int64] = field(repr=False)
    weights: Floats | None = None

    def __len__(self) -> int:
        """Number of steps n."""
        return int(self.offsets[-1])

    @property
    def n_sequences(self) -> int:
        """Number of sequences."""
        return self.offsets.size - 1

    @property
    def total_weight(self) -> float:
        """Number of steps, each as often as its sequence counts."""
        if self.weights is None:
            return float(len(self))
        return float(self.weights @ np.diff(self.offsets))

    def rows_of(self, low: int, high: int) -> NDArray[np.int32]:
        """Codes of the steps from low to high, as the kernels want them."""
        assert self.codes is not None
        return self.codes[low:high].astype(np.int32)

    def first(self, low: int, high: int) -> NDArray[np.uint8]:
        """1 where a sequence begins, of the steps from low to high."""
        flags = np.zeros(high - low, dtype=np.uint8)
        inside = self.offsets.searchsorted((low, high))
        flags[self.offsets[inside[0] : inside[1]] - low] = 1
        return flags

    def step_weights(self, low: int, high: int) -> Floats:
        """The weight of each step from low to high, or an empty array where all are 1."""
        if self.weights is None:
            return np.empty(0)
        return self.weights[np.searchsorted(self.offsets, np.arange(low, high), side="right") - 1]

    def observations(self, low: int = 0, high: int | None = None) -> Floats:
        """What was observed at all steps, or at those from low to high."""
        if self.codes is None:
            return np.asarray(self.values[low:high], dtype=np.float64)
        # An index of rows takes four times as long.
        return np.asarray(np.take(self.values, self.codes[low:high].astype(np.intp), axis=0), dtype=np.float64)

    # What sequences elsewhere do as well (`odeco.sources.chains`).

    @property
    def extent(self) -> Extent:
        """How much there is, and the bounds of each column."""
        if self.codes is None:
            return Extent.of(self.values, self.offsets, self.weights)
        values = np.asarray(self.values, dtype=np.float64)
        counts = self._counts(self.codes)
        low, high = column_bounds(values[counts > 0])
        nothing = int(counts[np.isnan(values).all(axis=1)].sum())
        return Extent(len(self), self.n_sequences, self.total_weight, len(self) - nothing, low, high)

    def _counts(self, codes: NDArray[np.integer]) -> NDArray[np.intp]:
        """How many steps have each of the distinct observations."""
        from odeco.kernels.threads import map_parts

        def count(block: int) -> NDArray[np.intp]:
            return np.bincount(codes[BATCH_STEPS * block : BATCH_STEPS * (block + 1)], minlength=len(self.values))

        return np.asarray(np.sum(map_parts(count, -(-len(codes) // BATCH_STEPS)), axis=0))

    def sample(self, n_steps: int) -> Sequences:
        """Whole sequences, or windows of long ones, spread evenly over the data: at most about `n_steps`."""
        if len(self) <= n_steps:
            return self
        steps = spread_steps(len(self), n_steps)
        offsets, weights = cut_offsets(self.offsets, self.weights, steps)
        if self.codes is None:
            return Sequences(self.values[steps], None, offsets, weights)
        return Sequences(self.values, self.codes[steps], offsets, weights)

    part = sample

    def take(self, sequences: NDArray[np.intp]) -> Sequences:
        """Some of the sequences, whole, in their order."""
        lengths = np.diff(self.offsets)[sequences]
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        steps = np.repeat(self.offsets[:-1][sequences] - offsets[:-1], lengths) + np.arange(offsets[-1])
        weights = None if self.weights is None else self.weights[sequences]
        if self.codes is None:
            return Sequences(self.values[steps], None, offsets, weights)
        return Sequences(self.values, self.codes[steps], offsets, weights)

    def groups(self, n_groups: int) -> list[Sequences]:
        """All sequences, whole, in at most so many groups of neighbours."""
        edges = np.unique(np.linspace(0, self.n_sequences, n_groups + 1).astype(np.int64))
        return [self._some(int(low), int(high)) for low, high in pairwise(edges)]

    def _some(self, low: int, high: int) -> Sequences:
        first, last = self.offsets[low], self.offsets[high]
        values = self.values if self.codes is not None else self.values[first:last]
        codes = None if self.codes is None else self.codes[first:last]
        weights = None if self.weights is None else self.weights[low:high]
        return Sequences(values, codes, self.offsets[low : high + 1] - first, weights)

    def add_to(self, sums: Any) -> Any:
        """Add all sequences to `sums`, which must be empty; one pass."""
        return sums.update(self)


def followed_by(first: Sequences, second: Sequences) -> Sequences:
    """The sequences of both, one after the other; where there are codes, `values` must be the same."""
    offsets = np.concatenate([first.offsets, first.offsets[-1] + second.offsets[1:]])
    weights = None
    if first.weights is not None or second.weights is not None:
        parts = [np.ones(part.n_sequences) if part.weights is None else part.weights for part in (first, second)]
        weights = np.concatenate(parts)
    if first.codes is None or second.codes is None:
        return Sequences(np.concatenate([first.values, second.values]), None, offsets, weights)
    return Sequences(first.values, np.concatenate([first.codes, second.codes]), offsets, weights)


def first_steps(data: Sequences, n_steps: int) -> Sequences:
    """A copy of the first steps, the last sequence among them cut short."""
    n_steps = min(n_steps, len(data))
    n_sequences = int(np.searchsorted(data.offsets, n_steps))  # the one that ends at or beyond the cut is the last
    offsets = np.append(data.offsets[:n_sequences], n_steps)
    weights = None if data.weights is None else data.weights[:n_sequences]
    if data.codes is None:
        return Sequences(data.values[:n_steps].copy(), None, offsets, weights)
    return Sequences(data.values, data.codes[:n_steps].copy(), offsets, weights)


@dataclass(frozen=True, eq=False)
class Joined:
    """Observations of all sequences in one array, before a family has looked at them."""

    array: NDArray[Any] = field(repr=False)
    offsets: NDArray[np.int64] = field(repr=False)
    weights: Floats | None

    def __len__(self) -> int:
        """Number of steps."""
        return int(self.offsets[-1])

    def take(self, steps: NDArray[np.intp]) -> Joined:
        """Some steps, ascending; what lay side by side in a sequence stays together."""
        return Joined(self.array[steps], *cut_offsets(self.offsets, self.weights, steps))


def cut_offsets(
    offsets: NDArray[np.int64], weights: Floats | None, steps: NDArray[np.intp]
) -> tuple[NDArray[np.int64], Floats | None]:
    """Offsets and weights of the pieces of sequences that some steps, ascending, are made of."""
    sequence = np.searchsorted(offsets, steps, side="right") - 1
    begins = np.concatenate([[True], (np.diff(steps) > 1) | (np.diff(sequence) > 0)])
    found = np.concatenate([np.flatnonzero(begins), [steps.size]]).astype(np.int64)
    return found, None if weights is None else weights[sequence[begins]]


def spread_steps(n: int, n_steps: int) -> NDArray[np.intp]:
    """About `n_steps` of n steps, in windows spread evenly."""
    starts = np.linspace(0, n - WINDOW, max(1, n_steps // WINDOW)).astype(np.intp)
    ends = starts + min(WINDOW, n)
    # Windows may overlap: each goes on where the one before it has ended.
    sizes = ends - np.maximum(starts, np.concatenate([[0], ends[:-1]]))
    return np.asarray(np.repeat(ends - np.cumsum(sizes), sizes) + np.arange(sizes.sum()), dtype=np.intp)


def join_sequences(X: Any, lengths: ArrayLike | None, weights: ArrayLike | None = None) -> Joined:
    """One array of all sequences, from (X, lengths) as hmmlearn takes them or from a list of sequences.

    A list or tuple is a list of sequences when its elements are themselves sequences; with `lengths`, or where each
    element is a plain list of one number (hmmlearn's column), it is one array. Empty sequences are left out.
    """
    if isinstance(X, Iterator):
        raise ValueError(
            "X is an iterator, which can be read only once: pass a list of sequences, or a function that returns a new "
            "iterator over batches at each call."
        )
    if _is_list_of_sequences(X, lengths):
        joined = join_list([plain_array(part) for part in X], weights)
        if not len(joined):
            raise ValueError("X holds no observation: every sequence is empty.")
    else:
        array = plain_array(X)
        if array.ndim == 0 or len(array) == 0:
            raise ValueError(f"Found array with 0 sample(s) (shape={array.shape}): X must hold at least 1 observation.")
        joined = join_array(array, [len(array)] if lengths is None else lengths, weights)
    if joined.weights is not None and not joined.weights.any():
        raise ValueError("sequence_weight must be positive for at least one sequence that is not empty.")
    return joined


def join_list(parts: list[NDArray[Any]], weights: ArrayLike | None = None) -> Joined:
    """Sequences one after the other; none, or empty ones alone, give no steps."""
    shapes = {part.shape[1:] for part in parts if part.size}
    if len(shapes) > 1:
        raise ValueError(f"the sequences of X differ in the shape of their observations: {sorted(shapes)}.")
    counts = np.array([len(part) for part in parts], dtype=np.int64)
    array = np.concatenate([part for part in parts if len(part)]) if counts.any() else np.empty(0)
    return Joined(array, _offsets(counts), _check_weights(weights, counts))


def join_array(array: NDArray[Any], lengths: ArrayLike, weights: ArrayLike | None = None) -> Joined:
    """Sequences that already lie one after the other."""
    counts = check_lengths(lengths, len(array))
    return Joined(array, _offsets(counts), _check_weights(weights, counts))


def _offsets(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(counts[counts > 0])]).astype(np.int64)


def check_lengths(lengths: ArrayLike, n: int) -> NDArray[np.int64]:
    """Lengths of the sequences that n steps are made of."""
    counts = np.atleast_1d(plain_array(lengths, "lengths"))
    given = counts.tolist()  # Python's integers do not overflow
    wrong = [length for length in given if type(length) is not int]
    if wrong:
        raise ValueError(f"lengths must be a list of integers, one for each sequence, got {wrong[0]!r} in it.")
    if min(given, default=0) < 0:
        raise ValueError(f"lengths must not be negative, got {min(given)}.")
    total = sum(given)
    if total != n:
        raise ValueError(
            f"lengths add up to {total}, but X has {n} observations: give the length of each sequence, in order."
        )
    return counts.astype(np.int64)


def _check_weights(weights: ArrayLike | None, lengths: NDArray[np.int64]) -> Floats | None:
    """Weights of the sequences that are not empty."""
    if weights is None:
        return None
    given = np.atleast_1d(weight_array(weights, "sequence_weight"))
    if given.shape != lengths.shape:
        raise ValueError(
            f"sequence_weight must hold one number for each of the {lengths.size} sequences, got shape {given.shape}."
        )
    if not np.all(np.isfinite(given)) or np.any(given < 0):
        raise ValueError("sequence_weight must be finite and not negative.")
    return given[lengths > 0]


def _is_list_of_sequences(X: Any, lengths: ArrayLike | None) -> bool:
    if not _is_sequence(X) or lengths is not None or len(X) == 0:
        return False
    if any(isinstance(part, np.ndarray) and part.ndim for part in X):
        return True
    return all(_is_sequence(part) for part in X) and any(len(part) != 1 or _is_sequence(part[0]) for part in X)


def _is_sequence(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes))


def as_symbols(array: NDArray[Any]) -> NDArray[np.integer]:
    """Symbols (n,) of one column, negative where missing (or given as NaN); integers stay the array they are."""
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise ValueError(
            f"X must hold one symbol for each step: shape (n,) or (n, 1), got {array.shape}. Give several sequences "
            "one after the other with lengths, or as a list."
        )
    if array.dtype.kind in "iu":
        return array
    try:
        numbers = np.asarray(number_array(array), dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"X must hold integer symbols 0, 1, 2, ...: encode them first ({error})") from None
    missing = np.isnan(numbers)
    known = numbers[~missing]
    if np.any(known != np.floor(known)) or np.any(np.abs(known) > EXACT):  # infinity is beyond it
        raise ValueError(
            f"X must hold integer symbols 0, 1, 2, ... below 2**53 (or NaN, -1 where missing), got "
            f"{known[(known != np.floor(known)) | (np.abs(known) > EXACT)][0]}."
        )
    return np.where(missing, -1.0, numbers).astype(np.int64)
