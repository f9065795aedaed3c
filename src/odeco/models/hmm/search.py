"""The search for a start of Baum-Welch: candidates on a sample of the steps, moved, and compared on all of them.

See `odeco.fitting.candidates`. How many states the data show is read off the way down from twice as many.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from odeco.fitting.candidates import EFFORTS, POWERS, TIE, Candidate, Effort, Found, finish, search
from odeco.models.hmm.base import HiddenMarkovModel, MomentReport
from odeco.models.hmm.landscape import ChainLandscape
from odeco.models.hmm.starts import SAMPLE_STEPS, sample_of
from odeco.refinement.emissions import HMMParameters
from odeco.refinement.hmm import Smoothing, baum_welch
from odeco.sources.chains import Chains, ChainSource
from odeco.sources.sequences import Sequences

Parameters = HMMParameters[Any]

# Residuals of the third moments below which a chain of k states may have made the data: 0.01-0.10 for drawn chains,
# 0.19-0.42 for letters of two texts.
FITS = 0.15
SMALL = 5_000  # steps that are searched in any case; of more, on so many the moments are tried against rivals
LONG = 80_000  # steps from which on Baum-Welch begins with a part of them
_PART = 4  # one step in so many
_PART_PASSES = 100
_FINISH_STEPS = 10
_LOOSE = 2e-3  # of each row of transitions is spread evenly after the sample
_MOST_STATES = 16  # up to which states are counted, or four times those asked for
_IN_VAIN = 3  # sizes on the way down that are worse than the best before it ends
# Symbols that go together can be shared out among states in many ways, each of them an optimum: with four starts `mvad`
# with three states ended 0.002 nats below the best for every second seed. States that last (phage lambda) come slowly:
# after 60 steps two optima were 0.004 nats apart in the wrong order.
_EFFORTS = {**EFFORTS, "auto": replace(EFFORTS["auto"], climb_steps=150, n_field=10, tol=3e-6)}
# A few steps tell which variant of the moment estimate is nearest to the optimum, where it is near.
_TRUSTED = Effort(screen_steps=5, climb_steps=10, n_finalists=1, patience=0)
_TRIAL = Effort(n_finalists=1, patience=0)


@dataclass(frozen=True, eq=False)
class Starts:
    """Where Baum-Welch may start.

    Attributes
    ----------
    own : list of Candidate
        The estimates of k states by moments, the theorem's first where there is one.
    rivals : list of Candidate
        All others: the first of k states, the last of twice as many, both of the field's own kind.
    sample : Sequences
        On which all are compared.
    report : MomentReport
        On the moments.
    misfit : float
        Residual of the third moments: where it is large, no chain of k states has made the data.
    shown : int or None
        States that the moments show.
    """

    own: list[Candidate[Parameters]]
    rivals: list[Candidate[Parameters]]
    sample: Sequences
    report: MomentReport
    misfit: float = float("nan")
    shown: int | None = None


def best_start(
    model: HiddenMarkovModel, data: Chains, starts: Starts, rng: np.random.Generator
) -> tuple[Parameters, MomentReport]:
    """The start that wins, and the report, which names it; of long data, refined on a part of them."""
    start, report = _first(starts) if model.effort == "quick" else _searched(model, data, starts, rng)
    if len(data) < LONG or not starts.misfit > FITS:
        return start, report
    start, spent = on_a_part(data, start, model._chain_smoothing(), model.max_iter, model.tol)
    return start, replace(report, n_early=spent)


def effort_of(model: HiddenMarkovModel) -> Effort:
    """How long to look, where candidates are compared."""
    return _EFFORTS.get(model.effort, _EFFORTS["auto"])


def _first(starts: Starts) -> tuple[Parameters, MomentReport]:
    """The theorem's estimate, or the first that can be made."""
    made = ((candidate.name, candidate.make()) for candidate in [*starts.own, *starts.rivals])
    name, state = next((name, state) for name, state in made if state is not None)
    return state, replace(starts.report, method=name)


def _searched(
    model: HiddenMarkovModel, data: Chains, starts: Starts, rng: np.random.Generator
) -> tuple[Parameters, MomentReport]:
    trusted = len(data) > SMALL and model.effort == "auto" and _trusted(model, starts, rng)
    candidates = starts.own if trusted else [*starts.own, *starts.rivals]
    effort = _TRUSTED if trusted else effort_of(model)
    fewer = ChainLandscape(sample_of(starts.sample, SAMPLE_STEPS), model._chain_smoothing())
    sample = fewer if trusted else replace(fewer, data=starts.sample)
    found = search(sample, candidates, model.n_components, effort, rng)
    suggested = model.n_components if trusted else states_shown(fewer, found.best.state, data.total_weight, effort, rng)
    details = {**starts.report.details, **found.details()}
    if len(sample.data) < len(data):
        found = _on_all(data, found, sample.smoothing, effort)
    report = replace(starts.report, method=found.best.name, suggested_components=suggested, details=details)
    return found.best.state, report


def _trusted(model: HiddenMarkovModel, starts: Starts, rng: np.random.Generator) -> bool:
    """Whether the moments fit a chain of k states and show just so many; where they show fewer, if rivals fail."""
    k = model.n_components
    if not starts.own or not starts.misfit < FITS or starts.shown is None or starts.shown > k:
        return False
    if starts.shown == k:
        return True
    few = ChainLandscape(sample_of(starts.sample, SMALL), model._chain_smoothing())
    found = search(few, [*starts.own, starts.rivals[0], starts.rivals[-1]], k, _TRIAL, rng)
    names = {candidate.name for candidate in starts.own}
    return any(each.name in names and each.value > found.best.value - TIE for each in found.outcomes)


def _on_all(data: Chains, found: Found[Parameters], smoothing: Smoothing, effort: Effort) -> Found[Parameters]:
    """The finalists as all steps see them, where they are apart."""
    loose = replace(found, outcomes=tuple(replace(each, state=loosened(each.state)) for each in found.outcomes))
    return finish(loose, ChainLandscape(data, smoothing), _FINISH_STEPS) if found.spread > TIE else loose


def states_shown(
    landscape: ChainLandscape, state: Parameters, n_steps: float, effort: Effort, rng: np.random.Generator
) -> int | None:
    """The number of states with the least BIC on the way down from twice as many, one pair merged after the other.

    Where that is more than there were, the same again from there, so that the number hardly depends on where it began;
    None where it still grows beyond four times as many: the data follow no chain of a few states.
    """
    most = max(_MOST_STATES, 4 * state.n_components)
    while True:
        size = state.n_components
        state = _least_bic(landscape, landscape.split(state, rng, POWERS), n_steps, effort)
        if state.n_components <= size:
            return state.n_components
        if 2 * state.n_components > most:
            return None


def _least_bic(landscape: ChainLandscape, state: Parameters, n_steps: float, effort: Effort) -> Parameters:
    """The best on the way down from this state; it ends after some sizes that are worse."""
    state, value = landscape.climb(state, effort.screen_steps, effort.tol)
    best, least, in_vain = state, _bic(state, value, n_steps), 0
    while state.n_components > 1 and in_vain < _IN_VAIN:
        state, value = landscape.climb(landscape.merge(state, 1), effort.settle_steps, effort.tol)
        criterion = _bic(state, value, n_steps)
        best, least, in_vain = (state, criterion, 0) if criterion < least else (best, least, in_vain + 1)
    return best


def _bic(state: Parameters, value: float, n_steps: float) -> float:
    return -2 * n_steps * value + state.n_parameters * float(np.log(n_steps))


def on_a_part(
    data: Chains, start: Parameters, smoothing: Smoothing, max_iter: int, tol: float
) -> tuple[Parameters, int]:
    """Baum-Welch on a part of long data, and its cost in passes over all: fewer than `max_iter`.

    The way to the optimum is much the same on a part, and each pass costs less. A quarter of the steps tells parameters
    apart four times worse: there the tolerance is four times as large.
    """
    passes = min(_PART_PASSES, _PART * (max_iter - 1))
    if passes < 1:
        return start, 0
    n_steps = len(data) // _PART
    part = data.part(n_steps) if isinstance(data, ChainSource) else sample_of(data, n_steps)
    refined = baum_welch(part, start, smoothing=smoothing, max_iter=passes, tol=_PART * tol)
    return loosened(refined.state), -(-refined.trace.n_iter // _PART)


def loosened(parameters: Parameters) -> Parameters:
    """What the sample did not show may be in the data, and from nearly 0 a transition grows by a factor a pass only."""
    k = parameters.n_components
    start = (1 - _LOOSE) * parameters.startprob + _LOOSE / k
    return replace(parameters, startprob=start, transmat=(1 - _LOOSE) * parameters.transmat + _LOOSE / k)
