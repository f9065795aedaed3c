"""Fourth cumulants by their definition, sample by sample and index by index."""

from __future__ import annotations

from itertools import product

import numpy as np


def fourth_cumulant(X, weights=None):
    """E[xxxx] less the three pairings of second moments, x centred (Theorem 3.4), by loops."""
    n, d = X.shape
    w = np.ones(n) if weights is None else np.asarray(weights, dtype=float)
    w = w / w.sum()
    x = X - w @ X
    second = np.zeros((d, d))
    for row, weight in zip(x, w, strict=True):
        second += weight * np.outer(row, row)
    result = np.zeros((d,) * 4)
    for i, j, k, m in product(range(d), repeat=4):
        fourth = sum(weight * row[i] * row[j] * row[k] * row[m] for row, weight in zip(x, w, strict=True))
        pairings = second[i, j] * second[k, m] + second[i, k] * second[j, m] + second[i, m] * second[j, k]
        result[i, j, k, m] = fourth - pairings
    return result
