"""Files of other data, weights, lengths or parameters are refused before a model comes of them."""

from __future__ import annotations

import dask.array as da
import dask.bag as db
import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from odeco import (
    ICA,
    CategoricalHMM,
    DawidSkene,
    GaussianHMM,
    GaussianMixture,
    LatentDirichletAllocation,
    MultiViewMixture,
    ProductMixture,
    SingleTopicModel,
)
from odeco.exceptions import ModelFileError
from odeco.sources import checkpointed, out_of_core
from odeco.sources.dense import as_dense_source
from odeco.sources.kinds import fitted_by

REFUSED = "belongs to another fit: X or its weights differ"


@pytest.fixture(scope="module")
def points():
    rng = np.random.default_rng(0)
    return 4 * rng.standard_normal((3, 6))[rng.choice(3, 2000)] + rng.standard_normal((2000, 6))


@pytest.fixture(scope="module")
def signals():
    rng = np.random.default_rng(1)
    return rng.laplace(size=(2000, 3)) @ rng.standard_normal((3, 6))


def swapped(rows):
    """The same rows, two of the middle in each other's place."""
    order = np.arange(rows.shape[0])
    order[[1500, 1501]] = order[[1501, 1500]]
    return rows[order]


def altered(rows):
    """The same rows, one of the middle in place of another one."""
    order = np.arange(rows.shape[0])
    order[1500] = 0
    return rows[order]


def doubled(rows):
    return sparse.vstack([rows, rows], format="csr") if sparse.issparse(rows) else np.concatenate([rows, rows])


def shortened(rows):
    return rows[:-1]


CHANGES = [altered, swapped, doubled, shortened]


def pieces(rows):
    return [rows[low : low + 400] for low in range(0, rows.shape[0], 400)]


def bag(rows):
    return db.from_sequence(pieces(rows), npartitions=len(pieces(rows)))


PLACES = {
    "memory": lambda rows: rows,
    "list": pieces,
    "stream": lambda rows: lambda: iter(pieces(rows)),
    "dask": bag,
}
ROWS = {
    "topics": LatentDirichletAllocation(5, refine=None, random_state=0),
    "one topic": SingleTopicModel(5, random_state=0),
    "mixture": GaussianMixture(3, random_state=0),
    "components": ICA(3, refine=None, random_state=0),
    "table": ProductMixture(3, family="gaussian", refine=None, random_state=0),
    "crowd": DawidSkene(3, refine=None, random_state=0),
}


def refuses(model, data, folder, match=REFUSED, **arguments):
    with pytest.raises(ModelFileError, match=match):
        model.fit(checkpointed(data, folder), **arguments)


@pytest.mark.usefixtures("short_search")
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("kind", ROWS)
def test_other_rows_are_refused_though_all_passes_are_complete(kind, place, corpus, points, signals, crowd, tmp_path):
    model = ROWS[kind]
    rows = {"crowd": crowd, "topics": corpus, "one topic": corpus, "components": signals}.get(kind, points)
    laid = PLACES[place]
    model.fit(checkpointed(laid(rows), tmp_path))
    for change in CHANGES:
        refuses(model, laid(change(rows)), tmp_path)
    model.fit(checkpointed(laid(rows.copy()), tmp_path))


@pytest.mark.parametrize("elsewhere", [False, True])
def test_other_views_are_refused(views, elsewhere, tmp_path):
    def laid(changed):
        return [da.from_array(view, chunks=(500, -1)) for view in changed] if elsewhere else changed

    given = [view.toarray() if sparse.issparse(view) else view for view in views] if elsewhere else views
    model = MultiViewMixture(3, refine=None, random_state=0).fit(checkpointed(laid(given), tmp_path))
    for change in CHANGES:
        refuses(model, laid([sparse_or_not(change, view) for view in given]), tmp_path)
    for change in (altered, swapped):
        refuses(model, laid([*given[:2], sparse_or_not(change, given[2])]), tmp_path)
    model.fit(checkpointed(laid(given), tmp_path))


def sparse_or_not(change, view):
    return sparse.csr_array(change(sparse.csr_matrix(view))) if sparse.issparse(view) else change(view)


@pytest.mark.parametrize("elsewhere", [False, True])
@pytest.mark.parametrize("family", [CategoricalHMM, GaussianHMM])
def test_other_sequences_are_refused(family, elsewhere, tmp_path):
    rng = np.random.default_rng(0)
    steps = np.repeat(rng.integers(3, size=200), 20)
    X = (2 * steps + rng.integers(2, size=4000))[:, None] if family is CategoricalHMM else 3.0 * steps[:, None]
    X = X + (0 if family is CategoricalHMM else rng.standard_normal(X.shape))
    lengths = np.full(40, 100)

    def laid(X):
        return da.from_array(X, chunks=(1000, 1)) if elsewhere else X

    model = family(3, refine=None, random_state=0)
    model.fit(checkpointed(laid(X), tmp_path), lengths, sequence_weight=np.ones(40))
    for change in (altered, swapped):
        refuses(model, laid(change(X)), tmp_path, lengths=lengths, sequence_weight=np.ones(40))
    refuses(model, laid(doubled(X)), tmp_path, lengths=np.full(80, 100), sequence_weight=np.ones(80))
    refuses(model, laid(X), tmp_path, lengths=np.r_[lengths[:20], 99, 101, lengths[22:]], sequence_weight=np.ones(40))
    refuses(model, laid(X), tmp_path, lengths=lengths, sequence_weight=np.r_[np.ones(39), 2.0])
    model.fit(checkpointed(laid(X), tmp_path), lengths, sequence_weight=np.ones(40))


def test_other_rows_of_a_file_are_refused(corpus, tmp_path):
    pytest.importorskip("pyarrow")
    from odeco.files import read_counts, write_counts
    from odeco.sources import as_source

    model, path = LatentDirichletAllocation(5, refine=None, random_state=0), tmp_path / "counts.parquet"
    write_counts(path, as_source(corpus), None)
    model.fit(checkpointed(read_counts(path).source, tmp_path / "run"))
    model.fit(checkpointed(read_counts(path).source, tmp_path / "run"))
    write_counts(path, as_source(altered(corpus)), None)
    refuses(model, read_counts(path).source, tmp_path / "run")


@pytest.mark.parametrize("place", ["memory", "dask"])
def test_other_weights_are_refused(points, place, tmp_path):
    def laid(weights):
        if place == "memory":
            return points, weights
        return da.from_array(points, chunks=(500, 6)), da.from_array(weights, chunks=500)

    weights = np.linspace(0.1, 1, len(points))
    X, given = laid(weights)
    model = GaussianMixture(3, refine=None, random_state=0).fit(checkpointed(X, tmp_path), sample_weight=given)
    first = model.weights_
    refuses(model, X, tmp_path)
    X, given = laid(weights[::-1].copy())
    refuses(model, X, tmp_path, sample_weight=given)
    X, given = laid(weights)
    again = model.fit(checkpointed(X, tmp_path), sample_weight=given).weights_
    np.testing.assert_array_equal(again, first)


@pytest.mark.parametrize(
    ("model", "arguments"),
    [
        (LatentDirichletAllocation(5, refine="cvb0", random_state=0, max_iter=2), {"refine": "vb"}),
        (LatentDirichletAllocation(5, refine="cvb0", random_state=0, max_iter=2), {"max_iter": 3}),
        (LatentDirichletAllocation(5, refine=None, random_state=0), {"alpha0": 1.0}),
        (SingleTopicModel(5, random_state=0), {"random_state": 1}),
    ],
)
@pytest.mark.parametrize("place", ["stream", "dask"])
def test_other_parameters_are_refused_and_named(model, arguments, place, corpus, tmp_path):
    laid = PLACES[place]
    model = type(model)(**model.get_params()).fit(checkpointed(laid(corpus), tmp_path))
    name, value = next(iter(arguments.items()))
    text = f"belongs to another fit: {name} was {model.get_params()[name]!r} and is {value!r}"
    refuses(type(model)(**{**model.get_params(), **arguments}), laid(corpus), tmp_path, text)


def test_an_interrupted_pass_goes_on_with_its_own_rows_only(points, tmp_path):
    """Before any pass is complete there is a file already, and rows it has not seen are signed as well."""
    model = GaussianMixture(3, refine=None, random_state=0)
    left = [10]  # five to sign, two to look at, and all but two of the first pass

    def dying():
        for piece in pieces(points):
            left[0] -= 1
            if left[0] < 0:
                raise KeyboardInterrupt
            yield piece

    with pytest.raises(KeyboardInterrupt):
        model.fit(checkpointed(as_dense_source(dying, 400), tmp_path, seconds=0))
    assert sorted(path.name.partition(".")[0] for path in tmp_path.iterdir()) == ["current", "fit"]
    refuses(model, as_dense_source(altered(points), 400), tmp_path)
    refuses(model, as_dense_source(points, 500), tmp_path)  # the sums go on after the third batch of 400
    resumed = model.fit(checkpointed(as_dense_source(points, 400), tmp_path)).means_
    np.testing.assert_allclose(resumed, model.fit(out_of_core(points)).means_, atol=1e-9)


def test_files_are_refused_by_themselves(points, tmp_path):
    """Where the signature is gone, or that of other files, each file still says what it is of."""
    model = GaussianMixture(3, refine=None, random_state=0).fit(checkpointed(points, tmp_path))
    (tmp_path / "fit.odeco-moments").unlink()
    refuses(model, altered(points), tmp_path, "pass-00000.*belongs to another fit")
    model.fit(checkpointed(points, tmp_path))


def test_the_error_says_where_data_differ(points, tmp_path):
    model = GaussianMixture(3, refine=None, random_state=0).fit(checkpointed(PLACES["dask"](points), tmp_path))
    refuses(model, PLACES["dask"](altered(points)), tmp_path, r"after row 1,200 \(2,000 rows then, 2,000 now\)")
    refuses(model, PLACES["dask"](doubled(points)), tmp_path, r"after row 2,000 \(2,000 rows then, 4,000 now\)")


def test_tables_of_labels_are_signed_with_their_schema(tmp_path):
    rng = np.random.default_rng(0)
    kinds = rng.integers(2, size=600)
    table = pd.DataFrame({name: np.where(rng.random(600) < 0.2 + 0.6 * kinds, "yes", "no") for name in "abcde"})
    model = ProductMixture(2, refine=None, random_state=0).fit(checkpointed(table, tmp_path))
    refuses(model, table.replace("yes", "yea"), tmp_path, "belongs to another fit: schema was")
    refuses(model, table.iloc[::-1].reset_index(drop=True), tmp_path)
    model.fit(checkpointed(table, tmp_path))


def test_what_is_not_checkpointed_stays_as_it_is():
    X = np.zeros((2, 2))
    assert fitted_by(GaussianMixture(), X) is X
