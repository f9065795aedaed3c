"""Intervals wherever the rows lie: the same numbers from memory, batches, out of core and Dask; samples are told."""

from __future__ import annotations

import dask.array as da
import numpy as np
import pytest
from dask import delayed
from scipy import sparse

import odeco
from odeco.exceptions import MomentWarning
from odeco.sources import out_of_core
from odeco.sources.sequences import Sequences
from odeco.uncertainty import opened
from odeco.uncertainty.blocks import BlockSums, _with_basis
from odeco.uncertainty.opened import Size, Thinned
from tests.fitted_models import FITTED, fitted_model

# Second differences have steps of 1e-4: rounding of log densities of size 10, 1e-15, over their square, times n.
ROUNDING = 1e-4
CHAINS = ("categorical_hmm", "gaussian_hmm", "poisson_hmm")
SANDWICHES = [name for name in FITTED if name not in ("lda", "ica")]


def data_of(name):
    """A model and its data; of chains three sequences, which may be cut into batches."""
    model, given = fitted_model(name)
    X = given["data"][0] if isinstance(given["data"], tuple) else given["data"]
    return model, [X[:300], X[300:500], X[500:]] if name in CHAINS else X


def batches_of(name, X):
    if name in CHAINS:
        return [X[:1], X[1:]]
    if name == "multiview":
        return [[view[low:high] for view in X] for low, high in ((0, 250), (250, 600))]
    n = X.shape[0]
    return [X[: n // 3], X[n // 3 :]]


def dask_of(name, X):
    if name in CHAINS:
        return [delayed(batch) for batch in batches_of(name, X)]
    if name == "multiview":
        return [da.from_array(view, chunks=(250, view.shape[1])) for view in X]
    if sparse.issparse(X):
        blocks = batches_of(name, X)
        parts = [da.from_delayed(delayed(block), (block.shape[0], block.shape[1]), block.dtype) for block in blocks]
        return da.concatenate(parts)
    return da.from_array(X, chunks=(150, X.shape[1]))


PLACES = {
    "function": lambda name, X: lambda: iter(batches_of(name, X)),
    "out of core": lambda name, X: out_of_core(lambda: iter(batches_of(name, X))),
    "dask": dask_of,
}


def assert_same(found, expected, rtol):
    assert found.method == expected.method
    for name in expected.value:
        for part in ("low", "high", "standard_error"):
            values = [getattr(each, part)[name] for each in (found, expected)]
            pairs = zip(*values, strict=True) if isinstance(values[1], list) else [values]
            for own, other in pairs:
                if other is not None:
                    np.testing.assert_allclose(own, other, rtol=rtol, atol=rtol * np.abs(other).max())


def errors_of(found):
    """All standard errors in a row."""
    arrays = [value if isinstance(value, list) else [value] for value in found.standard_error.values()]
    return np.concatenate([np.ravel(array) for several in arrays for array in several if array is not None])


def ratio(found, expected):
    """Of standard errors, in the middle; the noise of independent signals may have none."""
    first, second = errors_of(found), errors_of(expected)
    return np.median(first[second > 0] / second[second > 0])


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", SANDWICHES)
def test_the_sandwich_is_the_same_everywhere(name, place):
    model, X = data_of(name)
    expected = odeco.intervals(model, X, replication=False)
    found = odeco.intervals(model, PLACES[place](name, X), replication=False)
    assert_same(found, expected, ROUNDING)


@pytest.mark.parametrize("name", FITTED)
def test_sums_of_blocks_everywhere(name):
    """Which units are in a block depends on how they come, the spread of replicates hardly."""
    model, X = data_of(name)
    moments = type(model)(**{**model.get_params(), "refine": None}).fit(X)
    found = [
        odeco.intervals(moments, data, n_replicates=10, replication=False, random_state=0)
        for data in (X, *(PLACES[place](name, X) for place in ("out of core", "dask")))
    ]
    assert {each.method for each in found} == {"block sums"}
    for each in found[1:]:
        assert 0.4 < ratio(each, found[0]) < 2.5  # ten know a deviation to a quarter


@pytest.mark.parametrize("name", ["lda", "ica", "gaussian_mixture", "dawid_skene", "categorical_hmm"])
def test_replicates_of_what_fits_are_those_of_memory(name):
    model, X = data_of(name)
    arguments = {"method": "replicates", "n_replicates": 10, "random_state": 0}
    expected = odeco.intervals(model, X, **arguments)
    found = odeco.intervals(model, PLACES["out of core"](name, X), **arguments)
    assert_same(found, expected, 1e-9)
    np.testing.assert_allclose(found.replication, expected.replication, rtol=1e-9)


@pytest.mark.parametrize("name", ["lda", "ica", "gaussian_mixture", "multiview", "product_mixture", "gaussian_hmm"])
def test_a_sample_of_what_does_not_fit_is_announced_and_scaled(name, monkeypatch):
    """Half of the units: errors of replicates near those of all of them. Twenty know a deviation to 16 per cent."""
    model, X = data_of(name)
    arguments = {"method": "replicates", "n_replicates": 20, "random_state": 0}
    expected = odeco.intervals(model, X, replication=False, **arguments)
    size = opened.open_again(odeco.models.cards.known_card(model), model, X, None, None).nbytes
    monkeypatch.setattr(opened, "MOST_BYTES", size // 2)
    with pytest.warns(MomentWarning, match=r"they are drawn from 50\.0% of them"):
        found = odeco.intervals(model, PLACES["dask"](name, X), **arguments)
    assert 0.8 < ratio(found, expected) < 1.25
    assert found.replicated.all()


def test_rows_that_do_not_fit_are_not_held(monkeypatch):
    """The sandwich and halves of what is out of core need no units but those that are shown."""
    model, X = data_of("gaussian_mixture")
    monkeypatch.setattr(opened, "MOST_BYTES", 4096)
    found = odeco.intervals(model, out_of_core(lambda: iter(np.array_split(X, 4))), random_state=0)
    assert found.method == "sandwich"
    assert found.replicated.all()


def test_parts_of_sums_merge():
    X = data_of("gaussian_mixture")[1]
    moments = odeco.GaussianMixture(3, refine=None, random_state=0).fit(X)
    data = opened.open_again(odeco.models.cards.known_card(moments), moments, X, None, None)
    basis = _with_basis(data, [])._stream.sums
    parts = [BlockSums(data.model, basis, 7, 0, None) for _ in range(3)]
    batch = next(iter(data.source))
    whole = parts[0].update(batch.take(slice(0, 100))).update(batch.take(slice(100, None)))
    both = parts[1].update(batch.take(slice(0, 100))).merge(parts[2].update(batch.take(slice(100, None))))
    assert whole.counts.tolist() == both.counts.tolist()
    assert whole.counts.sum() == 400
    packed = BlockSums(data.model, basis, 7, 0, None).unpack(both.pack()).pack()
    for name, value in whole.pack().sums.items():
        np.testing.assert_allclose(packed.sums[name], value, rtol=1e-9)


def test_thin_batches_keep_neighbours_of_time_together():
    batch = odeco.sources.dense.DenseBatch(np.arange(20.0)[:, None])
    assert Thinned(0.4, 0, 5)(batch).rows.ravel().tolist() == [0, 1, 5, 6, 10, 11, 15, 16]
    assert 0 < len(Thinned(0.5, 0)(batch)) < 20


def test_units_without_weight_do_not_count():
    batch = odeco.sources.dense.DenseBatch(np.ones((5, 2)), np.array([1.0, 0, 2, 0, 0]))
    assert Size().update(batch).n == 2
    chain = Sequences(np.ones((90, 1)), None, np.array([0, 50, 90]))
    assert Size(20).update(chain).n == 4
    assert chain.take(np.array([1])).offsets.tolist() == [0, 40]
