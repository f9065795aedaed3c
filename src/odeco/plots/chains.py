"""Figures of hidden Markov models: the graph of transitions, what states emit, a decoded sequence."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from odeco.plots.names import check_suits, rows_of
from odeco.sources.sequences import join_sequences

Floats = NDArray[np.float64]

_LONGEST = 20_000  # steps of a sequence that are decoded
_SHOWN = 300  # steps of it that are shown


@dataclass(frozen=True, eq=False)
class Transitions:
    """A chain as a graph.

    Attributes
    ----------
    positions : (k, 2)
        States on the unit circle, neighbours those between which the chain moves most; state 0 on top.
    stationary, start : (k,)
    matrix : (k, k)
        ``matrix[i, j]``: from i to j.
    stays : (k,)
        Mean number of steps that the chain stays in a state; infinite where it never leaves.
    """

    positions: Floats = field(repr=False)
    stationary: Floats
    start: Floats
    matrix: Floats
    stays: Floats


@dataclass(frozen=True, eq=False)
class DecodedSequence:
    """The first steps of a sequence and the states they most probably came from.

    Attributes
    ----------
    observations : (n,) symbols or (n, d) numbers
    states : (n,)
        The best sequence of states (Viterbi).
    certainty : (n,)
        Posterior probability of that state at each step.
    length : int
        Steps of the whole sequence.
    drawn : bool
        Whether it was drawn from the model because there were no data.
    """

    observations: NDArray[Any] = field(repr=False)
    states: NDArray[np.int64] = field(repr=False)
    certainty: Floats = field(repr=False)
    length: int
    drawn: bool


def transitions(model: Any) -> Transitions:
    """The transition graph of a fitted hidden Markov model."""
    check_suits(model, "transitions")
    matrix = np.asarray(model.transmat_, dtype=np.float64)
    stationary = np.asarray(model.get_stationary_distribution())
    order = _circle_order(stationary[:, None] * matrix)
    k = len(order)
    angles = np.empty(k)
    angles[order] = np.pi / 2 - 2 * np.pi * np.arange(k) / k
    positions = np.column_stack([np.cos(angles), np.sin(angles)]) if k > 1 else np.zeros((1, 2))
    with np.errstate(divide="ignore"):
        stays = 1 / (1 - np.minimum(np.diagonal(matrix), 1.0))
    return Transitions(positions, stationary, np.asarray(model.startprob_, dtype=np.float64), matrix, stays)


def _circle_order(flow: Floats) -> NDArray[np.intp]:
    """States around the circle, each beside the one that it exchanges most with: greedy from state 0."""
    both = flow + flow.T
    order, left = [0], list(range(1, len(flow)))
    while left:
        nearest = max(left, key=lambda j: both[order[-1], j])
        order.append(nearest)
        left.remove(nearest)
    return np.array(order, dtype=np.intp)


def decoded_sequence(model: Any, data: Any = None, n_steps: int = _SHOWN) -> DecodedSequence:
    """The first sequence of the data, decoded; of a sequence drawn from the model where there are none.

    `data` is what `fit` takes: X, a list of sequences, or the pair (X, lengths).
    """
    check_suits(model, "decoded_sequence")
    if data is None:
        array = np.asarray(model.sample(n_steps, random_state=0)[0])
        length = len(array)
    else:
        joined = join_sequences(*split_lengths(data))
        length = int(joined.offsets[1])
        array = joined.array[: min(length, _LONGEST)]
    states = np.asarray(model.predict(array))[:n_steps]
    certainty = np.asarray(model.predict_proba(array))[np.arange(len(states)), states]
    observations = array[:n_steps]
    if rows_of(model) == "symbols":
        observations = observations.reshape(len(states))
    elif observations.ndim == 1:
        observations = observations[:, None]
    return DecodedSequence(observations, states, certainty, length, data is None)


def split_lengths(data: Any) -> tuple[Any, Any]:
    """(X, lengths) of a pair as the readers give it; (data, None) of everything else."""
    if isinstance(data, tuple) and len(data) == 2:
        lengths = data[1]
        if lengths is None:
            return data[0], None
        counts = np.asarray(lengths)
        if counts.ndim == 1 and counts.dtype.kind in "iu" and int(counts.sum()) == len(data[0]):
            return data[0], counts
    return data, None
