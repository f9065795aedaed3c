"""Fewer symbols than states: windows of symbols before and after a step as views of its state (section 4.3).

One symbol of d cannot tell more than d states apart, the rank condition of Proposition 3.4 fails. The m symbols before
a step, the symbol itself and the m symbols after it are still independent given the state h of the step, and windows
have d^m values: the tensor product lifting that section 4.3 mentions. With B1, B3 the distributions of the two
windows,

    E[past future' 1{x = a}] = B1 diag(w O[a]) B3',

so these matrices times the inverse of their sum over a have the eigenvectors B1 and the eigenvalues O[a].
"""

from __future__ import annotations

from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from odeco.exceptions import MomentError
from odeco.models.hmm.chain_theorem import stationary_distribution
from odeco.models.hmm.feature_chain import joint_eigenvectors
from odeco.models.hmm.policy import POLICY
from odeco.models.topics.theorem import to_simplex
from odeco.moments.base import Additive
from odeco.refinement.categorical_emission import CategoricalEmission
from odeco.refinement.emissions import HMMParameters
from odeco.sources.sequences import Sequences

Floats = NDArray[np.float64]


def window_length(n_symbols: int, k: int) -> int:
    """Symbols per window so that there are twice as many windows as states."""
    length = int(np.ceil(np.log(2 * k) / np.log(n_symbols))) if n_symbols > 1 else 0
    if length == 0 or n_symbols**length > POLICY.most_windows:
        raise MomentError(f"{n_symbols} different symbols cannot tell {k} states apart, nor can short windows of them.")
    return length


def window_start(
    windows: WindowCounts, k: int, smoothing: float, rng: np.random.Generator
) -> HMMParameters[CategoricalEmission]:
    """The model that windows of symbols show."""
    n_symbols, length, counts = windows.n_symbols, windows.length, windows.counts
    total = counts.sum()
    if not total > 0:
        raise MomentError(f"no {2 * length + 1} consecutive symbols were given, as windows need.")
    left, right = counts.sum(axis=(0, 2)) / total, counts.sum(axis=(0, 1)) / total
    scale = [np.where(side > 0, 1.0 / np.sqrt(np.where(side > 0, side, 1.0)), 0.0) for side in (left, right)]
    scaled = counts / total * scale[0][:, None] * scale[1]
    u, values, vt = np.linalg.svd(scaled.sum(axis=0))
    if np.count_nonzero(values > 1e-12 * values[0]) < k:
        raise MomentError(f"windows of {length} symbols show {np.count_nonzero(values > 1e-12)} states, not {k}.")
    inverse = values[:k] / (values[:k] ** 2 + (POLICY.window_ridge * values[1]) ** 2)
    core = u[:, :k].T @ scaled @ vt[:k].T  # (d, k, k), its sum over symbols diagonal
    vectors = joint_eigenvectors(core * inverse, rng)
    solved = np.linalg.solve(vectors, core * inverse)
    emissions = _simplex(np.einsum("ahi,ih->ha", solved, vectors))
    after = np.linalg.solve(vectors, np.diag(values[:k])) @ vt[:k] / np.where(scale[1] > 0, scale[1], 1.0)
    after = _simplex(after)
    transmat = _transitions(emissions, after, n_symbols)
    return HMMParameters(stationary_distribution(transmat), transmat, CategoricalEmission(emissions, smoothing))


class WindowCounts(Additive):
    """How often each symbol occurs between two windows: (d, d^m, d^m), symbol, past, future."""

    _sums: ClassVar[tuple[str, ...]] = ("counts",)

    def __init__(self, n_symbols: int, length: int) -> None:
        self.n_symbols, self.length = n_symbols, length
        self.counts = np.zeros((n_symbols, n_symbols**length, n_symbols**length))

    def update(self, data: Sequences) -> Self:
        """Add whole sequences; returns self."""
        assert data.codes is not None
        n_symbols, length = self.n_symbols, self.length
        reach, block = 2 * length, 1 << 18
        for low in range(0, len(data) - reach, block):
            steps = np.arange(low, min(low + block, len(data) - reach))
            sequence = np.searchsorted(data.offsets, steps, side="right") - 1
            valid = steps + reach < data.offsets[sequence + 1]
            index = np.zeros(steps.size, dtype=np.int64)
            for lag in (length, *range(length), *range(length + 1, reach + 1)):  # the middle symbol first
                symbols = data.codes[steps + lag].astype(np.int64)
                valid &= symbols < n_symbols
                index = index * n_symbols + symbols
            weights = None if data.weights is None else data.weights[sequence[valid]]
            self.counts += np.bincount(index[valid], weights, self.counts.size).reshape(self.counts.shape)
        return self


def _transitions(emissions: Floats, after: Floats, n_symbols: int) -> Floats:
    """T with ``after = T W``: W is a symbol of the new state, then the window after it, one symbol shorter."""
    from scipy.optimize import nnls

    shorter = after.reshape(len(after), -1, n_symbols).sum(axis=2)
    windows = (emissions[:, :, None] * shorter[:, None, :]).reshape(len(after), -1)
    return _simplex(np.array([nnls(windows.T, row)[0] for row in after]))


def _simplex(rows: Floats) -> Floats:
    floor = POLICY.window_floor
    return np.asarray((1 - floor) * to_simplex(rows)[0] + floor / rows.shape[1])
