"""What cannot be done is said, for every model: argument, value, cure."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError

import odeco
from odeco import shared_moments
from odeco.sources import out_of_core
from odeco.uncertainty import class_table
from tests.fitted_models import FITTED, fitted_model

CHAINS = ("categorical_hmm", "gaussian_hmm", "poisson_hmm")
TABLES = [name for name in FITTED if name not in CHAINS and name != "multiview"]


def data_of(name):
    model, given = fitted_model(name)
    return model, given["data"][0] if isinstance(given["data"], tuple) else given["data"]


def first(X, n):
    return [view[:n] for view in X] if isinstance(X, list) else X[:n]


def frame_of(X):
    values = X.toarray() if sparse.issparse(X) else X
    return pd.DataFrame(values, columns=[f"c{j}" for j in range(values.shape[1])])


def found(model, X, **given):
    return odeco.intervals(model, X, n_replicates=10, replication=False, random_state=0, **given)


@pytest.mark.parametrize("name", FITTED)
def test_too_few_rows_and_none(name):
    model, X = data_of(name)
    for n in (1, 5):
        with pytest.raises(ValueError, match=r"X has \d (rows|blocks of steps), and intervals need 10 or more"):
            found(model, first(X, n))
    with pytest.raises(ValueError, match="0 sample|X is empty"):
        found(model, first(X, 0))


@pytest.mark.parametrize("name", FITTED)
def test_what_can_be_read_once(name):
    model, X = data_of(name)
    with pytest.raises(ValueError, match="X is an iterator, which can be read only once"):
        found(model, iter([X]))
    with pytest.raises(ValueError, match=r"can be read only once|was made from an iterator"):
        found(model, out_of_core(iter([X])))


@pytest.mark.parametrize("name", FITTED)
def test_models_that_are_not_fitted(name):
    model, X = data_of(name)
    with pytest.raises(NotFittedError):
        found(type(model)(**model.get_params()), X)


@pytest.mark.parametrize("name", TABLES)
def test_other_columns(name):
    model, X = data_of(name)
    with pytest.raises(ValueError, match=r"is expecting \d+ features|was fitted on 7"):
        found(model, X[:, :-1])
    with pytest.raises(ValueError, match=r"is expecting \d+ features|was fitted on 7|6 features were expected"):
        found(model, out_of_core(lambda: iter([X[:, :-1]])))
    frame = frame_of(X)
    named = type(model)(**model.get_params()).fit(frame)
    assert found(named, frame).value.keys() == found(model, X).value.keys()
    with pytest.raises(ValueError, match="feature names should match|other annotators, or in another order"):
        found(named, frame.iloc[:, ::-1])


def test_other_views_and_chains():
    model, X = data_of("multiview")
    with pytest.raises(ValueError, match=r"was fitted on \(3, 3, 3\)"):
        found(model, [view[:, :2] for view in X])
    for name, message in (("gaussian_hmm", "is expecting 2 features"), ("categorical_hmm", "one symbol for each step")):
        chain, steps = data_of(name)
        with pytest.raises(ValueError, match=message):
            found(chain, np.column_stack([steps, steps]))
    with pytest.raises(ValueError, match="the model knows 4 symbols"):
        found(chain, steps + 7)


@pytest.mark.parametrize("name", CHAINS)
def test_sequences_shorter_than_a_block_are_units(name):
    model, X = data_of(name)
    short = [X[i : i + 3] for i in range(0, 60, 3)]
    assert np.isfinite(found(model, short).low["transmat_"]).all()
    assert found(model, short, method="replicates").method == "replicates"


@pytest.mark.parametrize("name", FITTED)
def test_weights_with_zeros_are_rows_left_out(name):
    model, X = data_of(name)
    if name in CHAINS:
        X = [X[:400], X[400:]] * 10
        n, kept = 20, X[1::2]
    else:
        n = X[0].shape[0] if isinstance(X, list) else X.shape[0]
        kept = [view[1::2] for view in X] if isinstance(X, list) else X[1::2]
    weights = (np.arange(n) % 2).astype(float)
    with pytest.raises(ValueError, match=r"(sample|sequence)_weight (is zero for every|must be positive for at least)"):
        found(model, X, sample_weight=0 * weights)
    if name in ("lda", "ica"):
        assert found(model, X, sample_weight=weights).n_replicates >= 10
        return
    some = found(model, X, sample_weight=weights)
    left = found(model, kept, sample_weight=np.ones(n // 2))
    for attribute in some.value:
        values = [each.standard_error[attribute] for each in (some, left)]
        for own, other in zip(*values, strict=True) if isinstance(values[0], list) else [values]:
            np.testing.assert_allclose(own, other, rtol=1e-4, atol=1e-9)


def test_gaps_where_the_model_takes_them():
    model, X = data_of("product_mixture")
    gaps = X.copy()
    gaps[3, 1] = np.nan
    for method in ("sandwich", "replicates"):
        assert np.isfinite(found(model, gaps, method=method).low["means_"]).all()
    chain, steps = data_of("gaussian_hmm")
    steps = steps.copy()
    steps[5, 0] = np.nan
    assert np.isfinite(found(chain, steps, method="replicates").low["means_"]).all()
    mixture, rows = data_of("gaussian_mixture")
    rows = rows.copy()
    rows[0, 0] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        found(mixture, rows)


def test_labels_of_any_kind():
    """Categories that are words, a family for each name, and labels that are words: units hold their numbers."""
    rng = np.random.default_rng(0)
    hidden = rng.integers(2, size=300)
    frame = pd.DataFrame(
        {f"q{j}": np.where(rng.random(300) < np.where(hidden, 0.9, 0.2), "yes", "no") for j in range(5)}
    )
    model = odeco.ProductMixture(2, family={"q0": "categorical"}, random_state=0).fit(frame)
    both = odeco.intervals(model, frame, method="replicates", n_replicates=10, random_state=0)
    assert both.replicated.all()
    assert set(class_table(model, both)["category"]) >= {"yes", "no"}
    crowd = odeco.DawidSkene(random_state=0).fit(frame)
    assert odeco.intervals(crowd, frame, random_state=0).replicated.all()


def test_moments_of_another_basis_or_of_other_columns():
    rows = odeco.simulate.gaussian_mixture(2000, 3 * np.eye(3, 5), [0.5, 0.3, 0.2], random_state=0).rows
    model = odeco.GaussianMixture(3, refine=None, random_state=0).fit(rows)
    bases = [shared_moments.make_basis(model, sample) for sample in (rows[:900], rows[900:])]
    parts = [shared_moments.add_moments(bases[i // 5], part) for i, part in enumerate(np.array_split(rows, 10))]
    with pytest.raises(
        ValueError, match="part 6 cannot be added to the first: cannot merge moments about different shifts"
    ):
        odeco.intervals(model, parts)
    narrow = odeco.GaussianMixture(3, refine=None, random_state=0).fit(rows[:, :4])
    with pytest.raises(ValueError, match="X has 5 features, but GaussianMixture is expecting 4"):
        odeco.intervals(narrow, parts)


def test_labels_that_come_twice_have_a_sandwich():
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=100)
    rows = [(i, w, truth[i] if rng.random() < 0.9 else 1 - truth[i]) for i in range(100) for w in range(4)]
    frame = pd.DataFrame([*rows, rows[0]], columns=["item", "worker", "label"])
    model = odeco.DawidSkene(random_state=0).fit(frame)
    assert odeco.intervals(model, frame, replication=False).method == "sandwich"
    with pytest.raises(ValueError, match="come twice, and items are drawn with one each"):
        odeco.intervals(model, frame)
