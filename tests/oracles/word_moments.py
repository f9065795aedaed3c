"""Word moments by their definition: loops over ordered pairs and triples of different tokens of each document."""

from __future__ import annotations

from itertools import permutations

import numpy as np


def tokens(counts) -> list[int]:
    """The document as a list of words."""
    return [word for word, count in enumerate(counts) for _ in range(int(count))]


def mean_frequencies(X, weights=None) -> np.ndarray:
    """E[x1]: every document has the same weight, whatever its length."""
    return _average(X, weights, 1)


def mean_pairs(X, weights=None) -> np.ndarray:
    """E[x1 (x) x2] over ordered pairs of different tokens."""
    return _average(X, weights, 2)


def mean_triples(X, weights=None) -> np.ndarray:
    """E[x1 (x) x2 (x) x3] over ordered triples of different tokens."""
    return _average(X, weights, 3)


def _average(X, weights, order):
    X = np.asarray(X)
    weights = np.ones(len(X)) if weights is None else weights
    total, weight = np.zeros((X.shape[1],) * order), 0.0
    for row, w in zip(X, weights, strict=True):
        words = tokens(row)
        if len(words) < order:
            continue
        tuples = list(permutations(words, order))  # positions differ, words may repeat
        for chosen in tuples:
            total[chosen] += w / len(tuples)
        weight += w
    return total / weight


def project(tensor, basis) -> np.ndarray:
    """T(W, ..., W)."""
    for _ in range(tensor.ndim):
        tensor = np.tensordot(tensor, basis, axes=(0, 0))
    return tensor
