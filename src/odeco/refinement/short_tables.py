"""EM for mixtures of product distributions on few rows: a whole climb, of all starts, in one compiled call.

A step on a few thousand rows takes less than the Python around it. The loop of `odeco.refinement.product_mixture` is
what this must equal, to rounding.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from odeco.families.tables import Families

Floats = NDArray[np.float64]

# Rows up to which it is taken: those of a search. More are shared out among threads.
SHORT = 5_000


@dataclass(frozen=True, eq=False)
class Climbed:
    """What a climb of S mixtures has found.

    Attributes
    ----------
    state : (S, k + k Q)
        Weights and parameters of each.
    values, likelihoods : (S,)
        Log posterior and log-likelihood per sample.
    seen, counts : (records,)
        Best values on the way, and steps that were taken by then.
    converged : bool
    """

    state: Floats
    values: Floats
    likelihoods: Floats
    seen: Floats
    counts: NDArray[np.int64]
    converged: bool


@dataclass(frozen=True, eq=False)
class FewRows:
    """Statistics of all samples (P, n), their weights or None, their means (P,), and pseudo-observations."""

    families: Families
    columns: Floats
    weights: Floats | None
    overall: Floats
    total: float
    prior: float

    def climb(self, state: Floats, k: int, max_iter: int, tol: float, *, accelerate: bool) -> Climbed:
        """EM from the mixtures of `state`, which is written to, until none gains more than `tol` in a step."""
        from odeco.kernels.mixtures import climb_tables

        values, likelihoods = np.empty((2, len(state)))
        seen, counts = np.empty(max_iter + 1), np.empty(max_iter + 1, dtype=np.int64)
        families, weights = self.families, np.empty(0) if self.weights is None else self.weights
        sizes = families.bernoulli.size, families.poisson.size, families.gaussian.size
        n, converged = climb_tables(
            self.columns, weights, self.overall, self.total, self.prior, *sizes, *families.places, k, max_iter, tol,
            accelerate, state, values, likelihoods, seen, counts,
        )  # fmt: skip
        return Climbed(state, values, likelihoods, seen[:n], counts[:n], converged)
