"""Views of the same samples wherever they lie: one fit, to rounding, and only sums travel."""

from __future__ import annotations

import itertools
from dataclasses import replace

import dask
import dask.array as da
import numpy as np
import pytest

from odeco import MultiViewMixture
from odeco.exceptions import MomentWarning
from odeco.models.multiview.policy import POLICY
from odeco.sources import checkpointed, out_of_core, partitions

# The same sums in double precision in another order, through EM to convergence: 1e-13 was measured.
TOLERANCE = 1e-9
CHUNKS = (1200, 0, 1, 1799)


def spread(view, chunks=CHUNKS):
    """A Dask array with sparse blocks where the view is sparse."""
    edges = np.cumsum((0, *chunks))
    parts = [view[low:high] for low, high in itertools.pairwise(edges)]
    return da.concatenate(
        [da.from_delayed(dask.delayed(p), shape=p.shape, dtype=float, meta=np.empty((0, 0))) for p in parts], axis=0
    )


def cut(views, *edges):
    return [[view[low:high] for view in views] for low, high in itertools.pairwise(edges)]


PLACES = {
    "dask": lambda views, _: [spread(view) for view in views],
    "batches": lambda views, _: out_of_core(lambda: iter(cut(views, 0, 1500, 1501, 3000))),
    "checkpoint": lambda views, folder: checkpointed(cut(views, 0, 700, 3000), folder),
    "checkpoint of dask": lambda views, folder: checkpointed([spread(view) for view in views], folder),
}


@pytest.mark.parametrize("refine", [None, "auto"])
@pytest.mark.parametrize("place", PLACES)
def test_views_anywhere_give_the_same(views, place, refine, tmp_path):
    model = MultiViewMixture(3, refine=refine, random_state=0)
    here = MultiViewMixture(3, refine=refine, random_state=0).fit(views)
    there = model.fit(PLACES[place](views, tmp_path))
    for mean, other in zip(there.means_, here.means_, strict=True):
        np.testing.assert_allclose(mean, other, atol=TOLERANCE)
    assert there.likelihoods_ == here.likelihoods_ == ("gaussian", "bernoulli", "multinomial")
    assert there.diagnostics_.method == here.diagnostics_.method
    if place.startswith("checkpoint"):
        again = MultiViewMixture(3, refine=refine, random_state=0).fit(PLACES[place](views, tmp_path))
        np.testing.assert_array_equal(again.means_[0], there.means_[0])


def test_answers_are_lazy_and_weights_travel_with_their_rows(views):
    data = [spread(view) for view in views]
    model = MultiViewMixture(3, random_state=0, max_iter=3).fit(views)
    labels = model.predict(data)
    assert isinstance(labels, da.Array)
    np.testing.assert_array_equal(labels.compute(), model.predict(views))
    weights = np.random.default_rng(0).integers(0, 3, 3000).astype(float)
    here = MultiViewMixture(3, random_state=0).fit(views, sample_weight=weights)
    there = MultiViewMixture(3, random_state=0).fit(data, sample_weight=weights)
    np.testing.assert_allclose(there.means_[0], here.means_[0], atol=TOLERANCE)


def test_a_start_from_clusters_takes_the_same_samples(views, monkeypatch):
    """Constant columns have no moments: k-means on every second sample of 3,000, wherever they are."""
    monkeypatch.setattr("odeco.models.multiview.search.POLICY", replace(POLICY, most_rows=1500))
    views = [views[0], views[1], np.ones((3000, 2))]
    # Moves among answers taken for Gaussian ones, which have spikes, hang on the last bit of a sum.
    model = MultiViewMixture(3, likelihood="gaussian", random_state=0, max_iter=3, effort="quick")
    with pytest.warns(MomentWarning, match="EM started from k-means"):
        here = model.fit(views).means_[0]
    seen, collect = [], partitions.Partitioned.collect
    monkeypatch.setattr(partitions.Partitioned, "collect", lambda self: seen.append(self) or collect(self))
    with pytest.warns(MomentWarning, match="EM started from k-means"):
        there = model.fit([spread(view) for view in views]).means_[0]
    np.testing.assert_allclose(there, here, atol=TOLERANCE)
    assert [source.n_rows for source in seen] == [1500]


def test_bad_views_are_named(views):
    data = [spread(view) for view in views]
    with pytest.raises(ValueError, match="same chunks of rows"):
        MultiViewMixture(3).fit([data[0], data[1], data[2].rechunk((500, -1))])
    with pytest.raises(ValueError, match="no partition has any rows"):
        MultiViewMixture(3).fit([view[:0] for view in data])
    wide = da.concatenate(
        [
            da.from_delayed(dask.delayed(part), shape=(1500, 5), dtype=float)
            for part in (views[0][:1500], views[0][1500:, :4])
        ]
    )
    rest = [da.from_array(np.asarray(view), chunks=(1500, view.shape[1])) for view in (views[1], views[2].toarray())]
    with pytest.raises(ValueError, match="partitions differ in their number of columns|in the columns of their views"):
        MultiViewMixture(3).fit([wide, *rest])
    with pytest.raises(ValueError, match="batches differ in the columns of their views"):
        MultiViewMixture(3).fit(out_of_core([views, [view[:, :2] for view in views]]))


def test_samples_do_not_travel(views, sent):
    """What tasks return is the figure in docs/scaling.md, whatever the number of samples."""
    views = [views[0], views[1], views[2].toarray()]
    found = []
    for times in (1, 3):
        sent.clear()
        data = [da.from_array(np.tile(view, (times, 1)), chunks=(700, view.shape[1])) for view in views]
        MultiViewMixture(3, likelihood="gaussian", max_iter=2, tol=0, random_state=0).fit(data)
        found.append(dict(sent))
    assert found[0] == found[1]
    k, widths = 3, [5, 8, 6]
    d, r = sum(widths), k - 1
    assert found[0]["ViewLook"] == 8 * (2 * d + 2) + 3 * (4 + 16)
    pairs = sum(first * second for first in widths for second in widths if first != second)
    assert found[0]["ViewPairs"] == 8 * (pairs + 2 * d + 2)  # whole: up to 256 columns
    assert found[0]["ViewMoments"] == 8 * (2 * d * r + d + 3 * r + r**3 + 3 * r**2 + 2)
    assert found[0]["PosteriorSums"] == 8 * (2 * d * k + k + 1)
