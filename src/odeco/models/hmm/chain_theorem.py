"""Proposition 3.4 through Theorem 3.6, read backwards: what `refine=None` of every hidden Markov model gives.

z1, z2, z3 are three consecutive observations on k directions, of which the first is the constant 1. Given the middle
state they are independent, whatever the distribution of the first state of a sequence and wherever in it they stand:
three views with E[z2|h] = A, E[z3|h] = A T. Nothing here is damped, raised or polished.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from odeco.decomposition import Decomposer
from odeco.exceptions import MomentError
from odeco.models.hmm.base import stationary_distribution
from odeco.models.topics.theorem import to_simplex
from odeco.symmetrization import ThreeViews, ViewComponents, recover_views
from odeco.tensors import multilinear

Floats = NDArray[np.float64]

_LAST = 2  # the view that plays x_3 of the theorem: only E[z1 z2'] is inverted, E[z1 z3'] holds the square of T
FEWEST_STARTS = 10  # sequences for each state from which on the first states are read from the first observations


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
        if n_sequences < FEWEST_STARTS * self.weights.size:
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


def lift_of(pairs: Floats, crossed: Floats) -> Floats:
    """The map (k, m) from E[z|h] to E[x|h], x any function of the same step, from moments with neighbouring steps.

    `pairs` are E[y z'] (r, k), `crossed` E[y x'] (r, m), y functions of steps before and after: given the state of the
    step both are the same combinations of E[z|h] and of E[x|h].
    """
    return np.asarray(np.linalg.lstsq(pairs, crossed, rcond=None)[0])
