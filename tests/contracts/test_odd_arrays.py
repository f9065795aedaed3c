"""Whatever array or table an estimator is given: its values exactly, or an error that names what was found."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd
import pytest

import odeco

ESTIMATORS = tuple(
    name for name in odeco.__all__ if isinstance(getattr(odeco, name), type) and hasattr(getattr(odeco, name), "fit")
)
# What tells one fit from another; searches and refinement are cut short, for only the input matters here.
LEARNED = ("weights_", "components_", "means_", "mixing_", "confusion_", "transmat_", "emissionprob_", "lambdas_")
TAKES_MISSING = ("ProductMixture", "DawidSkene", "CategoricalHMM", "GaussianHMM", "PoissonHMM")

pytestmark = [pytest.mark.filterwarnings("ignore::odeco.MomentWarning"), pytest.mark.usefixtures("short_search")]


def table(name):
    """Whole numbers (60, 5): counts for most, labels in two groups for some."""
    rng = np.random.default_rng(0)
    if name not in ("DawidSkene", "CategoricalHMM"):
        return rng.poisson([[3.0], [6.0]] * 30, (60, 5))
    truth = rng.integers(0, 3, (60, 1))
    labels = np.where(rng.random((60, 5)) < 0.8, truth, rng.integers(0, 3, (60, 5)))
    return labels[:, :1] if name == "CategoricalHMM" else labels


def fit(name, X):
    options = {"layout": "wide"} if name == "DawidSkene" else {"n_components": 2}
    if name == "MultiViewMixture":
        X = [X.iloc[:, part] if hasattr(X, "iloc") else X[:, part] for part in (slice(2), slice(2, 4), slice(3, 5))]
    return getattr(odeco, name)(**options, max_iter=3, random_state=0).fit(X)


def learned(model):
    found = [getattr(model, name) for name in LEARNED if hasattr(model, name)]
    return np.concatenate([np.ravel(part) for item in found for part in (item if isinstance(item, list) else [item])])


@cache
def expected(name, missing=False):
    X = table(name)
    return learned(fit(name, np.where(places(X), np.nan, X) if missing else X))


def places(X):
    """Where values are missing."""
    return np.arange(X.size).reshape(X.shape) % 7 == 3


def read_only(X):
    X = X.copy()
    X.setflags(write=False)
    return X


SAME = {
    "float16": lambda X: X.astype(np.float16),
    "long double": lambda X: X.astype(np.longdouble),
    "big-endian floats": lambda X: X.astype(">f8"),
    "big-endian integers": lambda X: X.astype(">i4"),
    "unsigned": lambda X: X.astype(np.uint8),
    "matrix": lambda X: X.view(np.matrix),
    "objects": lambda X: X.astype(object),
    "nullable integers": lambda X: pd.DataFrame(X).astype("Int64"),
    "nullable floats": lambda X: pd.DataFrame(X).astype("Float64"),
    "pyarrow integers": lambda X: pd.DataFrame(X).astype("int64[pyarrow]"),
    "read-only": read_only,
    "columns first": np.asfortranarray,
    "every other row": lambda X: np.repeat(X, 2, axis=0)[::2],
    "backwards": lambda X: X[::-1].copy()[::-1],
    "masked nowhere": np.ma.masked_array,
}


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize("kind", SAME)
@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
def test_the_values_are_taken_exactly(name, kind):
    found = learned(fit(name, SAME[kind](table(name))))
    np.testing.assert_allclose(found, expected(name), rtol=1e-6, atol=1e-8)  # sums in float32 or float64


REFUSED = {
    "complex": (lambda X: X.astype(complex), "Complex data not supported"),
    "dates": (lambda X: X.astype("datetime64[D]"), r"dates or times \(datetime64\[D\]\)"),
    "durations": (lambda X: X.astype("timedelta64[s]"), r"dates or times \(timedelta64\[s\]\)"),
    "columns of dates": (lambda X: pd.DataFrame(X).astype("datetime64[ns]"), r"column .*dates or times"),
    "zoned dates": (lambda X: pd.DataFrame(X).astype("datetime64[ns, UTC]"), r"column .*dates or times"),
    "dates among objects": (lambda X: X.astype("datetime64[D]").astype(object), r"dates or times \(date\)"),
    "raw bytes": (lambda X: X.astype(np.int64).view("V8"), "raw bytes"),
}


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize("kind", REFUSED)
def test_what_is_neither_numbers_nor_text_is_named(name, kind):
    make, message = REFUSED[kind]
    with pytest.raises(ValueError, match=message):
        fit(name, make(table(name)))


@pytest.mark.parametrize("name", [name for name in ESTIMATORS if name != "MultiViewMixture"])
def test_records_are_named(name):
    records = np.rec.fromarrays([np.arange(20), np.arange(20.0)], names=["count", "size"])
    with pytest.raises(ValueError, match="records with the fields count, size"):
        getattr(odeco, name)().fit(records)


@pytest.mark.parametrize("name", [name for name in ESTIMATORS if name not in ("ProductMixture", "DawidSkene")])
@pytest.mark.parametrize("kind", [str, "S", object])
def test_text_is_not_taken_for_numbers(name, kind):
    text = table(name).astype(str)
    with pytest.raises(ValueError, match=r"must hold numbers, and holds the text b?'\d+'"):
        fit(name, text.astype(kind))


MISSING = {
    "masked": lambda X, gone: np.ma.masked_array(X, gone),
    "masked floats": lambda X, gone: np.ma.masked_array(X.astype(float), gone),
    "None": lambda X, gone: np.where(gone, None, X.astype(object)),
    "NA among objects": lambda X, gone: np.where(gone, pd.NA, X.astype(object)),
    "nullable integers": lambda X, gone: pd.DataFrame(X).astype("Int64").mask(gone),
    "nullable floats": lambda X, gone: pd.DataFrame(X).astype("Float64").mask(gone),
}


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize("kind", MISSING)
def test_missing_is_missing_or_an_error(name, kind):
    given = MISSING[kind](table(name), places(table(name)))
    if name not in TAKES_MISSING:
        with pytest.raises(ValueError, match="NaN"):
            fit(name, given)
        return
    found = learned(fit(name, given))
    np.testing.assert_allclose(found, expected(name, missing=True), rtol=1e-6, atol=1e-8)
    assert not np.allclose(found, expected(name), rtol=1e-6)
