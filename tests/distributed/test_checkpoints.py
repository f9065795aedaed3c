"""Fits that are killed and repeated: the same result as one that was not, and nothing lost to a bad disk."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import textwrap

import dask.bag as db
import numpy as np
import pytest

from odeco import (
    ICA,
    DawidSkene,
    GaussianMixture,
    LatentDirichletAllocation,
    MultiViewMixture,
    ProductMixture,
    SingleTopicModel,
)
from odeco.exceptions import CheckpointWarning, ModelFileError
from odeco.sources import as_source, checkpointed, out_of_core
from odeco.sources.dense import as_dense_source

# Sums go on from a file in double precision; those of topics are of products in single precision (test_dask_topics).
TOLERANCE = 1e-7


class KilledError(Exception):
    """What ends a fit in these tests, where no process is killed."""


def dying(chunks, n_chunks):
    """A function that reads chunks, and raises after so many of them."""
    left = [n_chunks]

    def read():
        for chunk in chunks:
            left[0] -= 1
            if left[0] < 0:
                raise KilledError
            yield chunk

    return read


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    points = 4 * rng.standard_normal((4, 6))[rng.choice(4, 3000)] + rng.standard_normal((3000, 6))
    return [points[low : low + 300] for low in range(0, 3000, 300)]


@pytest.fixture(scope="module")
def documents(corpus):
    return [corpus[low : low + 200] for low in range(0, 2000, 200)]


CASES = [
    (LatentDirichletAllocation(5, random_state=0, max_iter=5), "components_"),
    (SingleTopicModel(5, random_state=0), "components_"),
    (GaussianMixture(4, random_state=0), "means_"),
    (GaussianMixture(4, "diag", random_state=0), "means_"),
    (ProductMixture(3, family="gaussian", random_state=0, tol=1e-3), "means_"),
    (ICA(3, random_state=0, refine=None), "mixing_"),
    (MultiViewMixture(3, random_state=0), "weights_"),
    (DawidSkene(3, random_state=0), "confusion_"),
]


# Enough to sign all rows, to take a sample, and for a pass or two.
N_CHUNKS = {ICA: 28, ProductMixture: 85, MultiViewMixture: 45, DawidSkene: 35}


@pytest.mark.parametrize(("model", "learned"), CASES, ids=lambda value: str(value)[:40])
def test_a_fit_that_is_interrupted_ends_as_if_it_had_not_been(model, learned, rows, documents, views, crowd, tmp_path):
    topics = isinstance(model, (LatentDirichletAllocation, SingleTopicModel))
    chunks = documents if topics else rows
    if isinstance(model, MultiViewMixture):
        chunks = [[view[low : low + 300] for view in views] for low in range(0, 3000, 300)]
    if isinstance(model, DawidSkene):
        chunks = [crowd[low : low + 200] for low in range(0, 2000, 200)]

    def opened(read):
        if isinstance(model, (ProductMixture, MultiViewMixture, DawidSkene)):
            return read
        return as_source(read, 200) if topics else as_dense_source(read, 300)

    whole = getattr(type(model)(**model.get_params()).fit(out_of_core(opened(lambda: iter(chunks)))), learned)
    n_chunks = N_CHUNKS.get(type(model), 45)
    for attempt in range(30):
        try:
            with checkpointed(opened(dying(chunks, n_chunks)), tmp_path / "run", seconds=0) as data:
                model.fit(data)
            break
        except KilledError:
            assert any((tmp_path / "run").iterdir())
    assert attempt > 0
    np.testing.assert_allclose(getattr(model, learned), whole, atol=TOLERANCE)
    assert not (tmp_path / "run").exists()  # done: nothing is left behind


def test_passes_over_dask_collections_are_kept(documents, tmp_path):
    model = LatentDirichletAllocation(5, random_state=0, max_iter=2)
    bag = db.from_sequence(documents, npartitions=4)
    first = model.fit(checkpointed(bag, tmp_path)).components_
    n_files = len(list(tmp_path.iterdir()))
    assert n_files > 4
    again = model.fit(checkpointed(bag, tmp_path)).components_
    np.testing.assert_array_equal(again, first)
    assert len(list(tmp_path.iterdir())) == n_files


SCRIPT = """
    import os, signal, sys, time
    import numpy as np
    from odeco import GaussianMixture
    from odeco.sources import checkpointed

    def read():
        rng = np.random.default_rng(0)
        means = 4 * np.random.default_rng(1).standard_normal((4, 6))
        for index in range(12):
            if sys.argv[2] == "slow" and os.path.exists(os.path.join(sys.argv[1], "pass-00001.odeco-moments")):
                print("go", flush=True)
                time.sleep(60)
            yield means[rng.choice(4, 16384)] + rng.standard_normal((16384, 6))

    model = GaussianMixture(4, random_state=0).fit(checkpointed(read, sys.argv[1], seconds=0))
    np.save(sys.argv[3], model.means_)
"""


def test_a_process_that_is_killed_goes_on(tmp_path):
    """SIGKILL in the middle of a pass; the second process reads what the first had written."""
    script = tmp_path / "fit.py"
    script.write_text(textwrap.dedent(SCRIPT))
    folder, out, plain = tmp_path / "run", tmp_path / "means.npy", tmp_path / "plain.npy"

    def command(*arguments):
        return [sys.executable, str(script), *map(str, arguments)]

    with subprocess.Popen(command(folder, "slow", out), stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "go\n"
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert not out.exists()
    assert (folder / "pass-00000.odeco-moments").exists()
    subprocess.run(command(folder, "fast", out), check=True)
    subprocess.run(command(tmp_path / "other", "fast", plain), check=True)
    np.testing.assert_allclose(np.load(out), np.load(plain), atol=1e-9)


def test_a_checkpoint_that_was_cut_is_named_and_the_rest_is_used(rows, tmp_path):
    model = GaussianMixture(4, random_state=0)
    whole = model.fit(checkpointed(lambda: iter(rows), tmp_path)).means_
    last = sorted(tmp_path.iterdir())[-1]
    last.write_bytes(last.read_bytes()[: last.stat().st_size // 2])
    with pytest.raises(ModelFileError, match=f"{last.name}.*Delete this file"):
        model.fit(checkpointed(lambda: iter(rows), tmp_path))
    last.unlink()
    np.testing.assert_allclose(model.fit(checkpointed(lambda: iter(rows), tmp_path)).means_, whole, atol=1e-12)


def test_a_folder_of_another_fit_is_refused(rows, documents, tmp_path):
    read = lambda: iter(rows)  # noqa: E731
    GaussianMixture(4, random_state=0).fit(checkpointed(read, tmp_path))
    with pytest.raises(ModelFileError, match="belongs to another fit"):
        GaussianMixture(3, random_state=0).fit(checkpointed(read, tmp_path))
    with pytest.raises(ModelFileError, match="belongs to another fit"):
        GaussianMixture(4, random_state=0).fit(checkpointed(lambda: iter([part + 1 for part in rows]), tmp_path))
    with pytest.raises(ModelFileError, match="belongs to another fit"):
        LatentDirichletAllocation(5, random_state=0).fit(checkpointed(lambda: iter(documents), tmp_path))
    with pytest.raises(ValueError, match="read only once"):
        checkpointed(iter(rows), tmp_path)
    with pytest.raises(ValueError, match="seconds must be"):
        checkpointed(read, tmp_path, seconds=-1)


def test_a_full_disk_does_not_end_the_fit(rows, tmp_path):
    """The limit on the size of files makes every write fail, as a full disk does (EFBIG for ENOSPC)."""
    model = GaussianMixture(4, random_state=0)
    whole = model.fit(out_of_core(lambda: iter(rows))).means_
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    old = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (256, before[1]))
        with pytest.warns(CheckpointWarning, match="the fit goes on"):
            found = model.fit(checkpointed(lambda: iter(rows), tmp_path / "run")).means_
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, old)
    np.testing.assert_allclose(found, whole, atol=1e-12)
    assert os.listdir(tmp_path / "run") == []  # nothing that is half written
