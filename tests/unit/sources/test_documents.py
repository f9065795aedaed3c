"""What may be done to documents before their moments are taken."""

from __future__ import annotations

import numpy as np
import pytest

from odeco.sources import as_batch, as_source, damp_counts, every, weigh_by_length

X = np.array([[1, 0, 2], [0, 0, 0], [3, 1, 0], [0, 7, 0]])


def test_weight_by_length():
    lengths = X.sum(axis=1)
    batch = weigh_by_length(5.0)(as_batch(X, np.array([1.0, 2.0, 3.0, 4.0])))
    np.testing.assert_allclose(batch.weights, [1, 2, 3, 4] * (lengths / (lengths + 5.0)) ** 2)
    assert weigh_by_length(0)(as_batch(X)).weights is None  # the paper's equal weights
    for bad in (-1.0, np.inf, np.nan):
        with pytest.raises(ValueError, match="half_length"):
            weigh_by_length(bad)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_damped_counts(dtype):
    given = as_batch(X.astype(dtype))
    batch = damp_counts(given)
    assert batch.counts.dtype == dtype
    np.testing.assert_allclose(batch.counts.toarray(), np.log2(1 + X), rtol=1e-6)
    np.testing.assert_allclose(batch.lengths, np.log2(1 + X).sum(axis=1), rtol=1e-6)
    np.testing.assert_array_equal(given.counts.toarray(), X)


def test_every():
    batch = every(2)(as_batch(X, np.arange(4.0)))
    np.testing.assert_array_equal(batch.counts.toarray(), X[::2])
    np.testing.assert_array_equal(batch.lengths, X[::2].sum(axis=1))
    np.testing.assert_array_equal(batch.weights, [0, 2])
    assert len(next(iter(as_source(X).map(every(1))))) == 4
    with pytest.raises(ValueError, match="step"):
        every(0)
