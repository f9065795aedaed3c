"""Proposition 3.4 read backwards, for moments on a small basis whose first direction is the constant 1.

With z the features on the basis, h the middle state, and columns ``A1 = E[z1|h]``, ``A2 = E[z2|h]``, ``A3 = E[z3|h]``:

    P = E[z1 z2'] = A1 diag(w) A2',    E[z1 z2' <c, z3>] = A1 diag(w) diag(A3'c) A2'.

So ``E[z2 z1' <c, z3>] P'^-1 = A2 diag(A3'c) A2^-1`` for every c, and the same with past and future exchanged: a
family of matrices with common eigenvectors A2. The symmetrization of section 3.3 would also invert E[z1 z3'], which
holds the square of the transition matrix and is far worse conditioned: only P is inverted here, with a ridge. A
least-squares fit of all three factors to the k x k x k moments then takes out most of what the inversion has amplified.

These are starts for Baum-Welch, not the estimate of ``refine=None``. With the symmetrization and the same ridges in
their place fits ended as likely or likelier on twelve sets of measurements and counts, and less likely on one (vowels,
three states: 37,858 nats, not 38,022 to 38,403).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from odeco.models.hmm.policy import POLICY

Floats = NDArray[np.float64]

_MOST_NUMBERS = 2**20  # in the matrices that are diagonalized at a time
_SAME = 1e-12  # of a probability: steps that change no more have arrived


@dataclass(frozen=True, eq=False)
class Chain:
    """What moments say of a chain.

    Attributes
    ----------
    vectors : (k, k)
        Columns ``E[z | h]`` on the basis; the first row is 1.
    joint : (k, k)
        ``Pr[h_t = i, h_{t+1} = j]``, not negative, summing to 1.
    residual : float
        Of the third moments, relative.
    clipped : float
        Share of `joint` that was negative before.
    """

    vectors: Floats = field(repr=False)
    joint: Floats = field(repr=False)
    residual: float
    clipped: float


def recover_chain(
    pairs: Floats,
    triples: Floats,
    rng: np.random.Generator,
    *,
    ridge: float = POLICY.common_ridges[0],
    damping: float = POLICY.damping,
) -> Chain:
    """Conditional means and transitions from E[z1 (x) z2] (k, k) and E[z1 (x) z2 (x) z3] (k, k, k).

    `ridge` is in units of the second singular value of the pairs (the first is that of the constant), `damping` in
    units of the mean diagonal of the normal equations of least squares. Population moments need neither.
    """
    vectors, residual = _fit_factors(triples, _common_eigenvectors(pairs, triples, rng, ridge), damping)
    first = np.where(np.abs(vectors[0]) < 1e-3, 1e-3, vectors[0])
    vectors = vectors / first
    joint, clipped = _joint(pairs, vectors)
    return Chain(vectors, joint, residual, clipped)


def _common_eigenvectors(pairs: Floats, triples: Floats, rng: np.random.Generator, ridge: float) -> Floats:
    """Columns proportional to A2."""
    k = len(pairs)
    left, values, right = np.linalg.svd(pairs)
    cut = ridge * values[min(1, k - 1)]
    inverse = (right.T * (values / np.maximum(values**2 + cut**2, 1e-30))) @ left.T
    past = triples[1:] @ inverse  # E[z2 z3' <c, z1>] P^-1
    future = triples[:, :, 1:].transpose(2, 1, 0) @ inverse.T
    return joint_eigenvectors(np.concatenate([past, future]), rng)


def joint_eigenvectors(family: Floats, rng: np.random.Generator) -> Floats:
    """Columns (k, k) that make a family of matrices (m, k, k) most nearly diagonal, of those that combinations have."""
    best, least = np.eye(family.shape[1]), np.inf
    combinations = rng.standard_normal((POLICY.combinations, len(family)))
    step = max(1, _MOST_NUMBERS // family.size)  # as many at a time as there is room for
    for low in range(0, len(combinations), step):
        found = _real_eigenvectors(np.tensordot(combinations[low : low + step], family, 1))
        found = found[np.linalg.cond(found) <= 1e10]
        diagonalized = np.linalg.solve(found[:, None], family @ found[:, None])
        kept = np.einsum("cmii->cmi", diagonalized)
        off = (diagonalized**2).sum(axis=(1, 2, 3)) - (kept**2).sum(axis=(1, 2))
        if off.size and off.min() < least:
            best, least = found[off.argmin()], off.min()
    return best


def _real_eigenvectors(matrices: Floats) -> Floats:
    """Eigenvectors; a pair that noise has made complex is replaced by two real vectors of its plane."""
    vectors = np.asarray(np.linalg.eig(matrices)[1])
    return np.asarray(vectors.real + vectors.imag)  # of a pair v, conj(v): sum and difference of the two parts


def _fit_factors(triples: Floats, vectors: Floats, damping: float) -> tuple[Floats, float]:
    """Least squares for triples = sum_h a1_h (x) a2_h (x) a3_h by alternation, from the middle factor."""
    k = len(triples)
    unfolded = [np.moveaxis(triples, axis, 0).reshape(k, k * k) for axis in range(3)]
    slices = np.linalg.solve(vectors, unfolded[1]).reshape(k, k, k)  # a1_h (x) a3_h
    left, values, right = np.linalg.svd(slices)
    factors = [left[:, :, 0].T * values[:, 0], vectors, right[:, 0].T]
    units = [_unit(factor) for factor in factors]
    grams, ridge = [unit.T @ unit for unit in units], damping * np.eye(k)  # of units: their mean diagonal is 1
    for _ in range(POLICY.sweeps):
        before = units[1]
        for axis, first, second in ((1, 0, 2), (2, 0, 1), (0, 1, 2)):
            products = _products(units[first], units[second])
            gram = grams[first] * grams[second] + ridge
            factors[axis] = np.linalg.solve(gram, products.T @ unfolded[axis].T).T
            units[axis] = _unit(factors[axis])
            grams[axis] = units[axis].T @ units[axis]
        if np.abs(units[1] - before).max() < POLICY.settled:
            break
    fitted = factors[0] @ _products(units[1], units[2]).T
    return factors[1], float(np.linalg.norm(unfolded[0] - fitted) / np.linalg.norm(unfolded[0]))


def _unit(factor: Floats) -> Floats:
    return np.asarray(factor / np.maximum(np.sqrt(np.einsum("ij,ij->j", factor, factor)), 1e-300))


def _products(first: Floats, second: Floats) -> Floats:
    """Column by column outer products, (k * k, k)."""
    return np.asarray((first[:, None, :] * second[None, :, :]).reshape(-1, first.shape[1]))


def _joint(pairs: Floats, vectors: Floats, n_iter: int = 200) -> tuple[Floats, float]:
    """The joint distribution J >= 0 of two states for which ``vectors J vectors'`` is nearest to the pairs."""
    inverse = np.linalg.pinv(vectors, rcond=1e-6)
    start = inverse @ pairs @ inverse.T
    clipped = float(np.abs(np.minimum(start, 0)).sum() / max(np.abs(start).sum(), 1e-300))
    gram, target = vectors.T @ vectors, vectors.T @ pairs @ vectors
    step = 1.0 / np.linalg.norm(gram, 2) ** 2
    current = ahead = np.maximum(start, 0.0)
    momentum = 1.0
    for _ in range(n_iter):  # accelerated projected gradient
        following = np.maximum(ahead - step * (gram @ ahead @ gram - target), 0.0)
        grown = (1 + math.sqrt(1 + 4 * momentum**2)) / 2
        change = following - current
        ahead = following + (momentum - 1) / grown * change
        current, momentum = following, grown
        if np.abs(change).max() < _SAME:
            break
    total = current.sum()
    uniform = np.full_like(current, 1.0 / current.size)
    return (current / total if total > 0 else uniform), clipped
