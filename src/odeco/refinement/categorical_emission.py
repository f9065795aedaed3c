"""Emissions of symbols: one distribution over the alphabet for each state."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from odeco.families.counts import CATEGORICAL
from odeco.families.simplex import log_dirichlet, pack_simplex, proportions, unpack_simplex
from odeco.refinement.emissions import Emission, Statistics

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class CategoricalEmission(Emission):
    """Probabilities (k, d) of the symbols 0 to d - 1 in each state; -1 is a missing symbol.

    Attributes
    ----------
    probabilities : (k, d)
        Rows sum to 1.
    smoothing : float
        Pseudo-count of each symbol in each state: a Dirichlet(1 + smoothing) prior.
    """

    probabilities: Floats = field(repr=False)
    smoothing: float = 0.0

    @property
    def n_components(self) -> int:
        return int(self.probabilities.shape[0])

    @property
    def n_parameters(self) -> int:
        return self.n_components * CATEGORICAL.n_free(self.probabilities.shape[1])

    def likelihood(self, observations: NDArray[Any]) -> tuple[Floats, Floats]:
        present = observations >= 0
        rows = np.ones((observations.shape[0], self.n_components))
        rows[present] = self.probabilities.T[observations[present]]
        return rows, np.zeros(rows.shape[0])

    def statistics(self, observations: NDArray[Any], weights: Floats) -> Statistics:
        present = observations >= 0
        counts = np.zeros((self.probabilities.shape[1], self.n_components))
        np.add.at(counts, observations[present], weights[present])
        return (counts.T,)

    def maximize(self, statistics: Statistics) -> Self:
        return type(self)(proportions(statistics[0], self.smoothing, self.probabilities), self.smoothing)

    def expected(self, statistics: Statistics) -> Floats:
        # A state of next to no weight may keep a 0 where it has some.
        slopes = CATEGORICAL.natural(np.maximum(self.probabilities, 1e-300))[0]
        return np.asarray((statistics[0] * slopes).sum(axis=1))

    def features(self, observations: NDArray[Any]) -> Any:
        """Each symbol in a column of its own."""
        present = np.flatnonzero(observations >= 0)
        shape = len(observations), self.probabilities.shape[1]
        return sparse.csr_array((np.ones(present.size), (present, observations[present])), shape)

    def log_prior(self) -> float:
        return log_dirichlet(self.probabilities, self.smoothing)

    def pack(self) -> Floats:
        return pack_simplex(self.probabilities)

    def unpack(self, vector: Floats) -> Self:
        return type(self)(unpack_simplex(vector, self.probabilities.shape), self.smoothing)

    def permute(self, order: NDArray[np.intp]) -> Self:
        return type(self)(self.probabilities[order], self.smoothing)

    def draw(self, states: NDArray[np.intp], rng: np.random.Generator) -> NDArray[np.int64]:
        return CATEGORICAL.draw(self.probabilities, states, rng)
