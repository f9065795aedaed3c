"""Where refinement starts: candidates compared on equal terms, and moves that leave a local optimum.

The theorem's estimate is the best start where the data follow the model and k is right. Real data do neither, so it is
one candidate among a few. One with more components than are wanted is merged down, one with fewer is split up, and all
take a few steps on the same rows. The best go on, and are moved: every component is split in two, or new ones are put
on rows that fit worst, EM settles who owns which rows, and the pairs whose mergers cost least are merged until k are
left. That is kept where it is likelier, and tried again until it no longer is.

On the way mixtures of more than k components are seen, and of fewer where the best is merged further: by BIC they tell
how many components the rows show.

Nothing here knows a model: a `Landscape` is a likelihood on some rows that can be climbed, merged and split.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from odeco.kernels.threads import single_threaded_blas

Floats = NDArray[np.float64]
State = TypeVar("State")


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

    @abstractmethod
    def degenerate(self, state: State, /) -> bool:
        """Whether a component sits on so few rows that its likelihood says nothing."""


class RowLandscape(Landscape[State]):
    """Rows that do not depend on each other.

    Components are taken apart by the responsibilities that they have for the rows: `posterior` reads them off a state,
    `of_shares` makes a state of them.
    """

    @property
    @abstractmethod
    def features(self) -> Floats:
        """What rows differ in, (n, p), columns on one scale."""

    @abstractmethod
    def posterior(self, state: State, /) -> tuple[Floats, Floats]:
        """Responsibilities times weights of the rows (k, n), and the log densities of the rows (n,)."""

    @abstractmethod
    def of_shares(self, shares: Floats, /) -> State:
        """The state of largest expected likelihood for responsibilities times weights (k, n)."""

    def split(self, state: State, rng: np.random.Generator, n_powers: int, /) -> State:
        return self.of_shares(halves(self.features, self.posterior(state)[0], rng, n_powers))

    def seed(self, state: State, n_new: int, rng: np.random.Generator, /) -> State:
        return self.of_shares(seeds(self.features, *self.posterior(state), n_new, rng))


@dataclass(frozen=True, eq=False)
class Candidate(Generic[State]):
    """A start, of any number of components, made when it is asked for; None where it cannot be made.

    `chance`: whether another seed would make another one.
    """

    name: str
    make: Callable[[], State | None] = field(repr=False)
    chance: bool = False


@dataclass(frozen=True)
class Effort:
    """How long to look.

    Attributes
    ----------
    screen_steps, climb_steps : int
        EM steps of every candidate, and of those that go on.
    settle_steps : int
        EM steps between mergers.
    n_finalists : int
        Candidates that are moved.
    patience : int
        Moves in vain before a finalist is left where it is.
    most_moves : int
        Moves of a finalist at most.
    n_field : int
        Starts of the field's own kind (k-means, random rows).
    tol : float
        Gain of a step per sample below which climbing ends.
    """

    screen_steps: int = 20
    climb_steps: int = 60
    settle_steps: int = 5
    n_finalists: int = 3
    patience: int = 2
    most_moves: int = 6
    n_field: int = 5
    tol: float = 1e-5


EFFORTS = {
    "auto": Effort(),
    "thorough": Effort(
        screen_steps=40, climb_steps=200, n_finalists=6, patience=6, most_moves=30, n_field=20, tol=1e-6
    ),
}


def check_effort(effort: object) -> None:
    """Raise for an `effort` that there is not."""
    if effort not in ("quick", *EFFORTS):
        raise ValueError(f"effort must be 'auto', 'quick' or 'thorough', got {effort!r}.")


# Log-likelihoods per sample that differ by less are those of one optimum.
TIE = 1e-3
# Where finalists end further apart than this, the answer hangs on luck.
APART = 1e-2
# Weights below this share of the average are those of components that explain nothing: the best single sign of a fit
# that has lost a component elsewhere.
DEAD = 0.1


@dataclass(frozen=True, eq=False)
class Outcome(Generic[State]):
    """A candidate at the end of its way; `moves` of its moves were kept."""

    candidate: Candidate[State]
    state: State = field(repr=False)
    value: float
    degenerate: bool = False
    moves: int = 0

    @property
    def name(self) -> str:
        """Of the candidate."""
        return self.candidate.name


@dataclass(frozen=True, eq=False)
class Found(Generic[State]):
    """The outcomes, best first.

    Attributes
    ----------
    outcomes : tuple of Outcome
        Of all candidates; only the finalists went to their end.
    n_finalists : int
        How many did.
    suggested : int or None
        Components that the rows show, by BIC; None where that is as many as were tried.
    idle : int
        Components that explain next to nothing: without them the likelihood loses less than chance may gain.
    """

    outcomes: tuple[Outcome[State], ...]
    n_finalists: int
    suggested: int | None = None
    idle: int = 0

    @property
    def best(self) -> Outcome[State]:
        """The likeliest."""
        return self.outcomes[0]

    @property
    def replicated(self) -> int:
        """Candidates that ended at the best optimum, the best one included."""
        return sum(outcome.value >= self.best.value - TIE for outcome in self.outcomes)

    @property
    def spread(self) -> float:
        """How far the next finalist is behind the best: 0 where it found the same optimum."""
        values = sorted((outcome.value for outcome in self.outcomes[: self.n_finalists]), reverse=True)
        return float(values[0] - values[1]) if len(values) > 1 else 0.0

    def __str__(self) -> str:
        """For `Diagnostics.method`."""
        moved = f", moved {self.best.moves} times" if self.best.moves > 1 else ", moved once" * self.best.moves
        ended = f"{self.replicated} ended there"
        return f"the best of {len(self.outcomes)} starts ({self.best.name}{moved}; {ended})"

    def details(self) -> dict[str, Any]:
        """For `Diagnostics.details`."""
        return {
            "starts": [(outcome.name, outcome.value) for outcome in self.outcomes],
            "replicated": self.replicated,
            "spread": self.spread,
            "moves": self.best.moves,
        }


def search(
    landscape: Landscape[State],
    candidates: Iterable[Candidate[State]],
    k: int,
    effort: Effort,
    rng: np.random.Generator,
) -> Found[State]:
    """The best of all candidates and of the moves from the best of them."""
    with single_threaded_blas():  # once, and not at every one of many short steps
        return _search(landscape, candidates, k, effort, rng)


def _search(
    landscape: Landscape[State],
    candidates: Iterable[Candidate[State]],
    k: int,
    effort: Effort,
    rng: np.random.Generator,
) -> Found[State]:
    seen = Sizes(landscape)
    screened = []
    for candidate in candidates:
        state = candidate.make()
        if state is not None:
            resized = resize(landscape, state, k, effort, rng, seen)
            screened.append(_climbed(landscape, candidate, resized, effort.screen_steps, effort))
    if not screened:
        raise ValueError("there is no candidate to start from.")
    ranked = rank(screened)
    chosen = _apart(ranked, effort.n_finalists)
    finalists = rank([_moved(landscape, outcome, k, effort, rng, seen) for outcome in chosen])
    others = [outcome for outcome in ranked if all(outcome is not taken for taken in chosen)]
    idle = seen.merge_further(finalists[0], effort)
    return Found((*finalists, *others), len(finalists), seen.suggested, idle)


class Sizes(Generic[State]):
    """The best log-likelihood seen for each number of components, and what follows for that number."""

    def __init__(self, landscape: Landscape[State]) -> None:
        self.landscape = landscape
        self.criteria: dict[int, float] = {}
        self.largest = 0

    def see(self, state: State, value: float) -> float:
        """A mixture that was climbed to this value; its BIC, in nats, larger is better: a spike has none."""
        weight, size = self.landscape.weight, self.landscape.size(state)
        self.largest = max(self.largest, size)
        if self.landscape.degenerate(state):
            return -np.inf
        criterion = float(value * weight - self.landscape.n_parameters(state) * np.log(max(weight, 2.0)) / 2)
        self.criteria[size] = max(criterion, self.criteria.get(size, -np.inf))
        return criterion

    @property
    def suggested(self) -> int | None:
        """The size of the best BIC; None where it is the largest one seen."""
        if not self.criteria:
            return None
        best = max(self.criteria, key=lambda size: self.criteria[size])
        return None if best == self.largest and best > 1 else best

    def merge_further(self, best: Outcome[State], effort: Effort) -> int:
        """Merge the best further until BIC no longer gains; how many of its components explain next to nothing."""
        land, state, idle, in_vain = self.landscape, best.state, 0, 0
        k, n_parameters, highest = land.size(state), land.n_parameters(state), self.see(state, best.value)
        while (size := land.size(state)) > 1 and in_vain < _IN_VAIN:
            state, value = land.climb(land.merge(state, 1), effort.screen_steps, effort.tol)
            criterion = self.see(state, value)
            if (best.value - value) * land.weight < _BY_CHANCE * (n_parameters - land.n_parameters(state)):
                idle = k - size + 1
            highest, in_vain = (criterion, 0) if criterion > highest else (highest, in_vain + 1)
        return idle


# Mergers in a row without a better BIC after which no fewer components are looked at.
_IN_VAIN = 4
# Log-likelihood that a free parameter gains by chance, at most: half a nat on average, as AIC has it twice over.
_BY_CHANCE = 2.0


def rank(outcomes: Sequence[Outcome[State]]) -> list[Outcome[State]]:
    """Best first, degenerate ones last; but the earliest of all that are as good as the best comes first."""
    ordered = sorted(outcomes, key=lambda outcome: (outcome.degenerate, -outcome.value))
    best = ordered[0]
    equal = [o for o in outcomes if o.degenerate == best.degenerate and o.value >= best.value - _SAME]
    return [equal[0], *(outcome for outcome in ordered if outcome is not equal[0])]


# Log-likelihoods per sample that differ by less differ by where EM has stopped.
_SAME = 1e-4


def resize(
    landscape: Landscape[State],
    state: State,
    k: int,
    effort: Effort,
    rng: np.random.Generator,
    seen: Sizes[State] | None = None,
) -> State:
    """The state with k components: split up, or merged down a quarter of the surplus at a time, with EM in between."""
    seen = Sizes(landscape) if seen is None else seen
    while landscape.size(state) < k:
        state, _ = landscape.climb(landscape.split(state, rng, POWERS), effort.settle_steps, effort.tol)
    if landscape.size(state) > k:
        state, value = landscape.climb(state, effort.screen_steps, effort.tol)
        seen.see(state, value)
    while (surplus := landscape.size(state) - k) > 0:
        state = landscape.merge(state, -(-surplus // 4))
        state, value = landscape.climb(state, effort.settle_steps, effort.tol)
        seen.see(state, value)
    return state


# Power steps towards the direction of largest variance; with one, the direction is mostly chance.
POWERS = 8


def _climbed(
    landscape: Landscape[State],
    candidate: Candidate[State],
    state: State,
    n_steps: int,
    effort: Effort,
    moves: int = 0,
) -> Outcome[State]:
    state, value = landscape.climb(state, n_steps, effort.tol)
    return Outcome(candidate, state, value, landscape.degenerate(state), moves)


def _apart(ranked: list[Outcome[State]], n: int) -> list[Outcome[State]]:
    """The best n that do not lie at one optimum; where there are fewer, the next ones."""
    chosen: list[Outcome[State]] = []
    for outcome in ranked:
        if all(abs(outcome.value - other.value) > TIE for other in chosen):
            chosen.append(outcome)
    chosen += [outcome for outcome in ranked if all(outcome is not taken for taken in chosen)]
    return chosen[:n]


def _moved(
    landscape: Landscape[State],
    outcome: Outcome[State],
    k: int,
    effort: Effort,
    rng: np.random.Generator,
    seen: Sizes[State],
) -> Outcome[State]:
    """Larger, merged down, climbed: kept where it is likelier, until it was not for some times in a row.

    Larger by splitting every component, or, every other time in vain, by new ones on rows that fit worst.
    """
    best = _climbed(landscape, outcome.candidate, outcome.state, effort.climb_steps, effort)
    in_vain, n_tried = 0, 0
    while in_vain < effort.patience and n_tried < effort.most_moves and k > 1:
        n_tried += 1
        if in_vain % 2:
            larger = landscape.seed(best.state, -(-k // 2), rng)
        else:
            larger = landscape.split(best.state, rng, POWERS if in_vain == 0 else 1)
        resized = resize(landscape, larger, k, effort, rng, seen)
        rival = _climbed(landscape, best.candidate, resized, effort.climb_steps, effort, best.moves + 1)
        better = rival.value > best.value + effort.tol and (best.degenerate or not rival.degenerate)
        best, in_vain = (rival, 0) if better else (best, in_vain + 1)
    return best


def finish(found: Found[State], rows: Climbable[State], n_steps: int) -> Found[State]:
    """The finalists compared once more on more rows, after a few steps there: a sample may have been fooled."""
    n = found.n_finalists
    on_all = []
    for outcome in found.outcomes[:n]:
        state, value = rows.climb(outcome.state, n_steps, 0.0)
        on_all.append(replace(outcome, state=state, value=value))
    return replace(found, outcomes=(*rank(on_all), *found.outcomes[n:]))


def said_of(found: Found[Any], k: int) -> tuple[str, ...]:
    """What is worth a warning: components that explain nothing, and an optimum found by chance, and once."""
    if found.idle:
        return (
            f"{found.idle} of {k} components explain next to nothing: the likelihood loses less without them than "
            f"chance gains. Lower n_components to {k - found.idle}, or use more samples.",
        )
    if found.spread <= APART or not found.best.candidate.chance:
        return ()
    return (
        f"the best optimum was found from {found.replicated} of {len(found.outcomes)} starts; the next best, from "
        f"{found.outcomes[1].name!r}, is {found.spread:.2g} nats per sample behind: another seed may end "
        "elsewhere. Use effort='thorough', or another number of components.",
    )


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
    upper = 1 / (1 + np.exp(-np.clip(2 * places / spread, -50, 50)))
    return np.concatenate([shares * upper, shares * (1 - upper)])


# Rows that new components are put on: the worst, as a share of all.
_WORST = 0.05


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
