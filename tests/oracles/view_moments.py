"""Cross moments of three groups of views by their definition, sample by sample."""

from __future__ import annotations

import numpy as np


def cross_moments(views, groups, directions, weights=None):
    """Means, pairs and triples of y_g = sum_t x_t B_t about the means, and pairs of every view with every y_g."""
    n = len(views[0])
    w = np.ones(n) if weights is None else np.asarray(weights, dtype=float)
    w = w / w.sum()
    y = [sum(views[t] @ directions[t] for t in group) for group in groups]
    means = [sum(w[i] * block[i] for i in range(n)) for block in y]
    columns = [sum(w[i] * block[i] for i in range(n)) for block in views]
    pairs = {}
    for s, t in ((0, 1), (0, 2), (1, 2)):
        pairs[s, t] = sum(w[i] * np.outer(y[s][i] - means[s], y[t][i] - means[t]) for i in range(n))
    triples = np.zeros([len(mean) for mean in means])
    for i in range(n):
        a, b, c = (y[g][i] - means[g] for g in range(3))
        triples += w[i] * np.multiply.outer(np.outer(a, b), c)
    cross = {}
    for t, view in enumerate(views):
        for g in range(3):
            if t not in groups[g]:
                cross[t, g] = sum(w[i] * np.outer(view[i] - columns[t], y[g][i] - means[g]) for i in range(n))
    return means, pairs, triples, cross


def crowd_posterior(labels, weights, confusion):
    """Dawid and Skene's posterior by loops; labels (n, W) with -1 where none was given."""
    result = np.empty((len(labels), len(weights)))
    for i, row in enumerate(labels):
        for c, weight in enumerate(weights):
            p = weight
            for worker, label in enumerate(row):
                if label >= 0:
                    p *= confusion[worker, c, label]
            result[i, c] = p
    return result / result.sum(axis=1, keepdims=True)
