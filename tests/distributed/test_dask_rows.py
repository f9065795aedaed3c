"""Mixtures and ICA on Dask collections: what `fit` gives out of core, and only sums travel."""

from __future__ import annotations

import itertools

import dask.array as da
import dask.bag as db
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

from odeco import ICA, GaussianMixture, ProductMixture
from odeco.exceptions import MomentWarning
from odeco.sources import out_of_core

# Sums in double precision in another order, through EM to convergence: 2e-13 was measured.
TOLERANCE = 1e-9
CHUNKS = (1000, 1, 0, 999, 2000)


@pytest.fixture(scope="module")
def points():
    rng = np.random.default_rng(0)
    means = 3 * rng.standard_normal((4, 6))
    return means[rng.choice(4, 4000, p=[0.4, 0.3, 0.2, 0.1])] + rng.standard_normal((4000, 6))


@pytest.fixture(scope="module")
def signals():
    rng = np.random.default_rng(1)
    sources = np.column_stack([rng.uniform(-1, 1, 4000), rng.laplace(size=4000), rng.exponential(size=4000)])
    return sources @ rng.standard_normal((3, 4)) + 0.05 * rng.standard_normal((4000, 4))


@pytest.fixture(scope="module")
def table():
    """Bernoulli, Gaussian and Poisson columns and one of labels, some values missing."""
    rng = np.random.default_rng(2)
    h = rng.choice(3, 4000, p=[0.5, 0.3, 0.2])
    answers = (rng.random((4000, 5)) < rng.random((3, 5))[h]).astype(float)
    numbers = 2 * rng.standard_normal((3, 3))[h] + rng.standard_normal((4000, 3))
    counts = rng.poisson(4 * rng.gamma(2, size=(3, 2))[h])
    values = np.hstack([answers, numbers, counts])
    values[rng.random(values.shape) < 0.02] = np.nan
    frame = pd.DataFrame(values, columns=[f"c{j}" for j in range(10)])
    frame["label"] = np.array(["a", "b", "c"])[np.where(rng.random(4000) < 0.8, h, rng.integers(3, size=4000))]
    return frame


def array_of(rows):
    return da.from_array(rows, chunks=(CHUNKS, rows.shape[1]))


def streamed(rows):
    return out_of_core(lambda: iter([rows[:700], rows[700:]]))


@pytest.mark.usefixtures("short_search")
@pytest.mark.parametrize("refine", [None, "auto"])
@pytest.mark.parametrize("kind", ["spherical", "tied_spherical", "diag", "full", "tied"])
def test_gaussian_mixtures(points, kind, refine):
    model = GaussianMixture(4, kind, refine=refine, random_state=0)
    spread = model.fit(array_of(points))
    means, covariances, method = spread.means_, spread.covariances_, spread.diagnostics_.method
    here = model.fit(streamed(points))
    np.testing.assert_allclose(means, here.means_, atol=TOLERANCE)
    np.testing.assert_allclose(covariances, here.covariances_, atol=TOLERANCE)
    assert here.diagnostics_.method == method
    # Rows in memory are fitted by another way to the same maximum: EM stops within tol of it.
    np.testing.assert_allclose(means, model.fit(points).means_, atol=TOLERANCE if refine is None else 1e-3)


def test_a_start_from_a_sample_is_said(points):
    fits = []
    for rows in (array_of(points), streamed(points)):
        with pytest.warns(MomentWarning, match="components explain next to nothing"):  # there are 4
            fits.append(GaussianMixture(8, random_state=0).fit(rows))
        assert " on 4000 rows, then " in fits[-1].diagnostics_.method
        assert "less than n_components=8" in fits[-1].diagnostics_.details["moments"]
    np.testing.assert_allclose(fits[0].means_, fits[1].means_, atol=1e-6)


def test_what_needs_rows_in_memory_is_refused(points):
    for options in ({"refine": "one-step"}, {"route": "views"}):
        with pytest.raises(ValueError, match="needs the rows in memory"):
            GaussianMixture(2, random_state=0, **options).fit(array_of(points))
    for options in ({"refine": "one-step"}, {"route": "views"}):
        with pytest.raises(ValueError, match="needs the rows in memory"):
            ProductMixture(2, random_state=0, **options).fit(array_of(points))


@pytest.mark.parametrize("refine", [None, "least-squares", "auto"])
def test_ica(signals, refine):
    model = ICA(3, refine=refine, random_state=0)
    spread = model.fit(array_of(signals)).mixing_
    np.testing.assert_allclose(spread, model.fit(streamed(signals)).mixing_, atol=TOLERANCE)
    if refine is None:
        np.testing.assert_allclose(spread, model.fit(signals).mixing_, atol=TOLERANCE)
    lazy = model.transform(array_of(signals))
    assert isinstance(lazy, da.Array)
    np.testing.assert_allclose(lazy.compute(), model.transform(signals))


@pytest.mark.parametrize("refine", [None, "auto"])
def test_product_mixtures_of_frames(table, refine):
    model = ProductMixture(3, refine=refine, random_state=0)
    spread = model.fit(dd.from_pandas(table, npartitions=5))
    means, families = spread.means_, spread.families_
    labels = spread.predict(dd.from_pandas(table, npartitions=3))
    assert isinstance(labels, da.Array)
    np.testing.assert_array_equal(labels.compute(), spread.predict(table))
    here = model.fit(streamed(table))
    np.testing.assert_allclose(means, here.means_, atol=TOLERANCE)
    assert families == here.families_
    assert families[-1] == "categorical"


@pytest.mark.usefixtures("short_search")
def test_partitions_may_differ_in_dtype(points):
    edges = np.cumsum((0, *CHUNKS))
    parts = [points[low:high] for low, high in itertools.pairwise(edges)]
    rounded = [part.astype(kind) for part, kind in zip(parts, ["f4", "f8", "f8", "f4", "f8"], strict=True)]
    mixed = db.from_sequence(rounded, npartitions=5)
    spread = GaussianMixture(4, random_state=0).fit(mixed)
    here = GaussianMixture(4, random_state=0).fit(out_of_core(rounded))
    # The type of the first partition is that of the work here: single precision.
    np.testing.assert_allclose(spread.means_, here.means_, atol=1e-4)


@pytest.mark.usefixtures("short_search")
def test_weights(points):
    weights = np.random.default_rng(3).integers(0, 3, len(points)).astype(float)
    spread = GaussianMixture(4, random_state=0).fit(array_of(points), sample_weight=weights).means_
    here = GaussianMixture(4, random_state=0).fit(streamed(points), sample_weight=weights).means_
    np.testing.assert_allclose(spread, here, atol=TOLERANCE)


def test_rows_do_not_travel(points, signals, sent):
    """What tasks of a pass return does not grow with the rows; beside it travels a sample of at most 16,384 rows."""

    def measure(times):
        sent.clear()
        GaussianMixture(4, "diag", random_state=0, max_iter=2).fit(
            array_of(np.tile(points, (times, 1)))[: 4000 * times]
        )
        GaussianMixture(4, random_state=0, max_iter=2).fit(array_of(np.tile(points, (times, 1)))[: 4000 * times])
        ICA(3, random_state=0).fit(array_of(np.tile(signals, (times, 1)))[: 4000 * times])
        return dict(sent)

    def array_of(rows):
        return da.from_array(rows, chunks=(len(rows) // 4, rows.shape[1]))

    once = measure(1)
    assert once == measure(3)
    assert set(once) >= {"SecondMoments", "VectorMoments", "PosteriorSums", "FourthMoments", "ProductTriples"}
    d, k = points.shape[1], 4
    assert once["VectorMoments"] <= 8 * (k**3 + k**2 + k + d + 10)


def test_rows_of_tables_do_not_travel(table, sent):
    """The figures of docs/scaling.md; a feature for each number, three for the column of labels."""
    found = []
    for times in (1, 3):
        sent.clear()
        frame = dd.from_pandas(pd.concat([table] * times, ignore_index=True), npartitions=4)
        ProductMixture(3, random_state=0, tol=0.1).fit(frame)
        found.append(dict(sent))
    assert found[0] == found[1]
    columns, features, r = 11, 13, 2
    marginal = features + columns + 2
    assert found[0]["ProductPairs"] == 8 * (features**2 + columns**2 + columns * features + marginal)
    assert found[0]["ProductTriples"] == 8 * (r**3 + 2 * features * r + r + 2 * features + marginal)
    # Answers, labels, counts, numbers and their squares; and whether a value is there, for the columns that miss some.
    statistics = 5 + 3 + 2 + 2 * 3 + 10
    assert found[0]["ExpectedSums"] == 8 * (3 * (statistics + 1) + 1)
