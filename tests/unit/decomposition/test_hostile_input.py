"""What went wrong once under odd input, and must not again: one small reproduction each."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import odeco
from odeco.decomposition import METHODS, StatusCode
from odeco.decomposition.stopping import power_method_stopping
from odeco.metrics import match_components
from odeco.simulate import odeco_tensor
from odeco.tensors import (
    ExplicitTensor,
    RankOneSum,
    as_symmetric_tensor,
    asymmetry,
    operator_norm_lower_bound,
    rank_one_sum,
    symmetrize,
)

# Rounding of a clean tensor of dimension below 10.
ROUNDING = 1e-12


@pytest.mark.parametrize("shift", [0.5, 1.0, 2.0, 5.0])
@pytest.mark.parametrize(
    ("order", "eigenvalues"),
    [(3, [3.0, 2.0, 1.5, 1.0, 1.0]), (4, [-3.0, -2.0, -1.5, -1.0, -1.0]), (4, [3.0, -2.0, 1.5, -1.0, 1.0])],
)
def test_a_shift_works_on_the_side_of_each_value(order, eigenvalues, shift):
    """It must not cancel a negative value: at shift = -lambda it would leave nothing."""
    clean = odeco_tensor(5, order=order, eigenvalues=eigenvalues, random_state=0)
    result = odeco.decompose(clean.tensor, 5, shift=shift, random_state=0)
    assert match_components(result.eigenvectors, clean.eigenvectors, up_to_sign=order == 4).largest <= ROUNDING
    noisy = odeco_tensor(5, order=order, eigenvalues=eigenvalues, noise=0.05, random_state=0)
    for seed in range(3):
        plain = odeco.decompose(noisy.tensor, 5, random_state=seed)
        shifted = odeco.decompose(noisy.tensor, 5, shift=shift, random_state=seed)
        assert shifted.status.ok
        # The shift weighs the components more evenly; the fixed point moves by a small share of the noise of 0.05.
        matching = match_components(shifted.eigenvectors, plain.eigenvectors, up_to_sign=order == 4)
        assert matching.largest <= 0.005


@pytest.mark.parametrize("method", [name for name in METHODS if name != "svd"])
@pytest.mark.parametrize("aligned", [True, False])
def test_more_components_than_there_are_do_not_come_back_twice(method, aligned):
    """The power methods must report the deflated tensor's eigenvalues: those of the tensor itself count twice."""
    sample = odeco_tensor(6, eigenvalues=[3.0, 2.0], random_state=0)
    vectors = np.eye(6)[:, :2] if aligned else sample.eigenvectors
    tensor = symmetrize(rank_one_sum([3.0, 2.0], vectors))
    with pytest.warns(odeco.MomentWarning, match="2 of 4 eigenvalues are within the noise.*Ask for rank 2"):
        result = odeco.decompose(tensor, 4, method=method, random_state=0)
    assert result.sorted().eigenvalues == pytest.approx([3.0, 2.0, 0.0, 0.0], abs=ROUNDING)
    assert result.residual <= ROUNDING
    assert np.all(np.isfinite(result.eigenvectors))
    assert np.count_nonzero(result.certificate.accepted) == 2


@pytest.mark.parametrize("noise", [0.0, 0.02])
@pytest.mark.parametrize("method", ["auto", "power", "joint"])
@pytest.mark.parametrize("rank", [1, 3, 9])
def test_fewer_components_than_there_are_are_some_of_them(rank, method, noise):
    """Ten equal ones: no three singular vectors of the flattening span three of them."""
    for seed in range(3):
        sample = odeco_tensor(12, 10, noise=noise, random_state=seed)
        result = odeco.decompose(sample.tensor, rank, method=method, random_state=seed)
        assert result.status.ok
        assert match_components(result.eigenvectors, sample.eigenvectors).largest <= max(8 * noise, 1e-9)


def test_null_directions_of_the_flattening_are_not_called_equal():
    tensor = rank_one_sum([3.0, 2.0], np.eye(6)[:, :2])
    with pytest.warns(odeco.MomentWarning, match="Ask for rank 2"):
        assert odeco.decompose(tensor, 4, method="svd").status.code is StatusCode.RANK_DEFICIENT
    assert odeco.decompose(tensor, 2, method="svd").status.ok


def test_decoupling_leaves_columns_without_an_image_as_they_are():
    tensor = rank_one_sum([3.0, 2.0], np.eye(5)[:, :2])
    with pytest.warns(odeco.MomentWarning, match="Ask for rank 2"):
        result = odeco.decompose(tensor, 4, decouple=True, random_state=0)
    assert np.all(np.isfinite(result.eigenvectors))


def test_the_certificate_does_not_call_the_null_space_robust():
    """Contractions of columns without a value drown in rounding: they are measured directly, not by cancellation."""
    sample = odeco_tensor(10, eigenvalues=[3.0, 2.0, 1.0], random_state=0)
    with pytest.warns(odeco.MomentWarning, match="Ask for rank 3"):
        result = odeco.decompose(sample.tensor, 6, random_state=0)
    assert np.all(result.certificate.contraction[3:] >= 1.0)
    assert np.all(result.certificate.contraction[:3] <= 1e-6)


def test_r_falls_with_every_deflation():
    """0.35 beside 1 and 1 meets ||T||_F / (2 sqrt(3)) of the first call but not ||T||_F / (2 sqrt(2)) of the second."""

    class Dealt:
        starts = iter([0, 2, 1, 1, 2])

        def standard_normal(self, shape):
            return np.column_stack([np.eye(3)[next(self.starts)] for _ in range(shape[1])])

    found = power_method_stopping(ExplicitTensor(rank_one_sum([1.0, 1.0, 0.35], np.eye(3))), 3, Dealt(), n_iter=1)
    assert found.status.ok
    assert np.array_equal(found.vectors, np.eye(3))


@pytest.mark.parametrize("scale", [5e-324, 1e-310, 1e-200, 1e200, 1e308])
def test_scales_whose_squares_leave_double_precision_are_refused(scale):
    tensor = rank_one_sum([1.0, 0.5], np.eye(2)) * scale
    with pytest.raises(ValueError, match="multiply it by a constant"):
        odeco.decompose(tensor, 2)


@pytest.mark.parametrize("scale", [1e-150, 1e-100, 1e100, 1e150])
@pytest.mark.parametrize("method", METHODS)
def test_scales_far_from_one_are_not_noticed(method, scale):
    sample = odeco_tensor(5, eigenvalues=[5.0, 4.0, 3.0, 2.0, 1.0], noise=1e-6, random_state=0)
    first, second = (odeco.decompose(sample.tensor * s, 5, method=method, random_state=0) for s in (1.0, scale))
    assert second.status.code == first.status.code
    assert np.allclose(second.eigenvectors, first.eigenvectors, atol=1e-8)
    assert np.allclose(second.eigenvalues / scale, first.eigenvalues)
    assert second.residual == pytest.approx(first.residual, rel=1e-3)
    assert np.allclose(second.certificate.residuals, first.certificate.residuals, rtol=1e-2, atol=1e-9)


@pytest.mark.parametrize("span", [1e4, 1e6, 1e8])
@pytest.mark.parametrize("method", ["auto", "power", "joint"])
def test_eigenvalues_of_very_different_sizes(method, span):
    """Errors of rounding, relative to each eigenvalue: 1e-16 times the span, times 100."""
    sample = odeco_tensor(6, eigenvalues=np.geomspace(1, span, 6), random_state=1)
    result = odeco.decompose(sample.tensor, 6, method=method, random_state=0)
    assert result.status.ok
    matching = match_components(result.eigenvectors, sample.eigenvectors)
    assert matching.largest <= 1e-14 * span
    assert np.allclose(result.eigenvalues[matching.permutation], sample.eigenvalues, rtol=1e-14 * span)


def test_column_major_arrays_are_not_copied():
    tensor = np.asfortranarray(rank_one_sum([2.0, 1.0], np.eye(3)[:, :2]))
    assert np.shares_memory(as_symmetric_tensor(tensor).array, tensor)


def test_masked_entries_are_not_read():
    masked = np.ma.masked_array(rank_one_sum([2.0, 1.0], np.eye(2)), mask=np.zeros((2, 2, 2)))
    assert odeco.decompose(masked, 2, random_state=0).status.ok
    masked[0, 0, 0] = np.ma.masked
    with pytest.raises(ValueError, match="must not be masked"):
        odeco.decompose(masked, 2)


@pytest.mark.parametrize(
    ("method", "options", "message"),
    [
        ("auto", {"n_iter": 2.5}, "n_iter must be a positive integer, got 2.5"),
        ("auto", {"n_iter": True}, "n_iter must be a positive integer, got True"),
        ("auto", {"tol": True}, "tol must be positive"),
        ("auto", {"shift": -1.0}, "shift must be"),
        ("auto", {"shift": np.nan}, "shift must be"),
        ("power", {"shift": np.inf}, "shift must be"),
        ("power-stopping", {"shift": "a"}, "shift must be"),
        ("power", {"n_restarts": 2.5}, "n_restarts must be a positive integer"),
        ("power-stopping", {"max_restarts": 1.5}, "max_restarts must be a positive integer"),
        ("joint", {"n_slices": 2.5}, "n_slices must be a positive integer"),
        ("auto", {"starts": np.eye(2) * 1j}, "starts must be real"),
        ("auto", {"starts": "ab"}, "starts must be real"),
    ],
)
def test_options_of_the_wrong_kind_are_refused(method, options, message):
    with pytest.raises(ValueError, match=message):
        odeco.decompose(rank_one_sum([2.0, 1.0], np.eye(2)), 2, method=method, **options)


@pytest.mark.parametrize("method", [None, ["auto"], 3])
def test_methods_that_are_no_names_are_refused(method):
    with pytest.raises(ValueError, match="method must be one of"):
        odeco.decompose(rank_one_sum([2.0, 1.0], np.eye(2)), 2, method=method)


def test_implicit_tensors_that_make_no_sense_are_refused():
    with pytest.raises(ValueError, match="Frobenius norm is nan"):
        odeco.decompose(RankOneSum([np.nan, 1.0], np.eye(3)[:, :2]), 2)
    with pytest.raises(ValueError, match=r"got shapes \(3, 2\) and \(3,\)"):
        RankOneSum(np.ones(3), np.eye(3)[:, :2])


def test_tensor_functions_refuse_what_they_cannot_take():
    with pytest.raises(ValueError, match="one weight for each"):
        rank_one_sum([1.0, 2.0], np.ones(2))
    with pytest.raises(ValueError, match="order at least 2"):
        rank_one_sum([1.0], np.ones((2, 1)), 1)
    with pytest.raises(ValueError, match="must be cubic"):
        symmetrize(np.ones((2, 3, 2)))
    for options in ({"n_starts": 0}, {"n_iter": 0}, {"n_starts": 1.5}):
        with pytest.raises(ValueError, match="must be a positive integer"):
            operator_norm_lower_bound(np.ones((2, 2, 2)), **options)


def test_asymmetry_of_unsigned_integers_does_not_wrap():
    array = np.zeros((2, 2, 2), dtype=np.uint8)
    array[0, 0, 1] = 3
    assert asymmetry(array) == 3.0
    assert asymmetry(array.tolist()) == 3.0


@pytest.mark.parametrize("method", METHODS)
def test_no_numerical_warnings_on_any_of_the_small_cases(method):
    """Division by zero, overflow and the like stay inside, even where the answer is doubtful."""
    tensors = [
        np.full((1, 1, 1), -2.0),
        rank_one_sum([1.0], np.eye(4)[:, :1]),
        np.ones((3, 3, 3)),
        symmetrize(np.random.default_rng(0).standard_normal((4, 4, 4))),
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", odeco.MomentWarning)
        for tensor in tensors:
            for rank in (None, *range(1, tensor.shape[0] + 1)):
                result = odeco.decompose(tensor, rank, method=method, random_state=0)
                assert np.all(np.isfinite(result.eigenvectors))
                assert repr(result)
