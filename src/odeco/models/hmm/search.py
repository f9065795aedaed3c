"""The search for a start of Baum-Welch: candidates on a sample of the steps, moved, and compared on all of them.

See `odeco.fitting.candidates`. How many states the data show is read off the way down from twice as many.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from odeco.diagnostics import Diagnostics
from odeco.fitting.candidates import POWERS, TIE, TRIAL, Candidate, Effort, Outcome, finish, rank, search
from odeco.fitting.candidates import Found as Outcomes
from odeco.fitting.estimator import Found
from odeco.fitting.sizes import Sizes
from odeco.models.hmm.chain_theorem import Estimate, Parameters
from odeco.models.hmm.landscape import ChainLandscape
from odeco.models.hmm.policy import POLICY
from odeco.refinement.hmm import Smoothing, baum_welch
from odeco.sources.chains import Chains
from odeco.sources.sequences import Sequences

if TYPE_CHECKING:
    from odeco.models.hmm.base import HiddenMarkovModel


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
    report : Diagnostics
        On the moments.
    misfit : float
        Residual of the third moments: where it is large, no chain of k states has made the data.
    shown : int or None
        States that the moments show.
    """

    own: list[Candidate[Parameters]]
    rivals: list[Candidate[Parameters]]
    sample: Sequences
    report: Diagnostics
    misfit: float = float("nan")
    shown: int | None = None


def best_start(model: HiddenMarkovModel, found: Found, rng: np.random.Generator) -> Estimate:
    """The start that wins, and the report, which names it; of long data, refined on a part of them."""
    data, starts = found.rows, model._starts(found, rng)
    start = _first(starts) if model.effort == "quick" else _searched(model, data, starts, rng)
    if len(data) < POLICY.long or not starts.misfit > POLICY.fits:
        return start
    return _on_a_part(data, start, model._chain_smoothing(), model.max_iter, model.tol)


def effort_of(model: HiddenMarkovModel) -> Effort:
    """How long to look, where candidates are compared."""
    return POLICY.efforts.get(model.effort, POLICY.efforts["auto"])


def _first(starts: Starts) -> Estimate:
    """The theorem's estimate, or the first that can be made."""
    made = ((candidate.name, candidate.make()) for candidate in [*starts.own, *starts.rivals])
    name, state = next((name, state) for name, state in made if state is not None)
    return Estimate(state, replace(starts.report, method=name))


def _searched(model: HiddenMarkovModel, data: Chains, starts: Starts, rng: np.random.Generator) -> Estimate:
    trusted = _trusted(model, starts, rng) if len(data) > POLICY.small and model.effort == "auto" else []
    effort = effort_of(model)
    fewer = ChainLandscape(starts.sample.sample(POLICY.sample_steps), model._chain_smoothing(), data.total_weight)
    sample = fewer if trusted else replace(fewer, data=starts.sample)
    if trusted:
        found = _nearest(sample, trusted)
    else:
        found = search(sample, [*starts.own, *starts.rivals], model.n_components, effort, rng)
    sure = bool(trusted) or (found.agreed and starts.shown == model.n_components)
    suggested = model.n_components if sure else states_shown(fewer, found.best.state, effort, rng)
    details = {**starts.report.details, **found.details()}
    if len(sample.data) < len(data):
        found = _on_all(data, found, sample.smoothing)
    report = replace(starts.report, method=found.best.name, suggested_components=suggested, details=details)
    return Estimate(found.best.state, report)


def _trusted(model: HiddenMarkovModel, starts: Starts, rng: np.random.Generator) -> list[Candidate[Parameters]]:
    """Estimates by moments that need no rival: all where they fit a chain of k states and show just so many.

    Where they show fewer, the one that came as far as rivals, from where it came to; none where these lead further.
    """
    k = model.n_components
    if not starts.own or not starts.misfit < POLICY.fits or starts.shown is None or starts.shown > k:
        return []
    if starts.shown == k:
        return starts.own
    few = ChainLandscape(starts.sample.sample(POLICY.small), model._chain_smoothing())
    found = search(few, [*starts.own, starts.rivals[0], starts.rivals[-1]], k, POLICY.tried, rng)
    names = {candidate.name for candidate in starts.own}
    equal = (each for each in found.outcomes if each.name in names and each.value > found.best.value - TIE)
    return [Candidate(each.name, lambda each=each: each.state) for each in equal][:1]  # type: ignore[misc]


def _nearest(landscape: ChainLandscape, own: list[Candidate[Parameters]]) -> Outcomes[Parameters]:
    """The estimate by moments that a few steps show to be nearest to the optimum; where two of them come to the same
    value no other is made.
    """
    tried: list[Outcome[Parameters]] = []
    for candidate in own:
        if (state := candidate.make()) is None:
            continue
        tried.append(Outcome(candidate, *landscape.climb(state, POLICY.near_steps, TRIAL.tol)))
        if len(tried) > 1 and abs(tried[-1].value - max(each.value for each in tried[:-1])) < TIE:
            break
    best, *others = rank(tried)
    state, value = landscape.climb(best.state, POLICY.nearer_steps, TRIAL.tol)
    return Outcomes((replace(best, state=state, value=value), *others), 1)


def _on_all(data: Chains, found: Outcomes[Parameters], smoothing: Smoothing) -> Outcomes[Parameters]:
    """The finalists as all steps see them, where they are apart."""
    loose = replace(
        found, outcomes=tuple(replace(each, state=spread(each.state, POLICY.loose)) for each in found.outcomes)
    )
    return finish(loose, ChainLandscape(data, smoothing), POLICY.finish_steps) if found.spread > TIE else loose


def states_shown(landscape: ChainLandscape, state: Parameters, effort: Effort, rng: np.random.Generator) -> int | None:
    """The number of states of the best BIC on the way down from twice as many, one pair merged after the other.

    Where that is more than there were, the same again from there, so that the number hardly depends on where it began;
    None where it still grows beyond four times as many: the data follow no chain of a few states.
    """
    most = max(POLICY.most_states, 4 * state.n_components)
    while True:
        size, seen = state.n_components, Sizes(landscape)
        twice, value = landscape.climb(landscape.split(state, rng, POWERS), effort.screen_steps, effort.tol)
        seen.merge_further(twice, value, effort.settle_steps, effort.tol)
        if seen.best is None or seen.best.n_components <= size:
            return None if seen.best is None else seen.best.n_components
        state = seen.best
        if 2 * state.n_components > most:
            return None


def _on_a_part(data: Chains, start: Estimate, smoothing: Smoothing, max_iter: int, tol: float) -> Estimate:
    """Baum-Welch on a part of long data, and its cost in passes over all: fewer than `max_iter`.

    The way to the optimum is much the same on a part, and each pass costs less. A quarter of the steps tells parameters
    apart four times worse: there the tolerance is four times as large.
    """
    share = POLICY.part
    passes = min(POLICY.part_passes, share * (max_iter - 1))
    if passes < 1:
        return start
    part = data.part(len(data) // share)
    refined = baum_welch(part, start.parameters, smoothing=smoothing, max_iter=passes, tol=share * tol)
    details = {**start.report.details, "early_passes": -(-refined.trace.n_iter // share)}
    return Estimate(spread(refined.state, POLICY.loose), replace(start.report, details=details))


def spread(parameters: Parameters, share: float) -> Parameters:
    """A share of each row for every state: Baum-Welch starts from here, and from nearly 0 a transition grows by a
    factor a pass only.
    """
    k = parameters.n_components
    start = (1 - share) * parameters.startprob + share / k
    return replace(parameters, startprob=start, transmat=(1 - share) * parameters.transmat + share / k)
