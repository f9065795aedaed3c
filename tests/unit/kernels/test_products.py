"""Products and steps over tall blocks, shared by threads: numpy itself is the oracle."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from odeco.kernels import products
from odeco.kernels.sparse import add_sparse_inner, sparse_product

ROWS = 9_001  # enough for two threads, and no multiple of what they take at a time


@pytest.fixture(params=["1", "2", "3"])
def rng(request, monkeypatch):
    monkeypatch.setenv("ODECO_NUM_THREADS", request.param)
    return np.random.default_rng(0)


def test_steps_over_rows_see_each_row_once(rng):
    seen = np.zeros((ROWS, 20))

    def add(part: slice) -> None:
        seen[part] += 1

    products.by_rows(add, seen)
    np.testing.assert_array_equal(seen, 1.0)


def test_remainders_scales_and_columns(rng):
    rows, block, matrix, scale = (rng.standard_normal(s) for s in ((ROWS, 20), (ROWS, 5), (5, 20), (ROWS,)))
    # Sums of five products of numbers of size 1: a few units of rounding.
    np.testing.assert_allclose(products.tall_remainder(rows, block, matrix), rows - block @ matrix, atol=1e-14)
    np.testing.assert_array_equal(products.scaled_rows(rows, scale), scale[:, None] * rows)
    single = products.scaled_rows(rows, scale, np.empty(rows.shape, np.float32))
    np.testing.assert_array_equal(single, (scale[:, None] * rows).astype(np.float32))
    np.testing.assert_array_equal(products.side_by_side([rows, block]), np.hstack([rows, block]))
    assert products.side_by_side([rows]) is rows


def test_products_with_counts(rng):
    counts = sparse.random_array((ROWS, 300), density=0.02, format="csr", rng=rng)
    block, rows, sums = rng.standard_normal((300, 11)), rng.standard_normal((ROWS, 11)), np.ones((300, 11))
    np.testing.assert_allclose(sparse_product(counts, block), counts @ block, atol=1e-13)
    add_sparse_inner(counts, rows, sums)
    np.testing.assert_allclose(sums, 1 + counts.T @ rows, atol=1e-11)  # of some 200 products


def test_parts_of_a_sum_are_the_same_for_any_number_of_threads(rng):
    parts = products.by_parts(lambda part: part, 3 * ROWS)
    assert [(part.start, part.stop) for part in parts] == [(0, ROWS), (ROWS, 2 * ROWS), (2 * ROWS, 3 * ROWS)]
    assert products.by_parts(lambda part: part, 5) == [slice(0, 5)]
