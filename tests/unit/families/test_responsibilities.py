"""Responsibilities and log-likelihoods against scipy, in both layouts and however large the logarithms are."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import logsumexp, softmax

from odeco.families.responsibilities import (
    DenseBlock,
    Quadratic,
    expected_features,
    expected_of_rows,
    expected_products,
    normalize,
    posterior,
    shares_of,
)


@pytest.mark.parametrize("offset", [0.0, -1e6, 700.0])
@pytest.mark.parametrize("shape", [(1, 3), (17, 1), (100, 7)])
def test_they_are_scipys(offset, shape):
    joint = offset + 30 * np.random.default_rng(0).standard_normal(shape)
    kept = joint.copy()
    weights = np.random.default_rng(1).uniform(0.5, 2.0, shape[0])
    found, values = posterior(joint)
    # 1e6 has 1e-10 left behind its comma, and so have its logarithms.
    np.testing.assert_allclose(found, softmax(joint, axis=1), rtol=1e-8, atol=1e-300)
    np.testing.assert_allclose(values, logsumexp(joint, axis=1), rtol=1e-14)
    np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-14)
    np.testing.assert_allclose(shares_of(joint, weights)[0], (found * weights[:, None]).T, rtol=1e-15)
    np.testing.assert_array_equal(joint, kept)
    assert found.flags.c_contiguous


def test_in_place_and_in_single_precision():
    joint = np.random.default_rng(0).standard_normal((3, 50)).astype(np.float32)
    expected = softmax(joint.astype(float), axis=0)
    found, values = normalize(joint)
    assert found is joint
    assert values.dtype == np.float32
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_an_impossible_component_has_no_share():
    found, values = posterior(np.array([[0.0, -np.inf], [-np.inf, -3.0]]))
    np.testing.assert_array_equal(found, np.eye(2))
    np.testing.assert_array_equal(values, [0.0, -3.0])


def by_definition(features, coefficients, offsets, weights, n_mixtures):
    """Sums of features by responsibilities, one sample and one mixture after the other."""
    k, p = coefficients.shape
    sums, totals, values = np.zeros((k, p)), np.zeros(k), np.zeros((n_mixtures, features.shape[1]))
    for mixture, components in enumerate(np.arange(k).reshape(n_mixtures, -1)):
        for sample, y in enumerate(features.T):
            joint = coefficients[components] @ y + offsets[components]
            values[mixture, sample] = logsumexp(joint)
            shares = weights[sample] * softmax(joint)
            totals[components] += shares
            sums[components] += shares[:, None] * y
    return sums, totals, values


# (components of a mixture, features, samples, mixtures): whole registers and parts of them, one block and several.
SIZES = [(1, 1, 1, 1), (3, 5, 15, 1), (4, 4, 64, 2), (7, 9, 33, 3), (20, 21, 100, 1), (11, 3, 700, 1), (9, 200, 330, 1)]


@pytest.mark.parametrize(("k", "p", "n", "n_mixtures"), SIZES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("weighed", [False, True])
def test_sums_of_features_are_those_of_a_loop(k, p, n, n_mixtures, dtype, weighed):
    rng = np.random.default_rng(k * p + n)
    features = rng.standard_normal((p, n)).astype(dtype)
    coefficients = (rng.standard_normal((n_mixtures * k, p)) / np.sqrt(p)).astype(dtype)
    offsets = rng.standard_normal(n_mixtures * k).astype(dtype)
    weights = rng.uniform(0.0, 2.0, n) if weighed else None
    found = expected_features(features, coefficients, offsets, weights, n_mixtures=n_mixtures)
    given = np.ones(n) if weights is None else weights
    wide = [array.astype(np.float64) for array in (features, coefficients, offsets)]
    sums, totals, values = by_definition(*wide, given, n_mixtures)
    # Sums of n products: rounding of the precision at hand, many times over.
    tolerance = {"rtol": 2e-4, "atol": 2e-4} if dtype == np.float32 else {"rtol": 1e-11, "atol": 1e-11}
    np.testing.assert_allclose(found.features, sums, **tolerance)
    np.testing.assert_allclose(found.totals, totals, **tolerance)
    np.testing.assert_allclose(found.values, values, **tolerance)


# (components, columns, features behind them, samples): tiles of coordinates and parts of them, one block and several.
QUADRATICS = [(1, 1, 0, 1), (2, 3, 1, 15), (4, 4, 0, 64), (7, 6, 2, 33), (5, 11, 1, 1100), (3, 70, 1, 700)]


@pytest.mark.parametrize(("k", "d", "more", "n"), QUADRATICS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("weighed", [False, True])
def test_sums_of_products_are_those_of_a_loop(k, d, more, n, dtype, weighed):
    rng = np.random.default_rng(k * d + n)
    features = rng.standard_normal((d + more, n)).astype(dtype)
    triangles = np.tril(np.eye(d) + rng.standard_normal((k, d, d)) / d)
    quadratic = Quadratic.of(triangles, rng.standard_normal((k, d)), rng.standard_normal(k), dtype)
    weights = rng.uniform(0.0, 2.0, n) if weighed else None
    found, products = expected_products(features, quadratic, weights)
    joint = np.empty((k, n))
    for j in range(k):
        standard = quadratic.triangles[j].astype(float) @ features[:d] + quadratic.shifts[j][:, None]
        joint[j] = quadratic.constants[j] - 0.5 * (standard**2).sum(axis=0)
    shares = softmax(joint, axis=0) * (1.0 if weights is None else weights)
    wide = features.astype(float)
    # Sums of n products, of log densities of d squares: rounding of the precision at hand, many times over.
    tolerance = {"rtol": 1e-3, "atol": 1e-3} if dtype == np.float32 else {"rtol": 1e-11, "atol": 1e-11}
    np.testing.assert_allclose(quadratic.densities(features), joint, **tolerance)
    np.testing.assert_allclose(found.features, shares @ wide.T, **tolerance)
    np.testing.assert_allclose(found.totals, shares.sum(axis=1), **tolerance)
    np.testing.assert_allclose(found.values, [logsumexp(joint, axis=0)], **tolerance)
    np.testing.assert_allclose(products, np.einsum("jt,at,bt->jab", shares, wide[:d], wide[:d]), **tolerance)
    np.testing.assert_array_equal(products, np.swapaxes(products, 1, 2))


# Columns of each block.
WIDTHS = [(1,), (7, 3), (20, 1, 33)]


@pytest.mark.parametrize("widths", WIDTHS)
@pytest.mark.parametrize("n", [1, 15, 700])
@pytest.mark.parametrize("dtypes", [(np.float32,), (np.float64,), (np.float32, np.float64)])
@pytest.mark.parametrize("weighed", [False, True])
def test_sums_of_rows_are_those_of_their_features(widths, n, dtypes, weighed):
    rng = np.random.default_rng(n)
    blocks, features = [], []
    for place, width in enumerate(widths):
        rows = rng.normal(5.0, 1.0, (n, width + 2)).astype(dtypes[place % len(dtypes)])[:, 1 : width + 1]
        origin = None if place == 1 else rng.normal(5.0, 1.0, width).astype(np.float32).astype(float)
        columns = rows.T.astype(float) - (0.0 if origin is None else origin[:, None])
        blocks.append(DenseBlock(rows, origin, place != 2))
        features += [columns, columns**2] if place != 2 else [columns]
    columns = np.ascontiguousarray(np.vstack(features))
    coefficients, offsets = rng.standard_normal((6, len(columns))) / len(columns), rng.standard_normal(6)
    weights = rng.uniform(0.0, 2.0, n) if weighed else None
    found = expected_of_rows(blocks, coefficients, offsets, weights, n_mixtures=2)
    whole = expected_features(columns, coefficients, offsets, weights, n_mixtures=2)
    tolerance = {"rtol": 1e-10, "atol": 1e-10}  # rounding: also single numbers are centred in double precision
    np.testing.assert_allclose(found.features, whole.features, **tolerance)
    np.testing.assert_allclose(found.totals, whole.totals, **tolerance)
    np.testing.assert_allclose(found.values, whole.values, **tolerance)


def test_sums_of_some_samples_are_those_of_a_copy():
    rng = np.random.default_rng(0)
    features, coefficients, offsets = rng.standard_normal((4, 90)), rng.standard_normal((3, 4)), np.zeros(3)
    weights = rng.uniform(0.5, 2.0, 90)
    some = slice(13, 77)
    found = expected_features(features, coefficients, offsets, weights, samples=some)
    copied = expected_features(np.ascontiguousarray(features[:, some]), coefficients, offsets, weights[some])
    np.testing.assert_allclose(found.features, copied.features, rtol=1e-12)
    np.testing.assert_array_equal(found.values, copied.values)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_component_without_weight_has_no_sums_and_spoils_none(dtype):
    features = np.vstack([np.arange(5.0), np.ones(5)]).astype(dtype)
    impossible = np.array([[1.0, 0.0], [0.0, -np.inf]], dtype=dtype)
    found = expected_features(features, impossible, np.zeros(2, dtype))
    np.testing.assert_allclose(found.features, [[10.0, 5.0], [0.0, 0.0]])
    np.testing.assert_allclose(found.totals, [5.0, 0.0])
