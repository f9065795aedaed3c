"""Sequences of observations, one after the other in one array, as every part of the hidden Markov models sees them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Sequences:
    """Clean observations of all sequences, concatenated.

    Attributes
    ----------
    values : (m, ...) array
        With `codes` the distinct observations, otherwise all of them in order (m = n).
    codes : (n,) int32, or None
        Row of `values` of each step: families with few distinct observations compute each likelihood once.
    offsets : (s + 1,) int64
        Where each sequence begins, and n; no sequence is empty.
    weights : (s,) or None
        How often each sequence counts.
    """

    values: NDArray[Any] = field(repr=False)
    codes: NDArray[np.int32] | None = field(repr=False)
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

    @property
    def first(self) -> NDArray[np.uint8]:
        """1 where a sequence begins, (n,)."""
        flags = np.zeros(len(self), dtype=np.uint8)
        flags[self.offsets[:-1]] = 1
        return flags

    def step_weights(self) -> Floats:
        """The weight of each step (n,), or an empty array where all are 1."""
        return np.empty(0) if self.weights is None else np.repeat(self.weights, np.diff(self.offsets))


def join_sequences(X: Any, lengths: ArrayLike | None) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """One array and the offsets of its sequences, from (X, lengths) as hmmlearn takes them or from a list of sequences.

    A list or tuple is a list of sequences when its elements are themselves sequences; with `lengths`, or where each
    element is a plain list of one number (hmmlearn's column), it is one array. Empty sequences are left out.
    """
    if _is_list_of_sequences(X, lengths):
        parts = [np.asarray(part) for part in X]
        wide = {part.shape[1:] for part in parts if part.size}
        if len(wide) > 1:
            raise ValueError(f"the sequences of X differ in the shape of their observations: {sorted(wide)}.")
        parts = [part for part in parts if len(part)]
        if not parts:
            raise ValueError("X holds no observation: every sequence is empty.")
        return np.concatenate(parts), _offsets([len(part) for part in parts])
    array = np.asarray(X)
    if array.ndim == 0 or len(array) == 0:
        raise ValueError(f"Found array with 0 sample(s) (shape={array.shape}): X must hold at least 1 observation.")
    if lengths is None:
        return array, _offsets([len(array)])
    counts = np.atleast_1d(np.asarray(lengths))
    if counts.ndim != 1 or not np.issubdtype(counts.dtype, np.number) or np.any(counts != np.floor(counts)):
        raise ValueError(f"lengths must be a list of integers, one for each sequence, got {lengths!r}.")
    if np.any(counts < 0):
        raise ValueError(f"lengths must not be negative, got {int(counts.min())}.")
    if counts.sum() != len(array):
        raise ValueError(
            f"lengths add up to {int(counts.sum())}, but X has {len(array)} observations: give the length of each "
            "sequence, in order."
        )
    return array, _offsets(counts[counts > 0])


def _offsets(lengths: Any) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def _is_list_of_sequences(X: Any, lengths: ArrayLike | None) -> bool:
    if not isinstance(X, Sequence) or isinstance(X, (str, bytes)) or lengths is not None or len(X) == 0:
        return False
    if any(isinstance(part, np.ndarray) and part.ndim for part in X):
        return True
    return all(isinstance(part, Sequence) for part in X) and any(
        len(part) != 1 or isinstance(part[0], Sequence) for part in X
    )
