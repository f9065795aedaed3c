"""Passes said by a generator: filled wherever the rows are, over all of them or some, with work beside them."""

from __future__ import annotations

import threading

import dask.array as da
import numpy as np
import pytest

from odeco.exceptions import MomentError
from odeco.moments.base import Additive
from odeco.moments.cumulants import SecondMoments
from odeco.moments.passes import Beside, Mapped, fill, mapped, run_passes
from odeco.sources import as_source, checkpointed, every, out_of_core
from odeco.sources.dense import DenseBatch, as_dense_source

ROWS = np.random.default_rng(0).standard_normal((500, 3)) + 5.0


def two_passes(n_features):
    """The covariance about the mean: the second pass is built from the first."""
    rough = yield SecondMoments(n_features, np.zeros(n_features))
    exact = yield SecondMoments(n_features, rough.mean)
    return exact


PLACES = {
    "memory": lambda folder: ROWS,
    "batches": lambda folder: np.array_split(ROWS, 7),
    "function": lambda folder: lambda: iter(np.array_split(ROWS, 7)),
    "out of core": lambda folder: out_of_core(lambda: iter(np.array_split(ROWS, 7))),
    "Dask": lambda folder: da.from_array(ROWS, chunks=(120, 3)),
    "checkpointed": lambda folder: checkpointed(ROWS, folder),
}


@pytest.mark.parametrize("place", PLACES)
def test_sums_are_filled_wherever_the_rows_are(place, tmp_path):
    source = as_dense_source(PLACES[place](tmp_path), 60)
    found = run_passes(two_passes(3), source)
    assert found.n == len(ROWS)
    np.testing.assert_allclose(found.shift, ROWS.mean(axis=0), rtol=1e-13)
    np.testing.assert_allclose(found.covariance, np.cov(ROWS.T, bias=True), rtol=1e-12)


class Total(Additive):
    """The sum of all rows, and the threads that made it."""

    _sums = ("total", "n_updates")

    def __init__(self):
        self.total, self.n_updates = np.zeros(3), 0

    def update(self, batch):
        self.total = self.total + batch.rows.sum(axis=0)
        self.n_updates += 1


class SharedTotal(Total):
    _by_threads = True


class SharedShifted(SharedTotal):
    _on = ("shift",)

    def __init__(self, shift):
        super().__init__()
        self.shift = shift

    def update(self, batch):
        super().update(DenseBatch(batch.rows - self.shift))


@pytest.mark.parametrize("threads", ["1", "2", "5"])
def test_threads_share_the_batches_of_sums_that_allow_it(threads, monkeypatch):
    monkeypatch.setenv("ODECO_NUM_THREADS", threads)
    shift = np.ones(3)
    for empty, total in ((Total(), ROWS), (SharedTotal(), ROWS), (SharedShifted(shift), ROWS - 1)):
        found = fill(empty, as_dense_source(ROWS, 60))
        np.testing.assert_allclose(found.total, total.sum(axis=0), rtol=1e-13)
        assert found.n_updates == 9  # every batch once
    assert found.shift is shift  # not a copy for every thread


@pytest.mark.parametrize("wrapped", [lambda rows: rows, out_of_core], ids=["memory", "out of core"])
def test_some_of_the_rows(wrapped):
    def passes():
        some = yield Mapped(Total(), lambda batch: DenseBatch(batch.rows[::2]))
        doubled = yield from mapped(more(), lambda batch: DenseBatch(2 * batch.rows))
        return some.total, doubled

    def more():
        whole = yield Total()
        some = yield Mapped(Total(), lambda batch: DenseBatch(batch.rows[::2]))
        return whole.total, some.total

    some, (whole, both) = run_passes(passes(), as_dense_source(wrapped(ROWS)))
    np.testing.assert_allclose(some, ROWS[::2].sum(axis=0))
    np.testing.assert_allclose(whole, 2 * ROWS.sum(axis=0))
    np.testing.assert_allclose(both, 2 * ROWS[::2].sum(axis=0))


def test_a_pass_may_be_left_out():
    def passes(wanted):
        first = yield Total()
        return first if not wanted else (yield Total())

    source = as_dense_source(out_of_core(ROWS))
    for wanted in (False, True):
        np.testing.assert_allclose(run_passes(passes(wanted), source).total, ROWS.sum(axis=0))


def test_work_beside_a_pass_in_memory_is_done_when_it_is_asked_for():
    done = []

    def passes():
        later = yield Beside(lambda: done.append("work") or len(done))
        unasked = yield Beside(lambda: done.append("never"))
        yield Total()
        assert not done
        return later(), later(), unasked

    first, again, _ = run_passes(passes(), as_dense_source(ROWS))
    assert (first, again, done) == (1, 1, ["work"])


def test_work_beside_a_pass_elsewhere_runs_meanwhile_and_in_order():
    counts = np.random.default_rng(1).poisson(1.0, (400, 6))
    source = as_source(da.from_array(counts, chunks=(50, 6)))
    threads, order = [], []

    def note(name):
        threads.append(threading.current_thread().name)
        order.append(name)
        return name

    def passes():
        sample = yield Beside(lambda: note("sample") and source.sample(40))
        noise = yield Beside(lambda: (note("noise"), sample().lengths.sum()))
        yield Beside(lambda: note("unasked"))
        return noise()[1]

    assert run_passes(passes(), source) == counts[np.linspace(0, 399, 40).astype(int)].sum()
    assert order == ["sample", "noise", "unasked"]  # all have ended
    assert all(name.startswith("odeco-beside") for name in threads)


def test_errors_go_to_the_caller_and_leave_nothing_open():
    closed = []

    def passes():
        try:
            yield Total()
            raise MomentError("the sums say nothing.")
        finally:
            closed.append(True)

    with pytest.raises(MomentError, match="the sums say nothing"):
        run_passes(passes(), as_dense_source(ROWS))

    def fails():
        yield from [ROWS]
        raise OSError("the disk is gone")

    asked = passes()
    with pytest.raises(OSError, match="the disk is gone"):
        run_passes(asked, as_dense_source(lambda: fails()))
    asked.close()
    assert closed == [True, True]


def test_an_iterator_has_one_pass():
    def passes(n):
        for _ in range(n):
            found = yield Total()
        return found

    np.testing.assert_allclose(run_passes(passes(1), as_dense_source(iter([ROWS]))).total, ROWS.sum(axis=0))
    with pytest.raises(ValueError, match="2 passes over the data are needed, but an iterator can be read only once"):
        run_passes(passes(2), as_dense_source(iter([ROWS])))


def test_samples_of_counts_are_the_same_wherever_they_lie():
    counts = np.random.default_rng(1).poisson(1.0, (400, 6))
    here = as_source(counts).sample(30)
    there = as_source(da.from_array(counts, chunks=(70, 6))).sample(30)
    np.testing.assert_array_equal(here.counts.toarray(), there.counts.toarray())
    assert len(as_source(counts).map(every(2)).sample(1000)) == 200
