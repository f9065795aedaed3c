"""Moments of vectors: oracle, chunks, merges, weights, shifts."""

from __future__ import annotations

import numpy as np
import pytest

from odeco.moments.passes import fill
from odeco.moments.vectors import (
    ColumnMoments,
    CovarianceProduct,
    FastSecondMoments,
    Projection,
    VectorMoments,
    leading_directions,
)
from odeco.sources.dense import DenseBatch, as_dense_source
from tests.oracles.gaussian_mixture import vector_moments

ROUNDING = 1e-12  # sums of 60 products of numbers near 1, relative to them


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    return rng.standard_normal((60, 5)) ** 2 + np.arange(5.0)


@pytest.fixture
def basis():
    return np.linalg.qr(np.random.default_rng(1).standard_normal((5, 3)))[0]


def read(moments):
    return moments.mean, moments.covariance, moments.third, moments.radial, moments.cross, moments.total_variance


def test_the_oracle_agrees(rows, basis):
    weights = np.random.default_rng(2).uniform(0.5, 2.0, 60)
    found = VectorMoments(basis, np.ones(5)).update(DenseBatch(rows, weights))
    mean, covariance, third, radial = vector_moments(rows, basis, weights)
    np.testing.assert_allclose(found.mean, mean, rtol=ROUNDING)
    np.testing.assert_allclose(found.covariance, covariance, rtol=ROUNDING, atol=ROUNDING)
    np.testing.assert_allclose(found.third, third, rtol=1e-10, atol=1e-10)  # differences of cubes of 30
    np.testing.assert_allclose(found.radial, radial, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(found.cross, np.cov(rows.T, aweights=weights, bias=True) @ basis, atol=1e-10)
    assert found.total_variance == pytest.approx(np.trace(np.cov(rows.T, aweights=weights, bias=True)), rel=ROUNDING)


def test_chunks_merges_and_shifts_change_nothing(rows, basis):
    whole = VectorMoments(basis).update(DenseBatch(rows))
    parts = [VectorMoments(basis).update(DenseBatch(part)) for part in np.array_split(rows, 4)]
    merged = parts[2].merge(parts[0]).merge(parts[3]).merge(parts[1])
    threads = fill(VectorMoments(basis), as_dense_source(rows, 7))
    shifted = VectorMoments(basis, rows.mean(axis=0)).update(DenseBatch(rows))
    for other in (merged, threads, shifted):
        assert other.n == 60
        for first, second in zip(read(whole), read(other), strict=True):
            np.testing.assert_allclose(first, second, rtol=1e-9, atol=1e-9)  # cubes of 30 cancel


def test_weights_are_repetitions(rows, basis):
    repeats = np.random.default_rng(3).integers(0, 4, 60)
    weighted = VectorMoments(basis).update(DenseBatch(rows, repeats.astype(float)))
    repeated = VectorMoments(basis).update(DenseBatch(np.repeat(rows, repeats, axis=0)))
    for first, second in zip(read(weighted), read(repeated), strict=True):
        np.testing.assert_allclose(first, second, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
def test_projected_rows_have_the_same_moments(rows, basis, weighted):
    weights = np.random.default_rng(4).uniform(0.5, 2.0, 60) if weighted else None
    source = as_dense_source(rows, 16, sample_weight=weights)
    mean = np.average(rows, axis=0, weights=weights)
    found = Projection(60, basis, mean).update_all(source).moments(basis, mean)
    expected = VectorMoments(basis, mean, cross=False).update_all(source)
    assert expected._cross is None  # nor in the sums of a thread
    np.testing.assert_allclose(found.third, expected.third, atol=1e-10)
    np.testing.assert_allclose(found.radial, expected.radial, atol=1e-10)
    np.testing.assert_allclose(found.covariance, expected.covariance, atol=ROUNDING)


def test_what_does_not_belong_together_does_not_merge(rows, basis):
    moments = VectorMoments(basis).update(DenseBatch(rows))
    with pytest.raises(ValueError, match="different bases"):
        moments.merge(VectorMoments(basis[:, ::-1]))
    with pytest.raises(ValueError, match="different shifts"):
        moments.merge(VectorMoments(basis, np.ones(5)))
    with pytest.raises(ValueError, match="with and without cross"):
        moments.merge(VectorMoments(basis, cross=False))
    with pytest.raises(ValueError, match="cross=True"):
        _ = VectorMoments(basis, cross=False).update(DenseBatch(rows)).cross
    with pytest.raises(ValueError, match="no samples"):
        _ = VectorMoments(basis).covariance
    with pytest.raises(ValueError, match="basis must have shape"):
        VectorMoments(np.ones(3))


def test_products_with_the_covariance_and_its_leading_directions():
    rng = np.random.default_rng(5)
    scales = np.concatenate([[5.0, 4.0, 3.0], rng.uniform(0.5, 1.0, 37)])
    rows = rng.standard_normal((3000, 40)) * scales @ np.linalg.qr(rng.standard_normal((40, 40)))[0] + 3.0
    weights = rng.uniform(0.5, 1.5, 3000)
    source = as_dense_source(rows, 500, sample_weight=weights)
    columns = fill(ColumnMoments(40, np.zeros(40)), source)
    covariance = np.cov(rows.T, aweights=weights, bias=True)
    np.testing.assert_allclose(columns.mean, np.average(rows, axis=0, weights=weights), rtol=1e-12)
    np.testing.assert_allclose(columns.variances, np.diag(covariance), rtol=1e-10)
    block = rng.standard_normal((40, 2))
    product = fill(CovarianceProduct(block, columns.mean), source)
    np.testing.assert_allclose(product.product, covariance @ block, atol=1e-10)
    np.testing.assert_allclose(product.inner, block.T @ covariance @ block, atol=1e-9)
    fast = fill(FastSecondMoments(40, columns.mean), source)
    np.testing.assert_allclose(fast.covariance, covariance, atol=1e-5 * covariance.max())  # eps of float32 is 1e-7
    values, directions = leading_directions(source, columns.mean, 3, rng)
    expected, vectors = np.linalg.eigh(covariance)
    # Products in single precision; the gap is 8 times the noise.
    np.testing.assert_allclose(values, expected[::-1][:3], rtol=1e-5)
    cosines = np.linalg.svd(directions.T @ vectors[:, ::-1][:, :3], compute_uv=False)
    assert cosines.min() > 1 - 1e-6
