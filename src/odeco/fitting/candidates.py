"""Where refinement starts: candidates compared on equal terms, and moves that leave a local optimum.

The theorem's estimate is the best start where the data follow the model and k is right. Real data do neither, so it is
one candidate among a few. One with more components than are wanted is merged down, one with fewer is split up, and all
take a few steps on the same rows. The best go on, and are moved: every component is split in two, or new ones are put
on rows that fit worst, EM settles who owns which rows, and the pairs whose mergers cost least are merged until k are
left. That is kept where it is likelier, and tried again until it no longer is.

Candidates come in turn: the theorem's, one of more components, one of the field's own. Where these three end at one
optimum, or a few more than that do, the evidence is in, and the search with it.

Nothing here knows a model: a `Landscape` is a likelihood on some rows that can be climbed, merged and split. Mixtures
of more and fewer components that are seen on the way tell how many there are, where that is asked for (`Sizes`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, Literal

import numpy as np
from numpy.typing import NDArray

from odeco.fitting.ladder import above, keep
from odeco.fitting.landscape import Climbable, Landscape, State
from odeco.fitting.sizes import Sizes
from odeco.kernels.threads import single_threaded_blas

# Log-likelihoods per sample that differ by less are those of one optimum.
TIE = 1e-3
# Nats for each free parameter that EM may gain from moments that need no rival, and samples for each that it takes to
# tell. On drawn data EM gained 0.1 to 1.3 wherever just k components stood out, and no search found more; on real data
# 2.7 to 36,000 in views, 0.02 to 40 in tables, and with 0.3 or less no search found more, either, but for one table
# (zoo, k = 3) of 1.6 samples for each parameter.
_NEAR, _ENOUGH_SAMPLES = 1.0, 4
# Those that differ by less than this differ by where EM has stopped.
_SAME = 1e-4
# Where finalists end further apart than this, the answer hangs on luck.
APART = 1e-2
# Weights below this share of the average are those of components that explain nothing: the best single sign of a fit
# that has lost a component elsewhere.
_DEAD = 0.1
# Power steps towards the direction of largest variance; with one, the direction is mostly chance.
POWERS = 8


Origin = Literal["theorem", "field", "larger"]
ORIGINS: tuple[Origin, ...] = ("theorem", "field", "larger")


@dataclass(frozen=True, eq=False)
class Candidate(Generic[State]):
    """A start, of any number of components, made when it is asked for; None where it cannot be made.

    Attributes
    ----------
    chance : bool
        Whether another seed would make another one.
    origin : str
        The moments of k components, more components than k, or a start of the field's own kind: candidates of
        different origins that end at one optimum tell more than those of one.
    """

    name: str
    make: Callable[[], State | None] = field(repr=False)
    chance: bool = False
    origin: Origin = "theorem"


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
    enough : int
        Candidates at the best optimum after which no other is looked at; three where these are of all
        origins and agree. 0 looks at all.
    """

    screen_steps: int = 20
    climb_steps: int = 60
    settle_steps: int = 5
    n_finalists: int = 3
    patience: int = 2
    most_moves: int = 6
    n_field: int = 5
    tol: float = 1e-5
    enough: int = 5


EFFORTS = {
    "auto": Effort(),
    "thorough": Effort(
        screen_steps=40, climb_steps=200, n_finalists=6, patience=6, most_moves=30, n_field=20, tol=1e-6, enough=0
    ),
}


# Whether a start needs rivals at all is seen by a short look at a few.
TRIAL = Effort(n_finalists=1, patience=0)


def explained_gain(n_parameters: int, n_samples: float) -> float:
    """What EM may gain per sample from the moments for these to need no rival; negative where samples are too few.

    The truth itself falls half a nat for each free parameter behind the maximum (Wilks' theorem), and an estimate whose
    errors shrink as fast falls behind by some such multiple. Where the model does not hold, or the moments are of
    another optimum, EM gains many times that, most of it in its first step.
    """
    return _NEAR * n_parameters / n_samples if n_samples >= _ENOUGH_SAMPLES * n_parameters else -1.0


def is_any_dead(weights: NDArray[np.float64]) -> bool:
    """Whether a component has next to no samples, the surest sign of an optimum that is not the best."""
    return bool((weights < _DEAD / weights.size).any())


def check_effort(effort: object) -> None:
    """Raise for an `effort` that there is not."""
    if effort not in ("quick", *EFFORTS):
        raise ValueError(f"effort must be 'auto', 'quick' or 'thorough', got {effort!r}.")


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
        Components that the rows show, by BIC; None where that is as many as were tried, or was not asked for.
    idle : int
        Components that explain next to nothing: without them the likelihood loses less than chance may gain.
    fewer : mapping
        The best mixture seen of each number of components below k, where fewer than k are suggested.
    """

    outcomes: tuple[Outcome[State], ...]
    n_finalists: int
    suggested: int | None = None
    idle: int = 0
    fewer: Mapping[int, State] = field(default_factory=dict, repr=False)

    @property
    def best(self) -> Outcome[State]:
        """The likeliest."""
        return self.outcomes[0]

    @property
    def replicated(self) -> int:
        """Candidates that ended at the best optimum, the best one included."""
        return sum(outcome.value >= self.best.value - TIE for outcome in self.outcomes)

    @property
    def agreed(self) -> bool:
        """Whether candidates of every origin were looked at, and all ended at the best optimum."""
        return len(_origins(self.outcomes)) == len(ORIGINS) and self.replicated == len(self.outcomes)

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
    *,
    counted: bool = False,
) -> Found[State]:
    """The best of all candidates and of the moves from the best of them.

    `counted`: how many components the rows show is wanted, too.
    """
    with single_threaded_blas():  # once, and not at every one of many short steps
        seen = Sizes(landscape) if counted else None
        found = _search(landscape, [*_from_above(landscape, k, effort), *candidates], k, effort, rng, seen)
        if effort.patience:
            keep(k, found.best.state)
        if seen is None:
            return found
        idle = seen.merge_further(found.best.state, found.best.value, effort.screen_steps, effort.tol)
        below = seen.suggested is not None and seen.suggested < k
        fewer = {size: state for size, state in seen.states.items() if size < k and below}
        return replace(found, suggested=seen.suggested, idle=idle, fewer=fewer)


def _search(
    landscape: Landscape[State],
    candidates: Iterable[Candidate[State]],
    k: int,
    effort: Effort,
    rng: np.random.Generator,
    seen: Sizes[State] | None,
) -> Found[State]:
    screened: list[Outcome[State]] = []
    for candidate in in_turn(candidates):
        state = candidate.make()
        if state is None:
            continue
        resized = resize(landscape.coarse, state, k, effort, rng, seen)
        screened.append(_climbed(landscape, candidate, resized, effort.screen_steps, effort))
        if _all_agree(screened, effort.enough):
            effort = replace(effort, n_finalists=1, patience=0)
            break
        if _enough_agree(screened, effort.enough):
            break
    if not screened:
        raise ValueError("there is no candidate to start from.")
    ranked = rank(screened)
    chosen = _apart(ranked, effort.n_finalists, others_too=not _enough_agree(screened, effort.enough))
    finalists = rank([_moved(landscape, outcome, k, effort, rng, seen) for outcome in chosen])
    others = [outcome for outcome in ranked if all(outcome is not taken for taken in chosen)]
    return Found((*finalists, *others), len(finalists))


def _from_above(landscape: Landscape[State], k: int, effort: Effort) -> list[Candidate[State]]:
    """Where the search for more components ended, if there was one on these rows; a short look has its own rivals."""
    larger = above(k) if effort.patience else None
    if larger is None or not landscape.takes(larger[1]):
        return []
    return [Candidate(f"the fit of {larger[0]} components, merged", lambda: larger[1], origin="larger")]


def in_turn(candidates: Iterable[Candidate[State]]) -> list[Candidate[State]]:
    """One of each origin after the other, as long as there are any."""
    waiting = {origin: deque[Candidate[State]]() for origin in ORIGINS}
    for candidate in candidates:
        waiting[candidate.origin].append(candidate)
    ordered: list[Candidate[State]] = []
    while any(waiting.values()):
        ordered += [queue.popleft() for queue in waiting.values() if queue]
    return ordered


def _all_agree(screened: Sequence[Outcome[State]], enough: int) -> bool:
    """Whether the first three, one of each origin, have ended at one optimum: then nothing else is worth a look."""
    there = _at_the_best(screened)
    return bool(enough) and len(screened) == len(there) == len(_origins(there)) == len(ORIGINS)


def _enough_agree(screened: Sequence[Outcome[State]], enough: int) -> bool:
    """Whether `enough` candidates of more than one origin have ended at the best optimum: then no other is made.

    Those that ended elsewhere may still be moved to a better one, and are.
    """
    there = _at_the_best(screened)
    return 0 < enough <= len(there) and len(_origins(there)) > 1


def _at_the_best(screened: Sequence[Outcome[State]]) -> list[Outcome[State]]:
    sound = [outcome for outcome in screened if not outcome.degenerate]
    best = max((outcome.value for outcome in sound), default=0.0)
    return [outcome for outcome in sound if outcome.value >= best - _SAME]


def _origins(outcomes: Sequence[Outcome[State]]) -> set[Origin]:
    return {outcome.candidate.origin for outcome in outcomes}


def rank(outcomes: Sequence[Outcome[State]]) -> list[Outcome[State]]:
    """Best first, degenerate ones last; but the earliest of all that are as good as the best comes first."""
    ordered = sorted(outcomes, key=lambda outcome: (outcome.degenerate, -outcome.value))
    best = ordered[0]
    equal = [o for o in outcomes if o.degenerate == best.degenerate and o.value >= best.value - _SAME]
    return [equal[0], *(outcome for outcome in ordered if outcome is not equal[0])]


def resize(
    landscape: Landscape[State],
    state: State,
    k: int,
    effort: Effort,
    rng: np.random.Generator,
    seen: Sizes[State] | None = None,
) -> State:
    """The state with k components: split up, or merged down a quarter of the surplus at a time, with EM in between."""
    while landscape.size(state) < k:
        state, _ = landscape.climb(landscape.split(state, rng, POWERS), effort.settle_steps, effort.tol)
    if landscape.size(state) > k:
        state = _settled(landscape, state, effort.screen_steps, effort, seen)
    while (surplus := landscape.size(state) - k) > 0:
        merged = landscape.merge(state, -(-surplus // 4))
        state = _settled(landscape, merged, effort.settle_steps, effort, seen)
    return state


def _settled(
    landscape: Landscape[State], state: State, n_steps: int, effort: Effort, seen: Sizes[State] | None
) -> State:
    state, value = landscape.climb(state, n_steps, effort.tol)
    if seen is not None:
        seen.see(state, value)
    return state


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


def _apart(ranked: list[Outcome[State]], n: int, *, others_too: bool) -> list[Outcome[State]]:
    """The best n that do not lie at one optimum; where there are fewer, `others_too`."""
    chosen: list[Outcome[State]] = []
    for outcome in ranked:
        if all(abs(outcome.value - other.value) > TIE for other in chosen):
            chosen.append(outcome)
    if others_too:
        chosen += [outcome for outcome in ranked if all(outcome is not taken for taken in chosen)]
    return chosen[:n]


def _moved(
    landscape: Landscape[State],
    outcome: Outcome[State],
    k: int,
    effort: Effort,
    rng: np.random.Generator,
    seen: Sizes[State] | None,
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
        resized = resize(landscape.coarse, larger, k, effort, rng, seen)
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
