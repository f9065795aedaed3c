"""The one stream of all models: chunks do not matter, nothing is held that should not be, parts add up."""

from __future__ import annotations

from copy import deepcopy

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odeco import GaussianMixture
from odeco.fitting.stream import MomentStream, StreamPlan
from odeco.moments.cumulants import SecondMoments
from odeco.sources.dense import DenseBatch
from odeco.sources.rows import VECTORS

ROWS = np.random.default_rng(0).standard_normal((50, 3)) + 5.0


class AboutFirst(SecondMoments):
    """Second moments about the mean of the first rows: a basis that shows which rows it was learned from."""

    _on = ("n_features", "shift")


def plan(n_first=10, block=8, keep_first=False):
    def learn(first, rng):
        return AboutFirst(first.n_features, first.rows.mean(axis=0) + 1e-3 * rng.standard_normal(3))

    return StreamPlan(VECTORS, n_first, learn, block, keep_first)


def fed(cuts, how, rows=ROWS):
    stream = MomentStream(7, {})
    for part in np.split(rows, cuts):
        if len(part):
            stream.update(DenseBatch(part), how)
    return stream


@given(st.lists(st.integers(0, 50), max_size=6), st.integers(1, 60), st.integers(1, 20))
def test_any_chunks_give_the_same_bits(cuts, n_first, block):
    how = plan(n_first, block)
    whole, parts = fed([], how), fed(sorted(cuts), how)
    assert parts.n == whole.n == len(ROWS)
    assert parts.started == whole.started == (n_first <= len(ROWS))
    np.testing.assert_array_equal(parts.read(how).covariance, whole.read(how).covariance)
    # About another point the moments are the same to rounding: nothing is lost or counted twice.
    np.testing.assert_allclose(whole.read(how).covariance, np.cov(ROWS.T, bias=True), atol=1e-12)


def test_the_basis_is_that_of_the_first_rows():
    how = plan(10)
    noise = 1e-3 * np.random.default_rng(7).standard_normal(3)
    np.testing.assert_allclose(fed([3, 30], how).read(how).shift, ROWS[:10].mean(axis=0) + noise)
    early = fed([], how, ROWS[:6])
    assert not early.started
    np.testing.assert_allclose(early.read(how).shift, ROWS[:6].mean(axis=0) + noise)  # of what there is
    assert not early.started  # reading changes nothing


def test_no_more_than_a_block_is_held():
    how = plan(10, block=8)
    stream = MomentStream(7, {})
    for row in ROWS:
        stream.update(DenseBatch(row[None]), how)
        assert sum(map(len, stream._waiting)) <= 10
    stream.settle(how)
    assert stream._waiting == []
    assert stream.sums.n == len(ROWS)


def test_first_rows_stay_where_they_are_kept():
    how = plan(10, block=None, keep_first=True)
    np.testing.assert_array_equal(fed([4, 10], how).first.rows, ROWS[:10])
    assert fed([], plan(10)).first is None
    assert not fed([], how, ROWS[:10]).started  # all there is is kept
    assert fed([], how, ROWS[:11]).started


def test_the_callers_rows_may_change():
    rows, how = ROWS.copy(), plan(20)
    stream = fed([5], how, rows[:15])
    expected = stream.read(how).covariance
    rows[:] = 0
    np.testing.assert_array_equal(stream.read(how).covariance, expected)


def test_parts_on_one_basis_add_up():
    how = plan(10)
    basis = fed([], how, ROWS[::5]).emptied(how)
    assert (basis.n, basis.read(how).n) == (0, 0)
    parts = []
    for rows in (ROWS[:7], ROWS[7:]):
        part = deepcopy(basis)
        part.update(DenseBatch(rows), how)
        parts.append(part)
    parts[0].merge(parts[1], how)
    assert parts[0].n == len(ROWS)
    np.testing.assert_allclose(parts[0].read(how).covariance, np.cov(ROWS.T, bias=True), atol=1e-12)
    with pytest.raises(ValueError, match="different"):
        parts[0].merge(fed([], how, ROWS[1::2]), how)


def test_what_is_empty_says_so():
    for ask in (MomentStream.read, MomentStream.emptied, MomentStream.held):
        with pytest.raises(ValueError, match="no samples have been seen yet"):
            ask(MomentStream(0, {}), plan())
    with pytest.raises(ValueError, match="without a basis cannot be merged"):
        MomentStream(0, {}).merge(MomentStream(0, {}), plan())


def test_bad_rows_leave_no_stream():
    model = GaussianMixture(2, random_state=0)
    with pytest.raises(ValueError, match="NaN"):
        model.partial_fit(np.full((5, 2), np.nan))
    assert not hasattr(model, "_stream")
    model.partial_fit(np.random.default_rng(0).standard_normal((50, 3)))  # of any number of columns
