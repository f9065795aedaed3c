"""The compiled loop for small tensors against the one in Python, step for step."""

from __future__ import annotations

import numpy as np
import pytest

from odeco.decomposition import orthogonal
from odeco.kernels.frames import iterate_frame
from odeco.tensors import ExplicitTensor, symmetrize

ROUNDING = 1e-9  # polar factors of matrices whose condition is below 1e5


def noisy_tensor(n, rank, order, noise=0.05, seed=0):
    rng = np.random.default_rng(seed)
    frame = np.linalg.qr(rng.standard_normal((n, n)))[0][:, :rank]
    letters = "abcd"[:order]
    exact = np.einsum(
        ",".join(f"{letter}j" for letter in letters) + ",j->" + letters, *order * [frame], 1.0 + rng.random(rank)
    )
    return ExplicitTensor(symmetrize(exact + noise * rng.standard_normal(exact.shape)))


@pytest.mark.parametrize(("n", "rank"), [(1, 1), (2, 2), (3, 2), (6, 6), (12, 5)])
@pytest.mark.parametrize("order", [3, 4])
@pytest.mark.parametrize(("n_iter", "tol", "shift"), [(1, 1e-6, 0.0), (4, 1e-12, 0.3), (60, 1e-6, 0.0)])
def test_it_is_the_loop_in_python(n, rank, order, n_iter, tol, shift):
    tensor = noisy_tensor(n, rank, order)
    frame = np.linalg.qr(np.random.default_rng(1).standard_normal((n, rank)))[0]
    found = orthogonal._run_compiled(tensor, frame, n_iter, tol, shift)
    wanted = orthogonal._run(tensor.power_map, frame, n_iter, tol, shift, single=False)
    assert found is not None
    assert found.n_iter == wanted.n_iter
    np.testing.assert_allclose(found.frame, wanted.frame, atol=ROUNDING)
    np.testing.assert_allclose(found.values, wanted.values, atol=ROUNDING)
    np.testing.assert_allclose(found.mapped, wanted.mapped, atol=ROUNDING)
    assert found.change == pytest.approx(wanted.change, abs=ROUNDING)


def test_a_rank_below_the_one_asked_for_is_left_to_the_svd():
    tensor = noisy_tensor(5, 1, 3, noise=0.0)
    assert orthogonal._run_compiled(tensor, np.eye(5), 10, 1e-6, 0.0) is None
    assert orthogonal.orthogonal_iteration(tensor, 5, np.random.default_rng(0)).vectors.shape == (5, 5)


def test_large_tensors_are_left_to_matrix_products():
    assert orthogonal._run_compiled(noisy_tensor(13, 2, 3), np.eye(13, 2), 10, 1e-6, 0.0) is None


@pytest.mark.parametrize(
    "change",
    [
        {"tensor": np.ones(26)}, {"order": 2}, {"order": 4}, {"n_iter": 0}, {"frame": np.ones((2, 3))},
        {"values": np.empty(3)}, {"mapped": np.empty((3, 3))},
    ],
)  # fmt: skip
def test_wrong_arguments_are_an_error(change):
    given = {
        "tensor": np.ones(27), "order": 3, "n_iter": 1, "tol": 0.0, "shift": 0.0, "frame": np.eye(3, 2),
        "values": np.empty(2), "mapped": np.empty((3, 2)),
    }  # fmt: skip
    with pytest.raises(ValueError, match=r"must|has"):
        iterate_frame(*(given | change).values())
