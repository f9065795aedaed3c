"""The contract of the door: every method on every tensor it takes, bad input, options, statuses."""

from __future__ import annotations

import dataclasses
import warnings

import numpy as np
import pytest

import odeco
from odeco.decomposition import METHODS, StatusCode
from odeco.metrics import match_components
from odeco.simulate import odeco_tensor, symmetric_noise
from odeco.tensors import RankOneSum, SymmetricTensor, rank_one_sum, symmetrize
from tests.cases import CASES, CLEAN, NOISY, Case, case_id

# What a method cannot do, by its own description.
NEEDS_DISTINCT = {"svd"}
UNSTABLE = {"jennrich", "svd"}


def distinct(case: Case) -> bool:
    magnitudes = np.sort(np.abs(case.eigenvalues))
    return bool(np.all(np.diff(magnitudes) > 1e-3))


def check_recovered(result, sample, vector_bound, value_bound):
    matching = match_components(result.eigenvectors, sample.eigenvectors, up_to_sign=result.order == 4)
    assert matching.errors.size == sample.eigenvalues.size
    assert matching.largest <= vector_bound
    found = result.eigenvalues[matching.permutation]
    assert np.abs(found - sample.eigenvalues[matching.matched]).max() <= value_bound


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("case", CLEAN, ids=case_id)
def test_clean_tensors_are_recovered_to_rounding(case, method):
    if case.order not in METHODS[method].orders:
        pytest.skip(f"{method} does not take order {case.order}")
    if method in NEEDS_DISTINCT and not distinct(case):
        pytest.skip("the flattening cannot tell equal singular values apart")
    if method == "power" and case.n > 50:
        pytest.skip("the same code path as at n = 20, only longer")
    sample = case.draw()
    result = odeco.decompose(sample.tensor, case.rank, method=method, random_state=1)
    # Rounding 1e-16 times a condition of at most 1e6 (gaps of slices and of squared singular values).
    check_recovered(result, sample, 1e-9, 1e-9 * np.abs(case.eigenvalues).max())
    assert result.residual <= 1e-9
    assert result.status.ok, result.status
    assert result.certificate.accepted.all()


@pytest.mark.parametrize("order", [3, 4])
@pytest.mark.parametrize("tol", [1e-2, 1e-3, 1e-4])
def test_a_loose_tolerance_ends_early_in_the_same_units(order, tol):
    """Large tensors that need not be precise end in single precision, on entries divided by the largest."""
    n = 40 if order == 3 else 33
    sample = odeco_tensor(n, 3, order=order, eigenvalues=[30.0, 20.0, 10.0], noise=1e-3, random_state=0)
    result = odeco.decompose(sample.tensor, 3, tol=tol, random_state=0)
    check_recovered(result, sample, 0.02, 0.02)
    rest = sample.tensor - rank_one_sum(result.eigenvalues, result.eigenvectors, order)
    assert result.residual == pytest.approx(np.linalg.norm(rest) / np.linalg.norm(sample.tensor), rel=0.2)


@pytest.mark.parametrize("method", [m for m in METHODS if m not in UNSTABLE])
@pytest.mark.parametrize("case", NOISY, ids=case_id)
def test_noisy_tensors_are_recovered_within_the_bounds_of_theorem_5_1(case, method):
    if case.order not in METHODS[method].orders:
        pytest.skip(f"{method} does not take order {case.order}")
    sample = case.draw()
    result = odeco.decompose(sample.tensor, case.rank, method=method, random_state=1)
    check_recovered(result, sample, 8 * case.noise / case.smallest, 5 * case.noise)
    assert result.status.ok, result.status


@pytest.mark.parametrize("case", CASES, ids=case_id)
def test_rank_none_finds_the_rank(case):
    sample = case.draw()
    result = odeco.decompose(sample.tensor, random_state=2)
    assert result.rank == case.rank
    assert f"rank {case.rank}" in result.status.message


def test_pure_noise_has_rank_zero():
    noise = symmetric_noise(20, random_state=0)
    with pytest.warns(odeco.MomentWarning, match="rank 0"):
        result = odeco.decompose(noise, random_state=0)
    assert result.rank == 0
    assert result.status.code is StatusCode.RANK_DEFICIENT
    assert result.residual == 1.0


def test_asking_for_more_than_there_is_is_told():
    sample = odeco_tensor(10, 3, random_state=0)
    with pytest.warns(odeco.MomentWarning, match="Ask for rank 3"):
        result = odeco.decompose(sample.tensor, 5, random_state=0)
    assert result.status.code is StatusCode.RANK_DEFICIENT
    matching = match_components(result.eigenvectors[:, :3], sample.eigenvectors)
    assert matching.largest < 1e-9
    noisy = odeco_tensor(20, 5, noise=0.1, random_state=0)
    with pytest.warns(odeco.MomentWarning, match="Ask for rank 5"):
        odeco.decompose(noisy.tensor, 9, random_state=0)


def test_the_certificate_flags_what_is_not_robust():
    sample = odeco_tensor(30, noise=0.3, random_state=0)
    with pytest.warns(odeco.MomentWarning):
        result = odeco.decompose(sample.tensor, 30, method="jennrich", random_state=0)
    errors = np.array([match_components(v[:, None], sample.eigenvectors).errors[0] for v in result.eigenvectors.T])
    assert np.any(errors > 0.5)  # the one slice fails here
    assert not result.certificate.accepted[errors > 0.5].any()


def test_equal_singular_values_are_told():
    sample = odeco_tensor(6, random_state=0)
    with pytest.warns(odeco.MomentWarning, match="equal singular values"):
        result = odeco.decompose(sample.tensor, 6, method="svd")
    assert result.status.code is StatusCode.EQUAL_SINGULAR_VALUES


def test_exhausted_restarts_are_told():
    noise = symmetric_noise(15, random_state=0)
    with pytest.warns(odeco.MomentWarning, match="within 4 restarts"):
        result = odeco.decompose(noise, 15, method="power-stopping", max_restarts=4, n_iter=2, random_state=0)
    assert result.status.code is StatusCode.RESTARTS_EXHAUSTED


def test_an_iteration_cut_short_is_told():
    sample = odeco_tensor(20, noise=0.1, random_state=0)
    with pytest.warns(odeco.MomentWarning, match="after 1 iterations"):
        result = odeco.decompose(sample.tensor, 20, n_iter=1, random_state=0)
    assert result.status.code is StatusCode.NOT_CONVERGED
    with pytest.warns(odeco.MomentWarning, match="1 sweeps"):
        odeco.decompose(sample.tensor, 20, method="joint", n_iter=1, random_state=0)


def test_negative_eigenvalues_of_order_3_move_into_the_vectors():
    vectors = np.linalg.qr(np.random.default_rng(0).standard_normal((4, 4)))[0]
    tensor = rank_one_sum([-3.0, 2.0, -1.0, 0.5], vectors)
    for method in METHODS:
        result = odeco.decompose(tensor, 4, method=method, random_state=0).sorted()
        assert np.allclose(result.eigenvalues, [3.0, 2.0, 1.0, 0.5])
        assert np.allclose(result.eigenvectors, vectors * [-1, 1, -1, 1], atol=1e-9)


def test_eigenvalues_belong_to_their_vectors():
    """Shuffling eigenvectors against eigenvalues must break the reconstruction and this check."""
    sample = odeco_tensor(6, eigenvalues=[6, 5, 4, 3, 2, 1], random_state=3)
    result = odeco.decompose(sample.tensor, 6, random_state=0)
    assert np.allclose(result.reconstruct(), sample.tensor, atol=1e-9)
    shuffled = dataclasses.replace(result, eigenvectors=np.roll(result.eigenvectors, 1, axis=1))
    assert np.linalg.norm(shuffled.reconstruct() - sample.tensor) > 1.0
    with pytest.raises(AssertionError):
        check_recovered(shuffled, sample, 1e-9, 1e-9)


@pytest.mark.parametrize("method", ["auto", "power", "jennrich"])
@pytest.mark.parametrize("order", [3, 4])
def test_implicit_tensors_give_what_explicit_ones_give(method, order):
    values = np.array([3.0, -2.0, 1.5, 1.0]) if order == 4 else np.array([3.0, 2.0, 1.5, 1.0])
    vectors = np.linalg.qr(np.random.default_rng(1).standard_normal((9, 4)))[0]
    implicit = RankOneSum(values, vectors, order)
    result = odeco.decompose(implicit, 4, method=method, random_state=0)
    matching = match_components(result.eigenvectors, vectors, up_to_sign=order == 4)
    assert matching.largest <= 1e-8
    assert np.allclose(result.eigenvalues[matching.permutation], values)
    assert result.residual <= 1e-7  # by cancellation of squares: half the digits
    assert np.isnan(result.certificate.contraction).all()
    assert result.certificate.accepted.all()


def test_an_implicit_tensor_without_a_norm():
    class Silent(RankOneSum):
        norm = None

    implicit = Silent(np.array([2.0, 1.0]), np.eye(4)[:, :2])
    assert np.isnan(odeco.decompose(implicit, 2, random_state=0).residual)
    with pytest.raises(ValueError, match="rank must be given"):
        odeco.decompose(implicit)
    for method in ("svd", "joint", "power-stopping"):
        with pytest.raises(ValueError, match="needs an explicit array"):
            odeco.decompose(implicit, 2, method=method)


def test_integer_boolean_and_single_precision_tensors():
    array = np.zeros((3, 3, 3), dtype=np.int64)
    array[0, 0, 0], array[1, 1, 1], array[2, 2, 2] = 3, 2, 1
    assert np.allclose(odeco.decompose(array, 3, random_state=0).eigenvalues, [3, 2, 1])
    assert np.allclose(odeco.decompose(array > 0, 3, random_state=0).eigenvalues, 1)
    sample = odeco_tensor(40, eigenvalues=np.linspace(1, 2, 40), random_state=0)
    single = sample.tensor.astype(np.float32)
    result = odeco.decompose(single, 40, random_state=0)
    assert match_components(result.eigenvectors, sample.eigenvectors).largest <= 1e-5  # float32 rounding 6e-8 * n


def test_extreme_scales():
    sample = odeco_tensor(40, eigenvalues=np.linspace(1, 2, 40), random_state=0)
    for scale in (1e-150, 1e150):
        result = odeco.decompose(sample.tensor * scale, 40, random_state=0)
        assert match_components(result.eigenvectors, sample.eigenvectors).largest <= 1e-9
        assert np.allclose(np.sort(result.eigenvalues), scale * np.linspace(1, 2, 40), rtol=1e-9)
        assert result.status.ok


@pytest.mark.parametrize(
    ("tensor", "message"),
    [
        (np.ones((2, 2)), "order 3 or 4"),
        (np.ones((2, 2, 2, 2, 2)), "order 3 or 4"),
        (np.ones((2, 3, 2)), "cubic"),
        (np.ones((0, 0, 0)), "cubic"),
        (np.full((2, 2, 2), np.nan), "8 NaN or infinite"),
        (np.where(np.arange(8).reshape(2, 2, 2) == 3, np.inf, 0.0), "1 NaN or infinite"),
        (np.arange(8.0).reshape(2, 2, 2), "must be symmetric.*differ by up to 2"),
        (np.ones((2, 2, 2), dtype=complex), "must be real"),
        (np.full((1, 1, 1), "a"), "must be real"),
    ],
)
def test_what_is_no_symmetric_tensor_is_refused(tensor, message):
    with pytest.raises(ValueError, match=message):
        odeco.decompose(tensor)


@pytest.mark.parametrize("rank", [0, -1, 4, 1.5, True, "two"])
def test_bad_ranks_are_refused(rank):
    with pytest.raises(ValueError, match="rank must be None or an integer between 1 and the dimension n = 3"):
        odeco.decompose(rank_one_sum([1, 1, 1], np.eye(3)), rank)


def test_unknown_methods_and_options_are_refused():
    tensor = rank_one_sum([2.0, 1.0], np.eye(2))
    with pytest.raises(ValueError, match="method must be one of.*Did you mean 'power'"):
        odeco.decompose(tensor, 2, method="powr")
    with pytest.raises(ValueError, match="no option 'n_restart'.*Did you mean 'n_restarts'"):
        odeco.decompose(tensor, 2, method="power", n_restart=3)
    with pytest.raises(ValueError, match="its options: none"):
        odeco.decompose(tensor, 2, method="svd", tol=1)
    with pytest.raises(ValueError, match="takes order 3, got order 4"):
        odeco.decompose(rank_one_sum([1.0], np.ones((1, 1)), 4), 1, method="power-stopping")


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("auto", {"n_iter": 0}),
        ("auto", {"tol": -1.0}),
        ("auto", {"starts": np.ones((2, 1))}),
        ("auto", {"starts": np.zeros((2, 2))}),
        ("power", {"n_iter": -1}),
        ("power", {"n_restarts": 0}),
        ("power", {"n_restarts": 3, "starts": np.eye(2)}),
        ("power", {"starts": np.full((2, 1), np.nan)}),
        ("power-stopping", {"max_restarts": 0}),
        ("joint", {"n_slices": 0}),
    ],
)
def test_bad_options_are_refused(method, options):
    with pytest.raises(ValueError, match="|".join(options)):
        odeco.decompose(rank_one_sum([2.0, 1.0], np.eye(2)), 2, method=method, **options)


def test_the_zero_tensor():
    zero = np.zeros((3, 3, 3))
    result = odeco.decompose(zero)
    assert result.rank == 0
    assert result.residual == 0.0
    assert result.status.ok
    assert np.array_equal(result.reconstruct(), zero)
    with pytest.raises(ValueError, match="tensor is zero"):
        odeco.decompose(zero, 1)


def test_options_have_an_effect():
    sample = odeco_tensor(12, noise=0.2, random_state=0)
    run = lambda **options: odeco.decompose(sample.tensor, 12, random_state=0, **options)  # noqa: E731
    default = run()
    assert run(tol=1e-12).n_iter > default.n_iter
    near = run(starts=default.eigenvectors)
    assert near.n_iter <= 2
    assert run(shift=1.0).n_iter > default.n_iter
    assert np.allclose(run(shift=1.0, tol=1e-10).eigenvectors, default.eigenvectors, atol=0.05)
    loose = run(decouple=True)
    assert not np.allclose(loose.eigenvectors.T @ loose.eigenvectors, np.eye(12), atol=1e-6)
    assert run(method="power", n_iter=7).n_iter == 14
    with pytest.warns(odeco.MomentWarning, match="would still move"):
        one, many = (run(method="power", n_restarts=m, n_iter=3) for m in (1, 40))
    assert not np.allclose(one.sorted().eigenvalues, many.sorted().eigenvalues)


@pytest.mark.parametrize(("n", "rank"), [(6, 6), (8, 5), (40, 40)])
def test_auto_ends_at_the_best_orthonormal_fit(n, rank):
    """The residual is least where the sum of squared values is largest: there V' W diag(lambda) is symmetric."""
    rng = np.random.default_rng(0)
    frame, values = np.linalg.qr(rng.standard_normal((n, rank)))[0], np.geomspace(5.0, 0.5, rank)
    tensor = rank_one_sum(values, frame, 3) + 0.3 / n * symmetrize(rng.standard_normal((n, n, n)))
    found = odeco.decompose(tensor, rank, random_state=0, tol=1e-10, n_iter=1000).eigenvectors
    mapped = np.einsum("abc,bi,ci->ai", tensor, found, found, optimize=True)
    plain = found.T @ mapped
    weighted = plain * np.diag(plain)
    assert np.abs(weighted - weighted.T).max() < 1e-8  # tol times the largest values, squared
    assert np.abs(plain - plain.T).max() > 1e-3  # without the weights it would be this one


def test_power_starts_from_what_it_is_given():
    sample = odeco_tensor(8, eigenvalues=np.linspace(1, 2, 8), random_state=0)
    result = odeco.decompose(sample.tensor, 1, method="power", starts=sample.eigenvectors[:, [2]], n_iter=1)
    assert np.allclose(result.eigenvectors[:, 0], sample.eigenvectors[:, 2])


def test_more_slices_help_the_joint_method():
    sample = odeco_tensor(30, noise=0.3 / np.sqrt(30), random_state=0)
    errors = []
    for count in (1, 30):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", odeco.MomentWarning)
            result = odeco.decompose(sample.tensor, 30, method="joint", n_slices=count, random_state=0)
        errors.append(match_components(result.eigenvectors, sample.eigenvectors).largest)
    assert errors[1] < errors[0] / 5


@pytest.mark.parametrize("method", METHODS)
def test_same_seed_same_bits(method):
    sample = odeco_tensor(20, eigenvalues=np.linspace(1, 2, 20), noise=0.02, random_state=0)
    first, second = (odeco.decompose(sample.tensor, 20, method=method, random_state=7) for _ in range(2))
    assert np.array_equal(first.eigenvalues, second.eigenvalues)
    assert np.array_equal(first.eigenvectors, second.eigenvectors)


def test_other_thread_counts_agree_to_rounding():
    from threadpoolctl import threadpool_limits

    sample = odeco_tensor(90, eigenvalues=np.linspace(1, 2, 90), noise=0.01, random_state=0)
    results = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            results.append(odeco.decompose(sample.tensor, 90, random_state=7))
    # The last change of a column was below tol = 1e-6 and contracts by less than 0.1 a step.
    assert np.allclose(results[0].eigenvectors, results[1].eigenvectors, atol=1e-6)


def test_decomposition_is_frozen_sorted_and_readable():
    sample = odeco_tensor(12, eigenvalues=np.linspace(1, 2, 12), random_state=0)
    result = odeco.decompose(sample.tensor, 12, random_state=0)
    with pytest.raises(dataclasses.FrozenInstanceError):
        result.residual = 0.0
    assert np.all(np.diff(result.eigenvalues) <= 0)
    text = repr(result)
    for part in ("order 3", "dimension 12", "'auto'", "12 (12 certified)", "residual", "converged"):
        assert part in text
    back = result.take(np.arange(12)[::-1])
    assert np.array_equal(back.sorted().eigenvectors, result.eigenvectors)
    assert np.array_equal(back.sorted().certificate.residuals, result.certificate.residuals)
    mixed = odeco.decompose(rank_one_sum([1.0, -2.0], np.eye(2), 4), 2, random_state=0)
    assert np.allclose(mixed.eigenvalues, [-2.0, 1.0])


def test_every_method_is_described_by_what_it_takes():
    assert list(METHODS) == ["auto", "power", "power-stopping", "jennrich", "joint", "svd"]
    assert METHODS["power"].options == ["n_restarts", "n_iter", "starts", "shift"]
    assert METHODS["power-stopping"].orders == (3,)


def test_the_base_class_cannot_be_used_alone():
    with pytest.raises(TypeError):
        SymmetricTensor()
