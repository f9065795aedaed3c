"""Anderson acceleration of EM: the next point mixes the last few so that their steps cancel, and never falls.

Every evaluation of the EM map also gives the objective at the point it started from, so a step that went too far is
seen at no further cost, and the iteration goes on from the EM image of the best point (Henderson and Varadhan, 2019,
who also show that the objective then converges). It needs fewer evaluations than SQUAREM, which uses the last two
steps alone.

Where steps grow, as they do on the way out of a saddle, the mix is the saddle itself: it lies behind. There the last
step is stretched instead, the further the longer that goes well (Salakhutdinov and Roweis, 2003).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

State = TypeVar("State")
Floats = NDArray[np.float64]

_MEMORY = 5  # steps that are mixed; with 10 the same number of evaluations was needed
_DAMPING = 1e-8  # of the normal equations, as a part of their trace
_STRETCH = (2.0, 64.0)  # times the step, at least and at most: near an optimum, twice an EM step is still an ascent


class Accelerated(Generic[State]):
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
        self._best = -np.inf
        self._stretch = 2 * _STRETCH[0]
        self._stretched = False
        self._point, self._step = np.empty((2, 0))
        self._moves: list[Floats] = []
        self._bends: list[Floats] = []

    def __call__(self, state: State, iteration: int) -> tuple[State, float | None]:
        """The EM image of the mixed point, or of the state where there is none; no value where the mix was worse."""
        mixed, self._trial = self._trial, None
        point = state if mixed is None else mixed
        image, value = self._em_step(point)
        better = value >= self._best
        if self._stretched:
            self._stretch = float(np.clip(self._stretch * (2.0 if better else 0.25), *_STRETCH))
        self._stretched = False
        if not better:
            self._point, self._moves, self._bends = np.empty(0), [], []
            # EM itself falls by rounding alone: nothing is left to gain, and the rule has to hear of it.
            return state, self._best if mixed is None and self._best > -np.inf else None
        self._best = value
        self._remember(self._pack(point), self._pack(image))
        if self._moves:
            self._trial = self._unpack(self._ahead())
        return image, value

    def _remember(self, point: Floats, image: Floats) -> None:
        """Keep how points and steps differ from those before."""
        step = image - point
        if self._point.size:
            self._moves.append(point - self._point)
            self._bends.append(step - self._step)
            del self._moves[:-_MEMORY], self._bends[:-_MEMORY]
        self._point, self._step = point, step

    def _ahead(self) -> Floats:
        """The mixed point, or the stretched step where that lies behind."""
        mixed, point, step = self._mixed(), self._point, self._step
        self._stretched = bool((mixed - point) @ step < 0)
        return point + self._stretch * step if self._stretched else mixed

    def _mixed(self) -> Floats:
        """x + f - (dX + dF) g, g the least-squares solution of dF g = f: differences of points and of steps."""
        moves, bends = np.array(self._moves), np.array(self._bends)
        gram = bends @ bends.T
        gram.flat[:: len(gram) + 1] += _DAMPING * gram.trace() + 1e-300
        mix = np.linalg.solve(gram, bends @ self._step)
        return np.asarray(self._point + self._step - mix @ moves - mix @ bends)
