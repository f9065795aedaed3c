"""The state of `CategoricalHMM.partial_fit`: the first steps, and moments of everything on a basis found in them."""

from __future__ import annotations

from dataclasses import replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from odeco.models._hmm_stream import HeadStream
from odeco.models._symbol_chain import SymbolBasis, symbol_basis
from odeco.models._symbol_starts import Parameters, SymbolMoments, by_likelihood, moment_starts
from odeco.models.hmm_base import MomentReport
from odeco.moments.sequences import SymbolPairs, SymbolTriples
from odeco.sources.sequences import Sequences

Floats = NDArray[np.float64]


class SymbolStream(HeadStream):
    """`triples` is None while the head holds everything.

    Then it has the third moments of all sequences on twice as many directions as there are states, found in the head.
    """

    def __init__(self, n_symbols: int, n_components: int, seed: int) -> None:
        self.n_symbols, self.n_components, self.seed = n_symbols, n_components, seed
        self.pairs = SymbolPairs(n_symbols)
        self.triples: SymbolTriples | None = None

    def update(self, data: Sequences) -> Self:
        """Add whole sequences."""
        self.pairs.update(data)
        return super().update(data)

    @property
    def full(self) -> bool:
        return self.triples is not None

    def _learn(self, head: Sequences) -> None:
        rng = np.random.default_rng(self.seed)
        basis = symbol_basis(SymbolPairs(self.n_symbols).update(head), 2 * self.n_components, rng)
        self.triples = SymbolTriples(basis.vectors)

    def _add(self, data: Sequences) -> None:
        assert self.triples is not None
        self.triples.update(data)

    def moments(self) -> SymbolMoments:
        """Pairs of everything, and the triples on the part of the basis that these pairs show best."""
        assert self.triples is not None
        wide = self.triples.basis
        best = symbol_basis(self.pairs, self.n_components, np.random.default_rng(self.seed))
        # Coefficients of the best directions on the wide basis, in the metric of the frequencies.
        scaled = np.sqrt(self.pairs.frequencies)[:, None]
        coefficients = np.linalg.lstsq(scaled * wide, scaled * best.vectors, rcond=None)[0]
        coefficients[:, 0] = np.eye(len(coefficients))[0]
        core = np.einsum("abc,ai,bj,cl->ijl", self.triples.core, *([coefficients] * 3), optimize=True)
        basis = SymbolBasis(wide @ coefficients, best.spectrum, best.noise)
        return SymbolMoments(self.pairs, basis, core)


def stream_starts(stream: SymbolStream, smoothing: float, *, refined: bool) -> tuple[list[Parameters], MomentReport]:
    """The moment estimates of everything seen, best first on the steps kept; with `refined` it was asked for more."""
    rng = np.random.default_rng(stream.seed)
    candidates, report = moment_starts(stream.moments(), stream.n_components, smoothing, rng)
    kept = len(stream.head)
    text = (
        f"{stream.pairs.n:,} steps came, of which partial_fit keeps {kept:,}: the result is the moment estimate "
        "of all of them, without Baum-Welch. Call fit where they fit in memory, or set refine=None if this is meant."
    )
    method = f"moments of all {stream.pairs.n:,} steps, not refined: partial_fit keeps {kept:,} of them"
    report = replace(report, method=method, advice=(*report.advice, text) if refined else report.advice)
    return by_likelihood(candidates, stream.head)[0], report
