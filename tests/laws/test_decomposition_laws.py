"""What a decomposition must not depend on, and how it must follow what is done to the tensor."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import odeco
from odeco.decomposition import METHODS
from odeco.metrics import match_components
from odeco.simulate import odeco_tensor
from odeco.tensors import RankOneSum, multilinear, rank_one_sum, symmetrize
from tests.cases import CASES, case_id

SMALL = [case for case in CASES if case.n <= 20 and not (case.order == 4 and case.n > 10)]
EXACT = ["power", "power-stopping", "joint"]
# Clean: rounding of 1e-16 times a ratio of eigenvalues of at most 10 and n^2 terms.
# Noisy: "auto" stops when a step changes a column by less than 1e-6, and the next would change it by a tenth of that.
CLEAN, NOISY = 1e-11, 1e-6

seeds = st.integers(0, 2**32 - 1)


def rotation(n, seed):
    return np.linalg.qr(np.random.default_rng(seed).standard_normal((n, n)))[0]


def assert_same_components(result, vectors, values, tolerance):
    """The components of `result` are these, in any order, at order 4 up to sign."""
    assert result.rank == len(values)
    matching = match_components(result.eigenvectors, vectors, up_to_sign=result.order == 4)
    assert matching.largest <= tolerance
    expected = np.asarray(values)[matching.matched]
    assert np.abs(result.eigenvalues[matching.permutation] - expected).max() <= tolerance * np.abs(values).max()


def orders(method):
    """The orders that a method takes."""
    return st.sampled_from(METHODS[method].orders)


@st.composite
def clean_tensors(draw, method="auto"):
    """Eigenvalues between 0.2 and 2 (of both signs at order 4) and a random frame: (values, vectors, order)."""
    order, n = draw(orders(method)), draw(st.integers(1, 6))
    rank = draw(st.integers(1, n))
    sizes = draw(st.lists(st.floats(0.2, 2.0), min_size=rank, max_size=rank))
    signs = draw(st.lists(st.sampled_from([1.0, -1.0] if order == 4 else [1.0]), min_size=rank, max_size=rank))
    return np.multiply(sizes, signs), rotation(n, draw(seeds))[:, :rank], order


@pytest.mark.parametrize("case", SMALL, ids=case_id)
def test_a_rotated_tensor_has_rotated_eigenvectors(case):
    """T(Q, .., Q) has the eigenvectors Q'v: nothing depends on the coordinates, noise included."""
    sample = case.draw()
    turn = rotation(case.n, 1)
    before = odeco.decompose(sample.tensor, case.rank, random_state=0)
    turned = symmetrize(multilinear(sample.tensor, *[turn] * case.order))
    after = odeco.decompose(turned, case.rank, random_state=2)
    assert_same_components(after, turn.T @ before.eigenvectors, before.eigenvalues, NOISY if case.noise else CLEAN)
    assert after.residual == pytest.approx(before.residual, abs=NOISY)


@pytest.mark.parametrize("method", ["auto", *EXACT])
@given(data=st.data(), seed=seeds)
def test_components_are_found_in_any_frame(method, data, seed):
    values, vectors, order = data.draw(clean_tensors(method))
    tensor = symmetrize(rank_one_sum(values, vectors, order))
    result = odeco.decompose(tensor, len(values), method=method, random_state=seed)
    assert_same_components(result, vectors, values, 1e-9)
    assert result.status.ok
    assert np.linalg.norm(result.reconstruct() - tensor) <= 1e-9


@pytest.mark.parametrize("case", SMALL, ids=case_id)
def test_permuted_coordinates_permute_the_eigenvectors(case):
    sample = case.draw()
    order = np.random.default_rng(3).permutation(case.n)
    before = odeco.decompose(sample.tensor, case.rank, random_state=0)
    after = odeco.decompose(sample.tensor[np.ix_(*[order] * case.order)], case.rank, random_state=4)
    assert_same_components(after, before.eigenvectors[order], before.eigenvalues, NOISY if case.noise else CLEAN)


@pytest.mark.parametrize("case", SMALL, ids=case_id)
@pytest.mark.parametrize("scale", [2.0**-300, 2.0**-7, 2.0**300, -1.0])
def test_scaling_the_tensor_scales_the_eigenvalues(case, scale):
    """By powers of two bit for bit: nothing has units. The sign moves into the vectors at order 3."""
    sample = case.draw()
    before = odeco.decompose(sample.tensor, case.rank, random_state=0)
    after = odeco.decompose(scale * sample.tensor, case.rank, random_state=0)
    sign = np.sign(scale)
    tolerance = NOISY if case.noise else CLEAN
    vectors = before.eigenvectors if case.order == 4 else sign * before.eigenvectors
    values = before.eigenvalues * (scale if case.order == 4 else abs(scale))
    assert_same_components(after, vectors, values, tolerance)
    assert after.residual == pytest.approx(before.residual, abs=tolerance)
    assert after.status.code == before.status.code
    assert np.allclose(after.certificate.contraction, before.certificate.contraction, atol=1e-5)


@given(components=clean_tensors(), seed=seeds)
def test_the_order_in_which_components_are_added_does_not_matter(components, seed):
    values, vectors, order = components
    shuffled = np.random.default_rng(seed).permutation(len(values))
    tensors = [rank_one_sum(values, vectors, order), rank_one_sum(values[shuffled], vectors[:, shuffled], order)]
    results = [odeco.decompose(symmetrize(tensor), len(values), random_state=seed) for tensor in tensors]
    assert_same_components(results[0], results[1].eigenvectors, results[1].eigenvalues, 1e-9)


@pytest.mark.parametrize("order", [3, 4])
def test_a_direct_sum_has_the_components_of_both(order):
    """Tensors that live in complementary coordinates do not disturb each other."""
    first = odeco_tensor(4, order=order, eigenvalues=[3.0, 2.0, 1.0], random_state=0)
    second = odeco_tensor(3, order=order, eigenvalues=[2.5, 1.5], random_state=1)
    whole = np.zeros((7,) * order)
    whole[(slice(4),) * order] = first.tensor
    whole[(slice(4, 7),) * order] = second.tensor
    vectors = np.zeros((7, 5))
    vectors[:4, :3], vectors[4:, 3:] = first.eigenvectors, second.eigenvectors
    for rank in (5, None):
        result = odeco.decompose(whole, rank, random_state=0)
        assert_same_components(result, vectors, [3.0, 2.0, 1.0, 2.5, 1.5], CLEAN)
    # The coordinates of neither see the other: exactly zero stays zero to rounding.
    assert (
        np.abs(np.minimum(np.abs(result.eigenvectors[:4]).max(0), np.abs(result.eigenvectors[4:]).max(0))).max() < CLEAN
    )


@given(components=clean_tensors(), seed=seeds)
def test_decomposing_a_reconstruction_changes_nothing(components, seed):
    values, vectors, order = components
    first = odeco.decompose(symmetrize(rank_one_sum(values, vectors, order)), len(values), random_state=seed)
    again = odeco.decompose(symmetrize(first.reconstruct()), first.rank, random_state=seed + 1)
    assert_same_components(again, first.eigenvectors, first.eigenvalues, 1e-9)


@pytest.mark.filterwarnings("ignore::odeco.MomentWarning")
@pytest.mark.parametrize("method", METHODS)
@given(seed=seeds, n=st.integers(1, 6), noise=st.sampled_from([0.0, 1e-6, 0.1, 1.0]), data=st.data())
def test_residual_and_certificate_are_what_they_say(method, seed, n, noise, data):
    """On any symmetric tensor, good or bad, against their definitions."""
    order, rank = data.draw(orders(method)), data.draw(st.integers(1, n))
    rng = np.random.default_rng(seed)
    values = rng.uniform(0.5, 2.0, rank) * (rng.choice([-1.0, 1.0], rank) if order == 4 else 1.0)
    clean = rank_one_sum(values, rotation(n, seed)[:, :rank], order)
    tensor = symmetrize(clean) + noise * symmetrize(rng.standard_normal((n,) * order))
    result = odeco.decompose(tensor, rank, method=method, random_state=seed)

    error = np.linalg.norm(tensor - result.reconstruct()) / np.linalg.norm(tensor)
    assert result.residual == pytest.approx(error, rel=1e-6, abs=1e-12)
    assert np.allclose(np.linalg.norm(result.eigenvectors, axis=0), 1.0, atol=1e-12)
    assert order == 4 or np.all(result.eigenvalues >= 0)
    for j, (value, vector) in enumerate(zip(result.eigenvalues, result.eigenvectors.T, strict=True)):
        image = multilinear(tensor, None, *[vector] * (order - 1))
        left = np.linalg.norm(image - value * vector) / abs(value)
        assert result.certificate.residuals[j] == pytest.approx(left, rel=1e-6, abs=1e-12)
        tangent = np.eye(n) - np.outer(vector, vector)
        matrix = tangent @ multilinear(tensor, None, None, *[vector] * (order - 2)) @ tangent
        rate = (order - 1) / abs(value)
        found = result.certificate.contraction[j]
        # Frobenius norms, known to 1e-7 by cancellation, where they decide, and spectral norms elsewhere.
        assert rate * np.linalg.norm(matrix, 2) * (1 - 1e-9) - 1e-12 <= found
        assert found <= rate * np.linalg.norm(matrix) * (1 + 1e-9) + 1e-6 * np.linalg.norm(tensor) * rate
        if order == 4 or found >= 0.82:
            assert found == pytest.approx(rate * np.linalg.norm(matrix, 2), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("method", METHODS)
def test_layout_in_memory_does_not_matter_and_the_tensor_is_not_changed(method, tmp_path):
    sample = odeco_tensor(6, eigenvalues=[6, 5, 4, 3, 2, 1], noise=0.01, random_state=0)
    wide = np.zeros((12, 12, 12))
    wide[::2, 1::2, ::-2] = sample.tensor
    mapped = np.memmap(tmp_path / "tensor", dtype=float, mode="w+", shape=(6, 6, 6))
    mapped[:] = sample.tensor
    frozen = sample.tensor.copy()
    frozen.setflags(write=False)
    layouts = {
        "fortran": np.asfortranarray(sample.tensor),
        "strided": wide[::2, 1::2, ::-2],
        "mapped": mapped,
        "read only": frozen,
        "list": sample.tensor.tolist(),
        "swapped bytes": sample.tensor.astype(">f8"),
        "longdouble": sample.tensor.astype(np.longdouble),
        "masked nowhere": np.ma.masked_array(sample.tensor),
    }
    before = sample.tensor.copy()
    expected = odeco.decompose(sample.tensor, 6, method=method, random_state=0)
    assert np.array_equal(sample.tensor, before)
    for name, tensor in layouts.items():
        result = odeco.decompose(tensor, 6, method=method, random_state=0)
        # The transposed order of a sum that is symmetric to rounding only.
        assert np.allclose(result.eigenvectors, expected.eigenvectors, atol=1e-9), name
        assert np.allclose(result.eigenvalues, expected.eigenvalues, atol=1e-9), name
        assert np.array_equal(np.asarray(tensor, dtype=float), before), name


@pytest.mark.parametrize("method", ["auto", "power", "jennrich"])
def test_starts_and_terms_are_not_changed(method):
    sample = odeco_tensor(5, eigenvalues=[5, 4, 3, 2, 1], random_state=0)
    weights, vectors = sample.eigenvalues.copy(), sample.eigenvectors.copy()
    implicit = RankOneSum(weights, vectors)
    options = {} if method == "jennrich" else {"starts": vectors + 0.1}
    starts = {name: start.copy() for name, start in options.items()}
    result = odeco.decompose(implicit, 5, method=method, random_state=0, **options)
    result.eigenvectors[:] = 0.0  # what is returned is the caller's own
    assert np.array_equal(weights, sample.eigenvalues)
    assert np.array_equal(vectors, sample.eigenvectors)
    assert all(np.array_equal(options[name], starts[name]) for name in options)


def test_the_laws_would_notice_shuffled_components():
    sample = odeco_tensor(5, eigenvalues=[5, 4, 3, 2, 1], random_state=0)
    result = odeco.decompose(sample.tensor, 5, random_state=0)
    assert_same_components(result, sample.eigenvectors, sample.eigenvalues, CLEAN)
    for wrong in (np.roll(sample.eigenvectors, 1, axis=1), -sample.eigenvectors):
        with pytest.raises(AssertionError):
            assert_same_components(result, wrong, sample.eigenvalues, CLEAN)
