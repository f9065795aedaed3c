"""SQUAREM: two EM steps give the direction and the length of a third, longer one (Varadhan and Roland, 2008).

Every evaluation of the EM map also gives the objective at the point it started from, so a step that was too long is
seen at no further cost: the accelerated sequence never falls.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

State = TypeVar("State")
Floats = NDArray[np.float64]


class Squarem(Generic[State]):
    """A step for `odeco.refinement.loop.run_refinement` that evaluates the EM map once.

    Parameters
    ----------
    em_step : function
        A state to (the next state, the objective of the given one).
    pack, unpack : functions
        A state to a vector and back; any combination of packed states must unpack to a valid state.
    """

    def __init__(
        self,
        em_step: Callable[[State], tuple[State, float]],
        pack: Callable[[State], Floats],
        unpack: Callable[[Floats], State],
    ) -> None:
        self._em_step, self._pack, self._unpack = em_step, pack, unpack
        self._trial: State | None = None
        self._before: Floats | None = None  # the point whose image is the state at hand
        self._best = -np.inf
        self._longest = 4.0

    def __call__(self, state: State, iteration: int) -> tuple[State, float | None]:
        """The EM image of the state, or of a longer step from it; no value where that step was too long."""
        trial, self._trial = self._trial, None
        if trial is not None:
            image, value = self._em_step(trial)
            if not value >= self._best:  # back to where the two EM steps led; shorter steps from now on
                self._longest = max(self._longest / 4, 1.0)
                self._before = None
                return state, None
            self._longest *= 2
            point = trial
        else:
            point = state
            image, value = self._em_step(point)
        here, there = self._pack(point), self._pack(image)
        if self._before is not None and trial is None:
            self._trial = self._extrapolate(self._before, here, there)
            self._before = None
        else:
            self._before = here
        self._best = value
        return image, value

    def _extrapolate(self, start: Floats, middle: Floats, end: Floats) -> State | None:
        """The point x0 + 2 a r + a^2 v with r = x1 - x0, v = x2 - 2 x1 + x0 and a = |r| / |v|, at most the longest."""
        step, bend = middle - start, end - 2 * middle + start
        length = float(np.linalg.norm(step) / max(float(np.linalg.norm(bend)), 1e-300))
        length = min(length, self._longest)
        if length <= 1.0:
            return None
        return self._unpack(start + 2 * length * step + length**2 * bend)
