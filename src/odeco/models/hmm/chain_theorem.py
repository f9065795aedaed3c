"""Proposition 3.4 through Theorem 3.6, read backwards: what `refine=None` of every hidden Markov model gives.

z1, z2, z3 are three consecutive observations on k directions, of which the first is the constant 1. Given the middle
state they are independent, whatever the distribution of the first state of a sequence and wherever in it they stand:
three views with E[z2|h] = A, E[z3|h] = A T. Nothing here is damped, raised or polished.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from odeco.decomposition import Decomposer
from odeco.diagnostics import Diagnostics
from odeco.exceptions import MomentError
from odeco.models.hmm.policy import POLICY
from odeco.models.topics.theorem import to_simplex
from odeco.moments.views import ThreeViews
from odeco.reduction.views import ViewComponents, recover_views
from odeco.refinement.emissions import HMMParameters
from odeco.refinement.loop import Trace
from odeco.tensors import multilinear

Floats = NDArray[np.float64]
Parameters = HMMParameters[Any]

_LAST = 2  # the view that plays x_3 of the theorem: only E[z1 z2'] is inverted, E[z1 z3'] holds the square of T
THEOREM = "moments (Proposition 3.4)"  # what the estimate is called


@dataclass(frozen=True, eq=False)
class Estimate:
    """Parameters and what is to be said of them: the theorem's, those of a start, or what Baum-Welch made of them."""

    parameters: Parameters = field(repr=False)
    report: Diagnostics
    trace: Trace | None = None


@dataclass(frozen=True, eq=False)
class TheoremChain:
    """What the theorem says of a chain.

    Attributes
    ----------
    weights : (k,)
        Probabilities of the middle state, largest first.
    means : (k, k)
        Rows E[z|h]; the first entry of each is 1.
    transmat : (k, k)
        Rows on the simplex.
    clipped_mass : float
        Largest share of a row of transitions that was negative.
    components : ViewComponents
        Of Theorem 3.6.
    """

    weights: Floats
    means: Floats = field(repr=False)
    transmat: Floats = field(repr=False)
    clipped_mass: float
    components: ViewComponents = field(repr=False)

    def start(self, first: Floats, n_sequences: float) -> tuple[Floats, float]:
        """Pr[first state] (k,) from E[z] of the first steps, ``A pi``, and what was clipped; the stationary
        distribution where there are few sequences.
        """
        if n_sequences < POLICY.fewest_starts * self.weights.size:
            return stationary_distribution(self.transmat), 0.0
        rows, clipped = to_simplex(np.linalg.solve(self.means.T, first)[None])
        return rows[0], float(clipped[0])


def read_chain(core: Floats, method: Decomposer, rng: np.random.Generator) -> TheoremChain:
    """States and transitions from E[z1 (x) z2 (x) z3] (k, k, k), k > 1; MomentError where it does not give them."""
    k = len(core)
    try:
        found = recover_views(_about_means(core), k, rng, method=method, pivot=_LAST)
    except MomentError as error:
        raise MomentError(
            f"three consecutive steps do not determine {k} states (Proposition 3.4): {error} Use more steps, fewer "
            "states, or refine='auto', which starts from less."
        ) from error
    _, middle, after = (np.hstack([np.ones((k, 1)), means]) for means in found.means)
    transmat, clipped = to_simplex(np.linalg.solve(middle.T, after.T).T)  # E[z3|h] = sum_j transmat[h, j] E[z2|j]
    return TheoremChain(found.weights, middle, transmat, float(clipped.max()), found)


def _about_means(core: Floats) -> ThreeViews:
    """The affine form of three views on k - 1 directions, from moments whose first direction is the constant."""
    means = (core[1:, 0, 0], core[0, 1:, 0], core[0, 0, 1:])
    shifts = []
    for mean in means:
        shift = np.eye(len(core))
        shift[0, 1:] = -mean
        shifts.append(shift)
    centred = multilinear(core, *shifts)
    pairs = (centred[1:, 1:, 0], centred[1:, 0, 1:], centred[0, 1:, 1:])
    return ThreeViews(pairs, centred[1:, 1:, 1:], means)


def report_on(
    k: int,
    spectrum: Floats,
    noise: float,
    *,
    residual: float,
    clipped_mass: float,
    advice: tuple[str, ...],
    **more: Any,
) -> Diagnostics:
    """What moments of k states say of themselves, from the correlations (m,) of one step with the next, the constant's
    1 first, and the largest that noise would show.
    """
    last = spectrum[k - 1]
    return Diagnostics(
        n_components=k,
        spectrum=spectrum,
        gap=float(1 - spectrum[k] / last) if k < spectrum.size and last > 0 else 1.0,
        condition=float(spectrum[0] / max(last, 1e-300)),
        residual=residual,
        clipped_mass=clipped_mass,
        suggested_components=int(np.count_nonzero(spectrum > noise)),
        n_passes=2,
        advice=advice,
        details={"noise": noise, **more},
    )


def lift_of(pairs: Floats, crossed: Floats) -> Floats:
    """The map (k, m) from E[z|h] to E[x|h], x any function of the same step, from moments with neighbouring steps.

    `pairs` are E[y z'] (r, k), `crossed` E[y x'] (r, m), y functions of steps before and after: given the state of the
    step both are the same combinations of E[z|h] and of E[x|h].
    """
    return np.asarray(np.linalg.lstsq(pairs, crossed, rcond=None)[0])


def transitions_of(joint: Floats) -> Floats:
    """Rows on the simplex from the joint distribution of two consecutive states; of one that never occurs, any."""
    totals = joint.sum(axis=1, keepdims=True)
    return np.where(totals > 0, joint / np.where(totals > 0, totals, 1.0), 1.0 / len(joint))


def stationary_distribution(transmat: ArrayLike) -> Floats:
    """The w with ``w = w @ transmat`` that a chain with equally likely first states tends to, on average.

    One eigenvalue problem would do for an irreducible chain. Chains with absorbing or periodic parts have several
    answers, or eigenvalues of modulus 1 besides it: repeated squaring of the lazy chain (T + I) / 2 settles on one.
    """
    chain = (np.asarray(transmat, dtype=np.float64) + np.eye(len(np.asarray(transmat)))) / 2
    for _ in range(60):
        squared = chain @ chain
        squared /= squared.sum(axis=1, keepdims=True)
        if np.abs(squared - chain).max() < 1e-15:
            break
        chain = squared
    weights = np.maximum(chain.mean(axis=0), 0.0)
    return np.asarray(weights / weights.sum())
