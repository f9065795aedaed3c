"""Clusters of rows by k-means: the field's own start.

Mixtures take scikit-learn's. Chains, which need it in every fit to scale their features, take a few rounds on a few
thousand points from a loop of their own: scikit-learn's takes 0.2 s to load.
"""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any

import numpy as np
import threadpoolctl
from numpy.typing import NDArray
from scipy import sparse

from odeco.families.averages import averages
from odeco.kernels.threads import single_threaded_blas

Floats = NDArray[np.float64]

_LLOYD = 10  # iterations: EM goes on from there
_BLOCK = 2**14  # distances at a time


def cluster_shares(features: Floats, weights: Floats | None, n_clusters: int, seed: int) -> Floats:
    """Responsibilities times weights (k, n) of clusters of rows (n, p), begun by k-means++; two rows each at least."""
    from sklearn import config_context
    from sklearn.cluster import KMeans

    n = len(features)
    n_clusters = max(1, min(n_clusters, n // 2))
    weights = weights if weights is not None and weights.any() else None
    checked = config_context(assume_finite=True, skip_parameter_validation=True)  # a tenth of its time on 1,000 rows
    with warnings.catch_warnings(), checked, single_threaded_blas(), _openmp().limit(limits=1):
        warnings.simplefilter("ignore")  # fewer distinct rows than clusters: EM copes with empty ones
        found = KMeans(n_clusters, n_init=1, max_iter=_LLOYD, random_state=seed)
        labels = found.fit(features, sample_weight=weights).labels_
    shares = np.zeros((n_clusters, n))
    shares[labels, np.arange(n)] = 1.0 if weights is None else weights
    return shares


@cache
def _openmp() -> Any:
    """The threads of scikit-learn's own loops, which wait for one another longer than they work on a few thousand rows.

    On 1,000 rows and two cores of a busy machine k-means took 30 ms of CPU and 60 of waiting, with one thread 2.4.
    """
    return threadpoolctl.ThreadpoolController().select(user_api="openmp")


def k_means(points: Floats, k: int, rng: np.random.Generator, n_rounds: int) -> Floats:
    """Centres (k, p) of points (n, p) after so many rounds of k-means, or once no point changes its cluster.

    They begin at points, each drawn by its squared distance from those before (k-means++). A cluster without points
    stays where it is.
    """
    ones = np.ones(len(points))
    centres = points[_spread_points(points, k, rng)]
    labels, places = None, np.arange(len(points) + 1)
    for _ in range(n_rounds):
        before, labels = labels, nearest(points, centres)
        if before is not None and np.array_equal(before, labels):
            break
        member = sparse.csc_array((ones, labels, places), shape=(k, len(points)))
        centres = averages(member @ points, np.bincount(labels, minlength=k)[:, None].astype(float), centres, 0.0)
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


def _spread_points(points: Floats, k: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Which points centres begin at."""
    squares = np.einsum("ij,ij->i", points, points)
    chosen = [int(rng.integers(len(points)))]
    left = _distances(points, squares, chosen[0])
    while len(chosen) < k:
        chosen.append(_draw(left, rng))
        left = np.minimum(left, _distances(points, squares, chosen[-1]))
    return np.array(chosen)


def _distances(points: Floats, squares: Floats, chosen: int) -> Floats:
    """Squared distances (n,) from one of the points to all."""
    return np.asarray(np.maximum(squares + squares[chosen] - 2 * (points @ points[chosen]), 0.0))


def _draw(chances: Floats, rng: np.random.Generator) -> int:
    """A place drawn by its chance; where all are 0, by none."""
    sums = np.cumsum(chances)
    if not sums[-1] > 0:
        return int(rng.integers(len(chances)))
    return min(int(np.searchsorted(sums, rng.random() * sums[-1], side="right")), len(chances) - 1)
