"""Theorem 3.6 (multi-view models) and Proposition 3.1: population moments give weights and conditional means back."""

from __future__ import annotations

import numpy as np
import pytest

from odeco.decomposition import Decomposer
from odeco.exceptions import MomentError
from odeco.moments.views import PAIRS, ThreeViews
from odeco.reduction.views import recover_views

K, WIDTHS = 4, (5, 7, 6)
# Two inversions and a whitening multiply rounding (1e-16) by conditions below 1e3 each.
ROUNDING = 1e-9


def truth(seed: int = 0, widths: tuple[int, ...] = WIDTHS) -> tuple[np.ndarray, list[np.ndarray]]:
    rng = np.random.default_rng(seed)
    weights = np.sort(rng.dirichlet(np.full(K, 3.0)))[::-1]
    return weights, [1.0 + rng.standard_normal((K, d)) for d in widths]


def population(weights: np.ndarray, means: list[np.ndarray], *, affine: bool) -> ThreeViews:
    """Proposition 3.1: E[x_s (x) x_t] and E[x_1 (x) x_2 (x) x_3] by loops over the components."""
    centers = [weights @ mean for mean in means]
    rows = [mean - center for mean, center in zip(means, centers, strict=True)] if affine else means
    pairs = [sum(w * np.outer(a, b) for w, a, b in zip(weights, rows[s], rows[t], strict=True)) for s, t in PAIRS]
    triples = sum(w * np.multiply.outer(np.outer(a, b), c) for w, a, b, c in zip(weights, *rows, strict=True))
    return ThreeViews(tuple(pairs), triples, tuple(centers) if affine else None)


@pytest.mark.parametrize("affine", [False, True])
@pytest.mark.parametrize("pivot", [0, 1, 2, None])
@pytest.mark.parametrize("method", ["auto", "power", "joint"])
def test_population_moments_give_weights_and_means_of_all_views_back(affine, pivot, method):
    weights, means = truth()
    found = recover_views(
        population(weights, means, affine=affine), K, np.random.default_rng(0), pivot=pivot, method=Decomposer(method)
    )
    assert found.weights == pytest.approx(weights, abs=ROUNDING)  # largest first: in the order of the truth
    for estimate, mean in zip(found.means, means, strict=True):
        np.testing.assert_allclose(estimate, mean, atol=ROUNDING)
        assert np.abs(estimate[::-1] - mean).max() > 0.1  # shuffled components are seen
    assert found.raw_total == pytest.approx(1.0, abs=ROUNDING)
    assert found.residual < ROUNDING
    assert pivot is None or found.pivot == pivot


def test_the_symmetrized_moments_are_those_of_the_third_view():
    """M2 = sum w mu_3 mu_3' and M3 = sum w mu_3^(x3), by the theorem's own formulas at d = k."""
    weights, means = truth(1, (K, K, K))
    views = population(weights, means, affine=False)
    x1 = views.pair(2, 1) @ np.linalg.inv(views.pair(0, 1))
    x2 = views.pair(2, 0) @ np.linalg.inv(views.pair(1, 0))
    M2 = x1 @ views.pair(0, 1) @ x2.T
    M3 = np.einsum("abc,ia,jb->ijc", views.triples, x1, x2)
    np.testing.assert_allclose(M2, np.einsum("h,hi,hj->ij", weights, means[2], means[2]), atol=ROUNDING)
    np.testing.assert_allclose(M3, np.einsum("h,hi,hj,hk->ijk", weights, *[means[2]] * 3), atol=ROUNDING)
    found = recover_views(views, K, np.random.default_rng(0), pivot=2)
    assert found.spectrum == pytest.approx(np.linalg.eigvalsh(M2)[::-1], rel=1e-6)


@pytest.mark.parametrize(("affine", "polish"), [(False, False), (True, False), (True, True)])
def test_functionals_of_two_views_pick_one_component(affine, polish):
    weights, means = truth(2)
    found = recover_views(population(weights, means, affine=affine), K, np.random.default_rng(0), polish=polish)
    for t in range(3):
        assert not found.functionals[t][t].any()
        values = sum(means[s] @ found.functionals[t][s].T for s in range(3)) + found.offsets[t]
        np.testing.assert_allclose(values, np.diag(1 / weights), atol=100 * ROUNDING)


def test_the_least_squares_fit_stays_at_the_truth():
    weights, means = truth(5)
    found = recover_views(population(weights, means, affine=True), K, np.random.default_rng(0), polish=True)
    assert found.n_sweeps > 0
    assert found.residual < 1e-7  # a difference of squares: the root of rounding
    assert found.weights == pytest.approx(weights, abs=ROUNDING)
    np.testing.assert_allclose(np.hstack(found.means), np.hstack(means), atol=ROUNDING)


def test_the_affine_form_needs_one_direction_less():
    weights, means = truth(3, (K - 1, K - 1, K - 1))
    found = recover_views(population(weights, means, affine=True), K, np.random.default_rng(0))
    assert found.weights == pytest.approx(weights, abs=ROUNDING)
    np.testing.assert_allclose(np.hstack(found.means), np.hstack(means), atol=ROUNDING)
    with pytest.raises(MomentError, match="view 0 has 3 directions"):
        recover_views(population(weights, means, affine=False), K, np.random.default_rng(0))


@pytest.mark.parametrize("affine", [False, True])
def test_dependent_means_in_one_view_are_an_error_that_names_it(affine):
    weights, means = truth(4)
    means[1][3] = means[1][0]  # two components look alike in view 1
    with pytest.raises(MomentError, match=f"view 1 has {K - 1 - affine} directions"):
        recover_views(population(weights, means, affine=affine), K, np.random.default_rng(0))


def test_one_component():
    means = [np.array([[1.0, 2.0]]), np.array([[3.0]]), np.array([[4.0, 0.0]])]
    found = recover_views(population(np.ones(1), means, affine=True), 1, np.random.default_rng(0))
    assert found.weights == pytest.approx([1.0])
    np.testing.assert_allclose(np.hstack(found.means), np.hstack(means))
