from __future__ import annotations

import os

import pytest

from odeco.kernels.threads import map_parts


@pytest.mark.parametrize("n_threads", ["1", "2", "3"])
def test_parts_come_back_in_order(monkeypatch, n_threads):
    monkeypatch.setenv("ODECO_NUM_THREADS", n_threads)
    assert map_parts(lambda part: part**2, 7) == [part**2 for part in range(7)]


def test_parts_within_parts_do_not_wait_for_each_other(monkeypatch):
    monkeypatch.setenv("ODECO_NUM_THREADS", "2")
    found = map_parts(lambda outer: sum(map_parts(lambda inner: 10 * outer + inner, 4)), 4)
    assert found == [40 * outer + 6 for outer in range(4)]


def test_an_error_in_a_part_reaches_the_caller(monkeypatch):
    monkeypatch.setenv("ODECO_NUM_THREADS", "2")
    with pytest.raises(ZeroDivisionError):
        map_parts(lambda part: 1 // part, 3)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_starts_threads_of_its_own(monkeypatch):
    monkeypatch.setenv("ODECO_NUM_THREADS", "2")
    map_parts(abs, 2)
    child = os.fork()
    if child == 0:
        os._exit(0 if map_parts(abs, 4) == [0, 1, 2, 3] else 1)
    assert os.waitpid(child, 0)[1] == 0
