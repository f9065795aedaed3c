"""The landscape of product mixtures: mergers, splits, weights, and rows that stand for all."""

from __future__ import annotations

import numpy as np
import pytest

from odeco import ProductMixture
from odeco.families.tables import Families
from odeco.fitting.candidates import EFFORTS, Candidate, search
from odeco.models.product_mixture.landscape import ProductLandscape
from odeco.models.product_mixture.search import spread_rows
from odeco.refinement.product_mixture import read_data
from odeco.sources.dense import DenseBatch, DenseSource
from odeco.sources.tables import infer_schema
from tests.oracles.mergers import merger_cost

FAMILIES = ["gaussian", "gaussian", "poisson", "poisson", "bernoulli", "bernoulli", "categorical", "categorical"]
N = 900


def table(seed=0):
    """Rows of five components that no row can mistake, with missing values, and the components."""
    rng = np.random.default_rng(seed)
    h = rng.integers(5, size=N)
    codes = np.array([[0, 0], [1, 0], [2, 1], [3, 1], [4, 2]])[h]
    numbers = rng.normal(np.array([[0, 0], [9, 0], [0, 9], [9, 9], [5, 5]])[h], 1)
    counts = rng.poisson(np.array([[20, 90], [60, 20], [90, 60], [30, 30], [150, 150]])[h])
    binary = rng.random((N, 2)) < np.array([[0.1, 0.9], [0.9, 0.1], [0.5, 0.5], [0.1, 0.1], [0.9, 0.9]])[h]
    X = np.column_stack([numbers, counts, binary, np.where(rng.random((N, 2)) < 0.9, codes, 0)]).astype(float)
    X[rng.random(X.shape) < 0.1] = np.nan
    return X, h


def landscape(X, weights=None):
    schema = infer_schema([X], FAMILIES, None)
    families = Families.of(schema, np.nanmean(X, axis=0), np.nanstd(X, axis=0))
    return ProductLandscape(read_data(families, lambda: [(X, weights)], 2**30), 0.0)


def from_labels(land, labels):
    return land.of_shares(np.eye(labels.max() + 1)[labels].T.copy())


def test_a_merger_costs_what_the_expected_likelihood_loses():
    """Halves of one component are merged first, into the whole."""
    X, h = table()
    land = landscape(X)
    halved = h.copy()
    halved[np.flatnonzero(h == 2)[::2]] = 5
    merged, whole = land.merge(from_labels(land, halved), 1), from_labels(land, h)
    order = np.argsort(merged.table[:, land.data.families.spans[2]][:, 0])
    expected = np.argsort(whole.table[:, land.data.families.spans[2]][:, 0])
    np.testing.assert_allclose(merged.table[order], whole.table[expected], atol=0.02, rtol=0.01)
    np.testing.assert_allclose(merged.weights[0, order], whole.weights[0, expected], atol=1e-3)


def test_the_cost_is_that_of_the_likelihood_with_known_components():
    """sum over rows of log w_i + log f_i(x) before and after, by the densities themselves."""
    X, h = table()
    land = landscape(X)
    families, (statistics, _) = land.data.families, land.rows

    def likelihood(labels):
        state = from_labels(land, labels)
        slopes, constants = families.natural(state.table)
        return np.sum(
            np.einsum("np,np->n", statistics, slopes[labels]) + (constants + np.log(state.weights[0]))[labels]
        )

    joined = np.where(h == 4, 1, h)
    # The pseudo-observations weigh a millionth of one row.
    assert merger_cost(land, np.eye(5)[h].T.copy(), 1, 4) == pytest.approx(likelihood(h) - likelihood(joined), rel=1e-4)


def test_weights_count_as_repetitions():
    X, _ = table()
    weights, labels = 1.0 + np.arange(N) % 3, np.arange(N) % 4
    repeat = weights.astype(int)
    once = landscape(X, weights)
    often = ProductLandscape(read_data(once.data.families, lambda: [(np.repeat(X, repeat, axis=0), None)], 2**30), 0.0)
    start = once.of_shares(np.eye(4)[labels].T * weights)
    again = often.of_shares(np.repeat(np.eye(4)[labels], repeat, axis=0).T.copy())
    for one, two in (
        (start, again),
        (once.merge(start, 1), often.merge(again, 1)),
        (once.split(start, np.random.default_rng(0), 8), often.split(again, np.random.default_rng(0), 8)),
    ):
        np.testing.assert_allclose(one.table, two.table, rtol=1e-7, atol=1e-8)
        np.testing.assert_allclose(one.weights, two.weights, atol=1e-10)


def test_splitting_keeps_totals_and_missing_values_take_no_side():
    X, h = table()
    land = landscape(X)
    state = from_labels(land, h)
    doubled = land.split(state, np.random.default_rng(0), 8)
    shares = land.posterior(state)[0].sum(axis=1) / N
    np.testing.assert_allclose(doubled.weights[0, :5] + doubled.weights[0, 5:], shares, atol=1e-7)
    assert np.abs(land.features[np.isnan(X[:, 0])][:, land.data.families.spans[3].start]).max() == 0
    assert np.abs(land.features[np.isnan(X[:, 6])][:, land.data.families.spans[1]][:, :5]).max() == 0
    np.testing.assert_allclose(land.features.mean(axis=0), 0, atol=1e-10)


def test_a_stuck_start_moves_free():
    """Two components on one class, one on two others: EM stays there, moves find all five."""
    X, h = table()
    land = landscape(X)
    wrong = np.where(h == 4, 3, h)
    wrong[(h == 0) & (X[:, 0] > 0)] = 4
    start = from_labels(land, wrong)
    _, stuck = land.climb(start, 100, 0.0)
    found = search(land, [Candidate("wrong", lambda: start)], 5, EFFORTS["auto"], np.random.default_rng(0))
    _, truth = land.climb(from_labels(land, h), 100, 0.0)
    assert stuck < truth - 0.1
    assert found.best.value > truth - 1e-3
    assert found.best.moves >= 1


def test_spikes_are_degenerate():
    X, h = table()
    X[:3, 0], h[:3] = 50.0, 5
    land = landscape(X)
    assert land.degenerate(from_labels(land, h))
    assert not land.degenerate(from_labels(land, np.where(h == 5, 0, h)))
    X[:, 0], h = np.where(h == 1, 50.0, X[:, 0]), np.where(h == 5, 1, h)
    land = landscape(X)
    assert np.bincount(h)[1] > 100  # a fifth of all rows is no chance
    assert not land.degenerate(from_labels(land, h))


def test_rows_that_stand_for_all_are_spread_over_their_weight():
    rows = np.arange(40_000, dtype=float)[:, None]
    found, whole = spread_rows(DenseSource(lambda: [DenseBatch(rows)]), 1000)
    assert not whole
    np.testing.assert_array_equal(np.diff(found.rows[:, 0]), 40)
    weights = np.where(rows[:, 0] < 100, 1000.0, 1.0)
    heavy, _ = spread_rows(DenseSource(lambda: [DenseBatch(rows, weights)]), 1000)
    assert 700 <= len(heavy.rows) <= 1300
    # A hundred rows have 100,000 of 139,900 parts of the weight; each row is off by one point at most.
    share = heavy.weights[heavy.rows[:, 0] < 100].sum() / heavy.weights.sum()
    assert share == pytest.approx(100_000 / 139_900, abs=0.01)
    few, whole = spread_rows(DenseSource(lambda: [DenseBatch(rows[:1000], weights[:1000])]), 1000)
    assert whole
    np.testing.assert_array_equal(few.weights, weights[:1000])


def test_fits_of_one_seed_are_the_same_where_they_search():
    X, _ = table()
    one, two = (ProductMixture(4, family=FAMILIES, random_state=1).fit(X) for _ in range(2))
    np.testing.assert_array_equal(one.means_, two.means_)
    assert one.diagnostics_.details["starts"] == two.diagnostics_.details["starts"]
