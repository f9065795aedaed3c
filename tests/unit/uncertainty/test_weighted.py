"""Replicates from sums of blocks: Newton steps against full refits on the same weights, blocks against the whole."""

from __future__ import annotations

import numpy as np
import pytest

import odeco
from odeco.moments.passes import fill
from odeco.uncertainty.mixture_scores import MixtureTold
from odeco.uncertainty.opened import blocks_by_lot
from odeco.uncertainty.weighted import BLOCKS, moved_by, newton_steps

N = 4000


def classes(rng):
    shares = np.array([[0.9, 0.8, 0.85, 0.7, 0.9, 0.2], [0.2, 0.15, 0.3, 0.2, 0.7, 0.8]])
    rows = (rng.random((N, 6)) < shares[rng.choice(2, N, p=[0.6, 0.4])]).astype(float)
    return odeco.ProductMixture(2, family="bernoulli", effort="quick", random_state=0).fit(rows), rows


def clusters(rng, kind="diag"):
    centres = np.array([[0.0, 0, 0], [3, 0, 1], [0, 3, 1]])
    rows = centres[rng.choice(3, N, p=[0.5, 0.3, 0.2])] + rng.standard_normal((N, 3))
    return odeco.GaussianMixture(3, kind, random_state=0).fit(rows), rows


def views(rng):
    rows = clusters(rng)[1]
    parts = [rows, *(rows + rng.standard_normal((N, 3)) for _ in range(2))]
    return odeco.MultiViewMixture(3, random_state=0).fit(parts), parts


def blocks_of(model, rows, n_blocks=BLOCKS):
    """Sums of blocks, and the block of every row."""
    source = model._reopen(rows)
    (batch,) = source
    return fill(MixtureTold(model, n_blocks, 3), source), blocks_by_lot(batch, N, n_blocks, 3)


@pytest.mark.parametrize("draw", [classes, clusters, views])
def test_a_newton_step_is_a_refit_on_the_same_weights(draw):
    """Of numbers known to 5 or 10 %, half are nearer to the refit than a tenth of the error (measured: 0.02)."""
    model, rows = draw(np.random.default_rng(0))
    blocks, lots = blocks_of(model, rows)
    frees = model._free_parameters()
    times = np.random.default_rng(1).multinomial(BLOCKS, np.full(BLOCKS, 1 / BLOCKS), size=6)
    steps = newton_steps(blocks, times)
    far, spread = [], []
    for row, step in zip(times, steps, strict=True):
        weights = row[lots].astype(float)
        refit = model._climbed(rows, {"sample_weight": weights}, None)
        near = moved_by(model, frees, blocks.coordinates, step)
        far.append(np.concatenate([np.ravel(refit.means_) - np.ravel(near.means_), refit.weights_ - near.weights_]))
        spread.append(np.concatenate([np.ravel(refit.means_), refit.weights_]))
    errors = np.abs(far) / np.std(spread, axis=0, ddof=1)
    assert np.median(errors) < 0.1
    assert np.quantile(errors, 0.95) < 0.4


@pytest.mark.parametrize("draw", [classes, clusters, views])
def test_blocks_sum_to_the_whole(draw):
    model, rows = draw(np.random.default_rng(0))
    blocks, lots = blocks_of(model, rows, 7)
    whole = fill(MixtureTold(model), model._reopen(rows)).information()
    total = blocks.information()
    np.testing.assert_allclose(total.outer, whole.outer, rtol=1e-9, atol=1e-9 * np.abs(whole.outer).max())
    # second differences: rounding of log densities over the square of their step
    np.testing.assert_allclose(total.observed, whole.observed, atol=1e-5 * np.abs(whole.observed).max())
    some = [view[lots == 0] for view in rows] if isinstance(rows, list) else rows[lots == 0]
    alone = fill(MixtureTold(model), model._reopen(some)).information()
    np.testing.assert_allclose(blocks.outer[0], alone.outer, rtol=1e-9, atol=1e-9 * np.abs(alone.outer).max())


def test_shared_covariances_have_versions_of_their_own():
    model, rows = clusters(np.random.default_rng(0), "tied")
    found = odeco.intervals(model, rows, method="replicates", replication=False, random_state=0)
    sandwich = odeco.intervals(model, rows, replication=False)
    # a hundred replicates of 200 blocks know a deviation to 8 %; medians over an attribute to less
    ratio = found.standard_error["covariances_"] / sandwich.standard_error["covariances_"]
    assert 0.8 < np.median(ratio) < 1.25


def test_few_rows_are_fitted_again():
    """Blocks of fewer than ten rows: replicates are refits, and know the same."""
    rng = np.random.default_rng(0)
    rows = np.vstack([rng.normal(0, 1, (150, 2)), rng.normal(6, 1, (150, 2))])
    model = odeco.GaussianMixture(2, random_state=0).fit(rows)
    found = odeco.intervals(model, rows, method="replicates", n_replicates=40, replication=False, random_state=0)
    np.testing.assert_allclose(found.standard_error["means_"], 1 / np.sqrt(150), rtol=0.5)
