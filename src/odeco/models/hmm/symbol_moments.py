"""Symbols: pairs, triples on the basis that these show, and what Proposition 3.4 reads from them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from odeco.decomposition import Decomposer, Decomposition
from odeco.diagnostics import Diagnostics, without_moments
from odeco.exceptions import MomentError
from odeco.models.hmm.chain_theorem import THEOREM, Estimate, lift_of, read_chain, report_on
from odeco.models.hmm.symbol_chain import SymbolBasis, symbol_basis
from odeco.models.hmm.symbol_windows import WindowCounts, window_length
from odeco.models.topics.theorem import to_simplex
from odeco.moments.passes import Passes
from odeco.moments.sequences import SymbolPairs, SymbolTriples
from odeco.refinement.categorical_emission import CategoricalEmission
from odeco.refinement.emissions import HMMParameters

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class SymbolMoments:
    """Pairs, the basis that they show, and the third moments on it, (k, k, k)."""

    pairs: SymbolPairs = field(repr=False)
    basis: SymbolBasis
    core: Floats = field(repr=False)

    @property
    def second(self) -> Floats:
        """E[y1 y2'] on the basis, (k, k)."""
        vectors = self.basis.vectors
        return np.asarray(vectors.T @ (self.pairs.joint @ vectors))


@dataclass(frozen=True, eq=False)
class SymbolSums:
    """What the passes over symbols give: no moments for one state, nor for more states than symbols."""

    pairs: SymbolPairs = field(repr=False)
    moments: SymbolMoments | None = None
    windows: WindowCounts | None = None

    def narrowed(self, k: int) -> SymbolSums | None:
        """Those of fewer states, on the first directions; None where these have none to take a part of."""
        if k == 1:
            return SymbolSums(self.pairs)
        if self.moments is None:
            return None
        basis = replace(self.moments.basis, vectors=np.ascontiguousarray(self.moments.basis.vectors[:, :k]))
        return SymbolSums(
            self.pairs, SymbolMoments(self.pairs, basis, np.ascontiguousarray(self.moments.core[:k, :k, :k]))
        )


def symbol_passes(n_symbols: int, k: int, rng: np.random.Generator, *, windows: bool) -> Passes[SymbolSums]:
    """Pairs, then triples on their basis; or, for more states than symbols and with `windows`, counts of these."""
    pairs: SymbolPairs = yield SymbolPairs(n_symbols)
    if k == 1:
        return SymbolSums(pairs)
    if pairs.n_seen >= k:
        basis = symbol_basis(pairs, k, rng)
        triples: SymbolTriples = yield SymbolTriples(basis.vectors)
        return SymbolSums(pairs, SymbolMoments(pairs, basis, triples.core))
    counts = (yield WindowCounts(n_symbols, window_length(n_symbols, k))) if windows else None
    return SymbolSums(pairs, windows=counts)


def symbol_theorem(
    sums: SymbolSums, k: int, *, smoothing: float, method: Decomposer, rng: np.random.Generator
) -> Estimate:
    """Proposition 3.4 alone: emissions and the first states lifted from what Theorem 3.6 gives, then on the simplex."""
    if k == 1:
        return _one_state(sums.pairs, smoothing)
    pairs, moments = sums.pairs, sums.moments
    if moments is None:
        raise MomentError(
            f"{pairs.n_seen} different symbols cannot tell {k} states apart: Proposition 3.4 needs as many symbols as "
            "states. Lower n_components, or call fit with refine='auto', which takes windows of symbols instead."
        )
    vectors, chain = moments.basis.vectors, read_chain(moments.core, method, rng)
    before, after = (pairs.joint.T @ vectors).T, (pairs.joint @ vectors).T  # E[z1 x2'], E[z2 x1']
    lift = lift_of(np.vstack([moments.second, moments.second.T]), np.vstack([before, after]))
    emissions, clipped = to_simplex(chain.means @ lift)
    n_sequences = float(pairs.first.sum())
    start, clipped_start = chain.start(pairs.first @ vectors / max(n_sequences, 1e-300), n_sequences)
    largest = max(chain.clipped_mass, float(clipped.max()), clipped_start)
    report = replace(describe(moments, chain.components.decomposition, largest, k), method=THEOREM)
    return Estimate(HMMParameters(start, chain.transmat, CategoricalEmission(emissions, smoothing)), report)


def _one_state(pairs: SymbolPairs, smoothing: float) -> Estimate:
    """The frequencies of the symbols."""
    emission = CategoricalEmission(pairs.frequencies[None], smoothing)
    return Estimate(HMMParameters(np.ones(1), np.ones((1, 1)), emission), without_moments(1, "frequencies", (), {}))


def describe(moments: SymbolMoments, decomposition: Decomposition, clipped_mass: float, k: int) -> Diagnostics:
    """What the pairs and the tensor say, with advice where the pairs show fewer states."""
    spectrum, noise = moments.basis.spectrum, moments.basis.noise
    advice: tuple[str, ...] = ()
    if spectrum[k - 1] <= noise:
        advice = (
            f"correlation {k} between one step and the next, {spectrum[k - 1]:.3g}, is within the noise ({noise:.3g}): "
            f"pairs of symbols show about {np.sum(spectrum > noise)} states. Lower n_components, or use more data.",
        )
    more = {"certificate": decomposition.certificate, "decomposition": decomposition.status}
    residual = decomposition.residual
    return report_on(k, spectrum, noise, residual=residual, clipped_mass=clipped_mass, advice=advice, **more)
