"""The paper's statements as functions: bounds, conditions and tests.

These are for checking, teaching and figures. The constants that the theorems leave unnamed are arguments without a
default, and nothing in the library uses the numbers that follow from them: they are orders of magnitude above what is
needed in practice.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, exp, log, sqrt

import numpy as np
from numpy.typing import ArrayLike

from odeco._random import RandomState, as_generator
from odeco.tensors import SymmetricTensor, as_symmetric_tensor
from odeco.tensors.algebra import Floats


@dataclass(frozen=True)
class PerturbationBounds:
    """What Theorem 5.1 allows when the noise has operator norm epsilon."""

    eigenvectors: Floats  # 8 epsilon / lambda_i
    eigenvalues: float  # 5 epsilon
    tensor: float  # 55 epsilon, in the operator norm


def perturbation_bounds(eigenvalues: ArrayLike, epsilon: float) -> PerturbationBounds:
    """The bounds of Theorem 5.1 on ||v_i - v^_i||, |lambda_i - lambda^_i| and ||T - sum lambda^ v^^(x3)||."""
    values = np.asarray(eigenvalues, dtype=float)
    return PerturbationBounds(8 * epsilon / values, 5 * epsilon, 55 * epsilon)


def largest_noise(eigenvalues: ArrayLike, *, c1: float) -> float:
    """The epsilon <= C1 lambda_min / k up to which Theorem 5.1 holds."""
    values = np.asarray(eigenvalues, dtype=float)
    return c1 * float(values.min()) / values.size


def iterations_needed(k: int, ratio: float, *, c2: float) -> int:
    """N >= C2 (log k + log log(lambda_max / epsilon)) of Theorem 5.1, for ratio = lambda_max / epsilon > e."""
    if ratio <= exp(1):
        raise ValueError(
            f"ratio = lambda_max / epsilon must exceed e, got {ratio}: the noise is as large as the signal."
        )
    return max(1, ceil(c2 * (log(k) + log(log(ratio)))))


def restarts_needed(k: int, eta: float, *, c3: float) -> float:
    """The smallest L that meets the condition of Theorem 5.1 for failure probability eta, as a float.

    With x = ln(L / log2(k / eta)) the condition reads
    sqrt(x / ln k) (1 - (ln x + C3) / (4 x) - sqrt(ln 8 / x)) >= 1.02 (1 + sqrt(ln 4 / ln k)).
    """
    if not (k >= 1 and 0 < eta < 1):
        raise ValueError(f"k must be at least 1 and eta between 0 and 1, got k = {k}, eta = {eta}.")
    if k == 1:
        return 1.0
    from scipy.optimize import brentq  # slow to import

    target = 1.02 * (1 + sqrt(log(4) / log(k)))

    def excess(x: float) -> float:
        return sqrt(x / log(k)) * (1 - (log(x) + c3) / (4 * x) - sqrt(log(8) / x)) - target

    # In u = sqrt(x) the left side is (u - sqrt(ln 8) - (2 ln u + C3) / (4 u)) / sqrt(ln k): increasing from u = 1 on.
    high = 2.0
    while excess(high) < 0:
        high *= 2
    x = 1.0 if excess(1.0) >= 0 else float(brentq(excess, 1.0, high))
    return float(np.ceil(np.exp(x) * np.log2(k / eta)))


def quadratic_convergence_bound(eigenvalues: ArrayLike, overlaps: ArrayLike, t: int) -> float:
    """The bound of Lemma 5.1 on ||v_1 - theta_t||^2 after t power steps.

    Parameters
    ----------
    eigenvalues, overlaps : (k,)
        lambda_i and v_i' theta_0 in the same order; "1" and "2" of the lemma are the largest |lambda_i v_i' theta_0|.
    """
    values, inner = np.asarray(eigenvalues, dtype=float), np.asarray(overlaps, dtype=float)
    strength = np.abs(values * inner)
    order = np.argsort(-strength)
    if values.size == 1:
        return 0.0
    first, second = order[0], order[1]
    if strength[first] == strength[second]:
        raise ValueError("Lemma 5.1 needs a unique largest |lambda_i v_i' theta_0|, but the two largest are equal.")
    others = np.delete(values, first)
    factor = 2 * values[first] ** 2 * np.sum(1 / others**2)
    return float(factor * (strength[second] / strength[first]) ** (2.0 ** min(t + 1, 1000)))


def coherence(means: ArrayLike) -> float:
    """Coherence of section 3.3.1: the largest diagonal entry of the projector to the range of the component means.

    Parameters
    ----------
    means : (k, d)
        Component means in rows (A' of the paper). Between rank / d (spread over all coordinates) and 1 (some coordinate
        is all that a direction has).
    """
    rows = np.asarray(means, dtype=float)
    if rows.ndim != 2 or rows.size == 0 or not np.isfinite(rows).all():
        raise ValueError(f"means must be a finite matrix (components, coordinates), got shape {rows.shape}.")
    _, values, right = np.linalg.svd(rows, full_matrices=False)
    rank = int(np.sum(values > max(rows.shape) * np.finfo(float).eps * values[0]))
    return float((right[:rank] ** 2).sum(axis=0).max(initial=0.0))


def incoherence_limit(k: int, *, epsilon: float, delta: float) -> float:
    """(epsilon^2 / 6) / ln(3 k / delta): the coherence up to which Proposition 3.2 holds.

    Up to there a random partition of the coordinates into three groups keeps, with probability 1 - delta, the k-th
    singular value of each group's means above sqrt((1 - epsilon) / 3) times that of all.
    """
    if k < 1 or not (0 < epsilon < 1 and 0 < delta < 1):
        raise ValueError(
            f"k must be at least 1, epsilon and delta between 0 and 1, got k = {k}, epsilon = {epsilon}, "
            f"delta = {delta}."
        )
    return epsilon**2 / 6 / log(3 * k / delta)


def partition_probability(means: ArrayLike, *, epsilon: float) -> float:
    """The probability 1 - delta that Proposition 3.2 gives for these means; 0 where it promises nothing."""
    if not 0 < epsilon < 1:
        raise ValueError(f"epsilon must be between 0 and 1, got {epsilon}.")
    rows = np.asarray(means, dtype=float)
    delta = 3 * len(rows) * exp(-(epsilon**2) / 6 / coherence(rows))
    return max(0.0, 1.0 - delta)


def rayleigh_quotient(tensor: ArrayLike | SymmetricTensor, vector: ArrayLike) -> float:
    """The generalized Rayleigh quotient T(u, .., u) / (u'u)^(p/2) of section 4.2.2."""
    symmetric, unit = _unit(tensor, vector)
    return float(symmetric.values(unit[:, None])[0])


def eigenvector_residual(tensor: ArrayLike | SymmetricTensor, vector: ArrayLike) -> float:
    """||T(I, u, ..) - lambda u|| with lambda = T(u, .., u), for u scaled to length 1: 0 for eigenvectors."""
    symmetric, unit = _unit(tensor, vector)
    mapped = symmetric.power_map(unit[:, None])[:, 0]
    return float(np.linalg.norm(mapped - (unit @ mapped) * unit))


def is_isolated_maximizer(tensor: ArrayLike | SymmetricTensor, vector: ArrayLike, *, tol: float = 1e-8) -> bool:
    """The second-derivative test of Theorem 4.2 for u scaled to length 1.

    u must be an eigenvector (to `tol` times its eigenvalue) with lambda > 0, and the Hessian of the Lagrangian, a
    multiple of (p - 1) T(I, I, u, ..) - lambda I, negative definite on the complement of u.
    """
    symmetric, unit = _unit(tensor, vector)
    value = rayleigh_quotient(symmetric, unit)
    if value <= 0 or eigenvector_residual(symmetric, unit) > tol * value:
        return False
    return bool(_tangent_eigenvalues(symmetric, unit)[-1] * (symmetric.order - 1) < value)


def is_robust_eigenvector(
    tensor: ArrayLike | SymmetricTensor,
    vector: ArrayLike,
    *,
    radius: float = 1e-3,
    n_probes: int = 20,
    n_iter: int = 60,
    tol: float = 1e-8,
    random_state: RandomState = None,
) -> bool:
    """Robustness by its definition in section 4.2.1: power iterations from points within `radius` come back to u.

    At order 4 up to sign, which the map changes where the eigenvalue is negative.
    """
    symmetric, unit = _unit(tensor, vector)
    rng = as_generator(random_state)
    theta = unit[:, None] + radius * _columns(rng.standard_normal((unit.size, n_probes)))
    for _ in range(n_iter):
        theta = symmetric.power_map(_columns(theta))
        if not np.all(np.linalg.norm(theta, axis=0) > 0):
            return False
    theta = _columns(theta)
    if symmetric.order == 4:
        theta = theta * np.sign(unit @ theta)
    return bool(np.linalg.norm(theta - unit[:, None], axis=0).max() <= tol)


def _columns(vectors: Floats) -> Floats:
    return np.asarray(vectors / np.linalg.norm(vectors, axis=0))


def _unit(tensor: ArrayLike | SymmetricTensor, vector: ArrayLike) -> tuple[SymmetricTensor, Floats]:
    symmetric = as_symmetric_tensor(tensor)
    u = np.asarray(vector, dtype=float)
    length = float(np.linalg.norm(u))
    if u.shape != (symmetric.dimension,) or not 0 < length < np.inf:
        raise ValueError(f"vector must be a non-zero vector of length {symmetric.dimension}, got shape {u.shape}.")
    return symmetric, u / length


def _tangent_eigenvalues(tensor: SymmetricTensor, unit: Floats) -> Floats:
    """Eigenvalues, ascending, of T(I, I, u, ..) restricted to the complement of u."""
    if unit.size == 1:
        return np.array([-np.inf])
    complement = np.linalg.qr(np.column_stack([unit, np.eye(unit.size)]))[0][:, 1:]
    return np.asarray(np.linalg.eigvalsh(complement.T @ tensor.matrix(unit) @ complement))
