"""Moments of crowd labels against loops over the items: groups that did not vote are given their average vote."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy import sparse

from odeco.moments.crowd import CrowdMoments

N, L = 60, 3
GROUPS = np.array([0, 1, 2, 0, 1, 2, 0])


@pytest.fixture(scope="module")
def labels():
    """Labels (n, W), -1 for none; most workers are silent most of the time."""
    rng = np.random.default_rng(0)
    given = rng.integers(L, size=(N, GROUPS.size))
    return np.where(rng.random(given.shape) < 0.4, given, -1)


def votes(labels):
    items, workers = np.nonzero(labels >= 0)
    columns = workers * L + labels[items, workers]
    return sparse.csr_array((np.ones(items.size), (items, columns)), shape=(len(labels), GROUPS.size * L))


def filled_views(labels):
    """Mean votes of each group less its average vote (over votes, not items); 0 for a group that did not vote."""
    out = np.zeros((3, len(labels), L))
    for g in range(3):
        mine = labels[:, g == GROUPS]
        average = np.array([(mine == label).sum() for label in range(L)]) / (mine >= 0).sum()
        for i, row in enumerate(mine):
            if (row >= 0).any():
                out[g, i] = [(row == label).sum() / (row >= 0).sum() for label in range(L)] - average
    return out


@pytest.mark.parametrize("weighted", [False, True])
def test_moments_are_those_of_the_loops(labels, weighted):
    weights = np.random.default_rng(1).integers(1, 4, N).astype(float) if weighted else None
    repeated = labels if weights is None else np.repeat(labels, weights.astype(int), axis=0)
    a, b, c = filled_views(repeated)
    assert (np.abs(a).sum(axis=1) == 0).sum() > 3  # some groups were silent
    found, maps = CrowdMoments(GROUPS, L).update(votes(labels), weights).read()
    n = len(repeated)
    means = [view.mean(axis=0) for view in (a, b, c)]
    for mean, expected in zip(found.means, means, strict=True):
        np.testing.assert_allclose(mean, expected, atol=1e-12)
    centred = [view - mean for view, mean in zip((a, b, c), means, strict=True)]
    for (s, t), pair in zip(((0, 1), (0, 2), (1, 2)), found.pairs, strict=True):
        np.testing.assert_allclose(pair, centred[s].T @ centred[t] / n, atol=1e-12)
    np.testing.assert_allclose(found.triples, np.einsum("ni,nj,nk->ijk", *centred) / n, atol=1e-12)
    assert [m.shape for m in maps] == [(L + 1, L)] * 3


def test_chunks_and_merges_give_the_same(labels):
    whole = CrowdMoments(GROUPS, L).update(votes(labels)).read()[0]
    parts = [CrowdMoments(GROUPS, L).update(votes(labels[i:j])) for i, j in pairwise((0, 7, 30, N))]
    merged = parts[2].merge(parts[0]).merge(parts[1]).read()[0]
    np.testing.assert_allclose(merged.triples, whole.triples, atol=1e-12)
