"""ProductMixture: recovery, families, missing values, weights, streams, latent class statistics, bad input."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from odeco import MomentError, MomentWarning, ProductMixture
from odeco.metrics import match_components
from odeco.models.product_mixture.moments import paired_passes
from odeco.models.product_mixture.table import gather
from odeco.moments.passes import run_passes
from odeco.simulate import latent_classes
from odeco.sources.dense import DenseBatch, DenseSource, first_rows
from odeco.sources.tables import infer_schema, open_table


def bernoulli(n, d=40, k=4, seed=0):
    rng = np.random.default_rng(seed)
    weights, p = rng.dirichlet(np.full(k, 5.0)), rng.uniform(0.05, 0.95, (k, d))
    h = rng.choice(k, n, p=weights)
    return (rng.random((n, d)) < p[h]).astype(float), weights, p


def mixed(n, seed=0):
    rng = np.random.default_rng(seed)
    h = rng.choice(3, n, p=[0.5, 0.3, 0.2])
    means, rates = rng.normal(0, 2, (3, 5)), rng.uniform(11, 40, (3, 4))
    p, tables = rng.uniform(0.1, 0.9, (3, 6)), rng.dirichlet(np.ones(4), (3, 5))
    codes = (rng.random((n, 5, 1)) > np.cumsum(tables, axis=2)[h]).sum(axis=2)
    X = np.column_stack([rng.normal(means[h], 1.5), rng.poisson(rates[h]), rng.random((n, 6)) < p[h], codes])
    return X, h, means, rates, p, tables


def mean_error(model, truth):
    matching = match_components(model.means_.T, truth.T)
    assert np.abs(np.roll(model.means_[matching.permutation], 1, axis=0) - truth).max() > 0.1  # order matters
    return float(np.sqrt(np.mean(matching.errors**2) / truth.shape[1]))


@pytest.mark.parametrize("refine", [None, "auto", "one-step"])
def test_error_falls_with_the_root_of_n(refine):
    errors = []
    for n in (4_000, 64_000):
        X, _, p = bernoulli(n)
        errors.append(mean_error(ProductMixture(4, refine=refine, random_state=0).fit(X), p))
    # 16 times the rows: a quarter of the error, give or take a third for one draw of 160 means.
    assert errors[1] < errors[0] / 2.5
    assert errors[1] < 0.02


def test_mixed_columns_are_recovered():
    X, h, means, rates, p, tables = mixed(8_000)
    family = ["gaussian"] * 5 + ["poisson"] * 4 + ["bernoulli"] * 6 + ["categorical"] * 5
    model = ProductMixture(3, family=family, random_state=0).fit(X)
    guessed = ProductMixture(3, random_state=0).fit(X)
    assert guessed.families_ == tuple(family)
    np.testing.assert_allclose(guessed.means_, model.means_)
    assert np.all(np.diff(model.weights_) <= 0)
    # Weights 0.5, 0.3, 0.2 are well apart: canonical order is the true one.
    np.testing.assert_allclose(model.weights_, [0.5, 0.3, 0.2], atol=0.03)
    np.testing.assert_allclose(model.means_[:, :5], means, atol=0.2)
    np.testing.assert_allclose(model.variances_[:, :5], 1.5**2, rtol=0.15)
    np.testing.assert_allclose(model.means_[:, 5:9], rates, rtol=0.05)
    np.testing.assert_allclose(model.means_[:, 9:15], p, atol=0.06)
    np.testing.assert_allclose(np.stack(model.probabilities_, axis=1), tables, atol=0.06)
    assert np.mean(model.predict(X) == h) > 0.95
    shares = model.predict_proba(X)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)


def test_draws_have_the_fitted_moments():
    X, *_ = mixed(4_000)
    model = ProductMixture(3, random_state=0).fit(X)
    drawn, labels = model.sample(20_000)
    assert drawn.shape == (20_000, X.shape[1])
    for i in range(3):
        # Means of thousands of draws: within five of their standard errors.
        part = drawn[labels == i]
        error = np.sqrt(model.variances_[i] / len(part))
        assert np.all(np.abs(part.mean(axis=0) - model.means_[i]) < 5 * error)


@pytest.mark.parametrize("refine", [None, "auto"])
def test_missing_completely_at_random_stays_consistent(refine):
    errors = []
    for n in (4_000, 64_000):
        X, _, p = bernoulli(n)
        X[np.random.default_rng(1).random(X.shape) < 0.3] = np.nan
        errors.append(mean_error(ProductMixture(4, refine=refine, random_state=0).fit(X), p))
    assert errors[1] < errors[0] / 2.5
    assert errors[1] < 0.025


@pytest.mark.usefixtures("short_search")
def test_minus_one_and_nan_are_the_same():
    X, *_ = bernoulli(500, 8, 2)
    gone = np.random.default_rng(0).random(X.shape) < 0.2
    codes = ProductMixture(2, random_state=0).fit(np.where(gone, -1, X).astype(int))
    floats = ProductMixture(2, random_state=0).fit(np.where(gone, np.nan, X))
    np.testing.assert_array_equal(codes.means_, floats.means_)
    # A row without any value has the shares of the classes.
    np.testing.assert_allclose(floats.predict_proba(np.full((1, 8), np.nan))[0], floats.weights_)


@pytest.mark.usefixtures("short_search")
def test_values_may_be_missing_only_later():
    X, *_ = mixed(600)
    model = ProductMixture(3, random_state=0).fit(X)
    some = X[:20].copy()
    some[:, 3:] = np.nan
    # What is left are Gaussian columns: their posterior by hand.
    logs = np.log(model.weights_) - 0.5 * (
        (some[:, None, :3] - model.means_[:, :3]) ** 2 / model.variances_[:, :3] + np.log(model.variances_[:, :3])
    ).sum(axis=2)
    expected = np.exp(logs - logs.max(axis=1, keepdims=True))
    np.testing.assert_allclose(model.predict_proba(some), expected / expected.sum(axis=1, keepdims=True), rtol=1e-8)
    streamed = ProductMixture(3, random_state=0, basis_size=100).partial_fit(X[:, 9:15])
    gone = X[:300, 9:15].copy()
    gone[:, 0] = np.nan
    assert np.isfinite(streamed.partial_fit(gone).lower_bound_)


@pytest.mark.parametrize("refine", [None, "auto", "one-step"])
@pytest.mark.parametrize("kind", ["discrete", "gaussian"])
def test_weights_are_repetitions(refine, kind):
    rng = np.random.default_rng(3)
    X = bernoulli(300, 8, 2)[0] if kind == "discrete" else rng.normal(4 * rng.integers(2, size=(300, 1)), 1, (300, 5))
    counts = rng.integers(0, 4, len(X))
    weighted = ProductMixture(2, refine=refine, random_state=0).fit(X, sample_weight=counts)
    repeated = ProductMixture(2, refine=refine, random_state=0).fit(np.repeat(X, counts, axis=0))
    np.testing.assert_allclose(weighted.means_, repeated.means_, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(weighted.weights_, repeated.weights_, rtol=1e-6)
    assert weighted.lower_bound_ == pytest.approx(repeated.lower_bound_)


def test_same_seed_same_result():
    X, *_ = bernoulli(6_000)
    one, two = (ProductMixture(4, random_state=1).fit(X) for _ in range(2))
    np.testing.assert_array_equal(one.means_, two.means_)


def test_views_give_the_same_answer_when_it_is_easy():
    X, _, p = bernoulli(30_000)
    model = ProductMixture(4, route="views", refine=None, random_state=0).fit(X)
    assert mean_error(model, p) < 0.03
    assert {"coherence", "incoherence_limit", "coherence_condition"} <= set(model.diagnostics_.details)
    assert "three views" in model.diagnostics_.method


def test_batches_are_fitted_as_one_table():
    X, *_ = bernoulli(2_000)
    whole = ProductMixture(4, random_state=0).fit(X)
    for batches in ([X[:300], X[300:]], lambda: iter([X[:1500], X[1500:]]), [(X, np.ones(2_000))]):
        np.testing.assert_allclose(ProductMixture(4, random_state=0).fit(batches).means_, whole.means_, atol=1e-9)


@pytest.mark.usefixtures("short_search")
class TestPartialFit:
    def test_rows_that_are_held_are_fitted_as_a_whole(self):
        X, *_ = bernoulli(900, 10, 3)
        whole = ProductMixture(3, random_state=0).fit(X)
        parts = ProductMixture(3, random_state=0)
        for chunk in np.array_split(X, 5):
            parts.partial_fit(chunk)
        np.testing.assert_allclose(parts.means_, whole.means_, atol=1e-9)

    def test_few_patterns_are_held_as_counts(self):
        X, *_ = bernoulli(9_000, 6, 2)
        whole = ProductMixture(2, random_state=0).fit(X)
        parts = ProductMixture(2, random_state=0, basis_size=1_000)
        for chunk in np.array_split(X, 4):
            parts.partial_fit(chunk)
        np.testing.assert_allclose(parts.means_, whole.means_, atol=1e-7)

    def test_chunks_do_not_matter(self):
        X, _, p = bernoulli(30_000)
        models = []
        for n_chunks in (3, 11):
            model = ProductMixture(4, random_state=0, basis_size=2_000)
            for chunk in np.array_split(X, n_chunks):
                model.partial_fit(chunk)
            models.append(model)
        np.testing.assert_array_equal(models[0].means_, models[1].means_)
        assert "one pass" in models[0].diagnostics_.method
        two_passes = mean_error(ProductMixture(4, refine=None, random_state=0).fit(X), p)
        assert mean_error(models[0], p) < 1.2 * two_passes  # directions from 2,000 rows cost a little

    def test_mixed_columns_stream(self):
        X, _, _, rates, _, _ = mixed(20_000)
        model = ProductMixture(3, random_state=0, basis_size=2_000)
        for chunk in np.array_split(X, 7):
            model.partial_fit(chunk)
        np.testing.assert_allclose(model.weights_, [0.5, 0.3, 0.2], atol=0.05)
        np.testing.assert_allclose(model.means_[:, 5:9], rates, rtol=0.1)
        np.testing.assert_allclose(model.variances_[:, :5], 1.5**2, rtol=0.4)

    def test_too_few_rows_wait(self):
        X, *_ = bernoulli(200)
        model = ProductMixture(4, random_state=0)
        with pytest.warns(MomentWarning, match="do not determine"):
            model.partial_fit(X[:2])
        model.partial_fit(X[2:])
        assert model.weights_.shape == (4,)

    def test_a_stream_of_fewer_columns_than_components_has_no_estimate(self):
        model = ProductMixture(4, random_state=0, basis_size=100)
        with pytest.raises(MomentError, match="rank 2, below the 3 that 4 components need"):
            model.partial_fit(np.random.default_rng(0).normal(size=(500, 2)))

    def test_counts_of_fewer_patterns_than_components_are_fitted_as_a_whole(self):
        X = np.random.default_rng(0).integers(2, size=(300, 2)).astype(float)
        model = ProductMixture(5, random_state=0, basis_size=50)
        with pytest.warns(MomentWarning, match="5 components of 2 discrete columns are not identified"):
            model.partial_fit(X)
        with pytest.warns(MomentWarning, match="5 components of 2 discrete columns are not identified"):
            whole = ProductMixture(5, random_state=0).fit(X)
        assert model.lower_bound_ == pytest.approx(whole.lower_bound_)

    def test_fit_forgets_the_stream(self):
        X, *_ = bernoulli(600)
        model = ProductMixture(2, random_state=0).partial_fit(X[:300])
        model.fit(X[300:])
        np.testing.assert_allclose(model.means_, ProductMixture(2, random_state=0).fit(X[300:]).means_)


class TestLatentClasses:
    def fitted(self):
        drawn = latent_classes(800, [0.6, 0.4], [[[0.9, 0.1], [0.2, 0.8]]] * 5, random_state=0)
        frame = pd.DataFrame(drawn.codes, columns=list("abcde")).astype("category")
        return ProductMixture(2, random_state=0).fit(frame), frame, drawn

    def test_tables_have_names(self):
        model, _, drawn = self.fitted()
        tables = model.class_tables()
        assert list(tables) == list("abcde")
        np.testing.assert_allclose(tables["c"], drawn.tables[2], atol=0.08)
        assert model.feature_names_in_.tolist() == list("abcde")

    def test_criteria(self):
        model, frame, _ = self.fitted()
        n_parameters, total = 1 + 2 * 5, 800 * model.score(frame)
        assert model.aic(frame) == pytest.approx(-2 * total + 2 * n_parameters)
        assert model.bic(frame) == pytest.approx(-2 * total + n_parameters * np.log(800))
        assert model.lower_bound_ == pytest.approx(model.score(frame))

    def test_g_squared_by_hand(self):
        model, frame, _ = self.fitted()
        counts = frame.value_counts()
        patterns = counts.index.to_frame(index=False).astype(frame.dtypes)
        expected = 800 * np.exp(model.score_samples(patterns))
        observed = counts.to_numpy()
        assert model.g_squared(frame) == pytest.approx(2 * np.sum(observed * np.log(observed / expected)))
        chi = np.sum((observed - expected) ** 2 / expected) + 800 - expected.sum()
        assert model.chi_squared(frame) == pytest.approx(chi)
        assert model.residual_degrees_of_freedom(frame) == 2**5 - 1 - 11

    def test_entropy(self):
        model, frame, _ = self.fitted()
        shares = model.predict_proba(frame)
        entropy = -np.sum(shares * np.log(shares))
        assert model.entropy(frame) == pytest.approx(entropy)
        assert model.relative_entropy(frame) == pytest.approx(1 - entropy / (800 * np.log(2)))

    def test_numbers_have_no_patterns(self):
        X = np.random.default_rng(0).normal(size=(100, 3))
        with pytest.raises(ValueError, match="Bernoulli or categorical"):
            ProductMixture(1).fit(X).g_squared(X)


class TestDiagnostics:
    def test_small_tables_say_how_many_starts(self):
        diagnostics = ProductMixture(2, random_state=0).fit(bernoulli(300, 8, 3)[0]).diagnostics_
        starts = diagnostics.details["starts"]
        assert f"best of {len(starts)} starts ({starts[0][0]}" in diagnostics.method
        assert {"the moments", "random rows"} <= {name for name, _ in starts}
        assert 1 <= diagnostics.details["replicated"] <= len(starts)

    def test_pairs_of_columns_where_single_ones_are_too_few(self):
        model = ProductMixture(4, random_state=0).fit(bernoulli(3_000, 7, 4)[0])
        assert model.diagnostics_.details["column_pairs"] == ("x0+x1", "x2+x3", "x4+x5", "x6")

    def test_moments_of_pairs_of_columns_have_no_floor_of_a_start(self):
        """`refine=None` is the moments' own estimate; EM alone has to start away from 0."""
        X, rng = bernoulli(3_000, 7, 4)[0], np.random.default_rng(0)
        source = open_table(X, "bernoulli")
        found = run_passes(paired_passes(first_rows(source, 1024), source.schema, 4, rng), source).start(rng)
        families = found.families(source.schema)
        model = ProductMixture(4, refine=None, random_state=0).fit(X)
        own, floored = (np.sort(found.parameters(families, floor)[0].table[:, 0]) for floor in (0.0, 1e-3))
        # Moments of rows in another order: to the tolerance of the fill, 1e-5 of the largest.
        np.testing.assert_allclose(np.sort(model.means_[:, 0]), own, atol=1e-5)
        assert np.abs(own - floored).max() > 5e-4

    def test_components_that_the_means_do_not_tell_apart(self):
        X = np.random.default_rng(0).normal(size=(40_000, 20))
        with pytest.warns(MomentWarning, match="within the noise"):
            model = ProductMixture(3, random_state=0, tol=1.0).fit(X)
        assert model.diagnostics_.suggested_components == 1

    @pytest.mark.parametrize("k", [2, 4, 7])
    def test_the_suggested_number_does_not_depend_on_k(self, k):
        X, *_ = bernoulli(4_000, 20, 4)
        model = ProductMixture(k, effort="quick", random_state=0).fit(X)
        assert model.diagnostics_.suggested_components == 4

    def test_effort(self):
        X, *_ = bernoulli(400, 8, 3)
        fits = {e: ProductMixture(2, effort=e, random_state=0).fit(X) for e in ("quick", "auto", "thorough")}
        assert "starts" not in fits["quick"].diagnostics_.details
        found = {e: fits[e].diagnostics_.details["starts"] for e in ("auto", "thorough")}
        assert len(found["thorough"]) > len(found["auto"]) > 1
        assert fits["thorough"].lower_bound_ >= fits["auto"].lower_bound_ - 1e-6
        assert fits["auto"].lower_bound_ >= fits["quick"].lower_bound_ - 1e-6

    def test_effort_without_moments(self):
        X = np.random.default_rng(0).normal(size=(300, 2))
        with pytest.warns(MomentWarning, match="moments could not be used"):
            quick = ProductMixture(2, effort="quick", random_state=0).fit(X)
        assert "random rows" in quick.diagnostics_.method

    @pytest.mark.parametrize("n", [800, 8_000])
    def test_rows_that_follow_the_model_need_no_search(self, n, monkeypatch):
        monkeypatch.setattr("odeco.models.product_mixture.search.random_starts", None)  # no other start is made
        X, *_ = bernoulli(n)
        model = ProductMixture(4, random_state=0).fit(X)
        assert "starts" not in model.diagnostics_.details
        np.testing.assert_array_equal(ProductMixture(4, random_state=0, effort="quick").fit(X).means_, model.means_)

    def test_a_component_that_dies_needs_a_search_however_little_em_gains(self):
        rng = np.random.default_rng(0)
        weights, p = rng.dirichlet(np.full(3, 5.0)), rng.beta(0.5, 0.5, (3, 100)).clip(0.02, 0.98)
        X = (rng.random((5_000, 100)) < p[rng.choice(3, 5_000, p=weights)]).astype(float)
        X[:, 1] = X[:, 0]  # columns that go together within classes look like one more class, which has no rows
        model, once = (ProductMixture(4, random_state=0, effort=effort).fit(X) for effort in ("auto", "quick"))
        assert len(model.diagnostics_.details["starts"]) > 1
        assert once.weights_.min() < 0.001 < 0.05 < model.weights_.min()
        assert model.score(X) > once.score(X) + 0.2  # measured: 0.225

    def test_fewer_components_than_the_data_show_are_searched_for(self):
        X, *_ = bernoulli(8_000)
        searched = ProductMixture(3, random_state=0).fit(X).diagnostics_  # fewer than the data show
        assert len(searched.details["starts"]) > 1

    def test_no_moments(self):
        X = np.random.default_rng(0).normal(size=(300, 2))
        with pytest.raises(MomentError, match="2 columns"):
            ProductMixture(2, refine=None).fit(X)
        assert "best of" in ProductMixture(2, random_state=0).fit(X).diagnostics_.method


def test_a_stream_of_one_component_is_means_and_variances():
    rng = np.random.default_rng(0)
    x = np.column_stack(
        [rng.normal(3, 2, 3000) + np.linspace(0, 1, 3000), rng.poisson(15, 3000), rng.random(3000) < 0.3]
    )
    model = ProductMixture(1, family=["gaussian", "poisson", "bernoulli"], basis_size=1000)
    for chunk in np.array_split(x, 5):
        model.partial_fit(chunk)
    np.testing.assert_allclose(model.means_[0], x.mean(axis=0), rtol=1e-10)
    np.testing.assert_allclose(model.variances_[0, 0], x[:, 0].var(), rtol=1e-10)
    assert "one pass" in model.diagnostics_.method


@pytest.mark.usefixtures("short_search")
class TestBadInput:
    X = bernoulli(60, 5, 2)[0]

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"n_components": 0}, "n_components"),
            ({"n_components": 2.0}, "n_components"),
            ({"n_components": 61}, "n_samples=60"),
            ({"method": "tensor"}, "method"),
            ({"refine": "newton"}, "refine"),
            ({"effort": "most"}, "effort"),
            ({"max_iter": 0}, "max_iter"),
            ({"tol": -1}, "tol"),
            ({"family": "normal"}, "family"),
        ],
    )
    def test_options(self, options, message):
        with pytest.raises(ValueError, match=message):
            ProductMixture(**options).fit(self.X)

    def test_a_category_never_seen(self):
        model = ProductMixture(2, family="categorical", random_state=0).fit(self.X)
        with pytest.raises(ValueError, match="'x0'.*not seen"):
            model.predict(self.X + 1)

    def test_constant_and_duplicated_columns_are_fitted(self):
        X = np.column_stack([self.X, np.ones(60), self.X])
        with pytest.warns(MomentWarning, match="column 'x5' is constant"):
            model = ProductMixture(2, random_state=0).fit(X)
        np.testing.assert_allclose(model.means_[:, 5], 1.0, atol=1e-6)
        np.testing.assert_allclose(model.means_[:, :5], model.means_[:, 6:], atol=1e-9)
        assert np.isfinite(model.score(X))

    def test_more_components_than_columns(self):
        with pytest.warns(MomentWarning, match="7 components of 5 discrete columns are not identified"):
            model = ProductMixture(7, random_state=0).fit(self.X)
        assert np.isfinite(model.lower_bound_)

    def test_one_component_is_the_means(self):
        model = ProductMixture(1).fit(self.X)
        np.testing.assert_allclose(model.means_[0], self.X.mean(axis=0), atol=1e-6)

    def test_weights(self):
        with pytest.raises(ValueError, match="sample_weight"):
            ProductMixture(2).fit(self.X, sample_weight=np.zeros(60))

    def test_names_must_match(self):
        frame = pd.DataFrame(self.X, columns=list("abcde"))
        model = ProductMixture(2, random_state=0).fit(frame)
        with pytest.raises(ValueError, match="feature names"):
            model.predict(frame[list("edcba")])


@pytest.mark.usefixtures("short_search")
class TestColumnsOfPandas:
    """What is missing in any of pandas' types is missing; what is no number and no category is an error."""

    def table(self, n=80):
        rng = np.random.default_rng(0)
        group = rng.integers(0, 2, n)
        return pd.DataFrame(
            {
                "text": np.where(group, "yes", "no"),
                "truth": group ^ (rng.random(n) < 0.1),
                "count": rng.poisson(5 + 20 * group),
                "size": rng.normal(3 * group),
            }
        )

    @pytest.mark.parametrize(
        "types",
        [
            {"text": "string", "truth": "boolean", "count": "Int64", "size": "Float64"},
            {"text": "category", "truth": "boolean", "count": "Int32", "size": "Float32"},
            {"text": object, "truth": object, "count": object, "size": object},
        ],
    )
    def test_missing_is_missing(self, types):
        frame = self.table()
        gone = np.arange(frame.size).reshape(frame.shape) % 7 == 3
        plain = frame.astype({"truth": float, "count": float}).mask(gone)
        model, known = (ProductMixture(2, random_state=0).fit(X) for X in (frame.astype(types).mask(gone), plain))
        assert model.families_ == ("categorical", "bernoulli", "poisson", "gaussian")
        np.testing.assert_allclose(model.means_, known.means_, rtol=1e-5)  # Float32
        np.testing.assert_array_equal(model.predict(frame.astype(types)), known.predict(frame))

    def test_dates_are_an_error(self):
        frame = self.table().assign(when=pd.date_range("2020", periods=80))
        with pytest.raises(ValueError, match="column 'when' holds dates or times .*Leave them out"):
            ProductMixture(2).fit(frame)
        with pytest.raises(ValueError, match="column 'when' holds dates or times"):
            ProductMixture(2).fit(lambda: iter([frame[["when", "size"]]]))

    @pytest.mark.parametrize("values", [[f"name {i}" for i in range(80)], np.arange(80) + 7, np.arange(80) ** 2 * 1e3])
    def test_identifiers_are_noticed(self, values):
        frame = self.table().assign(key=values)
        with pytest.warns(MomentWarning, match="column 'key' has another value in each of 80 rows, as identifiers"):
            ProductMixture(2, random_state=0).fit(frame)

    def test_numbers_of_rows_are_noticed_where_there_are_too_many_to_keep(self):
        frame = self.table(30_000).assign(key=np.arange(30_000))
        notes = infer_schema([frame[:5000], frame[5000:]], "auto").notes
        assert len(notes) == 1
        assert "column 'key' has another value in each of 30000 rows" in notes[0]

    @pytest.mark.parametrize("values", [[np.nan] * 80, pd.Categorical([None] * 80, categories=["a"])])
    def test_columns_without_values_are_noticed(self, values):
        with pytest.warns(MomentWarning, match="column 'nothing' has no values"):
            ProductMixture(2, random_state=0).fit(self.table().assign(nothing=values))

    def test_measurements_and_counts_are_not_taken_for_identifiers(self):
        frame = self.table().assign(other=np.random.default_rng(1).poisson(100, 80))
        assert infer_schema([frame], "auto").notes == ()
        numbers = frame.assign(other=np.arange(80))
        assert infer_schema([numbers], ["auto"] * 4 + ["poisson"]).notes == ()

    def test_text_is_not_read_as_numbers(self):
        X = np.array([["007", "b"], ["7", "a"]] * 20, dtype=object)
        model = ProductMixture(1).fit(X)
        assert [known.tolist() for known in model.categories_] == [["007", "7"], ["a", "b"]]
        with pytest.raises(ValueError, match="column 'x0' mixes numbers and text"):
            ProductMixture(1).fit(np.array([[7, "b"], ["7", "a"]], dtype=object))

    def test_codes_beyond_floats_are_not_merged(self):
        codes = np.array([2**53, 2**53 + 1] * 20)[:, None]
        with pytest.raises(ValueError, match=r"column 'x0' has the whole number 9007199254740993, beyond 2\*\*53"):
            ProductMixture(1, family="categorical").fit(codes)


def test_rows_in_memory_are_gathered_without_a_copy():
    X = np.arange(24.0).reshape(8, 3).copy()
    assert gather(DenseSource(lambda: [DenseBatch(X)], batch_size=5)).rows is X
    parted = ([X[5:], X[:5]], [X[:5]], [X[::2], X[1::2]])
    for parts in parted:
        found = gather([DenseBatch(part) for part in parts])
        np.testing.assert_array_equal(found.rows, np.concatenate(parts))
