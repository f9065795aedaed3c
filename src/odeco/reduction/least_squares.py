"""A least-squares fit of the cross moments themselves, from the components that Theorem 3.6 gives.

The theorem inverts one pair and whitens with the other two, which multiplies their noise by their condition. In the
affine form the tensor of (y_t - E[y_t], 1) holds means, pairs and triples side by side, and alternating least squares
fits ``sum_i w_i (1, mu_1i) (x) (1, mu_2i) (x) (1, mu_3i)`` to all of them at once without inverting any.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Three = tuple[Floats, Floats, Floats]

# Gain, of the squared norm of the tensor, below which the sweeps end: sampling noise is orders of magnitude larger.
_TOLERANCE = 1e-8
_SWEEPS = 100
# Share of the mean eigenvalue of a Gram matrix that is added to it: components that nearly coincide stay bounded.
_RIDGE = 1e-10


@dataclass(frozen=True, eq=False)
class CrossFit:
    """Weights (k,), means of each view (k, q) with the constant 1 first, relative residual, and sweeps."""

    weights: Floats
    means: Three = field(repr=False)
    residual: float
    n_iter: int


def fit_cross_moments(tensor: Floats, weights: Floats, means: Three) -> CrossFit | None:
    """Alternating least squares; None where a weight does not come out positive.

    Parameters
    ----------
    tensor : (q, q, q)
        Third moment of three views, each with the constant 1 as its first coordinate.
    weights, means : (k,), three arrays (k, q)
        Where to start.
    """
    total = float(np.sum(tensor**2))
    unfolded = [np.ascontiguousarray(np.moveaxis(tensor, t, 0)) for t in range(3)]
    factors = [means[0], means[1], weights[:, None] * means[2]]
    last, sweep = np.inf, 0
    for sweep in range(1, _SWEEPS + 1):
        for t in range(3):
            factors[t], product, gram = _update(unfolded[t], *(factors[s] for s in range(3) if s != t))
        # ||T - fit||^2 = ||T||^2 - 2 <T, fit> + ||fit||^2, with what the last update has at hand.
        overlap = float(np.sum(product * factors[2]))
        misfit = total - 2 * overlap + float(np.sum(gram * (factors[2] @ factors[2].T)))
        if last - misfit < _TOLERANCE * total:
            break
        last = misfit
    factors[:2] = [_unit_rows(factor) for factor in factors[:2]]  # as the last update had them
    constants = np.array([factor[:, 0] for factor in factors])
    found = constants.prod(axis=0)
    if not np.isfinite(found).all() or (found <= 0).any() or (np.abs(constants) < 1e-12).any():
        return None
    first, second, third = (factor / factor[:, :1] for factor in factors)
    return CrossFit(found, (first, second, third), float(np.sqrt(max(misfit, 0.0) / total)), sweep)


def _update(unfolded: Floats, second: Floats, third: Floats) -> tuple[Floats, Floats, Floats]:
    """The best factor of one view given those of the others, of unit norm here; the right side; the Gram matrix."""
    second, third = _unit_rows(second), _unit_rows(third)
    q, k = len(unfolded), len(second)
    partial = (unfolded.reshape(q * q, q) @ third.T).reshape(q, q, k)
    product = np.einsum("abi,ib->ia", partial, second)
    gram = (second @ second.T) * (third @ third.T)
    ridge = _RIDGE * np.trace(gram) / k * np.eye(k)
    return np.linalg.solve(gram + ridge, product), product, gram


def _unit_rows(factor: Floats) -> Floats:
    return np.asarray(factor / np.maximum(np.linalg.norm(factor, axis=1, keepdims=True), 1e-300))
