"""Whitener and whiten: the definition, the errors, and what each message says."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from odeco.whitening import Whitener, whiten

ROUNDING = 1e-10  # condition numbers here are below 1e3, so 1e-10 leaves three digits over condition * eps


def low_rank_moment(d: int = 12, k: int = 4, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    A = rng.random((d, k))
    return (A * rng.uniform(0.5, 2.0, k)) @ A.T


@pytest.mark.parametrize("scaled", [False, True])
def test_whitens_and_lifts_back(scaled):
    M2 = low_rank_moment()
    scale = np.random.default_rng(1).uniform(0.5, 3.0, 12) if scaled else None
    whitener = whiten(M2, 4, scale=scale)
    W, B = whitener.matrix, whitener.lift
    np.testing.assert_allclose(W.T @ M2 @ W, np.eye(4), atol=ROUNDING)
    np.testing.assert_allclose(W.T @ B, np.eye(4), atol=ROUNDING)
    np.testing.assert_allclose(B, M2 @ W, atol=ROUNDING)
    np.testing.assert_allclose(B @ B.T, M2, atol=ROUNDING)  # M2 has rank 4: the lift is a root of it


def test_lift_is_the_pseudoinverse_without_scale():
    whitener = whiten(low_rank_moment(), 4)
    np.testing.assert_allclose(whitener.lift, np.linalg.pinv(whitener.matrix.T), atol=ROUNDING)


def test_spectrum_gap_and_condition():
    whitener = whiten(np.diag([4.0, 1.0, 8.0, -0.5]), 2)
    np.testing.assert_allclose(whitener.spectrum, [8.0, 4.0, 1.0, -0.5])
    assert whitener.gap == pytest.approx(0.75)
    assert whitener.condition == pytest.approx(2.0)
    assert whiten(np.eye(3), 3).gap == 1.0
    assert "4 -> 2" in repr(whitener)


def test_rows_tensors_and_vectors():
    rng = np.random.default_rng(3)
    whitener = whiten(low_rank_moment(6, 3), 3)
    W = whitener.matrix
    X = rng.random((5, 6))
    np.testing.assert_allclose(whitener.whiten(X), X @ W)
    np.testing.assert_allclose(whitener.whiten(X.tolist()), X @ W)
    np.testing.assert_allclose(whitener.whiten(sparse.csr_array(X)), X @ W)
    T3, T4 = rng.random((6, 6, 6)), rng.random((6, 6, 6, 6))
    np.testing.assert_allclose(whitener.whiten_tensor(T3), np.einsum("abc,ai,bj,cl->ijl", T3, W, W, W))
    whitened = np.einsum("abce,ai,bj,cl,em->ijlm", T4, W, W, W, W)
    np.testing.assert_allclose(whitener.whiten_tensor(T4), whitened)
    np.testing.assert_allclose(whitener.unwhiten(np.eye(3)), whitener.lift)
    with pytest.raises(ValueError, match=r"shape \(n, 6\)"):
        whitener.whiten(rng.random((5, 5)))
    with pytest.raises(ValueError, match="side 6"):
        whitener.whiten_tensor(rng.random((5, 5, 5)))
    with pytest.raises(ValueError, match="3 rows"):
        whitener.unwhiten(np.eye(4))


def test_composition_whitens_the_inner_moment():
    outer = whiten(low_rank_moment(12, 4), 4)
    inner_moment = low_rank_moment(4, 3, seed=5)
    both = outer.compose(whiten(inner_moment, 3))
    assert isinstance(both, Whitener)
    np.testing.assert_allclose(both.matrix.T @ both.lift, np.eye(3), atol=ROUNDING)
    full = outer.lift @ inner_moment @ outer.lift.T
    np.testing.assert_allclose(both.matrix.T @ full @ both.matrix, np.eye(3), atol=ROUNDING)
    with pytest.raises(ValueError, match="dimension 4"):
        outer.compose(whiten(np.eye(3), 3))


def test_words_of_scale_zero_are_left_out():
    M2 = np.zeros((5, 5))
    M2[:4, :4] = low_rank_moment(4, 2)
    whitener = whiten(M2, 2, scale=[1.0, 2.0, 3.0, 1.0, 0.0])
    assert (whitener.matrix[4] == 0).all()
    assert (whitener.lift[4] == 0).all()


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.uint8, bool])
def test_other_dtypes(dtype):
    M2 = np.eye(4, dtype=dtype)
    whitener = whiten(M2, 2)
    np.testing.assert_allclose(whitener.matrix.T @ whitener.matrix, np.eye(2), atol=1e-6)


def test_small_negative_noise_is_accepted():
    M2 = np.diag([1.0, 0.5, -0.4])
    W = whiten(M2, 2).matrix
    np.testing.assert_allclose(W.T @ M2 @ W, np.eye(2), atol=ROUNDING)


@pytest.mark.parametrize(
    ("M2", "k", "message"),
    [
        (np.diag([1.0, 0.5, -0.6]), 2, r"indefinite.*-0\.6.*Spectrum.*\[ 1.*Lower n_components to 1"),
        (np.diag([1.0, 0.5, 0.0]), 3, r"rank 2, below n_components=3.*Spectrum.*Lower n_components to 2"),
        (np.zeros((3, 3)), 1, "rank 0"),
        (-np.eye(3), 1, "rank 0.*check that M2"),
        (np.diag([1.0, -2.0]), 1, "indefinite.*Check the sign of M2"),
        (np.diag([1.0, 1e-16, 0.0]), 2, "rank 1"),  # below d * eps: rounding, not rank
        (np.eye(3)[:2], 1, r"square matrix, got shape \(2, 3\)"),
        (np.ones(3), 1, "square matrix"),
        (np.zeros((0, 0)), 1, "square matrix"),
        (np.array([[1.0, 0.2], [0.0, 1.0]]), 1, "must be symmetric"),
        (np.array([[1.0, np.nan], [np.nan, 1.0]]), 1, "NaN or infinite"),
        (np.array([[np.inf, 0.0], [0.0, 1.0]]), 1, "NaN or infinite"),
        (np.eye(2) * 1j, 1, "must be real"),
        (np.eye(3), 4, "n_components=4 is larger than the number of features 3"),
        (np.eye(3), 0, "positive integer, got 0"),
        (np.eye(3), -1, "positive integer"),
        (np.eye(3), 1.5, "positive integer"),
        (np.eye(3), True, "positive integer"),
    ],
)
def test_errors_say_what_was_found(M2, k, message):
    with pytest.raises(ValueError, match=message):
        whiten(M2, k)


@pytest.mark.parametrize(
    ("scale", "message"), [([1.0, 2.0], "shape"), ([1, 1, -1], "non-negative"), ([1, np.nan, 1], "finite")]
)
def test_bad_scale(scale, message):
    with pytest.raises(ValueError, match=message):
        whiten(np.eye(3), 2, scale=scale)


def test_input_is_not_modified():
    M2 = low_rank_moment()
    before = M2.copy()
    whiten(M2, 3)
    np.testing.assert_array_equal(M2, before)
