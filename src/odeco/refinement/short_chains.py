"""Baum-Welch on short data: the recursions of a pass, and whole climbs, in one compiled call each.

A pass over a few thousand steps takes microseconds, less than the Python around it. `ForwardBackward` and the loop of
`baum_welch` are what this must equal, to rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from odeco.families.counts import POISSON
from odeco.refinement.categorical_emission import CategoricalEmission
from odeco.refinement.emissions import HMMParameters
from odeco.refinement.emissions_poisson import PoissonEmission
from odeco.refinement.forward_backward import Expectations, ForwardBackward
from odeco.refinement.loop import Refined, StoppingRule, retold

Floats = NDArray[np.float64]
Climb = Callable[[Floats, Floats], int]  # a state, which becomes the best one, and what was seen on the way

# Steps up to which one after the other is faster than eight stretches in lockstep and the Python that cuts them: of
# three states the two take as long at about 8,000.
SHORT = 5_000


class ShortRecursions(ForwardBackward):
    """The recursions where there are few steps."""

    def expectations(self, parameters: HMMParameters[Any]) -> Expectations:
        """The E step."""
        from odeco.kernels.short_chains import expect_short

        k, values, emission = parameters.n_components, self.data.values, parameters.emission
        rows, scales = emission.likelihood(values)
        row_sums, start, transitions = np.zeros((len(values), k)), np.zeros(k), np.empty((k, k))
        transmat, startprob = (np.ascontiguousarray(each) for each in (parameters.transmat, parameters.startprob))
        value = expect_short(
            np.ascontiguousarray(rows), scales, *self._steps, transmat, startprob, row_sums, start, transitions
        )
        return Expectations(value, start, transitions, emission.statistics(values, row_sums))

    def climb(
        self, parameters: HMMParameters[Any], smoothing: tuple[float, float], rule: StoppingRule
    ) -> Refined[HMMParameters[Any]] | None:
        """Baum-Welch to its end, with pseudo-counts of the start and of transitions; None where Python has to do it."""
        emission, total = parameters.emission, max(self.data.total_weight, 1e-300)
        prepared = self._prepared(emission, smoothing, (total, rule.tol, rule.patience))
        if prepared is None:
            return None
        name, climb = prepared
        k, given = parameters.n_components, getattr(emission, name)
        state = np.concatenate([parameters.startprob, parameters.transmat.ravel(), given.ravel()])
        seen = np.empty(rule.max_iter)
        n_iter = climb(state, seen)
        moves, learned = state[k : k + k * k].reshape(k, k), state[k + k * k :].reshape(given.shape)
        found = HMMParameters(state[:k], moves, replace(emission, **{name: learned}))
        return retold(found, seen[:n_iter], rule)

    def _prepared(
        self, emission: Any, smoothing: tuple[float, float], ending: tuple[Any, ...]
    ) -> tuple[str, Climb] | None:
        """The name of the family's parameters, and the loop that has it, where there is one."""
        from odeco.kernels.short_chains import climb_counts, climb_symbols

        k = emission.n_components
        if isinstance(emission, CategoricalEmission) and self._are_symbols(emission):
            d = emission.probabilities.shape[1]
            return "probabilities", partial(climb_symbols, *self._steps, k, d, *smoothing, emission.smoothing, *ending)
        if isinstance(emission, PoissonEmission):
            return "rates", partial(climb_counts, *self._steps, k, *self._counts, *smoothing, emission.floor, *ending)
        return None

    def _are_symbols(self, emission: CategoricalEmission) -> bool:
        """Whether the distinct observations are the whole alphabet, in order, and perhaps what is missing."""
        d, values = emission.probabilities.shape[1], self.data.values
        return len(values) in (d, d + 1) and np.array_equal(values, np.append(np.arange(d), -1)[: len(values)])

    @cached_property
    def _counts(self) -> tuple[Floats, Floats]:
        """Counts of the distinct observations, and the part of their log densities that no rate enters."""
        values = np.ascontiguousarray(self.data.values, dtype=np.float64)
        return values, POISSON.base(np.nan_to_num(values))
