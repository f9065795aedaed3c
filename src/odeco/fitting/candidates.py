"""Where refinement starts: candidates compared on equal terms, and moves that leave a local optimum.

The theorem's estimate is the best start where the data follow the model and k is right. Real data do neither, so it is
one candidate among a few. One with more components than are wanted is merged down, one with fewer is split up, and all
take a few steps on the same rows. The best go on, and are moved: every component is split in two, EM settles who owns
which rows, and the pairs whose mergers cost least are merged until k are left. That is kept where it is likelier, and
tried again until it no longer is.

Nothing here knows a model: a `Landscape` is a likelihood on some rows that can be climbed, merged and split.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
State = TypeVar("State")


class Landscape(Protocol[State]):
    """A log-likelihood on rows in memory, seen from the components of a model."""

    def size(self, state: State, /) -> int:
        """Components."""

    def climb(self, state: State, n_steps: int, tol: float, /) -> tuple[State, float]:
        """EM, until a step gains less than `tol` per sample; the state, and its log-likelihood per sample."""

    def merge(self, state: State, n_pairs: int, /) -> State:
        """`n_pairs` components fewer: those pairs joined whose mergers cost the expected likelihood least."""

    def split(self, state: State, rng: np.random.Generator, n_powers: int, /) -> State:
        """Twice the components: each cut across the direction in which its rows vary most, found by power steps."""

    def degenerate(self, state: State, /) -> bool:
        """Whether a component sits on a few equal rows: its likelihood says nothing."""


@dataclass(frozen=True, eq=False)
class Candidate(Generic[State]):
    """A start, of any number of components, made when it is asked for; None where it cannot be made."""

    name: str
    make: Callable[[], State | None] = field(repr=False)


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
    n_field : int
        Starts of the field's own kind (k-means, random rows).
    tol : float
        Gain of a step per sample below which climbing ends.
    """

    screen_steps: int = 20
    climb_steps: int = 60
    settle_steps: int = 5
    n_finalists: int = 2
    patience: int = 2
    n_field: int = 4
    tol: float = 1e-5


EFFORTS = {
    "auto": Effort(),
    "thorough": Effort(screen_steps=40, climb_steps=200, n_finalists=5, patience=4, n_field=20, tol=1e-6),
}
# Log-likelihoods per sample that differ by less are those of one optimum.
TIE = 1e-3


@dataclass(frozen=True, eq=False)
class Outcome(Generic[State]):
    """A candidate at the end of its way; `moves` of its moves were kept."""

    name: str
    state: State = field(repr=False)
    value: float
    degenerate: bool = False
    moves: int = 0


@dataclass(frozen=True, eq=False)
class Found(Generic[State]):
    """The outcomes, best first.

    Attributes
    ----------
    outcomes : tuple of Outcome
        Of all candidates; only the finalists went to their end.
    n_finalists : int
        How many did.
    """

    outcomes: tuple[Outcome[State], ...]
    n_finalists: int

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
        values = [outcome.value for outcome in self.outcomes[: self.n_finalists]]
        return float(values[0] - values[1]) if len(values) > 1 else 0.0

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
    screened = []
    for candidate in candidates:
        state = candidate.make()
        if state is not None:
            resized = resize(landscape, state, k, effort, rng)
            screened.append(_climbed(landscape, candidate.name, resized, effort.screen_steps, effort))
    if not screened:
        raise ValueError("there is no candidate to start from.")
    ranked = rank(screened)
    chosen = _apart(ranked, effort.n_finalists)
    finalists = [_moved(landscape, outcome, k, effort, rng) for outcome in chosen]
    others = [outcome for outcome in ranked if all(outcome is not taken for taken in chosen)]
    ordered = rank(finalists)
    return Found((*ordered, *others), len(ordered))


def rank(outcomes: Sequence[Outcome[State]]) -> list[Outcome[State]]:
    """Best first; degenerate ones last; of those that differ by rounding, the earlier candidate first."""
    return sorted(outcomes, key=lambda outcome: (outcome.degenerate, -round(outcome.value, 6)))


def resize(landscape: Landscape[State], state: State, k: int, effort: Effort, rng: np.random.Generator) -> State:
    """The state with k components: split up, or merged down a quarter of the surplus at a time, with EM in between."""
    while landscape.size(state) < k:
        state, _ = landscape.climb(landscape.split(state, rng, POWERS), effort.settle_steps, effort.tol)
    if landscape.size(state) > k:
        state, _ = landscape.climb(state, effort.screen_steps, effort.tol)
    while (surplus := landscape.size(state) - k) > 0:
        state = landscape.merge(state, -(-surplus // 4))
        state, _ = landscape.climb(state, effort.settle_steps, effort.tol)
    return state


# Power steps towards the direction of largest variance; with one, the direction is mostly chance.
POWERS = 8


def _climbed(
    landscape: Landscape[State], name: str, state: State, n_steps: int, effort: Effort, moves: int = 0
) -> Outcome[State]:
    state, value = landscape.climb(state, n_steps, effort.tol)
    return Outcome(name, state, value, landscape.degenerate(state), moves)


def _apart(ranked: list[Outcome[State]], n: int) -> list[Outcome[State]]:
    """The best n that do not lie at one optimum; where there are fewer, the next ones."""
    chosen: list[Outcome[State]] = []
    for outcome in ranked:
        if all(abs(outcome.value - other.value) > TIE for other in chosen):
            chosen.append(outcome)
    chosen += [outcome for outcome in ranked if all(outcome is not taken for taken in chosen)]
    return chosen[:n]


def _moved(
    landscape: Landscape[State], outcome: Outcome[State], k: int, effort: Effort, rng: np.random.Generator
) -> Outcome[State]:
    """Split all, merge down, climb: kept where it is likelier, until it was not for some times in a row."""
    best = _climbed(landscape, outcome.name, outcome.state, effort.climb_steps, effort)
    in_vain = 0
    while in_vain < effort.patience and k > 1:
        doubled = landscape.split(best.state, rng, POWERS if in_vain == 0 else 1)
        rival = _climbed(
            landscape, best.name, resize(landscape, doubled, k, effort, rng), effort.climb_steps, effort, best.moves + 1
        )
        better = rival.value > best.value + effort.tol and (best.degenerate or not rival.degenerate)
        best, in_vain = (rival, 0) if better else (best, in_vain + 1)
    return best


def finish(found: Found[State], landscape: Landscape[State], n_steps: int, effort: Effort) -> Found[State]:
    """The finalists compared once more on more rows, after a few steps there: a sample may have been fooled."""
    n = found.n_finalists
    on_all = []
    for outcome in found.outcomes[:n]:
        state, value = landscape.climb(outcome.state, n_steps, effort.tol)
        on_all.append(replace(outcome, state=state, value=value))
    return Found((*rank(on_all), *found.outcomes[n:]), n)


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
