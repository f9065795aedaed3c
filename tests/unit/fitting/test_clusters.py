"""Clusters as responsibilities."""

from __future__ import annotations

import numpy as np

from odeco.fitting.clusters import cluster_shares


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
