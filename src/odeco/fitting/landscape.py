"""A likelihood as the search for a start sees it: climbed by EM, its components merged, split, and put elsewhere.

Each model gives one. What is common to those whose rows do not depend on each other is here: responsibilities tell
which rows a component has, and can be cut in two, or taken away for a new one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Sums = tuple[Floats, ...]
State = TypeVar("State")

# Rows that new components are put on: the worst, as a share of all.
_WORST = 0.05
# Numbers in the sums of the pairs whose mergers are judged at a time: few enough to stay in the cache.
_MOST_NUMBERS = 2**16


class Climbable(Protocol[State]):
    """A log-likelihood on some rows."""

    def climb(self, state: State, n_steps: int, tol: float, /) -> tuple[State, float]:
        """EM, until a step gains less than `tol` per sample; the state, and its log-likelihood per sample."""


class Landscape(ABC, Generic[State]):
    """A log-likelihood on rows in memory, seen from the components of a model."""

    @property
    @abstractmethod
    def weight(self) -> float:
        """Samples: what a log-likelihood per sample is multiplied by."""

    @abstractmethod
    def size(self, state: State, /) -> int:
        """Components."""

    @abstractmethod
    def n_parameters(self, state: State, /) -> int:
        """Free parameters of all components."""

    @abstractmethod
    def climb(self, state: State, n_steps: int, tol: float, /) -> tuple[State, float]:
        """EM, until a step gains less than `tol` per sample; the state, and its log-likelihood per sample."""

    @abstractmethod
    def merge(self, state: State, n_pairs: int, /) -> State:
        """`n_pairs` components fewer: those pairs joined whose mergers cost the expected likelihood least."""

    @abstractmethod
    def split(self, state: State, rng: np.random.Generator, n_powers: int, /) -> State:
        """Twice the components: each cut across the direction in which its rows vary most, found by power steps."""

    def seed(self, state: State, n_new: int, rng: np.random.Generator, /) -> State:
        """`n_new` more components or so, on rows that fit worst; unless that is known, cut at random."""
        return self.split(state, rng, 0)

    @property
    def coarse(self) -> Landscape[State]:
        """Where components are merged and split: on fewer rows, if that is told well enough from these."""
        return self

    def takes(self, state: State, /) -> bool:
        """Whether a state that another search on these rows has found means the same here, and is no accident."""
        return not self.degenerate(state)

    @abstractmethod
    def degenerate(self, state: State, /) -> bool:
        """Whether a component sits on so few rows that its likelihood says nothing."""


class RowLandscape(Landscape[State]):
    """Rows that do not depend on each other.

    Components are taken apart by the responsibilities that they have for the rows: `posterior` reads them off a state,
    `of_shares` makes a state of them. They are merged by their sums, which add up: totals (k,) first, then whatever
    else the M step needs, (k, ...).
    """

    @property
    @abstractmethod
    def features(self) -> Floats:
        """What rows differ in, (n, p), columns on one scale."""

    @abstractmethod
    def posterior(self, state: State, /) -> tuple[Floats, Floats]:
        """Responsibilities times weights of the rows (k, n), and the log densities of the rows (n,)."""

    @abstractmethod
    def sums(self, shares: Floats, /) -> Sums:
        """What the M step needs of responsibilities times weights (k, n)."""

    @abstractmethod
    def maximized(self, sums: Sums, /) -> State:
        """The M step: the state of largest expected likelihood."""

    @abstractmethod
    def expected(self, sums: Sums, state: State, /) -> Floats:
        """The largest expected log-likelihood of components with these sums, up to what mergers leave as it is, (m,).

        Without that of their weights; what all components share stays as it is in `state`.
        """

    def of_shares(self, shares: Floats, /) -> State:
        """The state of largest expected likelihood for responsibilities times weights (k, n)."""
        return self.maximized(self.sums(shares))

    def merge(self, state: State, n_pairs: int, /) -> State:
        sums = self.sums(self.posterior(state)[0])
        return self.maximized(merged(sums, lambda some: self.expected(some, state), n_pairs))

    def split(self, state: State, rng: np.random.Generator, n_powers: int, /) -> State:
        return self.of_shares(halves(self.features, self.posterior(state)[0], rng, n_powers))

    def seed(self, state: State, n_new: int, rng: np.random.Generator, /) -> State:
        return self.of_shares(seeds(self.features, *self.posterior(state), n_new, rng))


def halves(features: Floats, shares: Floats, rng: np.random.Generator, n_powers: int) -> Floats:
    """Responsibilities (2k, n) of components cut in two across the direction of their largest variance.

    Parameters
    ----------
    features : (n, p)
        What rows differ in.
    shares : (k, n)
        Responsibilities times weights.
    """
    weights = np.maximum(shares.sum(axis=1), 1e-300)
    means = (shares @ features) / weights[:, None]
    directions = rng.standard_normal(means.shape)
    for _ in range(n_powers + 1):
        directions /= np.linalg.norm(directions, axis=1, keepdims=True) + 1e-300
        places = directions @ features.T - np.einsum("ij,ij->i", means, directions)[:, None]
        weighed = shares * places
        directions = weighed @ features - weighed.sum(axis=1, keepdims=True) * means
    spread = np.sqrt((weighed * places).sum(axis=1) / weights)[:, None] + 1e-300
    # Cut off before it is divided: of a component on one row there is nothing to divide by.
    upper = 1 / (1 + np.exp(-2 * np.clip(places, -25 * spread, 25 * spread) / spread))
    return np.concatenate([shares * upper, shares * (1 - upper)])


def seeds(features: Floats, shares: Floats, densities: Floats, n_new: int, rng: np.random.Generator) -> Floats:
    """Responsibilities (k + n_new, n) with new components on rows that fit worst, each with some rows next to it.

    Parameters
    ----------
    features : (n, p)
        What rows differ in.
    shares : (k, n)
        Responsibilities times weights.
    densities : (n,)
        Log densities of the rows.
    """
    n, k = len(features), len(shares)
    places = np.argsort(np.argsort(densities))  # 0 is the worst
    chance = np.exp(-places / (_WORST * n))
    most = max(3, n // (4 * k))  # a fourth of what a component has on average, or any number below that
    size = min(n - 1, int(rng.integers(2, most)))
    everyone = np.vstack([shares, np.zeros((n_new, n))])
    for new in range(k, k + n_new):
        centre = features[rng.choice(n, p=chance / chance.sum())]
        near = np.argpartition(((features - centre) ** 2).sum(axis=1), size)[:size]
        whole = everyone[:, near].sum(axis=0)
        everyone[:, near] = 0.0
        everyone[new, near] = whole
        chance[near] = 1e-300
    return everyone


def spike_limits(masses: Floats, total: float) -> Floats:
    """Variances (k,), as shares of a column's own, below which a component sits on a few equal values.

    Rounded numbers are equal in dozens of rows by chance; where a hundred are, and a hundredth of all, the data are so.
    """
    return np.where(masses < max(100.0, total / 100), 1e-4, 0.0)


def merged(sums: Sums, expected: Callable[[Sums], Floats], n_pairs: int) -> Sums:
    """Sums of components after the `n_pairs` mergers that cost the expected likelihood, weights included, least."""
    step = max(1, _MOST_NUMBERS // sum(part[0].size for part in sums))

    def value(some: Sums) -> Floats:
        return np.asarray(expected(some) + some[0] * np.log(np.maximum(some[0], np.finfo(float).tiny)))

    def joined(i: NDArray[np.intp], j: NDArray[np.intp]) -> Floats:
        parts = [slice(low, low + step) for low in range(0, max(len(i), 1), step)]
        return np.concatenate([value(tuple(part[i[p]] + part[j[p]] for part in sums)) for p in parts])

    adding = merging(len(sums[0]), cheapest_pairs(pair_costs(value(sums), joined), n_pairs))
    return tuple(np.tensordot(adding, part, 1) for part in sums)


def cheapest_pairs(costs: Floats, n_pairs: int) -> list[tuple[int, int]]:
    """Disjoint pairs (i, j), i < j, of least cost: (k, k), symmetric."""
    rows, columns = np.triu_indices(len(costs), 1)
    pairs: list[tuple[int, int]] = []
    taken: set[int] = set()
    for place in np.argsort(costs[rows, columns], kind="stable"):
        i, j = int(rows[place]), int(columns[place])
        if not {i, j} & taken:
            pairs.append((i, j))
            taken |= {i, j}
        if len(pairs) == n_pairs:
            break
    return pairs


def merging(k: int, pairs: Sequence[tuple[int, int]]) -> Floats:
    """The matrix (k - pairs, k) of zeros and ones that adds the second of each pair to the first."""
    matrix = np.eye(k)
    for i, j in pairs:
        matrix[i, j] = 1.0
    gone = [j for _, j in pairs]
    return np.delete(matrix, gone, axis=0)


def pair_costs(one: Floats, of_pairs: Callable[[NDArray[np.intp], NDArray[np.intp]], Floats]) -> Floats:
    """(k, k): what the expected likelihood loses by each merger; `of_pairs(i, j)` is that of i and j joined."""
    k = len(one)
    i, j = np.triu_indices(k, 1)
    costs = np.full((k, k), np.inf)
    costs[i, j] = costs[j, i] = one[i] + one[j] - of_pairs(i, j)
    return costs
