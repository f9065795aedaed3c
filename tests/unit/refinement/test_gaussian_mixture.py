"""EM for Gaussian mixtures: the oracle's step, monotone, precisions, and the one scoring step."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from odeco.refinement.gaussian_mixture import (
    COVARIANCE_TYPES,
    GaussianParameters,
    Points,
    log_joint,
    maximize,
    posterior_sums,
    refine_gaussian_mixture,
)
from odeco.refinement.gaussian_scoring import gaussian_step
from odeco.refinement.loop import StoppingRule
from odeco.sources.dense import DenseBatch, as_dense_source
from tests.oracles.gaussian_mixture import em_step

K, D = 3, 4


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    centres = 2 * rng.standard_normal((K, D))
    return centres[rng.choice(K, 400, p=[0.5, 0.3, 0.2])] + rng.standard_normal((400, D)) * [0.5, 1, 1, 1.5]


def start(kind):
    rng = np.random.default_rng(1)
    spread = rng.uniform(0.5, 2.0, (K, D))
    covariances = {
        "spherical": spread[:, 0],
        "tied_spherical": 1.3,
        "diag": spread,
        "tied": np.diag(spread[0]) + 0.1,
        "full": np.stack([np.diag(s) + 0.1 for s in spread]),
    }[kind]
    return GaussianParameters(np.array([0.2, 0.3, 0.5]), rng.standard_normal((K, D)), covariances, kind)


def as_full(parameters):
    covariances, identity = parameters.covariances, np.eye(D)
    return {
        "spherical": lambda: covariances[:, None, None] * identity,
        "tied_spherical": lambda: np.repeat(covariances * identity[None], K, axis=0),
        "diag": lambda: np.stack([np.diag(c) for c in covariances]),
        "tied": lambda: np.repeat(covariances[None], K, axis=0),
        "full": lambda: covariances,
    }[parameters.covariance_type]()


def restrict(kind, weights, full):
    """The closest covariances of a kind: averages of what is to be equal."""
    return {
        "spherical": lambda: np.trace(full, axis1=1, axis2=2) / D,
        "tied_spherical": lambda: weights @ np.trace(full, axis1=1, axis2=2) / D,
        "diag": lambda: np.stack([np.diag(c) for c in full]),
        "tied": lambda: np.einsum("k,kij->ij", weights, full),
        "full": lambda: full,
    }[kind]()


def options(rows):
    return {"scales": rows.var(axis=0), "total": rows.T @ rows / len(rows)}


@pytest.mark.parametrize("kind", COVARIANCE_TYPES)
def test_a_step_is_the_oracles(rows, kind):
    begin = start(kind)
    points = Points(as_dense_source(rows, 64), None, np.float64, D)
    sums = posterior_sums(points, begin)
    new = maximize(sums, begin, D, 1e-9 * rows.var(axis=0), rows.T @ rows / len(rows))
    value, weights, means, full = em_step(rows, begin.weights, begin.means, as_full(begin))
    assert sums.value / sums.weight == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(new.weights, weights, rtol=1e-10)
    np.testing.assert_allclose(new.means, means, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(new.covariances, restrict(kind, weights, full), rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("kind", COVARIANCE_TYPES)
def test_the_likelihood_never_falls_and_weights_are_repetitions(rows, kind):
    rule = StoppingRule(25, 0.0)
    repeats = np.random.default_rng(2).integers(0, 3, len(rows))
    repeated = np.repeat(rows, repeats, axis=0)
    found = []
    for data, weights in ((rows, repeats.astype(float)), (repeated, None)):
        points = Points([DenseBatch(data, weights)], None, np.float64, D)
        done = refine_gaussian_mixture(points, start(kind), rule, **options(repeated))
        assert np.diff(done.trace.values).min() >= -1e-12  # rounding of a mean of about 6
        found.append(done.parameters)
    for name in ("weights", "means", "covariances"):
        np.testing.assert_allclose(getattr(found[0], name), getattr(found[1], name), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("kind", ["spherical", "tied_spherical"])
def test_projected_rows_are_as_good_as_all(rows, kind):
    """With means in a plane, EM on the plane and what is left of the rows has the same likelihood."""
    plane = np.linalg.qr(np.random.default_rng(3).standard_normal((D, 2)))[0]
    begin = start(kind)
    means = begin.means @ plane
    inside = rows @ plane
    rest = (rows**2).sum(axis=1) - (inside**2).sum(axis=1)
    reduced = Points([DenseBatch(inside)], None, np.float64, D, rest)
    whole = Points([DenseBatch(rows)], None, np.float64, D)
    first = posterior_sums(reduced, GaussianParameters(begin.weights, means, begin.covariances, kind))
    second = posterior_sums(whole, GaussianParameters(begin.weights, means @ plane.T, begin.covariances, kind))
    assert first.value == pytest.approx(second.value, rel=1e-12)


def test_single_precision_agrees_with_double(rows):
    begin = start("spherical")
    values = [posterior_sums(Points([DenseBatch(rows)], None, t, D), begin) for t in (np.float32, np.float64)]
    assert values[0].value == pytest.approx(values[1].value, rel=1e-6)  # eps of float32 is 1.2e-7
    np.testing.assert_allclose(values[0].features, values[1].features, rtol=1e-4, atol=1e-2)


def test_variances_stay_above_the_floor():
    rows = np.repeat(np.array([[0.0, 0.0], [5.0, 5.0]]), 10, axis=0)
    for kind, shape in (("spherical", np.full(2, 1.0)), ("diag", np.ones((2, 2))), ("full", np.stack([np.eye(2)] * 2))):
        begin = GaussianParameters(np.array([0.5, 0.5]), np.array([[0.1, 0], [5, 4.9]]), shape, kind)
        points = Points([DenseBatch(rows)], None, np.float64, 2)
        done = refine_gaussian_mixture(points, begin, StoppingRule(30, 0.0), scales=rows.var(axis=0), floor=1e-3)
        lowest = np.min(
            np.linalg.eigvalsh(done.parameters.covariances) if kind == "full" else done.parameters.covariances
        )
        assert lowest == pytest.approx(1e-3 * rows.var(axis=0)[0], rel=1e-9)
        assert np.diff(done.trace.values).min() >= -1e-12


@pytest.mark.parametrize("kind", COVARIANCE_TYPES)
def test_a_component_without_rows_keeps_its_place(rows, kind):
    begin = start(kind)
    far = replace(begin, means=np.vstack([begin.means[:2], np.full(D, 1e3)]))
    points = Points([DenseBatch(rows)], None, np.float64, D)
    done = refine_gaussian_mixture(points, far, StoppingRule(3, 0.0), **options(rows)).parameters
    assert done.weights[2] == 0
    np.testing.assert_array_equal(done.means[2], far.means[2])
    if "tied" not in kind:
        np.testing.assert_allclose(done.covariances[2], begin.covariances[2])
    joint = log_joint(points, done)
    assert np.isfinite(joint[:, :2]).all()


@pytest.mark.parametrize("kind", ["spherical", "tied_spherical", "diag"])
def test_one_step_is_nearly_the_maximum(kind):
    """From a start within n^(-1/2) of the truth the step leaves a remainder of second order (Le Cam)."""
    rng = np.random.default_rng(4)
    n, d = 20_000, 5
    means, weights = 1.5 * rng.standard_normal((K, d)), np.array([0.5, 0.3, 0.2])
    rows = means[rng.choice(K, n, p=weights)] + rng.standard_normal((n, d))
    points = Points(as_dense_source(rows), None, np.float64, d)
    covariances = {"spherical": np.ones(K), "tied_spherical": 1.0, "diag": np.ones((K, d))}[kind]
    near = GaussianParameters(weights, means + 3 / np.sqrt(n) * rng.standard_normal((K, d)), covariances, kind)
    best = refine_gaussian_mixture(points, near, StoppingRule(300, 1e-10), scales=rows.var(axis=0))
    stepped, done = gaussian_step(points, near)
    value = [posterior_sums(points, p).value / n for p in (near, stepped, best.parameters)]
    assert done.share == 1.0
    # Measured: 0.2 to 2 % of the gap remains; a step of EM alone leaves 30 % or more at this overlap.
    assert value[2] - value[1] < 0.05 * (value[2] - value[0])
