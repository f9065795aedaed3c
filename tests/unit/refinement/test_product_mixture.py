"""EM on mixed columns: densities, monotone steps, starts side by side, missing values."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp

from odeco.families.tables import Families
from odeco.kernels.mixtures import climb_tables
from odeco.refinement.one_step import product_step
from odeco.refinement.product_mixture import Parameters, em_step, log_joint, read_data, refine_products, stack
from odeco.sources.tables import open_table

FAMILY = ["gaussian", "categorical", "bernoulli", "poisson"]


def mixed(n=200, seed=0, missing=0.0, distance=1.0):
    rng = np.random.default_rng(seed)
    h = distance * rng.integers(2, size=n)
    values = np.column_stack(
        [
            rng.normal(4 * h, 1 + h),
            (rng.random(n) + 0.7 * h) * 1.7 // 1,
            rng.random(n) < 0.2 + 0.6 * h,
            rng.poisson(2 + 5 * h),
        ]
    ).astype(float)
    values[rng.random(values.shape) < missing] = np.nan
    return values


def setting(values):
    source = open_table(values, FAMILY)
    families = Families.of(source.schema, np.nanmean(values, axis=0), np.nanstd(values, axis=0))
    return families, read_data(families, lambda: [(values, None)], 2**20)


def start(families, k=2, n_starts=1, seed=0):
    rng = np.random.default_rng(seed)
    table = rng.uniform(0.2, 0.8, (k * n_starts, families.n_parameters))
    weights = rng.dirichlet(np.ones(k), n_starts)
    return Parameters(weights, families.project(table))


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_densities_are_those_of_scipy(missing):
    values = mixed(30, missing=missing)
    families, _ = setting(values)
    parameters = start(families)
    found = log_joint(families, families.statistics(values), parameters.weights, parameters.table)
    found = found + families.base(values)[:, None]
    bernoulli, indicators, counts, numbers, squares = families.spans
    for i, row in enumerate(parameters.table):
        mean = row[numbers][0] * families.scale[0] + families.centre[0]
        spread = np.sqrt(row[squares][0]) * families.scale[0]
        for m, x in enumerate(values):
            parts = [
                stats.norm.logpdf(x[0], mean, spread),
                np.nan if np.isnan(x[1]) else np.log(row[indicators][int(x[1])]),
                stats.bernoulli.logpmf(x[2], row[bernoulli][0]) if not np.isnan(x[2]) else np.nan,
                stats.poisson.logpmf(x[3], row[counts][0]) if not np.isnan(x[3]) else np.nan,
            ]
            # Missing values are marginalized: their factor is 1.
            expected = np.log(parameters.weights[0, i]) + np.nansum(parts)
            assert found[m, i] == pytest.approx(expected, rel=1e-10, abs=1e-10)


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("accelerate", [True, False])
def test_the_log_posterior_never_falls(missing, accelerate):
    families, data = setting(mixed(missing=missing))
    trace = refine_products(data, start(families), max_iter=60, tol=0.0, accelerate=accelerate).trace
    assert np.diff(trace.values).min() >= -1e-12  # rounding of a mean of 200 logarithms


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("accelerate", [True, False])
@pytest.mark.parametrize(("max_iter", "tol"), [(1, 0.0), (2, 0.0), (3, 0.0), (40, 0.0), (400, 1e-5)])
@pytest.mark.parametrize("weighted", [True, False])
def test_few_rows_climb_as_many_do(missing, accelerate, max_iter, tol, weighted):
    values = mixed(201, missing=missing)
    families, _ = setting(values)
    weights = np.random.default_rng(3).integers(0, 4, len(values)).astype(float) if weighted else None
    data = read_data(families, lambda: [(values, weights)], 2**20)
    in_python = replace(data, batches=tuple(data.batches))  # climbs are compiled for a batch in memory, which is a list
    assert data.few is not None
    assert in_python.few is None
    mixtures = start(families, k=3, n_starts=30)
    found, wanted = (
        refine_products(rows, mixtures, max_iter=max_iter, tol=tol, accelerate=accelerate) for rows in (data, in_python)
    )
    # Steps of up to 64 times EM's enlarge rounding; EM itself takes it back.
    np.testing.assert_allclose(found.values, wanted.values, atol=1e-9)
    np.testing.assert_allclose(found.log_likelihood, wanted.log_likelihood, atol=1e-9)
    np.testing.assert_allclose(found.trace.values, wanted.trace.values, atol=1e-9)
    np.testing.assert_allclose(found.parameters.weights, wanted.parameters.weights, atol=1e-5)
    np.testing.assert_allclose(found.parameters.table, wanted.parameters.table, atol=1e-5)
    assert (found.trace.n_iter, found.trace.reason) == (wanted.trace.n_iter, wanted.trace.reason)
    assert [each.iteration for each in found.trace.records] == [each.iteration for each in wanted.trace.records]


def test_a_climb_leaves_its_start_as_it_is():
    families, data = setting(mixed())
    begin = start(families)
    before = begin.table.copy()
    refine_products(data, begin, max_iter=5)
    np.testing.assert_array_equal(begin.table, before)


def climb(**change):
    given = {
        "features": np.ones((3, 2)), "weights": np.empty(0), "overall": np.ones(3), "total": 2.0, "prior": 1e-6,
        "n_bernoulli": 2, "n_poisson": 0, "n_gaussian": 0, "blocks": np.zeros(1, np.int64),
        "mask_of": np.array([-1, 0], dtype=np.int32), "k": 1, "max_iter": 3, "tol": 0.0, "accelerate": True,
        "state": np.full((2, 3), 0.5), "values": np.empty(2), "likelihoods": np.empty(2), "seen": np.empty(4),
        "counts": np.empty(4, dtype=np.int64),
    }  # fmt: skip
    return climb_tables(*(given | change).values())


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"mask_of": np.array([-1, 1], dtype=np.int32)}, IndexError),
        ({"mask_of": np.array([-2, 0], dtype=np.int32)}, IndexError),
        ({"mask_of": np.array([-1], dtype=np.int32)}, ValueError),
        ({"blocks": np.array([0, 9])}, IndexError),
        ({"blocks": np.array([1])}, ValueError),
        ({"n_gaussian": 1, "mask_of": np.array([-1, 0, -1], dtype=np.int32)}, ValueError),
        ({"state": np.full((2, 4), 0.5)}, ValueError),
        ({"seen": np.empty(3), "counts": np.empty(3, dtype=np.int64)}, ValueError),
        ({"counts": np.empty(3, dtype=np.int64)}, ValueError),
        ({"weights": np.ones(3)}, ValueError),
        ({"overall": np.ones(2)}, ValueError),
        ({"k": 0}, ValueError),
        ({"max_iter": 0}, ValueError),
    ],
)
def test_wrong_arguments_of_a_climb_are_an_error(change, error):
    assert climb()[0] > 0
    with pytest.raises(error):
        climb(**change)


def test_the_value_is_the_log_posterior_per_sample():
    values = mixed()
    families, data = setting(values)
    parameters = start(families)
    _, found = em_step(data, parameters)
    joint = log_joint(families, families.statistics(values), parameters.weights, parameters.table)
    # The prior's pseudo-observations weigh 1e-6.
    assert found[0] == pytest.approx(logsumexp(joint, axis=1).mean(), abs=1e-6)


def test_acceleration_ends_where_em_ends():
    families, data = setting(mixed(500, distance=0.3))
    plain = refine_products(data, start(families), max_iter=3000, tol=1e-13, accelerate=False)
    fast = refine_products(data, start(families), max_iter=3000, tol=1e-13)
    assert fast.trace.n_iter < plain.trace.n_iter
    np.testing.assert_allclose(fast.parameters.table, plain.parameters.table, atol=1e-4)


def test_starts_side_by_side_are_what_each_is_alone():
    families, data = setting(mixed(missing=0.1))
    starts = [start(families, seed=seed) for seed in range(4)]
    together = refine_products(data, stack(starts), max_iter=25, tol=0.0)
    for number, alone in enumerate(starts):
        expected = refine_products(data, alone, max_iter=25, tol=0.0)
        picked = together.parameters.pick(np.array([number]))
        np.testing.assert_allclose(picked.table, expected.parameters.table, rtol=1e-6, atol=1e-10)
        assert together.values[number] == pytest.approx(expected.values[0], abs=1e-10)


def test_weights_are_repetitions():
    values = mixed(60)
    families, _ = setting(values)
    counts = np.random.default_rng(1).integers(0, 4, len(values))
    weighted = read_data(families, lambda: [(values, counts.astype(float))], 2**20)
    rows = np.repeat(values, counts, axis=0)
    repeated = read_data(families, lambda: [(rows, None)], 2**20)
    one, other = (em_step(d, start(families))[0].table for d in (weighted, repeated))
    np.testing.assert_allclose(one, other, rtol=1e-10)


def test_statistics_that_do_not_fit_are_read_again():
    values = mixed(100)
    families, kept = setting(values)
    again = read_data(families, lambda: [(values[:50], None), (values[50:], None)], 1)
    one, other = (em_step(d, start(families))[0].table for d in (kept, again))
    np.testing.assert_allclose(one, other, rtol=1e-10)


def test_a_scoring_step_gains_at_least_what_em_gains():
    families, data = setting(mixed(300))
    at = start(families)
    after = em_step(data, at)[0]
    moved, _ = product_step(data, at)
    assert em_step(data, moved)[1][0] >= em_step(data, after)[1][0] - 1e-12
