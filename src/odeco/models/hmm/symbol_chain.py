"""Symbols: the basis of their moments, and regularised moments where Baum-Welch may start.

Symbols are scaled by D^(-1/2), D their frequencies, as in the chi-square statistic of a table: sampling noise is then
the same in every direction. One basis serves all three views, its first direction the constant 1. On it, with h the
middle state, A = E[y2|h] and J the joint distribution of two consecutive states,

    E[y1 y2'] = A J A',    E[y1 (x) y2 (x) y3] = sum_h (A J)_h (x) A_h (x) (A J')_h / w_h.

Theorem 3.6 makes the three views alike by E[y1 y2']^-1 and E[y1 y3']^-1; with the third view as the pattern, only the
first is needed. It is inverted with a ridge: eigenvalues of the transition matrix that are lost in noise must not be
amplified. Steps of EM on the pairs alone, whose cost does not depend on n, then put the estimate where likelihood
wants it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from odeco.decomposition import AUTO, Decomposer, Decomposition, run_decomposer
from odeco.models.hmm.policy import POLICY
from odeco.moments.sequences import SymbolPairs
from odeco.tensors import ExplicitTensor, multilinear, symmetrize

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class SymbolBasis:
    """Directions of symbols in which what follows and what went before can best be told.

    Attributes
    ----------
    vectors : (d, k)
        D^(-1/2) times orthonormal columns; the first is 1 for each symbol that occurs.
    spectrum : (m,)
        Correlations between one step and the next along the directions, the constant's 1 first; m > k where d allows.
    noise : float
        About the largest correlation that independent symbols would show.
    """

    vectors: Floats = field(repr=False)
    spectrum: Floats
    noise: float


def symbol_basis(pairs: SymbolPairs, n_directions: int, rng: np.random.Generator) -> SymbolBasis:
    """The leading common directions of E[x1 x2'] and its transpose, by subspace iteration."""
    frequencies, joint = pairs.frequencies, pairs.joint
    roots = np.sqrt(frequencies)
    scale = np.where(roots > 0, 1.0 / np.where(roots > 0, roots, 1.0), 0.0)
    d = frequencies.size

    def apply(block: Floats) -> Floats:
        """(M M' + M' M) / 2 without the constant, M = D^(-1/2) E[x1 x2'] D^(-1/2)."""
        inner = scale[:, None] * (block - np.outer(roots, roots @ block))
        there, back = scale[:, None] * (joint @ inner), scale[:, None] * (joint.T @ inner)
        out = scale[:, None] * (joint @ (scale[:, None] * _without(roots, back)))
        out += scale[:, None] * (joint.T @ (scale[:, None] * _without(roots, there)))
        return _without(roots, out) / 2

    width = min(n_directions - 1 + POLICY.basis_slack, max(int(np.count_nonzero(frequencies)) - 1, 0))
    block = np.linalg.qr(_without(roots, rng.standard_normal((d, width))))[0]
    for _ in range(POLICY.basis_steps if width else 0):
        block = np.linalg.qr(apply(block))[0]
    values, rotation = np.linalg.eigh(block.T @ apply(block)) if width else (np.empty(0), np.empty((0, 0)))
    spectrum = np.sqrt(np.maximum(values[::-1], 0.0))
    directions = np.column_stack([roots, (block @ rotation)[:, ::-1]])[:, :n_directions]
    noise = 2.0 * float(np.sqrt(np.count_nonzero(frequencies) / max(pairs.weight, 1.0)))
    return SymbolBasis(scale[:, None] * directions, np.concatenate([[1.0], spectrum]), noise)


def _without(direction: Floats, block: Floats) -> Floats:
    return np.asarray(block - np.outer(direction, direction @ block))


@dataclass(frozen=True, eq=False)
class ChainEstimate:
    """States as the moments on a basis show them.

    Attributes
    ----------
    means : (k, k)
        Columns A = E[y|h]; their first entry is 1.
    joint : (k, k)
        J[i, j] = Pr[h1 = i, h2 = j], positive.
    clipped_mass : float
        Share of the transitions that was negative.
    decomposition : Decomposition
    """

    means: Floats = field(repr=False)
    joint: Floats = field(repr=False)
    clipped_mass: float
    decomposition: Decomposition


def chain_from_core(
    second: Floats,
    core: Floats,
    *,
    ridge: float,
    rng: np.random.Generator,
    method: Decomposer = AUTO,
    floor: float = 1e-3,
) -> ChainEstimate:
    """Theorem 3.6 with a ridge, the third view as the pattern: from E[y1 y2'] (k, k) and the core (k, k, k).

    Where the moments are weak the theorem itself fails or amplifies noise; this is a start for Baum-Welch instead.

    Parameters
    ----------
    ridge : float
        Part of the second largest singular value of E[y1 y2'] below which its directions are damped.
    floor : float
        Least probability of a transition.
    """
    k = len(second)
    left, values, right = np.linalg.svd(second)
    damp = ridge * values[min(1, k - 1)]
    inverse = (right.T * (values / np.maximum(values**2 + damp**2, 1e-300))) @ left.T
    first_to_third = second.T @ inverse  # E[y3 y2'] E[y1 y2']^-1
    middle_to_third = core[:, 0, :].T @ inverse.T  # E[y3 y1'] E[y2 y1']^-1
    pairs = first_to_third @ second @ middle_to_third.T
    lengths, axes = np.linalg.eigh((pairs + pairs.T) / 2)
    roots = np.sqrt(np.maximum(lengths, 1e-3 * ridge * lengths[-1] if ridge else 1e-15 * lengths[-1]))
    whiten, lift = axes / roots, axes * roots
    whitened = multilinear(core, first_to_third.T @ whiten, middle_to_third.T @ whiten, whiten)
    found = run_decomposer(method, ExplicitTensor(symmetrize(whitened)), k, rng)
    return _read_back(second, lift @ found.eigenvectors, found, floor)


def _read_back(second: Floats, scaled: Floats, found: Decomposition, floor: float) -> ChainEstimate:
    """Proposition 3.4 backwards from ``sqrt(w) E[y3|h]``, whose first entry is sqrt(w)."""
    roots = np.where(np.abs(scaled[0]) < 1e-2, 1e-2, scaled[0])
    future = scaled / roots
    weights = np.maximum(roots**2, POLICY.least_state)
    weights = weights / weights.sum()
    means = second @ np.linalg.pinv(future, rcond=1e-3).T / weights  # E[y1 y2'] = (A diag w) E[y3|h]'
    transitions = np.linalg.pinv(means, rcond=1e-3) @ future  # the paper's T: columns
    clipped = float(np.abs(np.minimum(transitions, 0)).sum() / max(np.abs(transitions).sum(), 1e-300))
    transitions = np.maximum(transitions, floor)
    transitions = transitions / transitions.sum(axis=0)
    means = means / np.where(np.abs(means[0]) < 1e-2, 1.0, means[0])
    return ChainEstimate(means, (transitions * weights).T, clipped, found)


def emissions_from_pairs(pairs: SymbolPairs, basis: SymbolBasis, means: Floats, chain: Floats) -> Floats:
    """Pr[x|h] (k, d) by least squares from what comes before and after each symbol, on the basis, then on the simplex.

    ``E[y1 1{x2 = x}] = A J O[x]'`` and ``E[y3 1{x2 = x}] = A J' O[x]'``, O[x] the row of symbol x.
    """
    frequencies, joint, vectors = pairs.frequencies, pairs.joint, basis.vectors
    k = len(chain)
    design = np.concatenate([means @ chain, means @ chain.T])
    seen = np.concatenate([(joint.T @ vectors).T, (joint @ vectors).T])
    ridge = 1e-3 * np.trace(design.T @ design) / k
    rows = np.linalg.solve(design.T @ design + ridge * np.eye(k), design.T @ seen + ridge * frequencies)
    rows = np.maximum(rows, POLICY.least_share * frequencies)
    return np.asarray(rows / rows.sum(axis=1, keepdims=True))


def fit_pairs(joint: Any, emissions: Floats, chain: Floats, n_steps: int) -> tuple[Floats, Floats]:
    """EM for ``E[x1 x2'] = O J O'`` in the Kullback-Leibler sense: new emissions (k, d) and joint distribution (k, k).

    Pairs alone do not determine the model, but near an estimate that triples have found they hold most of what there is
    to know of its emissions, and a step costs as much as there are different pairs.
    """
    for _ in range(n_steps):
        before = emissions.T @ chain  # Pr[x1 = x, h2 = j]
        ratio = _ratio(joint, before, emissions)
        after = ratio @ emissions.T
        new_emissions = emissions * ((after @ chain.T).T + (ratio.T @ before).T)
        chain = chain * (emissions @ after)
        chain = chain / chain.sum()
        totals = new_emissions.sum(axis=1, keepdims=True)
        emissions = np.where(totals > 0, new_emissions / np.where(totals > 0, totals, 1.0), emissions)
    return emissions, chain


def _ratio(joint: Any, before: Floats, emissions: Floats) -> Any:
    """``joint / (before @ emissions)``, where the pairs that occur are."""
    if not sparse.issparse(joint):
        return joint / np.maximum(before @ emissions, 1e-300)
    from odeco.kernels.sequences import products_at

    entries = joint.tocoo()
    model = np.empty(entries.nnz)
    rows, columns = (place.astype(np.int32, copy=False) for place in (entries.row, entries.col))
    products_at(rows, columns, before, np.ascontiguousarray(emissions.T), model)
    return sparse.csr_array((entries.data / np.maximum(model, 1e-300), (entries.row, entries.col)), shape=joint.shape)
