"""Naive loops: moments of rows, and one EM step of a Gaussian mixture with full covariances in any form."""

from __future__ import annotations

import numpy as np


def vector_moments(x, basis, weights):
    """Mean, covariance and third central moment of z = x @ basis, and E[(z - E z) ||x - E x||^2], by loops."""
    total = sum(weights)
    mean = sum(w * row for w, row in zip(weights, x, strict=True)) / total
    r = basis.shape[1]
    covariance, third, radial = np.zeros((r, r)), np.zeros((r, r, r)), np.zeros(r)
    for w, row in zip(weights, x, strict=True):
        y = row - mean
        z = [sum(y[i] * basis[i, a] for i in range(len(y))) for a in range(r)]
        square = sum(value * value for value in y)
        for a in range(r):
            radial[a] += w * z[a] * square
            for b in range(r):
                covariance[a, b] += w * z[a] * z[b]
                for c in range(r):
                    third[a, b, c] += w * z[a] * z[b] * z[c]
    return mean, covariance / total, third / total, radial / total


def em_step(x, weights, means, covariances):
    """Mean log-likelihood before, and weights, means, full covariances after one EM step."""
    n, k = len(x), len(weights)
    shares, value = np.zeros((n, k)), 0.0
    for i, row in enumerate(x):
        densities = []
        for w, m, c in zip(weights, means, covariances, strict=True):
            off = row - m
            exponent = -0.5 * off @ np.linalg.solve(c, off)
            densities.append(w * np.exp(exponent) / np.sqrt(np.linalg.det(2 * np.pi * c)))
        value += np.log(sum(densities))
        shares[i] = np.array(densities) / sum(densities)
    new = []
    for j in range(k):
        count = shares[:, j].sum()
        mean = (shares[:, j] @ x) / count
        spread = sum(s * np.outer(row - mean, row - mean) for s, row in zip(shares[:, j], x, strict=True)) / count
        new.append((count / n, mean, spread))
    return value / n, np.array([p[0] for p in new]), np.array([p[1] for p in new]), np.array([p[2] for p in new])
