"""Every contraction against einsum, on both sides of the size where the packed forms take over."""

from __future__ import annotations

import numpy as np
import pytest

from odeco.tensors import (
    Deflated,
    ExplicitTensor,
    RankOneSum,
    SymmetricTensor,
    as_symmetric_tensor,
    asymmetry,
    frobenius_norm,
    multilinear,
    operator_norm_lower_bound,
    rank_one_sum,
    symmetrize,
)

# Sums of n^(p-1) products of numbers of size 1: rounding grows with the square root of their number; 1e-12 is 100 times
# what was seen at the largest size.
ROUNDING = 1e-12
SHAPES = [(3, 1), (3, 2), (3, 7), (3, 33), (3, 70), (4, 1), (4, 2), (4, 6), (4, 19)]
EINSUM = {3: "abc,bj,cj->aj", 4: "abcd,bj,cj,dj->aj"}


def random_symmetric(order: int, n: int, seed: int = 0) -> np.ndarray:
    return symmetrize(np.random.default_rng(seed).standard_normal((n,) * order))


class OnlyContracts(SymmetricTensor):
    """An implicit tensor that knows nothing but its power map."""

    def __init__(self, array: np.ndarray) -> None:
        self.order, self.dimension = array.ndim, array.shape[0]
        self._array = array

    def power_map(self, vectors: np.ndarray) -> np.ndarray:
        return np.einsum(EINSUM[self.order], self._array, *([vectors] * (self.order - 1)), optimize=True)


@pytest.mark.parametrize(("order", "n"), SHAPES)
def test_power_map_plain_packed_and_single_precision_agree_with_einsum(order, n):
    array = random_symmetric(order, n)
    vectors = np.random.default_rng(1).standard_normal((n, 5)) / np.sqrt(n)
    expected = np.einsum(EINSUM[order], array, *([vectors] * (order - 1)), optimize=True)
    tensor = ExplicitTensor(array)
    size = np.abs(expected).max()
    assert np.abs(tensor.power_map(vectors) - expected).max() <= ROUNDING * size
    packed = tensor.packed(np.float64)
    assert np.abs(tensor.scale * packed.power_map(vectors) - expected).max() <= ROUNDING * size
    single = tensor.packed(np.float32)
    assert single.power_map(vectors).dtype == np.float32
    # float32 rounding 6e-8 times the square root of the number of terms, times 10
    bound = 6e-7 * np.sqrt(n ** (order - 1)) * size
    assert np.abs(tensor.scale * single.power_map(vectors) - expected).max() <= bound


@pytest.mark.parametrize(("order", "n"), SHAPES)
def test_gram_norm_and_slices_agree_with_einsum(order, n):
    array = random_symmetric(order, n)
    tensor = ExplicitTensor(array)
    flat = array.reshape(n, -1)
    assert np.allclose(
        tensor.scale**2 * tensor.packed(np.float64).gram(), flat @ flat.T, rtol=ROUNDING, atol=ROUNDING * n
    )
    assert tensor.norm == pytest.approx(np.linalg.norm(array), rel=ROUNDING)
    vectors = np.random.default_rng(2).standard_normal((n, 3))
    matrices = np.einsum("abc,cj->jab" if order == 3 else "abcd,cj,dj->jab", array, *([vectors] * (order - 2)))
    assert np.allclose(tensor.matrices(vectors), matrices, rtol=ROUNDING, atol=ROUNDING * n)
    assert np.allclose(tensor.matrix(vectors[:, 1]), matrices[1], rtol=ROUNDING, atol=ROUNDING * n)
    values = np.einsum("aj,aj->j", vectors, tensor.power_map(vectors))
    assert np.allclose(tensor.values(vectors), values)


@pytest.mark.parametrize(("order", "n"), [(3, 6), (4, 5)])
def test_polarization_gives_the_slices_of_an_implicit_tensor(order, n):
    array = random_symmetric(order, n)
    explicit, implicit = ExplicitTensor(array), OnlyContracts(array)
    vector = np.random.default_rng(3).standard_normal(n)
    assert np.allclose(implicit.matrix(vector), explicit.matrix(vector), atol=1e-11)
    # Order 3 draws the same eta; at order 4 the implicit slice is T(I, I, aa' - bb') for its own a, b.
    drawn = implicit.random_slice(np.random.default_rng(4))
    if order == 3:
        assert np.allclose(drawn, explicit.random_slice(np.random.default_rng(4)), atol=1e-11)
    else:
        a, b = np.random.default_rng(4).standard_normal((2, n))
        assert np.allclose(drawn, explicit.matrix(a) - explicit.matrix(b), atol=1e-10)
    assert implicit.norm is None


@pytest.mark.parametrize("order", [3, 4])
def test_multilinear_is_the_definition_of_section_2(order):
    rng = np.random.default_rng(5)
    array = rng.standard_normal((4, 3, 5, 2)[:order])
    matrices = [rng.standard_normal((side, width)) for side, width in zip(array.shape, (2, 6, 3, 4), strict=False)]
    letters = "abcd"[:order]
    upper = "wxyz"[:order]
    subscripts = ",".join([letters, *(a + b for a, b in zip(letters, upper, strict=True))]) + "->" + upper
    assert np.allclose(multilinear(array, *matrices), np.einsum(subscripts, array, *matrices))


def test_multilinear_takes_vectors_and_identities():
    array = random_symmetric(3, 4)
    u, v = np.random.default_rng(6).standard_normal((2, 4))
    assert np.allclose(multilinear(array, None, u, v), np.einsum("abc,b,c->a", array, u, v))
    assert np.allclose(multilinear(array, None, None, u), np.einsum("abc,c->ab", array, u))
    assert multilinear(array, u, u, v) == pytest.approx(np.einsum("abc,a,b,c->", array, u, u, v))
    assert multilinear(array, *np.eye(4)[:, [0, 2, 3]].T) == pytest.approx(array[0, 2, 3])


def test_multilinear_refuses_wrong_factors():
    array = random_symmetric(3, 4)
    with pytest.raises(ValueError, match="takes 3 factors, got 2"):
        multilinear(array, None, None)
    with pytest.raises(ValueError, match="Factor 1 has shape"):
        multilinear(array, None, np.ones(3), None)


@pytest.mark.parametrize("order", [3, 4])
def test_rank_one_sum_explicit_and_implicit(order):
    rng = np.random.default_rng(7)
    weights, vectors = rng.standard_normal(3), rng.standard_normal((5, 3))
    letters = "abcd"[:order]
    terms = ",".join(f"{letter}j" for letter in letters)
    expected = np.einsum(f"j,{terms}->{letters}", weights, *([vectors] * order))
    assert np.allclose(rank_one_sum(weights, vectors, order), expected)
    implicit, explicit = RankOneSum(weights, vectors, order), ExplicitTensor(expected)
    probe = rng.standard_normal((5, 4))
    assert np.allclose(implicit.power_map(probe), explicit.power_map(probe))
    assert np.allclose(implicit.matrix(probe[:, 0]), explicit.matrix(probe[:, 0]))
    assert implicit.norm == pytest.approx(np.linalg.norm(expected))


def test_a_long_sum_does_not_form_its_gram_matrix():
    assert RankOneSum(np.ones(5000), np.ones((2, 5000))).norm is None


@pytest.mark.parametrize("order", [3, 4])
def test_deflated_equals_the_subtracted_array(order):
    array = random_symmetric(order, 6)
    vectors = np.linalg.qr(np.random.default_rng(8).standard_normal((6, 2)))[0]
    deflated = Deflated(ExplicitTensor(array))
    for value, vector in zip((0.7, -0.3), vectors.T, strict=True):
        deflated.remove(value, vector)
    remaining = array - rank_one_sum([0.7, -0.3], vectors, order)
    probe = np.random.default_rng(9).standard_normal((6, 3))
    assert np.allclose(deflated.power_map(probe), ExplicitTensor(remaining).power_map(probe))
    assert np.allclose(deflated.matrix(probe[:, 0]), ExplicitTensor(remaining).matrix(probe[:, 0]))
    assert deflated.norm == pytest.approx(np.linalg.norm(remaining))


def test_symmetrize_and_asymmetry():
    array = np.random.default_rng(10).standard_normal((4, 4, 4))
    assert asymmetry(symmetrize(array)) <= 1e-15
    for order in (3, 4):
        for swap in range(order - 1):
            broken = random_symmetric(order, 4)
            index = [0, 1, 2, 3][:order]
            index[swap], index[swap + 1] = index[swap + 1], index[swap]
            broken[tuple(index)] += 0.5
            assert asymmetry(broken) == pytest.approx(0.5)


def test_frobenius_norm_survives_squares_out_of_range():
    assert frobenius_norm(np.full((2, 2, 2), 1e200)) == pytest.approx(np.sqrt(8) * 1e200)
    assert frobenius_norm(np.zeros((2, 2, 2))) == 0.0


def test_operator_norm_is_attained_and_is_a_lower_bound():
    values = [3.0, 2.0, 1.0]
    vectors = np.linalg.qr(np.random.default_rng(11).standard_normal((5, 3)))[0]
    tensor = rank_one_sum(values, vectors)
    bound = operator_norm_lower_bound(tensor, random_state=0)
    assert bound.value == pytest.approx(3.0, rel=1e-9)  # the norm of an odeco tensor is its largest eigenvalue
    assert abs(multilinear(tensor, *[bound.vector] * 3)) == pytest.approx(bound.value)
    grid = np.random.default_rng(12).standard_normal((5, 20000))
    grid /= np.linalg.norm(grid, axis=0)
    noise = random_symmetric(3, 5)
    sampled = np.abs(ExplicitTensor(noise).values(grid)).max()
    found = operator_norm_lower_bound(noise, random_state=0)
    assert found.value >= sampled
    assert found.n_starts == 50


def test_operator_norm_sees_negative_values_at_order_4():
    vectors = np.linalg.qr(np.random.default_rng(13).standard_normal((4, 2)))[0]
    assert operator_norm_lower_bound(rank_one_sum([-2.0, 1.0], vectors, 4), random_state=0).value == pytest.approx(2.0)
    assert operator_norm_lower_bound(np.zeros((3, 3, 3))).value == 0.0


def test_implicit_tensors_pass_and_their_order_is_checked():
    implicit = OnlyContracts(random_symmetric(3, 3))
    assert as_symmetric_tensor(implicit) is implicit
    implicit.order = 5
    with pytest.raises(ValueError, match="order 3 or 4"):
        as_symmetric_tensor(implicit)


def test_validation_keeps_a_double_array_without_copy_and_never_writes():
    array = random_symmetric(3, 5)
    array.setflags(write=False)
    tensor = as_symmetric_tensor(array)
    assert isinstance(tensor, ExplicitTensor)
    assert tensor.array is array


def test_contractions_are_the_same_for_any_number_of_threads(monkeypatch):
    rng = np.random.default_rng(0)
    array, vectors = random_symmetric(3, 182), rng.standard_normal((182, 3))  # rows of two parts
    found = []
    for threads in ("1", "2", "3"):
        monkeypatch.setenv("ODECO_NUM_THREADS", threads)
        tensor = ExplicitTensor(array)
        found.append([tensor.power_map(vectors), tensor.gram])
    for one, other in zip(found[0] * 2, found[1] + found[2], strict=True):
        np.testing.assert_array_equal(one, other)
