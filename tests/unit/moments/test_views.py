"""Cross moments of views: against loops, in any chunks and containers, merged in any order."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy import sparse

from odeco.moments.crowd import CrowdMoments
from odeco.moments.views import PAIRS, ColumnSums, ViewBasis, ViewMoments
from odeco.sources.views import ViewBatch
from tests.oracles.view_moments import cross_moments

WIDTHS, GROUPS, RANKS = (3, 4, 2, 5), ((0, 2), (1,), (3,)), (2, 3, 2)
ROUNDING = 1e-11  # sums of 40 products of size 10, in another order


def data(n: int = 40, seed: int = 0) -> tuple[list[np.ndarray], np.ndarray]:
    rng = np.random.default_rng(seed)
    views = [5.0 + rng.standard_normal((n, d)) for d in WIDTHS]
    views[1] = rng.poisson(0.7, (n, 4)).astype(float)
    return views, rng.uniform(0.5, 2.0, n)


def basis(seed: int = 1) -> ViewBasis:
    rng = np.random.default_rng(seed)
    ranks = {t: RANKS[g] for g, group in enumerate(GROUPS) for t in group}
    directions = tuple(rng.standard_normal((d, ranks[t])) for t, d in enumerate(WIDTHS))
    return ViewBasis(GROUPS, directions, tuple(rng.standard_normal(d) for d in WIDTHS))


def containers(views: list[np.ndarray], kind: str) -> tuple:
    thin = {"dense": (), "mixed": (1,), "sparse": range(4)}[kind]
    return tuple(sparse.csr_array(v) if t in thin else v for t, v in enumerate(views))


@pytest.mark.parametrize("kind", ["dense", "sparse", "mixed"])
def test_moments_match_loops(kind):
    views, weights = data()
    b = basis()
    moments = ViewMoments(b).update(ViewBatch(containers(views, kind), weights))
    means, pairs, triples, cross = cross_moments(views, GROUPS, b.directions, weights)
    shifts = [sum(b.shifts[t] @ b.directions[t] for t in group) for group in GROUPS]
    for g in range(3):  # y is about the shifts
        np.testing.assert_allclose(moments.group_means[g], means[g] - shifts[g], atol=ROUNDING)
    for found, pair in zip(moments.pairs, PAIRS, strict=True):
        np.testing.assert_allclose(found, pairs[pair], atol=ROUNDING)
    np.testing.assert_allclose(moments.triples, triples, atol=10 * ROUNDING)
    for (t, g), expected in cross.items():
        np.testing.assert_allclose(moments.cross(t, g), expected, atol=ROUNDING)


@pytest.mark.parametrize("edges", [[0, 40], [0, 1, 2, 40], [0, 13, 20, 40]])
def test_chunks_and_merges_do_not_matter(edges):
    views, weights = data()
    whole, b = ViewBatch(tuple(views), weights), basis()
    expected = ViewMoments(b).update(whole)
    parts = [ViewMoments(b).update(whole.cut(i, j)) for i, j in pairwise(edges)]
    merged = parts[-1]
    for part in parts[:-1]:
        merged.merge(part)
    assert merged.n == 40
    np.testing.assert_allclose(merged.triples, expected.triples, atol=ROUNDING)
    np.testing.assert_allclose(merged.cross(1, 0), expected.cross(1, 0), atol=ROUNDING)


def test_weights_are_repetitions():
    views, _ = data()
    times = np.random.default_rng(2).integers(0, 3, 40)
    repeated = ViewBatch(tuple(np.repeat(v, times, axis=0) for v in views))
    b = basis()
    weighted = ViewMoments(b).update(ViewBatch(tuple(views), times.astype(float)))
    again = ViewMoments(b).update(repeated)
    np.testing.assert_allclose(weighted.triples, again.triples, atol=ROUNDING)
    columns, columns_again = ColumnSums(WIDTHS), ColumnSums(WIDTHS).update(repeated)
    columns.update(ViewBatch(tuple(views), times.astype(float)))
    for a, c in zip(columns.variances, columns_again.variances, strict=True):
        np.testing.assert_allclose(a, c, atol=ROUNDING)


def test_moments_of_different_bases_do_not_merge():
    with pytest.raises(ValueError, match="different bases"):
        ViewMoments(basis(1)).merge(ViewMoments(basis(2)))


def test_columns_far_from_zero_keep_their_variance_and_constants_have_none():
    rng = np.random.default_rng(0)
    x = 1e6 + rng.standard_normal((1000, 3))
    x[:, 2] = 0.1
    columns = ColumnSums((3,))
    other = ColumnSums((3,))
    columns.update(ViewBatch((x[:300],)))
    other.update(ViewBatch((x[300:],)))
    variance = columns.merge(other).variances[0]
    assert variance[:2] == pytest.approx(x[:, :2].var(axis=0), rel=1e-8)  # 1e6 squared times eps is 2e-4: shifted
    assert variance[2] == 0.0


def test_crowd_views_are_mean_votes_and_whether_there_were_any():
    votes = np.zeros((2, 4, 3))  # items, workers, labels
    votes[0, 0, 1] = votes[0, 1, 1] = votes[0, 2, 0] = votes[1, 3, 2] = votes[1, 0, 0] = 1
    groups = np.array([0, 0, 1, 2])
    crowd = CrowdMoments(groups, 3)
    first, second, third = crowd.views(sparse.csr_array(votes.reshape(2, 12)))
    np.testing.assert_array_equal(first, [[0, 1, 0, 1], [1, 0, 0, 1]])
    np.testing.assert_array_equal(second, [[1, 0, 0, 1], [0, 0, 0, 0]])
    np.testing.assert_array_equal(third, [[0, 0, 0, 0], [0, 0, 1, 1]])


def test_crowd_moments_merge_and_sum_by_worker():
    rng = np.random.default_rng(0)
    labels = rng.integers(-1, 2, (30, 5))
    votes = np.zeros((30, 5, 2))
    for i, w in zip(*np.nonzero(labels >= 0), strict=True):
        votes[i, w, labels[i, w]] = 1
    groups = np.array([0, 1, 2, 0, 1])
    rows = sparse.csr_array(votes.reshape(30, 10))
    whole = CrowdMoments(groups, 2).update(rows)
    parts = CrowdMoments(groups, 2).update(rows[20:]).merge(CrowdMoments(groups, 2).update(rows[:20]))
    np.testing.assert_allclose(whole.read()[0].triples, parts.read()[0].triples, atol=ROUNDING)
    functionals = [[float(s != t) * rng.standard_normal((2, 3)) for s in range(3)] for t in range(3)]
    offsets = [rng.standard_normal(2) for _ in range(3)]
    views = whole.views(rows)
    expected = np.zeros((5, 2, 2))
    for w in range(5):
        for i in range(30):
            own = groups[w]
            g = sum(views[s][i] @ functionals[own][s].T for s in range(3)) + offsets[own]
            expected[w] += np.outer(votes[i, w], g)
    np.testing.assert_allclose(whole.worker_sums(functionals, offsets), expected, atol=ROUNDING)
    np.testing.assert_allclose(parts.worker_sums(functionals, offsets), expected, atol=ROUNDING)
    with pytest.raises(ValueError, match="different groups"):
        whole.merge(CrowdMoments(np.array([0, 1, 2, 0, 0]), 2))
