"""Rows on cache lines: the same numbers in another place."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

from odeco.kernels.alignment import in_lines, whole_lines, zero_lines

SHAPES = [(1, 1), (7, 60), (5, 16), (3, 17), (2, 4, 9), (1, 3, 64)]
each_shape = pytest.mark.parametrize("shape", SHAPES, ids=str)
each_dtype = pytest.mark.parametrize("dtype", [np.float32, np.float64])


@each_shape
@each_dtype
def test_every_row_begins_on_a_line_and_has_it_to_the_end(shape, dtype):
    given = np.random.default_rng(0).normal(size=shape).astype(dtype)
    rows = in_lines(given)
    np.testing.assert_array_equal(rows, given)
    assert rows.dtype == dtype
    whole = whole_lines(rows)
    assert whole.flags.c_contiguous
    assert whole.ctypes.data % 64 == 0
    assert whole.strides[-2] % 64 == 0
    assert whole.strides[-2] - given.itemsize * shape[-1] < 64
    np.testing.assert_array_equal(whole[..., : shape[-1]], given)
    assert not whole[..., shape[-1] :].any()
    whole[..., 0] = 5  # the same memory
    assert (rows[..., 0] == 5).all()
    assert in_lines(rows) is rows


@each_shape
def test_zeros_have_their_rows_on_lines(shape):
    zeros = zero_lines(shape, np.float32)
    assert zeros.shape == shape
    assert not zeros.any()
    assert in_lines(zeros) is zeros


@pytest.mark.parametrize("send", [copy.deepcopy, lambda rows: pickle.loads(pickle.dumps(rows, 5))])
def test_copies_and_pickles_are_put_on_lines_again(send):
    rows = in_lines(np.random.default_rng(0).normal(size=(40, 11)))
    arrived = send(rows)
    np.testing.assert_array_equal(whole_lines(in_lines(arrived))[:, :11], rows)


def test_a_view_whose_last_line_belongs_to_others_is_copied():
    """60 columns in rows of 64, in memory that ends with the last of the 60."""
    memory = np.zeros(300, dtype=np.float32)
    first = -memory.ctypes.data % 64 // 4
    ours = np.frombuffer(memory.data[first : first + 3 * 64 - 4], dtype=np.float32)
    view = np.lib.stride_tricks.as_strided(ours, (3, 60), (256, 4))
    assert in_lines(view) is not view


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_memory_that_no_array_owns_is_taken_as_it_is(dtype):
    """Pickles of a protocol with buffers of its own bring such blocks."""
    memory = np.zeros(100, dtype=np.float64)
    first = -memory.ctypes.data % 64 // 8
    block = np.frombuffer(memory.data[first : first + 64], dtype=dtype).reshape(4, -1)
    assert in_lines(block) is block
