"""Clusters as responsibilities."""

from __future__ import annotations

import numpy as np
from sklearn.cluster import KMeans

from odeco.fitting.clusters import cluster_shares, k_means, nearest


def test_far_groups_are_clusters_and_weights_are_theirs() -> None:
    rng = np.random.default_rng(0)
    groups = np.arange(60) % 3
    x = 50.0 * np.eye(3)[groups] + rng.standard_normal((60, 3))
    weights = 1.0 + np.arange(60) % 2
    shares = cluster_shares(x, weights, 3, 0)
    np.testing.assert_allclose(shares.sum(axis=0), weights)
    assert all(len(set(groups[row > 0])) == 1 for row in shares)
    assert cluster_shares(x, None, 3, 0).sum() == 60
    assert cluster_shares(x, np.zeros(60), 3, 0).sum() == 60  # of no weight at all, all count alike


def test_few_or_equal_rows_make_fewer_clusters() -> None:
    assert cluster_shares(np.arange(5.0)[:, None], None, 9, 0).shape == (2, 5)
    assert np.isfinite(cluster_shares(np.ones((10, 2)), None, 4, 0)).all()


def test_the_nearest_centre_is_that_of_least_distance() -> None:
    rng = np.random.default_rng(0)
    points, centres = rng.standard_normal((9_000, 3)), rng.standard_normal((5, 3))  # in several blocks
    distances = ((points[:, None] - centres) ** 2).sum(axis=2)
    np.testing.assert_array_equal(nearest(points, centres), distances.argmin(axis=1))


def test_k_means_ends_where_centres_are_the_means_of_what_is_nearest() -> None:
    rng = np.random.default_rng(1)
    points = rng.standard_normal((300, 2)) + 4.0 * rng.integers(3, size=(300, 1))
    centres = k_means(points, 4, rng, 100)
    labels = nearest(points, centres)
    np.testing.assert_allclose(centres, [points[labels == j].mean(axis=0) for j in range(4)])


def test_k_means_is_as_good_as_that_of_scikit_learn() -> None:
    """Sixty runs each: the sums of squares within clusters, on average and in the worst one."""
    rng = np.random.default_rng(2)
    points = rng.standard_normal((400, 3)) + 3.0 * rng.standard_normal((8, 3))[rng.integers(8, size=400)]
    ours, theirs = [], []
    for seed in range(60):
        centres = k_means(points, 8, np.random.default_rng(seed), 10)
        ours.append(((points - centres[nearest(points, centres)]) ** 2).sum())
        theirs.append(KMeans(8, n_init=1, max_iter=10, random_state=seed).fit(points).inertia_)
    assert np.mean(ours) < 1.1 * np.mean(theirs)  # which looks at several points before it takes one
    assert max(ours) < 1.5 * max(theirs)
