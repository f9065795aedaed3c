"""Workers that die and tasks that fail: real ones."""

from __future__ import annotations

import inspect
import os
import signal
import threading
import warnings
from contextlib import contextmanager, suppress
from functools import partial
from time import sleep

import dask
import dask.bag as db
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

from odeco import CategoricalHMM, DawidSkene, LatentDirichletAllocation
from odeco.simulate import markov_chain
from tests.distributed.conftest import local_cluster


@pytest.fixture
def cluster():
    """Two workers in processes of their own, and a client; what they say about their dead is not shown."""
    distributed = pytest.importorskip("distributed")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with (
            dask.config.set({"distributed.scheduler.allowed-failures": 5, "distributed.admin.log-format": ""}),
            local_cluster(processes=True) as started,
            distributed.Client(started) as client,
        ):
            yield client


def deadly(parts, marker, type_of):
    """Parts of data; the first task that loads the third one kills its own worker, once."""

    @dask.delayed
    def load(index):
        if index == 2 and not marker.exists():
            marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return parts[index]

    return type_of([load(index) for index in range(len(parts))])


def test_a_dask_worker_that_is_killed_is_replaced(corpus, cluster, tmp_path):
    parts = [corpus[low : low + 400] for low in range(0, 2000, 400)]
    bag = deadly(parts, tmp_path / "killed", db.from_delayed)
    spread = LatentDirichletAllocation(5, refine=None, random_state=0).fit(bag.map_partitions(_as_matrix))
    assert (tmp_path / "killed").exists()
    here = LatentDirichletAllocation(5, refine=None, random_state=0).fit(lambda: iter([corpus]))
    np.testing.assert_allclose(spread.components_, here.components_, atol=2e-6)


@contextmanager
def within(seconds):
    """Raise TimeoutError where a block takes longer: far more than any machine needs, for what never ends."""

    def give_up(number, frame):
        raise TimeoutError(f"it did not end within {seconds} seconds")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@contextmanager
def killing_all(cluster, markers):
    """Kill all workers at once whenever a task has made the next marker; their nannies start others."""
    ended = threading.Event()

    def run():
        for marker in markers:
            while not marker.exists():
                if ended.wait(0.02):
                    return
            for nanny in cluster.cluster.workers.values():
                if nanny.pid is not None:
                    with suppress(ProcessLookupError):  # one that is being replaced already
                        os.kill(nanny.pid, signal.SIGKILL)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


@pytest.mark.parametrize(
    ("n_parts", "n_times"), [(5, 1), (5, 2), (20, 2)]
)  # empty sums go with tasks, or by themselves
def test_all_dask_workers_may_be_gone_for_a_moment(n_parts, n_times, corpus, cluster, tmp_path):
    parts = [corpus[rows] for rows in np.array_split(np.arange(2000), n_parts)]
    markers = [tmp_path / f"reached {time}" for time in range(n_times)]

    @dask.delayed
    def load(index):
        missing = [marker for marker in markers if not marker.exists()]
        if index == 2 and missing and any(call.function == "over" for call in inspect.stack()):  # in a pass of sums
            missing[0].touch()
            sleep(10)  # until it is killed, with all the others
            os.kill(os.getpid(), signal.SIGKILL)  # its nanny was just being replaced
        return parts[index]

    bag = db.from_delayed([load(index) for index in range(len(parts))])
    with killing_all(cluster, markers), within(240):
        spread = LatentDirichletAllocation(5, refine=None, random_state=0).fit(bag)
    assert all(marker.exists() for marker in markers)
    here = LatentDirichletAllocation(5, refine=None, random_state=0).fit(lambda: iter([corpus]))
    np.testing.assert_allclose(spread.components_, here.components_, atol=2e-6)


def test_labels_that_are_shuffled_survive_a_killed_worker(crowd, cluster, tmp_path):
    items, workers = np.nonzero(crowd >= 0)
    rows = pd.DataFrame({"item": items, "worker": workers, "label": crowd[items, workers]}).sample(
        frac=1, random_state=0
    )
    parts = [rows[low : low + 3000] for low in range(0, len(rows), 3000)]
    frame = deadly(parts, tmp_path / "killed", partial(dd.from_delayed, meta=rows[:0]))
    spread = DawidSkene(3, random_state=0).fit(frame)
    assert (tmp_path / "killed").exists()
    here = DawidSkene(3, random_state=0).fit(crowd)
    np.testing.assert_allclose(spread.confusion_, here.confusion_, atol=1e-9)


def test_sequences_survive_a_killed_worker(cluster, tmp_path):
    rng = np.random.default_rng(0)
    chains = [markov_chain(200, [[0.9, 0.1], [0.2, 0.8]], random_state=rng) for _ in range(40)]
    sequences = [rng.binomial(3, 0.2 + 0.6 * states) for states in chains]
    parts = [sequences[low : low + 8] for low in range(0, 40, 8)]
    spread = CategoricalHMM(2, random_state=0).fit(deadly(parts, tmp_path / "killed", db.from_delayed))
    assert (tmp_path / "killed").exists()
    here = CategoricalHMM(2, random_state=0).fit(np.concatenate(sequences)[:, None], [200] * 40)
    np.testing.assert_allclose(spread.emissionprob_, here.emissionprob_, atol=1e-9)
    np.testing.assert_allclose(spread.transmat_, here.transmat_, atol=1e-9)


def _as_matrix(partition):
    return partition


def test_a_failing_task_names_its_error(corpus):
    @dask.delayed
    def broken():
        raise OSError("the disk is gone")

    bag = db.from_delayed([dask.delayed(corpus[:500]), broken()])
    with pytest.raises(OSError, match="the disk is gone"):
        LatentDirichletAllocation(5, random_state=0).fit(bag)


def test_a_corrupt_row_group_is_named(corpus, tmp_path):
    pytest.importorskip("pyarrow")
    from odeco.exceptions import InputFileError
    from odeco.files import read_counts, write_counts
    from odeco.sources import as_source

    path = tmp_path / "counts.parquet"
    write_counts(path, as_source(corpus), None)
    whole = LatentDirichletAllocation(5, refine=None, random_state=0).fit(read_counts(path).source)
    np.testing.assert_allclose(
        whole.components_,
        LatentDirichletAllocation(5, refine=None, random_state=0).fit(lambda: iter([corpus])).components_,
        atol=2e-6,
    )
    damaged = bytearray(path.read_bytes())
    middle = len(damaged) // 3
    damaged[middle : middle + 64] = os.urandom(64)
    path.write_bytes(bytes(damaged))
    with pytest.raises(InputFileError, match="counts.parquet"):
        LatentDirichletAllocation(5, refine=None, random_state=0).fit(read_counts(path).source)
