"""Numbers in lines of text: the kernel against a naive loop, and what it refuses."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from odeco.files.number_lines import LineFault, read_numbers
from odeco.kernels.numbers import COLON, END
from tests.oracles.numbers import numbers_of

NUMBER = st.one_of(
    st.integers(-(2**70), 2**70).map(str),
    st.floats().map(repr),
    st.decimals(allow_nan=False, allow_infinity=False, places=4, min_value=-(10**6), max_value=10**6).map(str),
    st.from_regex(r"[+-]?0{0,25}[0-9]{0,22}\.?[0-9]{0,22}([eE][+-]?[0-9]{1,5})?", fullmatch=True),
)
LINES = st.one_of(
    st.lists(st.tuples(NUMBER, st.sampled_from([" ", "\n", ":", "\r\n", " \t", ""]))).map(
        lambda parts: "".join(number + mark for number, mark in parts)
    ),
    st.text("0123456789+-.eE: \n\r\t\v_nanif,x\0", max_size=20),
)


@example("1 1 -\n")
@example("1 1 +")
@example("-:3")
@example("1: 2\n")
@example("1 :2\n")
@example("1_0\n")
@example("9223372036854775807 -9223372036854775808 9223372036854775808\n")
@example("1e 2\n")
@example(".\n")
@example("0.1 5e-324 1.7976931348623157e308 1e400 9007199254740993.0\n")
@given(text=LINES)
def test_numbers_are_read_as_a_naive_loop_reads_them(text):
    block = text.encode()
    expected = numbers_of(block)
    if expected is None:
        with pytest.raises(LineFault):
            read_numbers(block, 1)
        return
    found = read_numbers(block, 1)
    np.testing.assert_array_equal(
        found.values.astype(np.float64), [number for line in expected for field in line for number in field]
    )
    fields = [len(field) for line in expected for field in line]
    assert np.flatnonzero(found.after != COLON).tolist() == (np.cumsum(fields) - 1).tolist()
    assert np.diff(np.flatnonzero(found.after == END), prepend=-1).tolist() == [
        sum(map(len, line)) for line in expected
    ]


def test_whole_numbers_stay_whole_to_the_last_digit():
    found = read_numbers(b"9223372036854775807 -9223372036854775808 +7\n", 1)
    assert found.integers().tolist() == [2**63 - 1, -(2**63), 7]
    with pytest.raises(LineFault):
        read_numbers(b"9223372036854775808\n", 1).integers()
    with pytest.raises(LineFault):
        read_numbers(b"1 1.0\n", 1).integers()


def test_a_fault_names_its_line_and_its_word():
    with pytest.raises(LineFault) as caught:
        read_numbers(b"1 2\n\n3 four 5\n6", 10)
    assert (caught.value.line, caught.value.token, caught.value.text) == (12, "four", "3 four 5")
