"""What `partial_fit` of hidden Markov models keeps: the first steps as they are, of later ones the moments alone.

The first steps stay: as long as there are no more the result is that of `fit`, and later they judge the estimates.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from odeco.fitting.stream import StreamPlan
from odeco.models.hmm.policy import POLICY
from odeco.models.hmm.starts import StreamedFeatures, feature_bases
from odeco.models.hmm.symbol_chain import SymbolBasis, symbol_basis
from odeco.models.hmm.symbol_moments import SymbolMoments, SymbolSums
from odeco.moments.base import Together
from odeco.moments.sequences import SymbolPairs, SymbolTriples
from odeco.sources.rows import SEQUENCES
from odeco.sources.sequences import Sequences

Floats = NDArray[np.float64]


class StreamedSymbols(Together):
    """Pairs of symbols, and triples on twice as many directions (s, 2k) as there are states."""

    _parts: ClassVar[tuple[str, ...]] = ("pairs", "triples")
    _on: ClassVar[tuple[str, ...]] = ("basis",)

    def __init__(self, basis: Floats) -> None:
        self.pairs, self.triples = SymbolPairs(len(basis)), SymbolTriples(basis)

    @property
    def basis(self) -> Floats:
        """(s, r)"""
        return self.triples.basis

    def read(self, n_components: int, rng: np.random.Generator) -> SymbolSums:
        """Pairs of everything, and the triples on the part of the basis that these pairs show best."""
        if n_components == 1 or self.pairs.n_seen < n_components:
            return SymbolSums(self.pairs)
        best = symbol_basis(self.pairs, n_components, rng)
        # Coefficients of the best directions on the wide basis, in the metric of the frequencies.
        scaled = np.sqrt(self.pairs.frequencies)[:, None]
        coefficients = np.linalg.lstsq(scaled * self.basis, scaled * best.vectors, rcond=None)[0]
        coefficients[:, 0] = np.eye(len(coefficients))[0]
        core = np.einsum("abc,ai,bj,cl->ijl", self.triples.core, *([coefficients] * 3), optimize=True)
        basis = SymbolBasis(self.basis @ coefficients, best.spectrum, best.noise)
        return SymbolSums(self.pairs, SymbolMoments(self.pairs, basis, core))


def symbol_plan(n_symbols: int, n_components: int) -> StreamPlan[Sequences, StreamedSymbols]:
    """How sequences of symbols are taken in chunks."""

    def learn(first: Sequences, rng: np.random.Generator) -> StreamedSymbols:
        found = symbol_basis(SymbolPairs(n_symbols).update(first), 2 * n_components, rng)
        return StreamedSymbols(found.vectors)

    return StreamPlan(SEQUENCES, POLICY.head_steps, learn, block=None, keep_first=True)


def feature_plan(n_components: int, *, correlated: bool) -> StreamPlan[Sequences, StreamedFeatures]:
    """How sequences of numbers are taken in chunks."""

    def learn(first: Sequences, rng: np.random.Generator) -> StreamedFeatures:
        return StreamedFeatures(feature_bases(first, n_components, correlated=correlated))

    return StreamPlan(SEQUENCES, POLICY.head_steps, learn, block=None, keep_first=True)
