from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odeco.moments.cumulants import CumulantTensor, FourthMoments, SecondMoments, centred_cumulant, fourth_cumulant
from odeco.sources.dense import DenseBatch
from odeco.tensors import multilinear
from tests.oracles import cumulants as oracle

# Sums of a few hundred products of order one, in double precision.
ROUNDING = 1e-12


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    return rng.laplace(size=(60, 3)) @ rng.standard_normal((3, 3)) + np.array([5.0, -3.0, 0.1])


def test_explicit_cumulant_is_the_definition(rows):
    np.testing.assert_allclose(fourth_cumulant(rows), oracle.fourth_cumulant(rows), atol=ROUNDING * 1e3)


def test_a_shift_away_from_the_mean_changes_nothing(rows):
    moments = FourthMoments(np.eye(3), shift=[4.0, 0.0, 1.0]).update(DenseBatch(rows))
    expected = oracle.fourth_cumulant(rows)
    # Raw moments about a point three standard deviations away lose about three digits.
    np.testing.assert_allclose(moments.cumulant(), expected, atol=1e-9)
    np.testing.assert_allclose(moments.covariance, np.cov(rows.T, bias=True), atol=1e-10)


def test_a_transform_acts_on_every_axis(rows):
    transform = np.random.default_rng(1).standard_normal((3, 2))
    moments = FourthMoments(np.eye(3), rows.mean(axis=0)).update(DenseBatch(rows))
    direct = FourthMoments(transform, rows.mean(axis=0)).update(DenseBatch(rows))
    np.testing.assert_allclose(moments.cumulant(transform), direct.cumulant(), atol=1e-10)


def test_weights_are_repetitions(rows):
    weights = np.random.default_rng(2).integers(0, 4, len(rows)).astype(float)
    weighted = FourthMoments(np.eye(3), rows[0]).update(DenseBatch(rows, weights))
    repeated = FourthMoments(np.eye(3), rows[0]).update(DenseBatch(np.repeat(rows, weights.astype(int), axis=0)))
    np.testing.assert_allclose(weighted.cumulant(), repeated.cumulant(), atol=1e-9)
    np.testing.assert_allclose(weighted.cumulant(), oracle.fourth_cumulant(rows, weights), atol=1e-9)
    assert weighted.weight == repeated.weight == weights.sum()


@given(cuts=st.lists(st.integers(0, 60), max_size=4), shuffle=st.randoms(use_true_random=False))
def test_any_chunks_and_any_order_of_merges_give_the_same(cuts, shuffle):
    rows = np.random.default_rng(3).laplace(size=(60, 3))
    whole = FourthMoments(np.eye(3), rows[0]).update(DenseBatch(rows))
    edges = sorted({0, 60, *cuts})
    parts = [FourthMoments(np.eye(3), rows[0]).update(DenseBatch(rows[a:b])) for a, b in pairwise(edges)]
    shuffle.shuffle(parts)
    merged = parts[0]
    for part in parts[1:]:
        merged.merge(part)
    assert merged.n == 60
    np.testing.assert_allclose(merged.cumulant(), whole.cumulant(), atol=1e-10)


def test_moments_of_different_shifts_or_bases_do_not_merge(rows):
    first = FourthMoments(np.eye(3), rows[0])
    with pytest.raises(ValueError, match="different shifts"):
        first.merge(FourthMoments(np.eye(3), rows[1]))
    with pytest.raises(ValueError, match="different bases"):
        first.merge(FourthMoments(2 * np.eye(3), rows[0]))
    with pytest.raises(ValueError, match="zero"):
        _ = first.covariance


def test_second_moments_are_numpys(rows):
    moments = SecondMoments(3, rows[0])
    for part in np.array_split(rows, 4):
        moments.update(DenseBatch(part))
    np.testing.assert_allclose(moments.mean, rows.mean(axis=0), rtol=1e-13)
    np.testing.assert_allclose(moments.covariance, np.cov(rows.T, bias=True), rtol=1e-11)


@pytest.mark.parametrize("weighted", [False, True])
def test_implicit_products_are_those_of_the_explicit_tensor(rows, weighted):
    rng = np.random.default_rng(4)
    weights = rng.random(len(rows)) if weighted else None
    explicit = oracle.fourth_cumulant(rows, weights)
    mean = np.average(rows, axis=0, weights=weights)
    implicit = CumulantTensor(np.ascontiguousarray((rows - mean).T), weights)
    u, v = rng.standard_normal((2, 3))
    scale = np.abs(explicit).max() * 100 * ROUNDING
    mapped = implicit.power_map(np.stack([u, v], axis=1))
    np.testing.assert_allclose(mapped[:, 0], multilinear(explicit, None, u, u, u), atol=scale)
    np.testing.assert_allclose(implicit.pair(u, v), multilinear(explicit, None, None, u, v), atol=scale)
    np.testing.assert_allclose(implicit.matrix(u), multilinear(explicit, None, None, u, u), atol=scale)
    np.testing.assert_allclose(implicit.third(v), multilinear(explicit, None, None, None, v), atol=scale)


def test_single_precision_rows_give_single_precision_products():
    rows = np.random.default_rng(5).laplace(size=(5000, 4))
    exact = fourth_cumulant(rows)
    single = FourthMoments(np.eye(4, dtype=np.float32), rows.mean(axis=0)).update(DenseBatch(rows.astype(np.float32)))
    # 1024 products at a time in float32: 2^-24 times the square root of their number, times moments of size 60.
    np.testing.assert_allclose(single.cumulant(), exact, atol=1e-3)
    assert np.abs(single.cumulant() - exact).max() > 0


@pytest.mark.parametrize("weighted", [False, True])
def test_the_cumulant_of_centred_samples_is_the_same(rows, weighted):
    weights = np.random.default_rng(6).random(len(rows)) if weighted else None
    centred = rows - np.average(rows, axis=0, weights=weights)
    found = centred_cumulant(np.ascontiguousarray(centred.T), weights)
    np.testing.assert_allclose(found, oracle.fourth_cumulant(rows, weights), atol=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
def test_parts_of_many_samples_add_up_to_the_same_for_any_number_of_threads(weighted, monkeypatch):
    rng = np.random.default_rng(3)
    rows = rng.laplace(size=(3, 20_001))
    weights = rng.uniform(size=20_001) if weighted else None
    rows -= np.average(rows, axis=1, weights=weights)[:, None]
    found = []
    for threads in ("1", "2", "3"):
        monkeypatch.setenv("ODECO_NUM_THREADS", threads)
        found.append(centred_cumulant(rows, weights))
    expected = FourthMoments(np.eye(3)).update(DenseBatch(rows.T, weights)).cumulant()
    np.testing.assert_array_equal(found[1:], found[:1] * 2)
    np.testing.assert_allclose(found[0], expected, atol=1e-11)  # fourth powers up to 1e4, summed with 16 digits
