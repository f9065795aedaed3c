"""Densities and EM of several views: against scipy's distributions, in dense and sparse blocks alike."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse, stats

from odeco.refinement.dawid_skene import CrowdParameters, refine_crowd
from odeco.refinement.views import ViewModel, ViewParameters, refine_views, views_log_joint
from odeco.sources.crowd import read_labels
from odeco.sources.views import ViewBatch
from odeco.sources.votes import VoteBatch

K, N = 3, 25
KINDS = ("gaussian", "bernoulli", "multinomial", "poisson")


def case(seed: int = 0):
    rng = np.random.default_rng(seed)
    means = (
        rng.standard_normal((K, 4)),
        rng.uniform(0.1, 0.9, (K, 3)),
        7 * rng.dirichlet(np.ones(5), K),
        rng.gamma(2.0, 1.0, (K, 2)),
    )
    variances = (rng.uniform(0.5, 2.0, (K, 4)), None, None, None)
    blocks = (
        rng.standard_normal((N, 4)) * (rng.random((N, 4)) < 0.7),
        (rng.random((N, 3)) < 0.5).astype(float),
        rng.multinomial(7, np.full(5, 0.2), N).astype(float),
        rng.poisson(2.0, (N, 2)).astype(float),
    )
    parameters = ViewParameters(rng.dirichlet(np.ones(K)), means, variances)
    centers = tuple(block.mean(axis=0) for block in blocks)
    model = ViewModel(KINDS, centers, tuple(np.full(block.shape[1], 1e-6) for block in blocks), smoothing=0.1)
    return blocks, parameters, model


def expected(blocks, parameters):
    joint = np.tile(np.log(parameters.weights), (N, 1))
    for i in range(K):
        normal = stats.norm(parameters.means[0][i], np.sqrt(parameters.variances[0][i]))
        joint[:, i] += normal.logpdf(blocks[0]).sum(axis=1)
        joint[:, i] += stats.bernoulli(parameters.means[1][i]).logpmf(blocks[1]).sum(axis=1)
        shares = parameters.means[2][i] / parameters.means[2][i].sum()
        joint[:, i] += blocks[2] @ np.log(shares)  # the words in their order: no coefficient
        joint[:, i] += stats.poisson(parameters.means[3][i]).logpmf(blocks[3]).sum(axis=1)
    return joint


@pytest.mark.parametrize("thin", [False, True])
def test_log_densities_are_scipys(thin):
    blocks, parameters, model = case()
    given = tuple(sparse.csr_array(block) for block in blocks) if thin else blocks
    np.testing.assert_allclose(views_log_joint(given, parameters, model), expected(blocks, parameters), atol=1e-11)


@pytest.mark.parametrize("looped", [512, 0])
def test_one_em_step_by_hand_and_in_any_container(monkeypatch, looped):
    monkeypatch.setattr("odeco.refinement.views._LOOPED", looped)
    blocks, parameters, model = case()
    joint = expected(blocks, parameters)
    shares = np.exp(joint - joint.max(axis=1, keepdims=True))
    shares /= shares.sum(axis=1, keepdims=True)
    totals = shares.sum(axis=0)
    for thin in (False, True):
        given = tuple(sparse.csr_array(block) for block in blocks) if thin else blocks
        found = refine_views(lambda given=given: [ViewBatch(given)], parameters, model, max_iter=1).parameters
        assert found.weights == pytest.approx(totals / N)
        mean = shares.T @ blocks[0] / totals[:, None]
        np.testing.assert_allclose(found.means[0], mean, atol=1e-10)
        variance = np.array([shares[:, i] @ (blocks[0] - mean[i]) ** 2 / totals[i] for i in range(K)])
        np.testing.assert_allclose(found.variances[0], variance, atol=1e-10)
        np.testing.assert_allclose(found.means[1], (shares.T @ blocks[1] + 0.1) / (totals[:, None] + 0.2), atol=1e-10)
        counts = shares.T @ blocks[2]
        np.testing.assert_allclose(found.means[2], 7 * (counts + 0.1) / (counts.sum(axis=1)[:, None] + 0.5), atol=1e-9)
        rates = (shares.T @ blocks[3] + 0.1) / (totals[:, None] + 0.1 / blocks[3].mean(axis=0))
        np.testing.assert_allclose(found.means[3], rates, atol=1e-10)


def test_a_component_without_samples_keeps_its_place():
    blocks, parameters, model = case()
    means = (np.vstack([parameters.means[0][:2], np.full(4, 1e3)]), *parameters.means[1:])
    begin = ViewParameters(parameters.weights, means, parameters.variances)
    found = refine_views(lambda: [ViewBatch(blocks)], begin, model, max_iter=2).parameters
    assert found.weights[2] == 0
    for mean, old in zip(found.means, means, strict=True):
        np.testing.assert_array_equal(mean[2], old[2])
    np.testing.assert_array_equal(found.variances[0][2], parameters.variances[0][2])


def test_the_objective_never_falls_and_chunks_do_not_matter():
    blocks, parameters, model = case()
    whole = ViewBatch(blocks)
    once = refine_views(lambda: [whole], parameters, model, max_iter=30, tol=0)
    parts = refine_views(lambda: [whole.cut(0, 7), whole.cut(7, 25)], parameters, model, max_iter=30, tol=0)
    assert np.all(np.diff(once.trace.values) > -1e-12)
    np.testing.assert_allclose(once.parameters.means[0], parts.parameters.means[0], atol=1e-8)


def test_crowd_em_never_falls_and_weights_are_repetitions():
    rng = np.random.default_rng(0)
    crowd = read_labels(rng.integers(-1, 3, (60, 6)), "wide")
    start = CrowdParameters(np.full(3, 1 / 3), rng.dirichlet(np.ones(3), (6, 3)))
    times = rng.integers(1, 4, 60)
    (weighted,) = refine_crowd([VoteBatch(crowd.votes, times.astype(float))], [start], max_iter=30, tol=0)
    again = VoteBatch(crowd.votes[np.repeat(np.arange(60), times)])
    other = CrowdParameters(start.weights, rng.dirichlet(np.ones(3), (6, 3)))
    _, repeated = refine_crowd(
        [again.take(slice(0, 50)), again.take(slice(50, None))], [other, start], max_iter=30, tol=0
    )
    assert np.all(np.diff(weighted.trace.values) > -1e-12)
    np.testing.assert_allclose(weighted.parameters.confusion, repeated.parameters.confusion, atol=1e-9)
