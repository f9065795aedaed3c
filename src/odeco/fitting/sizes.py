"""How many components rows show, by BIC: of all mixtures that a search has seen, larger and smaller than asked for."""

from __future__ import annotations

from typing import Generic

import numpy as np

from odeco.fitting.landscape import Landscape, State

# Mergers in a row without a better BIC after which no fewer components are looked at.
_IN_VAIN = 4
# Log-likelihood that a free parameter gains by chance, at most: half a nat on average, as AIC has it twice over.
_BY_CHANCE = 2.0


class Sizes(Generic[State]):
    """The best mixture seen of each number of components, and what follows for that number."""

    def __init__(self, landscape: Landscape[State]) -> None:
        self.landscape = landscape
        self.criteria: dict[int, float] = {}
        self.largest = 0
        self.states: dict[int, State] = {}

    def see(self, state: State, value: float) -> float:
        """A mixture that was climbed to this value; its BIC, in nats, larger is better: a spike has none."""
        weight, size = self.landscape.weight, self.landscape.size(state)
        self.largest = max(self.largest, size)
        if self.landscape.degenerate(state):
            return -np.inf
        criterion = float(value * weight - self.landscape.n_parameters(state) * np.log(max(weight, 2.0)) / 2)
        if criterion > self.criteria.get(size, -np.inf):
            self.criteria[size], self.states[size] = criterion, state
        return criterion

    @property
    def best(self) -> State | None:
        """The mixture of the best BIC."""
        return self.states[max(self.criteria, key=lambda size: self.criteria[size])] if self.criteria else None

    @property
    def suggested(self) -> int | None:
        """The size of the best BIC; None where it is the largest one seen."""
        if not self.criteria:
            return None
        best = max(self.criteria, key=lambda size: self.criteria[size])
        return None if best == self.largest and best > 1 else best

    def merge_further(self, best: State, best_value: float, n_steps: int, tol: float) -> int:
        """Merge the best further until BIC no longer gains; how many of its components explain next to nothing."""
        land, state, idle, in_vain = self.landscape, best, 0, 0
        k, n_parameters, highest = land.size(state), land.n_parameters(state), self.see(state, best_value)
        while (size := land.size(state)) > 1 and in_vain < _IN_VAIN:
            state, value = land.climb(land.merge(state, 1), n_steps, tol)
            criterion = self.see(state, value)
            if (best_value - value) * land.weight < _BY_CHANCE * (n_parameters - land.n_parameters(state)):
                idle = k - size + 1
            highest, in_vain = (criterion, 0) if criterion > highest else (highest, in_vain + 1)
        return idle
