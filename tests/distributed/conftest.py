"""Engines that the tests start themselves, and data cut into partitions that are not alike."""

from __future__ import annotations

import itertools
import os
import shutil
import sys
import warnings

import numpy as np
import pytest
from scipy import sparse

from odeco.simulate import lda_documents
from odeco.sources import partitions


def local_cluster(**options):
    """Two Dask workers of one thread each that need neither a route to the outside nor a port of a given number."""
    import distributed

    # Without a dashboard its port is 8787, and threads without tcp ask for the address of this machine outside.
    address = {"protocol": "tcp", "host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}
    return distributed.LocalCluster(n_workers=2, threads_per_worker=1, silence_logs=60, **address, **options)


@pytest.fixture(scope="session")
def spark():
    """A local Spark of two cores that runs a failed task again; stopped at the end."""
    pyspark = pytest.importorskip("pyspark", reason="Spark is not installed: pip install 'odeco[spark]'")
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("Spark needs a Java 17 runtime, and none was found (Debian: openjdk-17-jre-headless)")
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ["PYTHONPATH"] = os.pathsep.join(["src", *filter(None, [os.environ.get("PYTHONPATH", "")])])
    from pyspark.sql import SparkSession

    assert pyspark
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of pyspark's own start
        builder = SparkSession.builder.master("local[2,3]").appName("odeco tests")
        session = (
            builder.config("spark.ui.enabled", "false")
            .config("spark.sql.shuffle.partitions", "2")
            .config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.driver.host", "127.0.0.1")
            .getOrCreate()
        )
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def corpus():
    """2,000 documents of 5 topics over 120 words."""
    rng = np.random.default_rng(0)
    topics = rng.dirichlet(np.full(120, 0.1), 5)
    drawn = lda_documents(2000, topics, np.full(5, 0.2), mean_length=50, random_state=0)
    return sparse.csr_matrix(drawn.counts)


@pytest.fixture(scope="session")
def corpus_blocks(corpus):
    """The corpus in partitions of very different sizes, empty and single rows among them, and of different dtypes."""
    edges = [0, 700, 700, 701, 1500, 1900, 2000]
    blocks = [corpus[low:high] for low, high in itertools.pairwise(edges)]
    return [block.astype(kind) for block, kind in zip(blocks, ["f4", "f8", "i4", "f8", "i8", "f4"], strict=True)]


@pytest.fixture(scope="session")
def crowd():
    """Labels of 2,000 items in 3 classes by 9 annotators, -1 where none was given; every item has one."""
    rng = np.random.default_rng(0)
    truth = rng.choice(3, 2000, p=[0.5, 0.3, 0.2])
    right = rng.random((2000, 9)) < rng.uniform(0.5, 0.9, 9)
    labels = np.where(right, truth[:, None], rng.integers(3, size=(2000, 9)))
    lost = rng.random(labels.shape) < 0.5
    lost[np.arange(2000), rng.integers(9, size=2000)] = False
    return np.where(lost, -1, labels)


@pytest.fixture(scope="session")
def views():
    """3,000 samples of 3 components in three views: measurements, 0 and 1, and sparse counts."""
    rng = np.random.default_rng(4)
    h = rng.choice(3, 3000, p=[0.5, 0.3, 0.2])
    numbers = 2 * rng.standard_normal((3, 5))[h] + rng.standard_normal((3000, 5))
    answers = (rng.random((3000, 8)) < rng.random((3, 8))[h]).astype(float)
    counts = sparse.csr_array(rng.poisson(3 * rng.gamma(0.5, size=(3, 6))[h]).astype(float))
    return [numbers, answers, counts]


@pytest.fixture
def sent(monkeypatch):
    """The most bytes that a task of a pass has returned, by the kind of the sums."""
    found = {}
    run = partitions.SumRows.over

    def measured(self, parts):
        packed = run(self, parts)
        found[type(self.empty).__name__] = max(found.get(type(self.empty).__name__, 0), packed.nbytes)
        return packed

    monkeypatch.setattr(partitions.SumRows, "over", measured)
    return found
