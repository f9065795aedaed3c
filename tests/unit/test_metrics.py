"""Matching of components: the best permutation, signs, and what happens when numbers differ."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from odeco.metrics import amari, match_components


@pytest.fixture
def components():
    return np.random.default_rng(0).standard_normal((6, 5))


def test_a_permutation_is_found_and_undone(components):
    order = np.array([3, 0, 4, 1, 2])
    matching = match_components(components[:, order], components)
    assert np.array_equal(order[matching.permutation], np.arange(5))
    assert np.array_equal(matching.matched, np.arange(5))
    assert np.array_equal(matching.errors, np.zeros(5))
    assert matching.largest == 0.0


def test_the_matching_has_the_least_sum_of_squares(components):
    """Against all 120 permutations, where the nearest column of one is taken by another."""
    rng = np.random.default_rng(1)
    estimate = components + 2 * rng.standard_normal(components.shape)
    matching = match_components(estimate, components)
    costs = {
        order: np.sum((estimate[:, list(order)] - components) ** 2)
        for order in permutations(range(components.shape[1]))
    }
    assert tuple(matching.permutation) == min(costs, key=costs.get)
    assert np.sum(matching.errors**2) == pytest.approx(min(costs.values()))
    greedy = np.argmin(np.linalg.norm(estimate[:, :, None] - components[:, None, :], axis=0), axis=0)
    assert len(set(greedy)) < 5  # each for itself would have taken a column twice


def test_signs_count_unless_told_otherwise(components):
    turned = components * [1, -1, 1, -1, -1]
    strict = match_components(turned, components)
    assert strict.largest > 1
    assert np.array_equal(strict.signs, np.ones(5))
    loose = match_components(turned[:, ::-1], components, up_to_sign=True)
    assert np.array_equal(loose.signs, [1, -1, 1, -1, -1])
    assert loose.largest == 0.0
    assert np.array_equal(turned[:, ::-1][:, loose.permutation] * loose.signs, components)


@pytest.mark.parametrize(("estimates", "truths"), [(3, 5), (5, 3), (1, 5), (5, 0), (0, 5)])
def test_different_numbers_match_the_smaller(components, estimates, truths):
    rng = np.random.default_rng(2)
    order = rng.permutation(5)[:estimates]
    matching = match_components(components[:, order], components[:, :truths])
    common = set(order) & set(range(truths))
    size = min(estimates, truths)
    assert matching.permutation.size == matching.matched.size == matching.errors.size == size
    right = {int(t) for t, e in zip(matching.matched, matching.permutation, strict=True) if order[e] == t}
    assert right == common if size else not right
    assert matching.largest == (matching.errors.max() if size else 0.0)


def test_small_errors_keep_their_digits(components):
    """Expanded squares would lose everything below 1e-8."""
    estimate = components.copy()
    estimate[0, 2] += 1e-13
    assert match_components(estimate, components).largest == pytest.approx(1e-13, rel=1e-2, abs=0)


def test_bad_shapes_are_refused(components):
    for estimate in (components[:4], components[:, 0], components[None]):
        with pytest.raises(ValueError, match="columns of the same length"):
            match_components(estimate, components)


def test_amari_is_zero_for_scaled_permutations_and_one_for_none_at_all():
    rng = np.random.default_rng(3)
    mixing = rng.standard_normal((6, 4))
    inverse = np.linalg.pinv(mixing)
    assert amari((inverse * [[2.0], [-1.0], [0.1], [5.0]])[[2, 0, 3, 1]], mixing) == pytest.approx(0, abs=1e-14)
    assert amari(np.ones((4, 4)), np.ones((4, 4))) == 1.0
    assert amari([[2.0]], [[3.0]]) == 0.0


def test_amari_is_the_mean_crosstalk():
    """Off-diagonal entries e of a gain with a unit diagonal: their mean, rows and columns alike."""
    crosstalk = np.random.default_rng(4).uniform(-0.1, 0.1, (5, 5))
    np.fill_diagonal(crosstalk, 0)
    expected = np.abs(crosstalk).sum() / 20
    assert amari(np.eye(5) + crosstalk, np.eye(5)) == pytest.approx(expected, rel=1e-12)
    assert amari(np.eye(5)[[1, 0, 2, 3, 4]] @ (np.eye(5) + crosstalk), np.eye(5)) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("components", "mixing", "match"),
    [
        (np.eye(3), np.ones((3, 2)), "fit each other"),
        (np.ones(3), np.eye(3), "fit each other"),
        (np.diag([1.0, 0.0]), np.eye(2), "zero row"),
        (np.diag([1.0, np.nan]), np.eye(2), "NaN"),
    ],
)
def test_amari_refuses_what_has_no_distance(components, mixing, match):
    with pytest.raises(ValueError, match=match):
        amari(components, mixing)
