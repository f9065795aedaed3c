"""`decompose_views` and the moments it takes: what is computed from arrays, and what is said of bad input.

The theorem itself is in tests/theorems/test_theorem_3_6.py.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import odeco
from odeco.exceptions import MomentWarning
from odeco.moments import ThreeViews, view_moments
from odeco.moments.views import PAIRS
from odeco.reduction import decompose_views
from tests.oracles.view_moments import cross_moments

WEIGHTS = np.array([0.5, 0.3, 0.2])


def population(seed=0, widths=(3, 4, 5)):
    """All rows of a population whose views are their conditional means, with how often each occurs."""
    rng = np.random.default_rng(seed)
    means = [rng.standard_normal((3, d)) for d in widths]
    kinds = np.repeat(np.arange(3), (10 * WEIGHTS).astype(int))
    return means, [mean[kinds] for mean in means]


def test_moments_of_arrays_are_those_of_loops():
    _, rows = population()
    rows = [10.0 + block for block in rows]  # far from the origin
    found = view_moments(rows)
    means, pairs, triples, _ = cross_moments(rows, [[0], [1], [2]], [np.eye(block.shape[1]) for block in rows])
    np.testing.assert_allclose(found.triples, triples, atol=1e-12)
    for place, pair in enumerate(PAIRS):
        np.testing.assert_allclose(found.pairs[place], pairs[pair], atol=1e-12)
    np.testing.assert_allclose(np.concatenate(found.means), np.concatenate(means))


def test_sparse_views_have_the_same_moments():
    _, rows = population()
    dense, thin = view_moments(rows), view_moments([rows[0], sparse.csr_array(rows[1]), sparse.csc_array(rows[2])])
    np.testing.assert_allclose(thin.triples, dense.triples, atol=1e-12)
    np.testing.assert_allclose(np.concatenate(thin.means), np.concatenate(dense.means), atol=1e-12)


@pytest.mark.parametrize("method", ["auto", "power", "jennrich"])
@pytest.mark.parametrize("widths", [(3, 4, 5), (2, 2, 2)])
def test_weights_and_means_come_back_from_arrays(method, widths):
    means, rows = population(2, widths)
    found = decompose_views(view_moments(rows), 3, method=method, random_state=0)
    np.testing.assert_allclose(found.weights, WEIGHTS, atol=1e-6)  # where the methods stop
    for estimate, mean in zip(found.means, means, strict=True):
        np.testing.assert_allclose(estimate, mean, atol=1e-5)
        assert np.abs(estimate[::-1] - mean).max() > 0.1  # shuffled components are seen


def test_options_reach_the_method_and_its_status_is_a_warning():
    views = view_moments(population()[1])
    with pytest.raises(ValueError, match="method 'power' has no option 'n_restart'"):
        decompose_views(views, 3, method="power", n_restart=3)
    noisy = ThreeViews(views.pairs, np.random.default_rng(0).standard_normal(views.triples.shape), views.means)
    with pytest.warns(MomentWarning):
        decompose_views(noisy, 3, n_iter=1, random_state=0)


def test_bad_moments_are_named():
    views = view_moments(population()[1])
    pairs, triples, means = views.pairs, views.triples, views.means
    for count in (0, 2.0, True):
        with pytest.raises(ValueError, match="n_components must be a positive integer"):
            decompose_views(views, count)
    with pytest.raises(ValueError, match="pivot must be None, 0, 1 or 2, got 3"):
        decompose_views(views, 3, pivot=3)
    with pytest.raises(ValueError, match=r"got 3 pairs and shape \(3, 4\)"):
        decompose_views(ThreeViews(pairs, triples[..., 0], means), 3)
    with pytest.raises(ValueError, match=r"views.pairs\[1\] must be finite of shape \(3, 5\), got shape \(5, 3\)"):
        decompose_views(ThreeViews((pairs[0], pairs[1].T, pairs[2]), triples, means), 3)
    with pytest.raises(ValueError, match=r"views.triples must be finite .* with 60 NaN"):
        decompose_views(ThreeViews(pairs, np.nan * triples, means), 3)
    with pytest.raises(ValueError, match=r"views.means\[0\] must be finite of shape \(3,\), got shape \(4,\)"):
        decompose_views(ThreeViews(pairs, triples, means[1:] + means[:1]), 3)
    with pytest.raises(ValueError, match="views must be three arrays, got 2"):
        view_moments([np.eye(3)] * 2)
    with pytest.raises(ValueError, match="the same rows"):
        view_moments([np.eye(3), np.eye(3), np.eye(4)])


def test_moments_of_other_arrays_are_refused_in_words():
    with pytest.raises(ValueError, match="real and finite numbers"):
        odeco.moments.fourth_cumulant([[1.0, np.nan]])
    with pytest.raises(ValueError, match="real and finite numbers"):
        odeco.moments.fourth_cumulant([["a", "b"]])
