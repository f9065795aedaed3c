"""What no unbiased estimate of a mixing matrix can beat: the Cramer-Rao bound, for isotropic noise that is known."""

from __future__ import annotations

from typing import Any

import numpy as np

_GRID = np.linspace(-12, 14, 26_001)
_STEP = _GRID[1] - _GRID[0]


def least_amari(mixing: Any, kinds: tuple[str, ...], noise: float, n: int) -> float:
    """The expected Amari distance of an estimate whose crosstalk is Gaussian with the variances of the bound.

    The outputs pinv(mixing) x are sources with noise of variance N_i (its small correlations are left out). With
    scores phi_i of their densities and Fisher informations I_i, crosstalk from j to i has the score
    phi_i (y_j - N_j phi_j); the two of a pair are correlated.
    """
    own = noise**2 * np.diag(np.linalg.inv(mixing.T @ mixing))
    k = own.size
    fisher = np.array([_information(kinds[j % len(kinds)], own[j]) for j in range(k)])
    single = fisher[:, None] * (1 - own + own**2 * fisher)  # 1 + N_j is the variance of y_j
    cross = np.outer(1 - own * fisher, 1 - own * fisher)
    variances = single.T / (single * single.T - cross**2)
    deviations = np.sqrt(variances[~np.eye(k, dtype=bool)] / n)
    return float(deviations.mean() * np.sqrt(2 / np.pi))


def _information(kind: str, variance: float) -> float:
    """Fisher information of a source of unit variance plus Gaussian noise."""
    from scipy.signal import fftconvolve

    density = np.zeros_like(_GRID)
    if kind == "uniform":
        density[np.abs(_GRID) <= np.sqrt(3)] = 1
    elif kind == "Laplace":
        density = np.exp(-np.sqrt(2) * np.abs(_GRID))
    elif kind == "sign":
        density[[np.argmin(np.abs(_GRID - 1)), np.argmin(np.abs(_GRID + 1))]] = 1
    else:
        density = np.where(_GRID >= -1, np.exp(-np.maximum(_GRID + 1, 0)), 0)
    width = int(8 * np.sqrt(variance) / _STEP) + 1
    offsets = np.arange(-width, width + 1) * _STEP
    kernel = np.exp(-(offsets**2) / (2 * variance))
    kernel /= kernel.sum() * density.sum()
    smooth = fftconvolve(density, kernel, "same")
    slope = fftconvolve(density, -offsets / variance * kernel, "same")
    seen = smooth > 1e-13
    return float((slope[seen] ** 2 / smooth[seen]).sum())
