"""Any finite input gives finite results, or an error that says what is wrong with it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse

import odeco

pytestmark = pytest.mark.filterwarnings("ignore::odeco.MomentWarning")

METHODS = ("predict", "predict_proba", "score_samples", "score", "aic", "bic", "transform", "perplexity")
# NaN where no likelihood step was taken, as documented; what diagnostics say of themselves.
_MAY_BE_NAN = ("lower_bound_", "diagnostics_")

SIZES = st.integers(1, 3)
SCALES = (1.0, 1.0, 1.0, 1e-300, 1e-160, 1e-39, 1e-12, 1e12, 1e38, 1e155, 1e300)


@st.composite
def tables(draw: st.DrawFn, shape: tuple[int, int] | None = None) -> Any:
    """Few rows with ties, zeros, constant columns and duplicates, at any scale and far from the origin."""
    n, d = shape or (draw(st.sampled_from([1, 2, 3, 5, 12, 40])), draw(st.integers(1, 4)))
    ties = st.sampled_from([0.0, 1.0, -1.0, 2.0, 0.5])
    values = draw(hnp.arrays(float, (n, d), elements=ties | st.floats(-4, 4, width=32)))
    if draw(st.booleans()):  # rows that differ: few of those above do
        values += np.random.default_rng(n).standard_normal((n, d))
    if draw(st.booleans()):
        values[:, 0] = values[0, 0]
    if draw(st.booleans()):
        values[: n // 2] = values[0]
    scales = draw(st.sampled_from(SCALES) | hnp.arrays(float, d, elements=st.sampled_from(SCALES)))
    offset = draw(st.sampled_from([0.0, 0.0, 1e9, -1e15]))
    return values * scales + offset * np.minimum(scales, 1e280)


@st.composite
def counts(draw: st.DrawFn) -> Any:
    """Few documents, empty ones among them, words that never occur, weights in place of counts."""
    shape = (draw(st.sampled_from([1, 2, 3, 8, 30])), draw(st.integers(1, 6)))
    numbers = draw(hnp.arrays(float, shape, elements=st.integers(0, 3).map(float)))
    return numbers * draw(st.sampled_from(SCALES))


@st.composite
def views(draw: st.DrawFn) -> Any:
    """Three views, dense or sparse, of numbers or of counts; one may be empty."""
    n = draw(st.sampled_from([1, 2, 5, 20]))
    if draw(st.booleans()):
        return [draw(tables((n, draw(st.integers(1, 3))))) for _ in range(3)]
    found = [draw(hnp.arrays(float, (n, 3), elements=st.integers(0, 3).map(float))) for _ in range(3)]
    if draw(st.booleans()):
        found[2][:] = 0.0
    return [sparse.csr_array(view) for view in found] if draw(st.booleans()) else found


def is_finite(value: Any, *, impossible: bool = False) -> bool:
    """No NaN and no infinity anywhere; where something may be `impossible`, no NaN."""
    if isinstance(value, (list, tuple)):
        return all(is_finite(item, impossible=impossible) for item in value)
    if value is None or isinstance(value, str):
        return True
    array = np.asarray(value.data if sparse.issparse(value) else value)
    if array.dtype.kind not in "fc":
        return True
    return not np.isnan(array).any() if impossible else bool(np.isfinite(array).all())


def use(model: Any, X: Any) -> None:
    """Everything that a fitted model gives is finite; posteriors are on the simplex."""
    impossible = isinstance(model, odeco.CategoricalHMM)  # a symbol of probability 0 has the logarithm -inf
    for name in METHODS:
        if hasattr(model, name):
            found = getattr(model, name)(X)
            assert is_finite(found, impossible=impossible), f"{name} is {found}"
    if hasattr(model, "predict_proba"):
        shares = model.predict_proba(X)
        assert (shares >= 0).all()
        np.testing.assert_allclose(shares.sum(axis=-1), 1.0, rtol=1e-9)
    if hasattr(model, "sample"):
        assert is_finite(model.sample(3)[0])


def fit_and_use(model: Any, fit: str, X: Any, others: Any) -> ValueError | None:
    """The error that refuses the data, if there is one."""
    try:
        getattr(model, fit)(X)
        learned = {name: value for name, value in vars(model).items() if name[-1] == "_" and name not in _MAY_BE_NAN}
        for name, value in learned.items():
            assert is_finite(value), f"{name} is {value}"
        use(model, X)
        use(model, others)
    except ValueError as error:
        return error
    return None


def check_finite(estimator: Any, data: st.DataObject, X: Any, others: Any, **options: Any) -> None:
    """Fit in any way and use, on the same data and on others; what is refused is refused in words."""
    fit = data.draw(st.sampled_from(["fit", "partial_fit"]))
    model = estimator(refine=data.draw(st.sampled_from(["auto", None])), random_state=0, **options)
    error = fit_and_use(model, fit, X, others)
    assert not isinstance(error, np.linalg.LinAlgError), error
    assert error is None or len(str(error).split()) > 4, error


def check_tables(estimator: Any, data: st.DataObject, **options: Any) -> None:
    X = data.draw(tables())
    check_finite(estimator, data, X, data.draw(tables((2, X.shape[1]))), n_components=data.draw(SIZES), **options)


@pytest.mark.parametrize("kind", ["spherical", "tied_spherical", "diag", "full", "tied"])
@given(data=st.data())
def test_gaussian_mixture(kind, data):
    check_tables(odeco.GaussianMixture, data, covariance_type=kind)


@pytest.mark.parametrize("family", ["gaussian", "auto"])
@given(data=st.data())
def test_product_mixture(family, data):
    check_tables(odeco.ProductMixture, data, family=family)


@pytest.mark.parametrize("kind", ["spherical", "diag", "full", "tied"])
@given(data=st.data())
def test_gaussian_hmm(kind, data):
    check_tables(odeco.GaussianHMM, data, covariance_type=kind)


@given(data=st.data())
def test_ica(data):
    check_tables(odeco.ICA, data)


@given(data=st.data(), X=views(), k=SIZES)
def test_multi_view_mixture(data, X, k):
    likelihood = data.draw(st.sampled_from(["auto", "gaussian", "multinomial", "poisson"]))
    smoothing = data.draw(st.sampled_from([0.0, 0.01]))
    options = {"n_components": k, "likelihood": likelihood, "smoothing": smoothing}
    check_finite(odeco.MultiViewMixture, data, X, [view[:1] for view in X], **options)


@given(data=st.data(), X=counts(), others=counts(), k=SIZES)
def test_poisson_hmm(data, X, others, k):
    check_finite(odeco.PoissonHMM, data, X, others, n_components=k)


@given(data=st.data(), k=SIZES)
def test_categorical_hmm(data, k):
    symbols = st.lists(st.integers(0, 4), min_size=1, max_size=30).map(lambda s: np.array(s)[:, None])
    check_finite(odeco.CategoricalHMM, data, data.draw(symbols), data.draw(symbols), n_components=k)


@pytest.mark.parametrize("estimator", [odeco.LatentDirichletAllocation, odeco.SingleTopicModel])
@given(data=st.data(), X=counts(), factor=st.sampled_from([0.0, 1.0, 1e6]), k=SIZES)
def test_topic_models(estimator, data, X, factor, k):
    check_finite(estimator, data, X, X[::-1] * factor, n_components=k)


@given(data=st.data(), rows=st.sampled_from([1, 2, 5, 20]), columns=st.integers(1, 5))
def test_dawid_skene(data, rows, columns):
    X = data.draw(hnp.arrays(int, (rows, columns), elements=st.integers(-1, 2)))
    check_finite(odeco.DawidSkene, data, X, X[:1], layout="wide")
