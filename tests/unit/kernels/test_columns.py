"""Rows turned into columns, and products of three coordinates, equal what numpy says of them."""

from __future__ import annotations

import numpy as np
import pytest

from odeco.kernels import _native as native
from odeco.kernels.columns import centred_columns, turned
from odeco.kernels.cubes import add_cubes


@pytest.mark.parametrize(("kind", "to"), [("f4", "f4"), ("f8", "f8"), ("f8", "f4"), ("f4", "f8")])
@pytest.mark.parametrize("about", [False, True])
@pytest.mark.parametrize(("n", "d"), [(0, 3), (1, 1), (7, 5), (8, 16), (65, 17), (200, 40)])
def test_columns_about_an_origin(kind, to, about, n, d):
    rng = np.random.default_rng(n)
    rows = rng.normal(1e3, 1.0, (n, d + 4)).astype(kind)[:, 2 : d + 2]
    origin = rng.normal(1e3, 1.0, d) if about else None
    out = np.full((d, n), np.nan, to)
    centred_columns(rows, out, origin)
    exact = rows.astype(to if to == "f8" else kind)
    about_it = exact if origin is None else exact - origin.astype(exact.dtype)
    np.testing.assert_array_equal(out, about_it.astype(to).T)


@pytest.mark.parametrize("kind", ["f4", "f8", "i4", "i8", "u8", "i2", "?", "O", ">f8", "U3"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_turned_rows_are_the_transposed_ones(kind, order):
    numbers = np.random.default_rng(0).integers(-(2**62), 2**62, (37, 11))
    rows = (numbers % 7 if kind in ("O", "U3") else numbers).astype(kind, order=order)
    found = turned(rows[:, 1:10])
    assert found.dtype == rows.dtype
    assert found.flags.c_contiguous
    np.testing.assert_array_equal(found, rows[:, 1:10].T)


def test_turned_rows_keep_bits_that_are_no_number():
    odd = np.array([0x7FF0000000000001, 0x7FF8000000000123, 2**63 - 1, 1], dtype=np.int64).repeat(16).reshape(8, 8)
    np.testing.assert_array_equal(turned(odd), odd.T)


# Samples, and columns of three blocks that count.
SIZES = [(1, (1, 1, 1)), (5, (2, 3, 4)), (300, (7, 4, 13)), (1500, (10, 10, 9))]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("same", ["none", "first two", "all"])
@pytest.mark.parametrize(("n", "sizes"), SIZES)
def test_products_of_three_coordinates_are_summed(dtype, weighted, same, n, sizes):
    rng = np.random.default_rng(n)
    k = {"none": sizes, "first two": (sizes[0], sizes[0], sizes[2]), "all": (sizes[0],) * 3}[same]
    blocks = [rng.standard_normal((n, each + 3)).astype(dtype) for each in k]
    blocks = {"none": blocks, "first two": [blocks[0], blocks[0], blocks[2]], "all": [blocks[0]] * 3}[same]
    weights = rng.uniform(size=n) if weighted else np.empty(0)
    sums = np.ones(k)
    add_cubes(*blocks, weights, sums)
    parts = [block[:, :each].astype(float) for block, each in zip(blocks, k, strict=True)]
    exact = 1 + np.einsum("ia,ib,ic,i->abc", *parts, weights if weighted else np.ones(n))
    a, b, c = np.indices(k)
    there = np.full(k, True) if same == "none" else a <= b if same == "first two" else (a <= b) & (b <= c)
    # Sums of n products of size 1, up to 1,024 of them in the precision of the samples.
    np.testing.assert_allclose(sums[there], exact[there], atol=16 * n * np.finfo(dtype).eps)


def test_no_samples_add_nothing():
    nothing, sums = np.empty((0, 3)), np.ones((3, 3, 3))
    add_cubes(nothing, nothing, nothing, np.empty(0), sums)
    assert (sums == 1).all()


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"first": (8, 2)}, "second must have size 8"),
        ({"second": (9, 2)}, "second must have size 3 at least"),
        ({"third": (9, 3)}, "third must have size 4 at least"),
        ({"weights": (8,)}, "weights must have size 9"),
    ],
)
def test_blocks_of_wrong_shapes_are_an_error(change, error):
    sizes = {"first": (9, 2), "second": (9, 3), "third": (9, 4), "weights": (0,), "sums": (2, 3, 4)} | change
    with pytest.raises(ValueError, match=error):
        add_cubes(*(np.zeros(size) for size in sizes.values()))


def test_blocks_that_begin_together_are_the_same():
    wide, other = np.zeros((9, 5)), np.ones((9, 5))
    with pytest.raises(ValueError, match="the first two blocks begin together but differ"):
        add_cubes(wide, wide, other, np.empty(0), np.zeros((2, 3, 4)))
    with pytest.raises(ValueError, match="the last two blocks begin together but differ"):
        add_cubes(other, wide, wide, np.empty(0), np.zeros((2, 3, 4)))


@pytest.mark.parametrize(
    ("rows", "stop", "origin", "out", "error"),
    [
        ((9, 3), 10, (3,), (3, 9), "rows 0 to 10 of 9"),
        ((9, 3), 9, (2,), (3, 9), "origin must have size 3"),
        ((9, 3), 9, (0,), (2, 9), "out must have size 3"),
        ((9, 3), 5, (0,), (3, 9), "out must have size 5"),
    ],
)
def test_columns_of_wrong_shapes_are_an_error(rows, stop, origin, out, error):
    with pytest.raises((ValueError, IndexError), match=error):
        native.centred_columns(np.zeros(rows), 0, stop, np.zeros(origin), np.zeros(out))


def test_rows_that_are_not_whole_are_refused():
    with pytest.raises(ValueError, match="rows must have whole rows"):
        native.centred_columns(np.zeros((3, 9)).T, 0, 9, np.empty(0), np.zeros((3, 9)))
