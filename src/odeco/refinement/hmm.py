"""Baum-Welch: EM for hidden Markov models of any family of emissions, accelerated and monotone."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from odeco.families.simplex import log_dirichlet, pack_simplex, proportions, unpack_simplex
from odeco.refinement.acceleration import Accelerated
from odeco.refinement.emissions import Emission, HMMParameters
from odeco.refinement.expectation_sums import Recursions, recursions_of
from odeco.refinement.forward_backward import Expectations
from odeco.refinement.loop import Refined, StoppingRule, run_refinement
from odeco.refinement.short_chains import ShortRecursions
from odeco.sources.chains import Chains

Floats = NDArray[np.float64]
E = TypeVar("E", bound=Emission)


@dataclass(frozen=True)
class Smoothing:
    """Pseudo-counts of the start and of the transitions: Dirichlet(1 + count) priors."""

    start: float = 0.0
    transitions: float = 0.0


def baum_welch(
    data: Chains | Recursions,
    parameters: HMMParameters[E],
    *,
    smoothing: Smoothing = Smoothing(),
    max_iter: int = 100,
    tol: float = 1e-6,
) -> Refined[HMMParameters[E]]:
    """EM from the given parameters; the objective never falls.

    Parameters
    ----------
    max_iter : int
        Passes over the data at most.
    tol : float
        Gain of the log posterior per observation, in nats, below which three passes in a row end the refinement.
    """
    recursions, rule = recursions_of(data), StoppingRule(max_iter, tol, patience=3)
    if isinstance(recursions, ShortRecursions):
        done = recursions.climb(parameters, (smoothing.start, smoothing.transitions), rule)
        if done is not None:
            return done
    total = max(recursions.data.total_weight, 1e-300)

    def em_step(state: HMMParameters[E]) -> tuple[HMMParameters[E], float]:
        expected = recursions.expectations(state)
        value = expected.log_likelihood + log_prior(state, smoothing)
        return maximize(state, expected, smoothing), value / total

    step = Accelerated(em_step, pack, lambda vector: unpack(vector, parameters))
    return run_refinement(step, parameters, rule)


def maximize(
    parameters: HMMParameters[E],
    expected: Expectations,
    smoothing: Smoothing = Smoothing(),
) -> HMMParameters[E]:
    """The M step: what was expected, as proportions. A state that is never left keeps its row of transitions."""
    return replace(
        parameters,
        startprob=proportions(expected.start, smoothing.start, parameters.startprob),
        transmat=proportions(expected.transitions, smoothing.transitions, parameters.transmat),
        emission=parameters.emission.maximize(expected.emission),
    )


def log_prior(parameters: HMMParameters[E], smoothing: Smoothing) -> float:
    """Log density of the priors, up to a constant."""
    return (
        log_dirichlet(parameters.startprob, smoothing.start)
        + log_dirichlet(parameters.transmat, smoothing.transitions)
        + parameters.emission.log_prior()
    )


def pack(parameters: HMMParameters[E]) -> Floats:
    """All parameters as one vector."""
    chain = [pack_simplex(parameters.startprob), pack_simplex(parameters.transmat)]
    return np.concatenate([*chain, parameters.emission.pack()])


def unpack(vector: Floats, like: HMMParameters[E]) -> HMMParameters[E]:
    """Parameters of any vector like that of `pack`."""
    k = like.n_components
    return replace(
        like,
        startprob=unpack_simplex(vector[:k], (k,)),
        transmat=unpack_simplex(vector[k : k + k * k], (k, k)),
        emission=like.emission.unpack(vector[k + k * k :]),
    )
