"""Pairs and triples of features of different columns by naive loops."""

from __future__ import annotations

import numpy as np


def encode(values, schema, centre, scale):
    """Features of rows one by one, and the column of each."""
    rows, owner = [], []
    for number, row in enumerate(values):
        features = []
        for j, column in enumerate(schema.columns):
            size = len(column.categories) or 1
            if column.family == "categorical":
                features += [1.0 if row[j] == code else 0.0 for code in range(size)]
            else:
                features.append(0.0 if np.isnan(row[j]) else (row[j] - centre[j]) / scale[j])
            if number == 0:
                owner += [j] * size
        rows.append(features)
    return np.array(rows), owner


def distinct_triples(features, owner, table, weights):
    """Weighted mean of u_a (x) u_b (x) u_c e_a e_b e_c over triples of three different columns."""
    r = table.shape[1]
    total = np.zeros((r, r, r))
    for row, weight in zip(features, weights, strict=True):
        for a in range(len(owner)):
            for b in range(len(owner)):
                for c in range(len(owner)):
                    if len({owner[a], owner[b], owner[c]}) == 3:
                        product = weight * row[a] * row[b] * row[c]
                        total += product * np.einsum("i,j,k->ijk", table[a], table[b], table[c])
    return total / np.sum(weights)


def pair_covariances(features, owner, values, weights):
    """Covariances over rows in which both columns are observed, about the means where observed."""
    n_features = len(owner)
    known = ~np.isnan(values)
    mean = np.array(
        [
            np.sum(weights * known[:, owner[a]] * features[:, a]) / np.sum(weights * known[:, owner[a]])
            for a in range(n_features)
        ]
    )
    result = np.zeros((n_features, n_features))
    for a in range(n_features):
        for b in range(n_features):
            both = weights * known[:, owner[a]] * known[:, owner[b]]
            result[a, b] = np.sum(both * (features[:, a] - mean[a]) * (features[:, b] - mean[b])) / np.sum(both)
    return result
