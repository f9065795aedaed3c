"""Clusters of rows by k-means: the field's own start.

A few rounds on a few thousand rows, after which EM goes on: written here, for scikit-learn's k-means took 0.2 s to load
and checked and shared out among threads for longer than it worked (1,000 rows, three clusters: 1.7 ms, here 0.7).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from odeco.families.averages import averages

Floats = NDArray[np.float64]

_BLOCK = 2**14  # distances at a time
_LLOYD = 10  # rounds: EM goes on from there


def cluster_shares(features: Floats, weights: Floats | None, n_clusters: int, seed: int) -> Floats:
    """Responsibilities times weights (k, n) of clusters of rows (n, p), begun by k-means++; two rows each at least."""
    n = len(features)
    n_clusters = max(1, min(n_clusters, n // 2))
    weights = weights if weights is not None and weights.any() else None
    n_trials = 2 + int(np.log(n_clusters))  # as many as scikit-learn looks at
    centres = k_means(features, n_clusters, np.random.default_rng(seed), _LLOYD, weights, n_trials)
    shares = np.zeros((n_clusters, n))
    shares[nearest(features, centres), np.arange(n)] = 1.0 if weights is None else weights
    return shares


def k_means(
    points: Floats,
    k: int,
    rng: np.random.Generator,
    n_rounds: int,
    weights: Floats | None = None,
    n_trials: int = 1,
) -> Floats:
    """Centres (k, p) of points (n, p) after so many rounds of k-means, or once no point changes its cluster.

    They begin at points, each drawn by its squared distance from those before (k-means++); of `n_trials` points at a
    time the one that leaves least distance. A cluster without points stays where it is.
    """
    masses = np.ones(len(points)) if weights is None else weights
    centres = points[_spread_points(points, masses, k, rng, n_trials)]
    labels, places = None, np.arange(len(points) + 1)
    for _ in range(n_rounds):
        before, labels = labels, nearest(points, centres)
        if before is not None and np.array_equal(before, labels):
            break
        member = sparse.csc_array((masses, labels, places), shape=(k, len(points)))
        centres = averages(member @ points, np.bincount(labels, masses, k)[:, None], centres, 0.0)
    return centres


def nearest(points: Floats, centres: Floats) -> NDArray[np.intp]:
    """The nearest centre of each point, (n,)."""
    n, slopes, squares = len(points), -2 * centres.T, np.einsum("ij,ij->i", centres, centres)
    labels, step = np.empty(n, dtype=np.intp), max(1, _BLOCK // len(centres))
    room = np.empty((min(n, step), len(centres)))
    for low in range(0, n, step):  # room that is written again takes a fourth of the time of new room
        distances = np.matmul(points[low : low + step], slopes, out=room[: n - low])
        distances += squares
        np.argmin(distances, axis=1, out=labels[low : low + step])
    return labels


def _spread_points(points: Floats, masses: Floats, k: int, rng: np.random.Generator, n_trials: int) -> NDArray[np.intp]:
    """Which points centres begin at."""
    squares = np.einsum("ij,ij->i", points, points)
    chosen = _draw(masses, rng, 1)
    left = _distances(points, squares, chosen)[0]
    while len(chosen) < k:
        tried = _draw(masses * left, rng, n_trials)
        remaining = np.minimum(left, _distances(points, squares, tried))
        best = int(np.argmin(remaining @ masses))
        left, chosen = remaining[best], np.append(chosen, tried[best])
    return chosen


def _distances(points: Floats, squares: Floats, chosen: NDArray[np.intp]) -> Floats:
    """Squared distances (m, n) from some of the points to all."""
    products = points[chosen] @ points.T
    return np.asarray(np.maximum(squares + squares[chosen][:, None] - 2 * products, 0.0))


def _draw(chances: Floats, rng: np.random.Generator, n: int) -> NDArray[np.intp]:
    """Places drawn by their chances; where all are 0, by none."""
    sums = np.cumsum(chances)
    if not sums[-1] > 0:
        return np.asarray(rng.integers(len(chances), size=n))
    found = np.searchsorted(sums, rng.random(n) * sums[-1], side="right")
    return np.asarray(np.minimum(found, len(chances) - 1))
