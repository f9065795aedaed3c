"""Workers that die and tasks that fail: real ones."""

from __future__ import annotations

import os
import signal
import warnings
from pathlib import Path

import dask
import dask.bag as db
import numpy as np
import pytest

from odeco import GaussianMixture, LatentDirichletAllocation
from odeco.sources import out_of_core


def test_a_dask_worker_that_is_killed_is_replaced(corpus, tmp_path):
    """The first task of the third block kills its own worker, once: Dask runs it again elsewhere."""
    distributed = pytest.importorskip("distributed")
    marker = tmp_path / "killed"

    @dask.delayed
    def load(index):
        if index == 2 and not marker.exists():
            marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return corpus[400 * index : 400 * (index + 1)]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the cluster about its dead worker
        with (
            dask.config.set({"distributed.scheduler.allowed-failures": 5, "distributed.admin.log-format": ""}),
            distributed.LocalCluster(
                n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=60
            ) as cluster,
            distributed.Client(cluster),
        ):
            bag = db.from_delayed([load(index) for index in range(5)])
            spread = LatentDirichletAllocation(5, refine=None, random_state=0).fit(bag.map_partitions(_as_matrix))
    assert marker.exists()
    here = LatentDirichletAllocation(5, refine=None, random_state=0).fit(lambda: iter([corpus]))
    np.testing.assert_allclose(spread.components_, here.components_, atol=2e-6)


def _as_matrix(partition):
    return partition


def test_a_failing_task_names_its_error(corpus):
    @dask.delayed
    def broken():
        raise OSError("the disk is gone")

    bag = db.from_delayed([dask.delayed(corpus[:500]), broken()])
    with pytest.raises(OSError, match="the disk is gone"):
        LatentDirichletAllocation(5, random_state=0).fit(bag)


def test_a_spark_task_that_fails_is_run_again(spark, tmp_path):
    rng = np.random.default_rng(0)
    points = 3 * rng.standard_normal((3, 4))[rng.choice(3, 1500)] + rng.standard_normal((1500, 4))
    marker = str(tmp_path / "failed")

    def once(rows):
        for index, row in enumerate(rows):
            if index == 7 and not Path(marker).exists():
                Path(marker).touch()
                raise RuntimeError("a task fails")
            yield row

    rdd = spark.sparkContext.parallelize(points.tolist(), 3).mapPartitions(once)
    frame = spark.createDataFrame(rdd, "a double, b double, c double, d double")
    spread = GaussianMixture(3, random_state=0, refine=None).fit(frame)
    assert Path(marker).exists()
    here = GaussianMixture(3, random_state=0, refine=None).fit(out_of_core(points))
    np.testing.assert_allclose(spread.means_, here.means_, atol=1e-9)


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
