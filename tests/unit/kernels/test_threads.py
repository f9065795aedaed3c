from __future__ import annotations

import os
import random
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from threading import Event, Timer

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from odeco.kernels import threads
from odeco.kernels.threads import _blas_limit, map_parts, single_threaded_blas, sum_batches


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


def test_who_asks_for_parts_does_them_where_nobody_else_is_free(monkeypatch):
    monkeypatch.setenv("ODECO_NUM_THREADS", "2")
    busy = Event()
    held = threads._pool(2).submit(busy.wait)
    try:
        assert map_parts(lambda part: part + 1, 5) == [1, 2, 3, 4, 5]
        assert not held.done()
    finally:
        busy.set()


class Listed:
    """Sums that remember what was added, and in which order; some batches take longer than others."""

    def __init__(self) -> None:
        self.seen: list[int] = []

    def update(self, batch: int) -> None:
        if batch < 0:
            raise ValueError("a negative batch")
        time.sleep(random.Random(batch).choice([0.0, 0.002]))
        self.seen.append(batch)

    def merge(self, other: Listed) -> None:
        self.seen += other.seen


@pytest.mark.parametrize("n_threads", [1, 2, 3])
@pytest.mark.parametrize("n_batches", [0, 1, 2, 17])
def test_batches_go_to_the_same_sums_in_the_same_order_whoever_is_free(monkeypatch, n_threads, n_batches):
    monkeypatch.setenv("ODECO_NUM_THREADS", str(n_threads))
    in_turn = [batch for part in range(n_threads) for batch in range(part, n_batches, n_threads)]
    assert sum_batches(iter(range(n_batches)), Listed).seen == in_turn


def test_no_more_batches_are_read_ahead_than_there_are_threads(monkeypatch):
    monkeypatch.setenv("ODECO_NUM_THREADS", "2")
    added = Listed()
    most = 0

    def read():
        nonlocal most
        for batch in range(20):
            most = max(most, batch - len(added.seen))
            yield batch

    sum_batches(read(), lambda: added)  # both threads add to the same sums, which are counted
    assert most <= 2


def test_an_error_in_a_batch_ends_the_sums_for_all_threads(monkeypatch):
    monkeypatch.setenv("ODECO_NUM_THREADS", "2")
    left = iter([0, 1, -1, *range(1000)])
    with pytest.raises(ValueError, match="negative"):
        sum_batches(left, Listed)
    assert len(list(left)) > 900


def test_an_error_while_batches_are_read_reaches_the_caller(monkeypatch):
    monkeypatch.setenv("ODECO_NUM_THREADS", "2")
    with pytest.raises(ZeroDivisionError):
        sum_batches((1 // (3 - batch) for batch in range(9)), Listed)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_starts_threads_of_its_own(monkeypatch):
    monkeypatch.setenv("ODECO_NUM_THREADS", "2")
    map_parts(abs, 2)
    child = os.fork()
    if child == 0:
        os._exit(0 if map_parts(abs, 4) == [0, 1, 2, 3] else 1)
    assert os.waitpid(child, 0)[1] == 0


def blas_threads() -> set[int]:
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


@pytest.fixture
def two_blas_threads():
    """Set by a thread that has ended: threadpoolctl listens to one living thread at a time."""
    before = max(blas_threads())
    with ThreadPoolExecutor(1) as setter:
        setter.submit(threadpool_limits, 2, "blas").result()
    yield
    with ThreadPoolExecutor(1) as setter:
        setter.submit(threadpool_limits, before, "blas").result()


def test_blas_has_its_threads_back_when_the_last_of_several_fits_ends(two_blas_threads):
    first_is_in, second_is_in, first_is_out = Event(), Event(), Event()

    def first() -> None:
        with single_threaded_blas():
            first_is_in.set()
            assert second_is_in.wait(10)
        first_is_out.set()

    def second() -> set[int]:
        assert first_is_in.wait(10)
        with single_threaded_blas():
            second_is_in.set()
            assert first_is_out.wait(10)
            return blas_threads()

    with ThreadPoolExecutor(2) as threads:
        ended = threads.submit(first)
        assert threads.submit(second).result() == {1}  # the first took nothing away from the second
        ended.result()
        assert blas_threads() == {2}  # both threads still live


def test_blas_has_its_threads_back_after_an_error_within_nested_limits(two_blas_threads):
    with pytest.raises(ZeroDivisionError), single_threaded_blas(), single_threaded_blas():
        raise ZeroDivisionError
    assert blas_threads() == {2}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_child_forked_while_a_thread_sets_the_limit_does_not_wait_for_it():
    _blas_limit.lock.acquire()
    Timer(0.2, _blas_limit.lock.release).start()
    child = os.fork()
    if child == 0:
        signal.alarm(5)
        with single_threaded_blas():
            os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
