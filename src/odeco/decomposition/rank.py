"""How many components stand above the noise."""

from __future__ import annotations

from math import comb, sqrt

import numpy as np

from odeco.tensors.algebra import Floats

# The largest |E(u, .., u)| of a symmetrised Gaussian tensor is c sqrt(n) s, where s is the standard deviation of
# E(u, .., u) at a fixed unit u. As n grows c is the ground state energy of the spherical p-spin model, 1.657 at order 3
# and 1.794 at order 4; at finite n its mean is smaller and its spread larger, and these values cover all but a few
# per cent of draws (tests/theorems/test_noise_threshold.py).
_NOISE_CONSTANT = {3: 1.9, 4: 2.1}
# At a maximum of pure noise the tangent part of (p - 1) E(I, I, v, ..) is a random symmetric matrix whose spectrum ends
# at 2 sqrt((p - 1) / p) sqrt(n) s (1.633 and 1.732 sqrt(n) s), so a value at the threshold contracts at this rate.
NOISE_CONTRACTION = 0.82
# Rounding of a tensor of norm 1, seen as noise.
_ROUNDING = 16 * float(np.finfo(float).eps)


def degrees_of_freedom(n: int, rank: int, order: int) -> int:
    """Entries of a symmetric tensor less the parameters of `rank` orthonormal components."""
    return comb(n + order - 1, order) - rank * (2 * n - rank + 1) // 2


def noise_level(residual_norm: float, norm: float, n: int, rank: int, order: int) -> float:
    """The standard deviation s of E(u, .., u) at a fixed u, from the residual of a rank `rank` fit.

    For symmetrised Gaussian noise ||E||_F^2 is s^2 times the number of distinct entries, in expectation.
    """
    free = max(degrees_of_freedom(n, rank, order), 1)
    return max(residual_norm / sqrt(free), _ROUNDING * norm / sqrt(n))


def noise_threshold(sigma: float, n: int, order: int) -> float:
    """The value that the largest eigenvalue of pure noise stays below."""
    return _NOISE_CONSTANT[order] * sqrt(n) * sigma


def _few_samples(free: int) -> float:
    """How much wider Student's 99 % interval is than the normal one: below n = 5 the noise level is hardly known."""
    from scipy.special import stdtrit  # slow to import

    return float(stdtrit(max(free, 1), 0.99) / stdtrit(np.inf, 0.99))


def rank_above_noise(eigenvalues: Floats, residual: float, norm: float, n: int, order: int) -> tuple[int, float]:
    """The largest r whose r-th largest |eigenvalue| exceeds the noise left by the first r, and that threshold.

    `residual` is what all of the orthonormal components leave, relative to `norm`; what the first r leave is that and
    the others. (The norm less the first r would lose noise below 1e-8 to cancellation.)
    """
    magnitude = np.sort(np.abs(eigenvalues))[::-1]
    others = np.append(np.cumsum((magnitude[:0:-1] / norm) ** 2)[::-1], 0.0)
    left = norm * np.sqrt(residual**2 + others)
    for r in range(magnitude.size, 0, -1):
        threshold = noise_threshold(noise_level(float(left[r - 1]), norm, n, r, order), n, order)
        threshold *= _few_samples(degrees_of_freedom(n, r, order))
        if magnitude[r - 1] > threshold:
            return r, threshold
    return 0, noise_threshold(noise_level(norm, norm, n, 0, order), n, order)
