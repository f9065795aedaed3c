"""Products and steps over tall blocks, shared by threads: numpy itself is the oracle."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from odeco.kernels import products
from odeco.kernels.sparse import add_posterior_sets, add_posteriors, sparse_product

ROWS = 9_001  # enough for two threads, and no multiple of what they take at a time


@pytest.fixture(params=["1", "2", "3"])
def rng(request, monkeypatch):
    monkeypatch.setenv("ODECO_NUM_THREADS", request.param)
    return np.random.default_rng(0)


def test_steps_over_rows_see_each_row_once(rng):
    seen = np.zeros((ROWS, 20))

    def add(part: slice) -> None:
        seen[part] += 1

    products.by_rows(add, seen)
    np.testing.assert_array_equal(seen, 1.0)


def test_remainders_scales_and_columns(rng):
    rows, block, matrix, scale = (rng.standard_normal(s) for s in ((ROWS, 20), (ROWS, 5), (5, 20), (ROWS,)))
    # Sums of five products of numbers of size 1: a few units of rounding.
    np.testing.assert_allclose(products.tall_remainder(rows, block, matrix), rows - block @ matrix, atol=1e-14)
    np.testing.assert_array_equal(products.scaled_rows(rows, scale), scale[:, None] * rows)
    single = products.scaled_rows(rows, scale, np.empty(rows.shape, np.float32))
    np.testing.assert_array_equal(single, (scale[:, None] * rows).astype(np.float32))
    np.testing.assert_array_equal(products.side_by_side([rows, block]), np.hstack([rows, block]))
    assert products.side_by_side([rows]) is rows


def test_products_with_counts(rng):
    counts = sparse.random_array((ROWS, 300), density=0.02, format="csr", rng=rng)
    block = rng.standard_normal((300, 11))
    np.testing.assert_allclose(sparse_product(counts, block), counts @ block, atol=1e-13)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("k", [1, 11, 16, 37])
def test_expected_counts_of_a_mixture_match_the_loops(rng, k, dtype):
    counts = sparse.random_array((ROWS, 300), density=0.02, format="csr", rng=rng).astype(dtype)
    logs, log_shares = np.log(rng.dirichlet(np.ones(300), k).T, order="C"), np.log(rng.dirichlet(np.ones(k)))
    weights, sums = rng.integers(0, 3, ROWS).astype(float), [(np.ones(k), np.ones((300, k)))]
    found = add_posteriors(counts, weights, logs, log_shares, sums)
    totals, words = (sum(parts) for parts in zip(*sums, strict=True))
    joint = counts.astype(float) @ logs + log_shares
    values = np.logaddexp.reduce(joint, axis=1)
    resp = weights[:, None] * np.exp(joint - values[:, None])
    assert found == pytest.approx(weights @ values, rel=1e-12)  # rounding, here and below
    np.testing.assert_allclose(totals, 1 + resp.sum(axis=0), rtol=1e-11)
    np.testing.assert_allclose(words, 1 + counts.astype(float).T @ resp, rtol=1e-11)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("n_sets", "k"), [(1, 1), (1, 7), (3, 4), (6, 4), (9, 2), (2, 20)])
def test_expected_counts_of_several_mixtures_match_those_of_each(n_sets, k, dtype):
    rng = np.random.default_rng(0)
    counts = sparse.random_array((500, 60), density=0.1, format="csr", rng=rng).astype(dtype)
    logs = np.ascontiguousarray(np.log(rng.dirichlet(np.ones(60), (n_sets, k))).transpose(2, 0, 1))
    priors, weights = np.log(rng.dirichlet(np.ones(k), n_sets)), rng.integers(0, 3, 500).astype(float)
    totals, words, values = np.ones((n_sets, k)), np.ones((60, n_sets * k)), np.ones(n_sets)
    add_posterior_sets(counts, weights, logs.reshape(60, -1), priors, totals, words, values)
    for s in range(n_sets):
        own = np.ones(k), np.ones((60, k))
        found = add_posteriors(counts, weights, np.ascontiguousarray(logs[:, s]), priors[s], [own])
        assert values[s] == pytest.approx(1 + found, rel=1e-12)  # rounding, here and below
        np.testing.assert_allclose(totals[s], own[0], rtol=1e-11)
        np.testing.assert_allclose(words[:, s * k : (s + 1) * k], own[1], rtol=1e-11)


def test_a_row_that_no_component_can_give_is_nan_and_one_of_no_weight_is_not_read():
    counts, logs, priors = sparse.csr_array([[1.0, 0], [0, 1]]), np.array([[-np.inf, -1.0], [-1, -1]]), np.zeros((2, 1))
    for weights, expected in (([1.0, 1.0], [np.nan, -2]), ([0.0, 1.0], [-1, -1])):
        totals, words, values = np.zeros((2, 1)), np.zeros((2, 2)), np.zeros(2)
        add_posterior_sets(counts, np.array(weights), logs, priors, totals, words, values)
        np.testing.assert_allclose(values, expected, rtol=1e-15)


def test_sets_of_other_shapes_are_refused():
    counts, weights, logs = sparse.csr_array(np.eye(3)), np.ones(3), np.zeros((3, 4))
    good = [np.zeros((2, 2)), np.zeros((2, 2)), np.zeros((3, 4)), np.zeros(2)]
    add_posterior_sets(counts, weights, logs, *good)
    for place, bad in enumerate([np.zeros((3, 2)), np.zeros((2, 3)), np.zeros((2, 4)), np.zeros(3)]):
        with pytest.raises(ValueError, match="must have size"):
            add_posterior_sets(counts, weights, logs, *good[:place], bad, *good[place + 1 :])
    with pytest.raises(IndexError, match="columns must lie"):
        add_posterior_sets(counts, weights, logs[:2], *good[:2], np.zeros((2, 4)), good[3])


def test_parts_are_put_together_in_order(rng):
    parts = [rng.random((size, 3)) for size in (5, 0, ROWS)]
    np.testing.assert_array_equal(products.joined_parts(parts), np.concatenate(parts))


def test_parts_of_a_sum_are_the_same_for_any_number_of_threads(rng):
    parts = products.by_parts(lambda part: part, 3 * ROWS)
    assert [(part.start, part.stop) for part in parts] == [(0, ROWS), (ROWS, 2 * ROWS), (2 * ROWS, 3 * ROWS)]
    assert products.by_parts(lambda part: part, 5) == [slice(0, 5)]
