"""The E step over sequences that are read in batches or lie in partitions: expected statistics are sums."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np

from odeco.moments.base import Additive
from odeco.refinement.emissions import HMMParameters, Statistics
from odeco.refinement.forward_backward import FIRST_BURN, Expectations, ForwardBackward
from odeco.refinement.short_chains import SHORT, ShortRecursions
from odeco.sources.chains import Chains, ChainSource
from odeco.sources.sequences import Sequences


class LikelihoodSums(Additive):
    """The log-likelihood of sequences under given parameters."""

    _sums: ClassVar[tuple[str, ...]] = ("log_likelihood",)
    _maxima: ClassVar[tuple[str, ...]] = ("burn",)

    def __init__(self, parameters: HMMParameters[Any], burn: int = FIRST_BURN) -> None:
        self.parameters = parameters
        self.log_likelihood = 0.0
        self.burn = burn
        """How far back stretches of a sequence have to start: known from one pass to the next."""

    def update(self, batch: Sequences) -> Self:
        """Add whole sequences."""
        recursions = ForwardBackward(batch, self.burn)
        self._add(recursions)
        self.burn = max(self.burn, recursions.burn)
        return self

    def _add(self, recursions: ForwardBackward) -> None:
        self.log_likelihood += recursions.log_likelihood(self.parameters)


class ExpectationSums(LikelihoodSums):
    """What the M step needs of sequences."""

    _sums: ClassVar[tuple[str, ...]] = ("log_likelihood", "start", "transitions", "emission")

    def __init__(self, parameters: HMMParameters[Any], burn: int = FIRST_BURN) -> None:
        super().__init__(parameters, burn)
        k, emission = parameters.n_components, parameters.emission
        self.start, self.transitions = np.zeros(k), np.zeros((k, k))
        one = emission.draw(np.zeros(1, dtype=np.intp), np.random.default_rng(0))
        self.emission: Statistics = emission.statistics(one, np.zeros((1, k)))  # one observation that counts nothing

    def _add(self, recursions: ForwardBackward) -> None:
        more = recursions.expectations(self.parameters)
        self.log_likelihood += more.log_likelihood
        self.start, self.transitions = self.start + more.start, self.transitions + more.transitions
        self.emission = tuple(a + b for a, b in zip(self.emission, more.emission, strict=True))

    def read(self) -> Expectations:
        """The sums as the M step takes them."""
        return Expectations(self.log_likelihood, self.start, self.transitions, self.emission)


class SummedRecursions:
    """What Baum-Welch asks of `ForwardBackward`, by passes over a source."""

    def __init__(self, data: ChainSource) -> None:
        self.data = data
        self._burn = FIRST_BURN

    def log_likelihood(self, parameters: HMMParameters[Any]) -> float:
        """Of all sequences, weights included."""
        sums: LikelihoodSums = self.data.add_to(LikelihoodSums(parameters, self._burn))
        return sums.log_likelihood

    def expectations(self, parameters: HMMParameters[Any]) -> Expectations:
        """The E step, one pass."""
        sums: ExpectationSums = self.data.add_to(ExpectationSums(parameters, self._burn))
        self._burn = sums.burn
        return sums.read()


Recursions = ForwardBackward | SummedRecursions


def recursions_of(data: Chains | Recursions) -> Recursions:
    """The recursions for sequences in memory or elsewhere."""
    if isinstance(data, ChainSource):
        return SummedRecursions(data)
    if not isinstance(data, Sequences):
        return data
    return ShortRecursions(data) if len(data) <= SHORT else ForwardBackward(data)
