"""Responsibilities and log-likelihoods against scipy, in both layouts and however large the logarithms are."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import logsumexp, softmax

from odeco.families.responsibilities import normalize, posterior, shares_of


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
