"""Checkpoints that somebody made: with right checksums, and sums that would lead compiled code out of its arrays."""

from __future__ import annotations

import numpy as np
import pytest

from odeco import CategoricalHMM, GaussianMixture
from odeco.archive import read, write
from odeco.exceptions import ModelFileError
from odeco.sources import checkpointed
from odeco.sources.checkpoints import KIND, VERSION


def forge(path, change):
    """Write the file again, its document and arrays changed."""
    _, document, arrays = read(path, KIND, VERSION)
    arrays = {name: array.copy() for name, array in arrays.items()}
    write(path, KIND, VERSION, change(document, arrays) or document, arrays)


@pytest.fixture
def symbols(tmp_path):
    """A fit whose first pass keeps a sparse matrix of pairs, and its folder."""
    rng = np.random.default_rng(0)
    states = np.repeat(rng.integers(3, size=300), 10)
    X, model = (20 * states + rng.integers(20, size=3000))[:, None], CategoricalHMM(3, n_features=1200, refine=None)
    model.set_params(random_state=0)
    run = lambda: model.fit(checkpointed(lambda: iter([(X, [1500, 1500])]), tmp_path))  # noqa: E731
    run()
    return run, tmp_path / "pass-00000.odeco-moments"


def pairs(part):
    return f"csr._counts.{part}"


def _far(document, arrays):
    arrays[pairs("indices")][-1] = 2**30


def _negative(document, arrays):
    arrays[pairs("indices")][0] = -(2**30)


def _long(document, arrays):
    arrays[pairs("indptr")][-1] = 2**30


def _backwards(document, arrays):
    arrays[pairs("indptr")][5:8] = [2**20, 3, 2**20]


def _few_rows(document, arrays):
    arrays[pairs("indptr")] = arrays[pairs("indptr")][[0, -1]]


def _fractions(document, arrays):
    arrays[pairs("indices")] = arrays[pairs("indices")] + 0.5


def _missing(document, arrays):
    del arrays[pairs("data")]


@pytest.mark.parametrize("change", [_far, _negative, _long, _backwards, _few_rows, _fractions, _missing])
def test_forged_sparse_sums_are_refused(symbols, change):
    run, path = symbols
    run()
    forge(path, change)
    with pytest.raises(ModelFileError, match=f"{path.name}: damaged.*Delete this file"):
        run()


def _shape(document, arrays):
    name = max(arrays, key=lambda name: arrays[name].size)
    arrays[name] = arrays[name].ravel()[:1]


def _type(document, arrays):
    name = max(arrays, key=lambda name: arrays[name].size)
    arrays[name] = arrays[name].astype(np.complex128)


def _name(document, arrays):
    arrays["sum.more"] = np.zeros(3)


def _other(document, arrays):
    return ["no document"]


def _batches(document, arrays):
    document["n_batches"] = -3


def _sums(document, arrays):
    document["on"] = {name: [[], "x", None] for name in document["on"]}


def _no_sums(document, arrays):
    document["on"] = 3


@pytest.mark.parametrize("change", [_shape, _type, _name, _other, _batches, _sums, _no_sums])
def test_forged_sums_are_refused(change, tmp_path):
    points = np.random.default_rng(0).standard_normal((500, 3)) + 8 * np.eye(3)[np.arange(500) % 3]
    model, path = GaussianMixture(3, refine=None, random_state=0), tmp_path / "pass-00000.odeco-moments"
    model.fit(checkpointed(points, tmp_path))
    forge(path, change)
    with pytest.raises(ModelFileError, match=path.name):
        model.fit(checkpointed(points, tmp_path))
    path.unlink()
    model.fit(checkpointed(points, tmp_path))


def _no_fit(document, arrays):
    return {"other": 3}


def _numbers(document, arrays):
    document["fit"] = {"estimator": 3}


def _flat(document, arrays):
    arrays["digests"] = arrays["digests"].ravel()


@pytest.mark.parametrize("change", [_no_fit, _numbers, _flat, _other])
def test_a_forged_signature_is_refused(change, tmp_path):
    points = np.random.default_rng(0).standard_normal((500, 3)) + 8 * np.eye(3)[np.arange(500) % 3]
    model, path = GaussianMixture(3, refine=None, random_state=0), tmp_path / "fit.odeco-moments"
    model.fit(checkpointed(points, tmp_path))
    forge(path, change)
    with pytest.raises(ModelFileError, match=path.name):
        model.fit(checkpointed(points, tmp_path))


def test_files_of_an_older_version_are_refused(tmp_path):
    points = np.random.default_rng(0).standard_normal((500, 3)) + 8 * np.eye(3)[np.arange(500) % 3]
    model, path = GaussianMixture(3, refine=None, random_state=0), tmp_path / "pass-00000.odeco-moments"
    model.fit(checkpointed(points, tmp_path))
    _, document, arrays = read(path, KIND, VERSION)
    write(path, KIND, 1, document, arrays)
    with pytest.raises(ModelFileError, match="written by an older odeco"):
        model.fit(checkpointed(points, tmp_path))
