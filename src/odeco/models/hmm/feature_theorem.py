"""Proposition 3.4 for real observations: states from moments of features, their parameters from the observations.

The views are bounded features on k directions; what is lifted from them are moments of the observations themselves,
however far out these are.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from odeco.decomposition import Decomposer
from odeco.exceptions import MomentError
from odeco.models.hmm.chain_theorem import TheoremChain, lift_of, read_chain
from odeco.models.hmm.starts import FeatureMoments
from odeco.moments.sequence_features import FeatureTriples

Floats = NDArray[np.float64]


def theorem_chain(moments: FeatureMoments, method: Decomposer, rng: np.random.Generator) -> TheoremChain:
    """Proposition 3.4 on the first basis; MomentError where it does not determine the states."""
    if not moments.triples:
        raise MomentError(f"{moments.advice[0]} refine='auto' would start from clusters of the observations.")
    return read_chain(moments.triples[0].read()[1], method, rng)


@dataclass(frozen=True, eq=False)
class StateMoments:
    """E[x - center | h] (k, d), and E of its squares (k, d) or products (k, d, d), with the weights of the states."""

    weights: Floats
    center: Floats = field(repr=False)
    first: Floats = field(repr=False)
    second: Floats = field(repr=False)

    @property
    def means(self) -> Floats:
        """E[x | h], (k, d)."""
        return self.center + self.first


def state_moments(triples: FeatureTriples, chain: TheoremChain) -> StateMoments:
    """Moments of the observations themselves, as the theorem lifts them."""
    core = triples.read()[1]
    neighbours = np.vstack([core[:, :, 0], core[0].T])  # E[z1 z2'], E[z3 z2']

    def conditional(sums: Floats) -> Floats:
        lift = lift_of(neighbours, sums.reshape(len(sums), -1) / triples.triple_weight)
        return (chain.means @ lift).reshape(-1, *sums.shape[1:])

    shares = [conditional(sums) for sums in (triples.seen, triples.seen_products)]
    if not all((share > 0).all() for share in shares):
        raise MomentError(
            "the moments give a state a negative share of observed entries: too many entries are missing for the "
            "states to be told. Use more steps, fewer states or refine='auto'."
        )
    first, second = conditional(triples.values) / shares[0], conditional(triples.products) / shares[1]
    return StateMoments(chain.weights, triples.basis.features.center, first, second)
