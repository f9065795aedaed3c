"""Labels of crowds wherever they lie: the fit to all of them at once, to rounding, and only sums travel."""

from __future__ import annotations

import dask
import dask.array as da
import dask.bag as db
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

from odeco import DawidSkene
from odeco.exceptions import MomentError, MomentWarning
from odeco.sources import checkpointed, out_of_core

# The same sums in double precision in another order, and the same steps: 5e-15 was measured.
TOLERANCE = 1e-9
CHUNKS = (1000, 1, 0, 999)


def long_rows(labels, seed=0):
    """Rows (item, worker, label) in random order: labels of an item lie in many partitions."""
    items, workers = np.nonzero(labels >= 0)
    rows = pd.DataFrame({"item": items, "worker": workers, "label": labels[items, workers]})
    return rows.sample(frac=1, random_state=seed).reset_index(drop=True)


def in_order(rows, cut=500):
    """Batches of whole items, as an array."""
    values = rows.sort_values("item", kind="stable").to_numpy()
    return [values[values[:, 0] // cut == part] for part in range(values[:, 0].max() // cut + 1)]


PLACES = {
    "array": lambda X, _: (da.from_array(X, chunks=(CHUNKS, X.shape[1])), "auto"),
    "columns in chunks": lambda X, _: (da.from_array(X, chunks=(CHUNKS, 4)), "auto"),
    "frame": lambda X, _: (dd.from_pandas(pd.DataFrame(X).astype(float).replace(-1, np.nan), npartitions=4), "auto"),
    "bag": lambda X, _: (db.from_sequence(list(X), npartitions=3), "auto"),
    "long frame": lambda X, _: (dd.from_pandas(long_rows(X), npartitions=4), "auto"),
    "long array": lambda X, _: (da.from_array(long_rows(X).to_numpy(), chunks=(1500, 3)), "long"),
    "batches": lambda X, _: (out_of_core(lambda: iter([X[:700], X[:0], X[700:701], X[701:]])), "auto"),
    "one table": lambda X, _: (out_of_core(X), "auto"),
    "long batches": lambda X, _: (out_of_core(in_order(long_rows(X))), "long"),
    "checkpoint": lambda X, folder: (checkpointed([X[:700], X[700:]], folder), "auto"),
    "checkpoint of long rows": lambda X, folder: (checkpointed(dd.from_pandas(long_rows(X), 3), folder), "auto"),
}


@pytest.mark.parametrize(
    ("place", "refine"),
    [*((place, "auto") for place in PLACES), *(("array", way) for way in (None, "least-squares", "one-step"))],
)
def test_labels_anywhere_give_the_same(crowd, place, refine, tmp_path):
    here = DawidSkene(3, refine=refine, random_state=0).fit(crowd)
    X, layout = PLACES[place](crowd, tmp_path)
    there = DawidSkene(3, refine=refine, layout=layout, random_state=0).fit(X)
    np.testing.assert_allclose(there.confusion_, here.confusion_, atol=TOLERANCE)
    np.testing.assert_allclose(there.weights_, here.weights_, atol=TOLERANCE)
    assert there.lower_bound_ == pytest.approx(here.lower_bound_, abs=TOLERANCE)
    assert (there.n_iter_, there.diagnostics_.method) == (here.n_iter_, here.diagnostics_.method)
    assert there.classes_.tolist() == here.classes_.tolist()
    if place.startswith("checkpoint"):  # complete passes are read back
        again = DawidSkene(3, refine=refine, random_state=0).fit(PLACES[place](crowd, tmp_path)[0])
        np.testing.assert_array_equal(again.confusion_, there.confusion_)


def test_answers_are_lazy_and_those_of_long_rows_carry_the_items(crowd):
    model = DawidSkene(3, random_state=0).fit(crowd)
    X = da.from_array(crowd, chunks=(CHUNKS, crowd.shape[1]))
    for name in ("predict", "predict_proba", "score_samples"):
        lazy = getattr(model, name)(X)
        assert isinstance(lazy, da.Array)
        np.testing.assert_array_equal(lazy.compute(), getattr(model, name)(crowd))
    rows = long_rows(crowd)
    rows["item"] = "i" + rows["item"].astype(str).str.zfill(5)
    rows["label"] = np.array(["cat", "dog", "fox"])[rows["label"]]
    frame = dd.from_pandas(rows, npartitions=4)
    long = DawidSkene(random_state=0).fit(frame)
    here = DawidSkene(random_state=0).fit(rows)
    for name in ("predict", "predict_proba", "score_samples"):
        lazy = getattr(long, name)(frame)
        assert isinstance(lazy, (dd.Series, dd.DataFrame))
        found = lazy.compute().sort_index()
        assert found.index.tolist() == here.items_.tolist()
        if name == "predict":
            assert found.tolist() == here.predict(rows).tolist()
        else:
            np.testing.assert_allclose(found.to_numpy(), getattr(here, name)(rows), atol=1e-8)
    assert list(long.predict_proba(frame).columns) == ["cat", "dog", "fox"]
    assert long.score(frame) == pytest.approx(here.score(rows))
    assert long.bic(frame) == pytest.approx(here.bic(rows))
    assert len(long.items_) == 0  # they stay where they are


def test_weights_travel_with_their_rows(crowd):
    weights = np.random.default_rng(1).integers(0, 3, len(crowd)).astype(float)
    here = DawidSkene(3, random_state=0).fit(crowd, sample_weight=weights)
    X = da.from_array(crowd, chunks=(CHUNKS, crowd.shape[1]))
    for data, given in (
        (X, weights),
        (X, da.from_array(weights, chunks=(CHUNKS,))),
        (out_of_core([crowd[:5], crowd[5:]]), weights),
    ):
        there = DawidSkene(3, random_state=0).fit(data, sample_weight=given)
        np.testing.assert_allclose(there.confusion_, here.confusion_, atol=TOLERANCE)
    with pytest.raises(ValueError, match="no order elsewhere"):
        DawidSkene(3).fit(dd.from_pandas(long_rows(crowd), npartitions=2), sample_weight=weights)
    with pytest.raises(ValueError, match="shape"):
        DawidSkene(3).fit(X, sample_weight=weights[1:])
    with pytest.raises(ValueError, match="0 for every item"):
        DawidSkene(3).fit(X, sample_weight=np.zeros(len(crowd)))
    with pytest.raises(ValueError, match="one chunk after the other"):
        DawidSkene(3).partial_fit(out_of_core(crowd))


def blocks(*parts):
    return db.from_delayed([dask.delayed([part]) for part in parts])


def test_partitions_may_differ_in_kind(crowd):
    """Types, a partition of one row, one without labels; strings beside numbers are names, as in one table."""
    here = DawidSkene(3, random_state=0).fit(crowd)
    nothing = np.full((2, crowd.shape[1]), np.nan)
    mixed = blocks(crowd[:900].astype("i1"), crowd[900:901].astype("f4"), nothing, crowd[901:].astype(object))
    with pytest.warns(MomentWarning, match="2 of 2002 items have no label"):
        there = DawidSkene(3, random_state=0).fit(mixed)
    np.testing.assert_allclose(there.confusion_, here.confusion_, atol=0.01)  # two items more, of no class
    named = np.where(crowd < 0, None, crowd.astype(str).astype(object))
    there = DawidSkene(3, random_state=0).fit(blocks(crowd[:900], named[900:]))
    assert there.classes_.tolist() == ["0", "1", "2"]
    np.testing.assert_allclose(there.confusion_, here.confusion_, atol=TOLERANCE)
    rows = long_rows(crowd)
    whole, half = rows.astype({"item": "i4"}), rows.astype({"item": "f8", "label": "f4"})
    frame = dd.from_delayed([dask.delayed(whole[:3000]), dask.delayed(half[3000:])], meta=rows[:0], verify_meta=False)
    there = DawidSkene(3, random_state=0).fit(frame)
    np.testing.assert_allclose(there.confusion_, here.confusion_, atol=TOLERANCE)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda X: blocks(X[:900], X[900:, :-1]), r"differ in their number of columns.*\[8, 9\]"),
        (lambda X: blocks(X[:900], np.where(X[900:] == 2, -7, X[900:])), "label -7.*whole numbers from 0 on"),
        (lambda X: blocks(X[:900], X[900:] + 0.5), "label"),
        (lambda X: blocks(X[:0], X[:0]), "no partition has any rows"),
        (lambda X: blocks(np.full((5, 9), -1), np.full((5, 9), np.nan)), "no labels"),
        (lambda X: blocks(X[:900], np.where(X[900:] == 2, 1, 0)[:, :0]), "is empty"),
        (lambda X: da.from_array(X[:, :3], chunks=(500, 3)), "say layout='wide' or 'long'"),
        (lambda X: out_of_core(iter([X])), "read only once"),
        (lambda X: out_of_core([X[:0]]), "gave no batches"),
        (lambda X: out_of_core([X[:9], X[9:, 1:]]), "differ in their number of columns"),
        (
            lambda X: dd.from_pandas(long_rows(X).assign(label=-5), npartitions=2),
            "label -5.*whole numbers from 0 on",
        ),
        (lambda X: dd.from_pandas(long_rows(X).assign(worker=np.nan), npartitions=2), "rows without worker"),
    ],
)
def test_bad_labels_are_named(crowd, make, message):
    with pytest.raises(ValueError, match=message):
        DawidSkene(3, random_state=0).fit(make(crowd))


def test_long_rows_out_of_core_must_be_in_order(crowd):
    rows = long_rows(crowd).to_numpy()
    with pytest.raises(ValueError, match="must be sorted by item"):
        DawidSkene(3, layout="long").fit(out_of_core([rows[:3000], rows[3000:]]))
    with pytest.raises(ValueError, match="three columns, got 9"):
        DawidSkene(3, layout="long").fit(da.from_array(crowd, chunks=(500, 9)))
    strings = long_rows(crowd).astype({"worker": str})
    parts = [dask.delayed(long_rows(crowd)[:3000]), dask.delayed(strings[3000:])]
    with pytest.raises(ValueError, match="workers are numbers in some parts of X and strings in others"):
        DawidSkene(3).fit(dd.from_delayed(parts, meta=strings[:0], verify_meta=False))
    two = da.from_array(np.maximum(crowd[:, :2], 0), chunks=(500, 2))
    with pytest.warns(MomentWarning, match="EM started from majority votes"):
        DawidSkene(3, random_state=0).fit(two)
    with pytest.raises(MomentError, match="2 annotators"):
        DawidSkene(3, refine=None, random_state=0).fit(two)


def test_labels_do_not_travel(crowd, sent):
    """What tasks return is the figure in docs/scaling.md, whatever the number of items."""
    n_init, n_workers, k, n_labels = 2, crowd.shape[1], 3, 3
    found = []
    for times in (1, 3):
        sent.clear()
        X = da.from_array(np.tile(crowd, (times, 1)), chunks=(700, n_workers))
        DawidSkene(3, n_init=n_init, max_iter=2, tol=0, random_state=0).fit(X)
        found.append(dict(sent))
    assert found[0] == found[1]
    votes, width = n_workers * n_labels, n_labels + 1
    view_sums = width**3 + 9 * width**2 + 6 * width + 2
    assert found[0]["CrowdLook"] == 8 * (n_init * (view_sums + votes * (3 * width + 1)) + 1)
    assert found[0]["MajorityVotes"] == 8 * (k * (votes + 1) + 1)
    starts = n_init + 1
    assert found[0]["CrowdPosteriors"] == 8 * starts * (k * (votes + 1) + 1)
