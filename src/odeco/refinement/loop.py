"""The loop that all refinements share: steps, a monitor, and a rule when to stop.

A family gives a step; the loop knows nothing of what is being refined. Where a step has an objective that never falls
(EM), the loop stops when it no longer rises; where there is none (CVB0), held-out data are looked at instead, and the
best state seen is returned.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from odeco.progress import tell

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

    def by(self, tol: float) -> Trace:
        """The same by a rule that asks for less: converged where the last gain was below `tol`."""
        less = bool(self.records) and self.records[-1].gain < tol
        return replace(self, reason=StopReason.CONVERGED) if less else self

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


class _Monitor(Generic[State]):
    """One state on its way, and the best that it has been."""

    def __init__(self, state: State, rule: StoppingRule, value: float) -> None:
        self.state, self.rule = state, rule
        self._best, self._best_value, self._idle = state, value, 0
        self._records: list[Record] = []
        self._n_iter = 0
        self.done = False

    def see(self, state: State, seen: float | None) -> None:
        self.state, self._n_iter = state, self._n_iter + 1
        if seen is None:
            return
        gain = seen - self._best_value
        self._records.append(Record(self._n_iter, float(seen), float(gain)))
        if gain > 0:
            self._best, self._best_value = state, seen
        self._idle = 0 if gain >= self.rule.tol else self._idle + 1
        self.done = self._idle >= self.rule.patience

    @property
    def best(self) -> float:
        return self._best_value

    def result(self) -> Refined[State]:
        if not self._records:
            return Refined(self.state, Trace((), self._n_iter, StopReason.NOT_WATCHED))
        reason = StopReason.CONVERGED if self.done else StopReason.MAX_ITER
        return Refined(self._best, Trace(tuple(self._records), self._n_iter, reason))


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
    return run_refinements(lambda states, i: [step(states[0], i)], [state], rule, value=value)[0]


def run_refinements(
    step: Callable[[Sequence[State], int], Sequence[tuple[State, float | None]]],
    states: Sequence[State],
    rule: StoppingRule,
    *,
    value: float = -np.inf,
) -> list[Refined[State]]:
    """The same for several starts at once: one step, one pass over the data, takes all that have not ended yet."""
    monitors = [_Monitor(state, rule, value) for state in states]
    for iteration in range(1, rule.max_iter + 1):
        going = [monitor for monitor in monitors if not monitor.done]
        if not going:
            break
        for monitor, found in zip(going, step([monitor.state for monitor in going], iteration), strict=True):
            monitor.see(*found)
        tell(lambda i=iteration: _said(i, monitors), step=True)  # type: ignore[misc]
    return [monitor.result() for monitor in monitors]


def retold(state: State, seen: NDArray[np.float64], rule: StoppingRule) -> Refined[State]:
    """What the loop returns of steps that were taken elsewhere, by the same rule: `seen` has NaN for no look."""
    monitor = _Monitor(state, rule, -np.inf)
    for iteration, value in enumerate(seen.tolist(), 1):
        monitor.see(state, None if value != value else value)
        tell(lambda i=iteration: _said(i, [monitor]), step=True)  # type: ignore[misc]
    return monitor.result()


def _said(iteration: int, monitors: Sequence[_Monitor[State]]) -> str:
    """A step in words: the best value so far, where one was looked at."""
    best = max(monitor.best for monitor in monitors)
    return f"refinement, step {iteration}" + (f": {best:.6g}" if np.isfinite(best) else "")
