"""The loop that all refinements share: steps, a monitor, and a rule when to stop.

A family gives a step; the loop knows nothing of what is being refined. Where a step has an objective that never falls
(EM), the loop stops when it no longer rises; where there is none (CVB0), held-out data are looked at instead, and the
best state seen is returned.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

State = TypeVar("State")


class StopReason(Enum):
    """Why a refinement ended; the value is what to do about it."""

    CONVERGED = "The gain of a step fell below tol."
    MAX_ITER = "max_iter steps were taken before the gain fell below tol: raise max_iter or tol."
    NOT_WATCHED = "All max_iter steps were taken: there was too little data to hold any out."


@dataclass(frozen=True)
class Record:
    """One look of the monitor.

    Attributes
    ----------
    iteration : int
        Steps taken so far.
    value : float
        Objective or held-out score of the state at hand: larger is better.
    gain : float
        ``value`` less the best value before; infinite at the first look.
    """

    iteration: int
    value: float
    gain: float


@dataclass(frozen=True)
class Trace:
    """What the monitor saw."""

    records: tuple[Record, ...]
    n_iter: int
    reason: StopReason

    @property
    def values(self) -> NDArray[np.float64]:
        """The values of all looks."""
        return np.array([record.value for record in self.records])

    @property
    def best(self) -> float:
        """The largest value seen; -inf where nothing was looked at."""
        return max((record.value for record in self.records), default=-np.inf)

    def then(self, later: Trace) -> Trace:
        """Both traces in a row, as of one refinement; the later one has the last word."""
        shifted = (Record(record.iteration + self.n_iter, record.value, record.gain) for record in later.records)
        return Trace((*self.records, *shifted), self.n_iter + later.n_iter, later.reason)

    @property
    def converged(self) -> bool:
        """Whether the rule ended the refinement rather than the cap on its steps."""
        return self.reason is StopReason.CONVERGED


@dataclass(frozen=True)
class StoppingRule:
    """Stop after `patience` looks in a row that gain less than `tol`, or after `max_iter` steps.

    `tol` is in the units of the value: nats per word or per sample, as the family scales it.
    """

    max_iter: int = 100
    tol: float = 1e-4
    patience: int = 1


@dataclass(frozen=True, eq=False)
class Refined(Generic[State]):
    """The best state and how it was reached."""

    state: State
    trace: Trace


def run_refinement(
    step: Callable[[State, int], tuple[State, float | None]],
    state: State,
    rule: StoppingRule,
    *,
    value: float = -np.inf,
) -> Refined[State]:
    """Repeat ``state, value = step(state, iteration)`` until the rule says stop.

    `iteration` counts from 1. A value of None means that nothing was looked at in this step. A step must not change the
    state it is given: the best one seen is returned, or the last where nothing was ever looked at. `value` is that of
    the state to start from, where it is known: a better one is wanted.
    """
    best, best_value, idle = state, value, 0
    records: list[Record] = []
    reason = StopReason.MAX_ITER
    iteration = 0
    for iteration in range(1, rule.max_iter + 1):
        state, seen = step(state, iteration)
        if seen is None:
            continue
        gain = seen - best_value
        records.append(Record(iteration, float(seen), float(gain)))
        if gain > 0:
            best, best_value = state, seen
        idle = 0 if gain >= rule.tol else idle + 1
        if idle >= rule.patience:
            reason = StopReason.CONVERGED
            break
    if not records:
        best, reason = state, StopReason.NOT_WATCHED
    return Refined(best, Trace(tuple(records), iteration, reason))
