"""What Baum-Welch has to know of a family of emissions, and the parameters of a hidden Markov model as one record."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import Any, Generic, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Statistics = tuple[Floats, ...]

# Of a likelihood in units of the largest: its products with transition probabilities are still normal numbers.
LEAST_LOG = -650.0


class Emission(ABC):
    """The law of an observation given the state: immutable, so that a step can go back to the one before.

    Observations come as rows of an array (m, ...): a slice of the data, or the distinct values of a discrete one (see
    `odeco.sources.sequences.Sequences`). What a missing one looks like, the family knows (NaN, -1).
    """

    @property
    @abstractmethod
    def n_components(self) -> int:
        """Number of states k."""

    @property
    @abstractmethod
    def n_parameters(self) -> int:
        """Free parameters, for `aic` and `bic`."""

    @abstractmethod
    def likelihood(self, observations: NDArray[Any]) -> tuple[Floats, Floats]:
        """Rows (m, k) and scales (m,) with ``log p(x_t | state j) = log rows[t, j] + scales[t]``.

        The scale keeps the largest entry of each row near 1; a missing observation has a row of ones, scale 0. Called
        from several threads at once, on slices.
        """

    @abstractmethod
    def statistics(self, observations: NDArray[Any], weights: Floats) -> Statistics:
        """Sums over the rows with weights (m, k), additive: the sums of two slices are the sums of both."""

    @abstractmethod
    def maximize(self, statistics: Statistics) -> Self:
        """The M step: a new emission that maximizes expected log-likelihood plus `log_prior`.

        A state of next to no weight keeps what it has.
        """

    def log_prior(self) -> float:
        """Log density of the prior that `maximize` includes, up to a constant; 0 without one."""
        return 0.0

    @abstractmethod
    def expected(self, statistics: Statistics) -> Floats:
        """Expected log-likelihood of each state's observations from their sums, (k,), up to terms linear in these."""

    def largest_expected(self, statistics: Statistics) -> Floats:
        """The largest for states with such sums, (m,): of any number of states, whatever the parameters here are."""
        alike = self.permute(np.zeros(len(statistics[0]), dtype=np.intp))
        return alike.maximize(statistics).expected(statistics)

    @abstractmethod
    def features(self, observations: NDArray[Any]) -> Any:
        """What observations differ in, (m, p), dense or sparse, 0 where one is missing: states are split by it."""

    def degenerate(self) -> bool:
        """Whether a state sits on nearly equal observations: its likelihood says nothing."""
        return False

    @abstractmethod
    def pack(self) -> Floats:
        """Parameters as one vector whose every linear combination `unpack` can make an emission of.

        Logarithms of probabilities and variances, means as they are (in units of their deviations), and so on: what
        makes EM's steps most nearly linear.
        """

    @abstractmethod
    def unpack(self, vector: Floats) -> Self:
        """The emission of a vector like that of `pack`: always valid."""

    @abstractmethod
    def permute(self, order: NDArray[np.intp]) -> Self:
        """States in another order."""

    @abstractmethod
    def draw(self, states: NDArray[np.intp], rng: np.random.Generator) -> NDArray[Any]:
        """One observation for each state."""


def exponentials(rows: Floats) -> Floats:
    """Likelihoods of their logarithms less the largest of each observation, in place; none is 0.

    Densities are positive everywhere: where the likeliest state cannot be reached another one must be left, however
    far the observation is from it. Its likelihood is then a bound, which is above it.
    """
    np.maximum(rows, LEAST_LOG, out=rows)
    return np.exp(rows, out=rows)


E = TypeVar("E", bound=Emission)


@dataclass(frozen=True, eq=False)
class HMMParameters(Generic[E]):
    """Start (k,), transitions (k, k) with rows that sum to 1 (the transpose of the paper's T), and emissions."""

    startprob: Floats
    transmat: Floats = field(repr=False)
    emission: E

    @property
    def n_components(self) -> int:
        """Number of states k."""
        return int(self.startprob.size)

    @property
    def n_parameters(self) -> int:
        """Free parameters."""
        k = self.n_components
        return k - 1 + k * (k - 1) + self.emission.n_parameters

    def permute(self, order: NDArray[np.intp]) -> HMMParameters[E]:
        """States in another order."""
        return replace(
            self,
            startprob=self.startprob[order],
            transmat=self.transmat[order[:, None], order],
            emission=self.emission.permute(order),
        )
