"""GaussianMixture: recovery, fallbacks, streams, weights, bad input."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from odeco import GaussianMixture, MomentError, MomentWarning
from odeco.fitting.candidates import EFFORTS
from odeco.metrics import match_components
from odeco.models.gaussian_mixture.choice import are_round
from odeco.models.gaussian_mixture.policy import POLICY
from odeco.moments.vectors import ProjectedRows
from odeco.refinement.gaussian_mixture import GaussianParameters
from odeco.sources import out_of_core
from odeco.sources.dense import as_dense_source

WEIGHTS = np.array([0.4, 0.3, 0.2, 0.1])
TYPES = ("spherical", "tied_spherical", "diag", "full", "tied")


def draw(n=20_000, d=10, k=4, separation=5.0, differ=True, seed=0):
    rng = np.random.default_rng(seed)
    weights = WEIGHTS[:k] / WEIGHTS[:k].sum()
    deviations = rng.uniform(0.7, 1.3, k) if differ else np.ones(k)
    means = separation / np.sqrt(2 * d) * rng.standard_normal((k, d))
    labels = rng.choice(k, n, p=weights)
    return means[labels] + deviations[labels, None] * rng.standard_normal((n, d)), labels, weights, means, deviations**2


def assert_recovered(model, weights, means, variances, n):
    """Errors within five deviations of what n labelled samples would give, in canonical order."""
    order = np.argsort(-weights)
    counts = n * weights[order]
    assert np.abs(model.weights_ - weights[order]).max() < 5 * np.sqrt(0.25 / n)
    errors = np.linalg.norm(model.means_ - means[order], axis=1)
    bound = 5 * np.sqrt(variances[order] * means.shape[1] / counts)
    assert (errors < bound).all()
    if model.covariance_type == "spherical":
        relative = np.abs(model.covariances_ / variances[order] - 1)
        assert (relative < 5 * np.sqrt(2 / (counts * means.shape[1]))).all()


def assert_matched(model, weights, means, *, means_within, weights_within):
    """Means and weights both near the truth under one permutation, that of the means."""
    matched = match_components(model.means_.T, means.T)
    assert matched.largest < means_within
    assert np.abs(model.weights_[matched.permutation] - weights).max() < weights_within


@pytest.mark.parametrize("kind", ["spherical", "tied_spherical"])
def test_recovery(kind):
    x, labels, weights, means, variances = draw(differ=kind == "spherical")
    model = GaussianMixture(4, kind, random_state=0).fit(x)
    assert_recovered(model, weights, means, variances, len(x))
    shuffled = GaussianMixture(4, kind, random_state=0).fit(x)
    shuffled.means_ = shuffled.means_[[1, 0, 3, 2]]
    with pytest.raises(AssertionError):
        assert_recovered(shuffled, weights, means, variances, len(x))
    # The best rule errs on 3 % of these samples.
    assert (model.predict(x) == np.argsort(np.argsort(-weights))[labels]).mean() > 0.95
    assert model.diagnostics_.ok
    assert model.converged_


def test_the_pure_moment_estimate_is_consistent():
    errors = []
    for n in (4_000, 64_000):
        runs = []
        for seed in range(3):
            x, _, weights, means, _ = draw(n, seed=seed)
            model = GaussianMixture(4, refine=None, random_state=0).fit(x)
            matched = match_components(model.means_.T, means.T)
            runs.append([matched.largest, np.abs(model.weights_[matched.permutation] - weights).max()])
        errors.append(np.median(runs, axis=0))
    # Sixteen times the samples: a quarter of the error of means and of weights, more or less.
    assert (errors[0] / errors[1] > 2).all()
    assert (errors[0] / errors[1] < 8).all()


@pytest.mark.parametrize("refine", ["em", "one-step"])
def test_refinement_reaches_the_likelihood_of_the_truth(refine):
    x, _, weights, means, variances = draw(separation=3.5)
    model = GaussianMixture(4, refine=refine, random_state=0).fit(x)
    truth = np.log(
        sum(
            w * multivariate_normal(m, v * np.eye(10)).pdf(x) for w, m, v in zip(weights, means, variances, strict=True)
        )
    ).mean()
    pure = GaussianMixture(4, refine=None, random_state=0).fit(x)
    assert pure.score(x) < model.score(x)
    assert model.score(x) > truth  # the maximum of the likelihood is above the truth on its own data
    assert ("scoring" in model.diagnostics_.method) == (refine == "one-step")


@pytest.mark.parametrize("kind", TYPES)
def test_scores_are_those_of_scipy_and_draws_have_the_moments(kind):
    x, *_ = draw(4000)
    model = GaussianMixture(4, kind, effort="quick", random_state=0).fit(x)
    identity = np.eye(10)
    full = {
        "spherical": lambda c: c[:, None, None] * identity,
        "tied_spherical": lambda c: [c * identity] * 4,
        "diag": lambda c: [np.diag(row) for row in c],
        "tied": lambda c: [c] * 4,
        "full": lambda c: c,
    }[kind](model.covariances_)
    parts = zip(model.weights_, model.means_, full, strict=True)
    joint = np.column_stack([np.log(w) + multivariate_normal(m, c).logpdf(x) for w, m, c in parts])
    np.testing.assert_allclose(model.score_samples(x), np.logaddexp.reduce(joint, axis=1), rtol=1e-9)
    np.testing.assert_allclose(model.predict_proba(x).sum(axis=1), 1)
    assert (model.predict(x) == joint.argmax(axis=1)).all()
    drawn, labels = model.sample(20_000)
    for j in range(4):
        own = drawn[labels == j]
        assert np.abs(own.mean(axis=0) - model.means_[j]).max() < 5 * np.sqrt(np.max(full[j]) / len(own))
        np.testing.assert_allclose(np.cov(own.T), full[j], atol=0.25)  # 5 deviations of the 2,000 of the lightest
    n_parameters = 3 + 40 + {"spherical": 4, "tied_spherical": 1, "diag": 40, "tied": 55, "full": 220}[kind]
    total = -2 * model.score_samples(x).sum()
    assert model.aic(x) == pytest.approx(total + 2 * n_parameters)
    assert model.bic(x) == pytest.approx(total + n_parameters * np.log(4000))


def test_full_and_tied_say_where_they_started():
    x, *_ = draw()
    for kind in ("full", "tied"):
        model = GaussianMixture(4, kind, random_state=0).fit(x)
        assert model.diagnostics_.method.startswith("spherical moments")
        spheres = GaussianMixture(4, random_state=0).fit(x)
        assert_matched(model, spheres.weights_, spheres.means_, means_within=0.1, weights_within=0.03)


def test_three_rotated_views():
    x, _, weights, means, variances = draw(30_000, d=15)
    model = GaussianMixture(4, route="views", refine=None, random_state=0).fit(x)
    # 0.12 and 0.004 found; two means are 5 apart, two weights 0.1.
    assert_matched(model, weights, means, means_within=0.5, weights_within=0.03)
    assert 4 / 15 <= model.diagnostics_.details["coherence"] <= 1  # between k/d and 1 (section 3.3.1)
    refined = GaussianMixture(4, route="views", random_state=0).fit(x)
    assert_recovered(refined, weights, means, variances, len(x))
    with pytest.warns(MomentWarning, match="n_features >= 3 n_components"):
        GaussianMixture(4, route="views", random_state=0).fit(x[:2000, :8])


def test_collinear_means_are_found_without_the_moments():
    rng = np.random.default_rng(0)
    means = np.outer([0.0, 5.0, 10.0], np.ones(8) / np.sqrt(8))
    x = means[rng.choice(3, 30_000, p=[0.5, 0.3, 0.2])] + rng.standard_normal((30_000, 8))
    searched = GaussianMixture(3, random_state=0).fit(x)  # several starts found the same optimum: nothing to warn of
    assert "within the noise" in searched.diagnostics_.details["moments"]
    assert searched.diagnostics_.details["replicated"] > 1
    for options in ({"route": "moments"}, {"effort": "quick"}):  # one start alone
        with pytest.warns(MomentWarning, match="within the noise"):
            model = GaussianMixture(3, **options, random_state=0).fit(x)
        assert model.diagnostics_.method.startswith("k-means++")
    for found in (searched, model):
        # Five deviations of 6,000 samples in 8 dimensions; of shares of 30,000 samples, and again for overlaps.
        assert_matched(found, np.array([0.5, 0.3, 0.2]), means, means_within=0.18, weights_within=0.03)
    with pytest.raises(MomentError, match="collinear"):
        GaussianMixture(3, refine=None).fit(x)


def test_too_few_features_for_the_moments():
    rng = np.random.default_rng(0)
    means = 8 * rng.standard_normal((4, 3))
    x = means[rng.choice(4, 5000, p=WEIGHTS)] + rng.standard_normal((5000, 3))
    for columns in (3, 1):  # d = k - 1: no noise space
        with pytest.warns(MomentWarning, match=f"n_features={columns} is less than n_components=4"):
            GaussianMixture(4, effort="quick", random_state=0).fit(x[:, :columns])
    model = GaussianMixture(4, random_state=0).fit(x)
    assert "no noise space" in model.diagnostics_.details["moments"]
    # Three deviations of 500 samples in 3 dimensions, five of shares of 5,000 samples.
    assert_matched(model, WEIGHTS, means, means_within=0.24, weights_within=0.035)


def test_a_light_component_that_the_tensor_does_not_show_is_found():
    rng = np.random.default_rng(2)
    d, k, n = 60, 12, 30_000
    weights = np.append(np.full(k - 1, 0.99 / (k - 1)), 0.01)
    means = 4 / np.sqrt(2 * d) * rng.standard_normal((k, d))
    x = means[rng.choice(k, n, p=weights)] + 0.8 * rng.standard_normal((n, d))
    model = GaussianMixture(k, random_state=0).fit(x)
    # 300 samples in 60 dimensions know a mean to 0.36; shares of 30,000 samples are known to 0.002.
    assert_matched(model, weights, means, means_within=0.8, weights_within=0.01)


def test_many_columns_form_no_covariance():
    x, _, weights, means, variances = draw(3000, d=400, separation=8.0)
    model = GaussianMixture(4, route="moments", random_state=0).fit(x)
    assert model.diagnostics_.spectrum.size == 4  # the leading ones are all there is
    assert_recovered(model, weights, means, variances, len(x))


def test_weights_are_repetitions():
    x, *_ = draw(8000)
    repeats = np.random.default_rng(1).integers(0, 3, 8000)
    repeated = np.repeat(x, repeats, axis=0)
    for refine in (None, "em", "one-step"):
        options = {"route": "moments", "refine": refine, "random_state": 0, "tol": 1e-9}
        first = GaussianMixture(4, **options).fit(x, sample_weight=repeats)
        second = GaussianMixture(4, **options).fit(repeated)
        np.testing.assert_allclose(first.weights_, second.weights_, atol=1e-6)
        np.testing.assert_allclose(first.means_, second.means_, atol=1e-5)  # EM stops within this of its end
        np.testing.assert_allclose(first.covariances_, second.covariances_, atol=1e-5)


def test_partial_fit_does_not_depend_on_the_chunks():
    x, _, weights, means, _ = draw()
    found = []
    for size in (20_000, 7000, 999):
        model = GaussianMixture(4, random_state=0)
        for start in range(0, len(x), size):
            model.partial_fit(x[start : start + size])
        found.append(model)
    for other in found[1:]:
        np.testing.assert_array_equal(found[0].means_, other.means_)
        np.testing.assert_array_equal(found[0].covariances_, other.covariances_)
    pure = GaussianMixture(4, refine=None, random_state=0).fit(x)
    # 8 of 10 directions, learned from 5,000 rows, miss little: a tenth of the sampling error of 0.04.
    np.testing.assert_allclose(found[0].means_, pure.means_, atol=0.01)
    assert "one pass" in found[0].diagnostics_.method
    assert_matched(found[0], weights, means, means_within=0.5, weights_within=0.03)  # 0.2 and 0.01 found
    assert GaussianMixture(4, random_state=0).fit(x).partial_fit(x[:9000]).diagnostics_.details["n_samples"] == 9000


def test_a_stream_begins_quietly_and_weighs():
    x, *_ = draw()
    model = GaussianMixture(4, "tied_spherical", random_state=0).partial_fit(x[:100])  # too few to judge: no warning
    assert model.means_.shape == (4, 10)
    with pytest.raises(AttributeError, match="partial_fit") as caught:
        GaussianMixture(4, route="views").partial_fit(x)
    assert "three views" in str(caught.value.__cause__)
    with pytest.raises(ValueError, match="no noise space|larger than n_features"):
        GaussianMixture(11).partial_fit(x)
    repeats = np.random.default_rng(1).integers(0, 3, len(x))
    first = GaussianMixture(4, random_state=0).partial_fit(x, sample_weight=repeats)
    second = GaussianMixture(4, random_state=0).partial_fit(np.repeat(x, repeats, axis=0))
    np.testing.assert_allclose(first.means_, second.means_, atol=0.01)  # other first rows, other basis


def test_a_stream_of_axis_aligned_gaussians_keeps_the_moments_of_products():
    rng = np.random.default_rng(0)
    d = 10
    means, deviations = 5 / np.sqrt(2 * d) * rng.standard_normal((4, d)), rng.uniform(0.7, 1.3, (4, d))
    labels = rng.choice(4, 20_000, p=WEIGHTS)
    x = means[labels] + deviations[labels] * rng.standard_normal((20_000, d))
    models = []
    for size in (20_000, 777):
        model = GaussianMixture(4, "diag", random_state=0)
        for start in range(0, len(x), size):
            model.partial_fit(x[start : start + size])
        models.append(model)
    np.testing.assert_array_equal(models[0].means_, models[1].means_)
    np.testing.assert_array_equal(models[0].covariances_, models[1].covariances_)
    assert models[0].diagnostics_.method == "completed moments, one pass, no likelihood steps"
    # The moment estimate's own error: four times that of labelled samples, 0.08 for a mean of the lightest component.
    assert_matched(models[0], WEIGHTS, means, means_within=0.3, weights_within=0.02)
    assert np.abs(np.sqrt(models[0].covariances_) / deviations - 1).mean() < 0.06  # 0.03 found, 0.25 if shuffled
    assert GaussianMixture(4, "diag").partial_fit(x[:10]).diagnostics_.method == "waiting for more samples"
    one = GaussianMixture(1, "diag").partial_fit(x)
    np.testing.assert_allclose(one.means_[0], x.mean(axis=0), atol=1e-10)
    np.testing.assert_allclose(one.covariances_[0], x.var(axis=0), rtol=1e-8)


@pytest.mark.parametrize("kind", ["full", "tied"])
def test_a_stream_of_other_covariances_gives_spheres_and_says_so(kind):
    x, *_ = draw()
    spheres = GaussianMixture(4, random_state=0).partial_fit(x)
    with pytest.warns(MomentWarning, match="has no moment estimate: these are the spheres"):
        model = GaussianMixture(4, kind, random_state=0).partial_fit(x)
    assert model.diagnostics_.method.startswith("spherical moments")
    np.testing.assert_array_equal(model.means_, spheres.means_)
    whole = spheres.covariances_[:, None, None] * np.eye(10)
    expected = whole if kind == "full" else np.tensordot(spheres.weights_, whole, axes=1)
    np.testing.assert_allclose(model.covariances_, expected)


def test_a_stream_keeps_to_its_options():
    x, *_ = draw(500)
    model = GaussianMixture(4, random_state=0).partial_fit(x)
    for changed, kept in (
        ({"covariance_type": "diag"}, "covariance_type='spherical'"),
        ({"n_components": 3}, "n_components=4"),
    ):
        with pytest.raises(ValueError, match=f"moments kept so far, which are for {kept}"):
            GaussianMixture(4, random_state=0).partial_fit(x).set_params(**changed).partial_fit(x)
    assert model.partial_fit(x).diagnostics_.details["n_samples"] == 1000


def test_a_source_is_as_good_as_an_array():
    x, *_ = draw()
    whole = GaussianMixture(4, random_state=0).fit(x)
    for source in (np.array_split(x, 7), lambda: iter(np.array_split(x, 3)), as_dense_source(x, 1000)):
        model = GaussianMixture(4, random_state=0).fit(source)
        np.testing.assert_allclose(model.means_, whole.means_, atol=1e-5)  # single precision sums in other blocks
        assert model.n_features_in_ == 10
    with pytest.raises(ValueError, match="partial_fit"):
        GaussianMixture(4).fit(iter(np.array_split(x, 3)))


def test_same_seed_same_result_and_the_data_are_left_alone():
    x, *_ = draw(1000, separation=2.0)  # so close that a search with other seeds ends elsewhere
    before = x.copy()
    first, second = (GaussianMixture(4, random_state=3).fit(x) for _ in range(2))
    np.testing.assert_array_equal(first.means_, second.means_)
    np.testing.assert_array_equal(x, before)
    np.testing.assert_array_equal(first.sample(5)[0], second.sample(5)[0])


def test_single_precision_and_large_offsets():
    x, *_ = draw(30_000)
    double = GaussianMixture(4, random_state=0).fit(x)
    single = GaussianMixture(4, random_state=0).fit(x.astype(np.float32))
    np.testing.assert_allclose(single.means_, double.means_, atol=1e-4)
    far = GaussianMixture(4, random_state=0).fit(x + 1e6)
    np.testing.assert_allclose(far.means_ - 1e6, double.means_, atol=1e-4)
    tiny = GaussianMixture(4, random_state=0).fit(1e-9 * x)
    np.testing.assert_allclose(1e9 * tiny.means_, double.means_, atol=1e-4)


@pytest.mark.parametrize("kind", TYPES)
def test_constant_and_duplicated_columns(kind):
    x, labels, *_ = draw(1000, k=2)
    odd = np.column_stack([x, np.full(1000, 7.0), x[:, 0]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MomentWarning)
        model = GaussianMixture(2, kind, random_state=0).fit(odd)
    assert np.isfinite(model.score(odd))
    np.testing.assert_allclose(model.means_[:, 10], 7.0)
    # As good as without these columns, where hardly any are mistaken.
    assert (model.predict(odd) == labels).mean() > 0.9


@pytest.mark.parametrize("kind", TYPES)
def test_one_component_is_mean_and_covariance(kind):
    x, *_ = draw(500)
    model = GaussianMixture(1, kind).fit(x)
    covariance = np.cov(x.T, bias=True)
    expected = {
        "spherical": np.array([np.trace(covariance) / 10]),
        "tied_spherical": np.trace(covariance) / 10,
        "diag": np.diag(covariance)[None],
        "tied": covariance,
        "full": covariance[None],
    }[kind]
    np.testing.assert_allclose(model.covariances_, expected, rtol=1e-9)
    np.testing.assert_allclose(model.means_[0], x.mean(axis=0))
    assert model.weights_.tolist() == [1.0]


@pytest.mark.parametrize("kind", TYPES)
def test_as_many_rows_as_components(kind):
    x, *_ = draw(4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MomentWarning)
        model = GaussianMixture(4, kind, random_state=0).fit(x)
    assert np.isfinite(model.score(x))
    np.testing.assert_allclose(model.weights_.sum(), 1)


def test_rows_that_are_all_alike():
    with pytest.warns(MomentWarning):
        model = GaussianMixture(2, random_state=0).fit(np.ones((40, 3)))
    assert np.isfinite(model.score(np.ones((40, 3))))
    np.testing.assert_allclose(model.means_[0], 1.0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_components": 0}, "n_components must be a positive integer"),
        ({"n_components": 2.5}, "n_components must be a positive integer"),
        ({"covariance_type": "round"}, "covariance_type must be one of"),
        ({"method": "magic"}, "method must be one of"),
        ({"refine": "gibbs"}, "refine must be one of"),
        ({"max_iter": 0}, "max_iter must be a positive integer"),
        ({"tol": -1.0}, "tol must be a finite number"),
        ({"variance_floor": 0.0}, "variance_floor must be positive"),
        ({"refine": "one-step", "covariance_type": "full"}, "one-step"),
        ({"route": "views", "covariance_type": "diag"}, "rotates"),
        ({"random_state": -1}, "random_state"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ValueError, match=message):
        GaussianMixture(**{"n_components": 2, **options}).fit(np.random.default_rng(0).standard_normal((50, 4)))


def test_bad_data():
    x, *_ = draw(100)
    with pytest.raises(ValueError, match="n_samples=3 is smaller than n_components=4"):
        GaussianMixture(4).fit(x[:3])
    with pytest.raises(ValueError, match="NaN"):
        GaussianMixture(2).fit(np.where(np.arange(10) == 2, np.nan, x))
    with pytest.raises(ValueError, match="sample_weight must have shape"):
        GaussianMixture(2).fit(x, sample_weight=np.ones(3))
    with pytest.raises(ValueError, match="n_samples=1 is smaller than n_components=2"):
        GaussianMixture(2).fit(x, sample_weight=np.eye(100)[0])
    for scale in (1e120, 1e-120):
        with pytest.raises(ValueError, match="third powers are out of range: divide X by"):
            GaussianMixture(2).fit(scale * x)
    with pytest.raises(ValueError, match="zero for every sample"):
        GaussianMixture(2).fit(x, sample_weight=np.zeros(100))
    model = GaussianMixture(2, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MomentWarning)
        model.fit(x)
    with pytest.raises(ValueError, match="features"):
        model.predict(x[:, :5])
    with pytest.raises(ValueError, match="n_samples must be"):
        model.sample(0)


def test_too_many_components_are_announced():
    rng = np.random.default_rng(0)
    k, d = 11, 40
    means = 6 / np.sqrt(2 * d) * rng.standard_normal((k, d))
    weights = np.arange(1, k + 1) / np.arange(1, k + 1).sum()
    x = means[rng.choice(k, 20_000, p=weights)] + rng.standard_normal((20_000, d))
    with pytest.warns(MomentWarning, match="of 12 components explain next to nothing"):
        GaussianMixture(k + 1, random_state=0).fit(x)
    right = GaussianMixture(k, random_state=0).fit(x)
    assert right.diagnostics_.ok
    # 300 samples in 40 dimensions know a mean to 0.37; shares of 20,000 are known to 0.0035.
    assert_matched(right, weights, means, means_within=0.7, weights_within=0.015)


@pytest.mark.parametrize("rows", [np.full((30, 3), 2.5), np.zeros((30, 3)), np.full((1, 3), 2.5)])
def test_one_component_of_a_stream_that_does_not_vary(rows):
    model = GaussianMixture(1).partial_fit(rows)
    assert np.array_equal(model.means_, rows[:1])
    assert (model.covariances_ > 0).all()
    assert np.isfinite(model.score_samples(rows)).all()


@pytest.mark.parametrize("kind", TYPES)
def test_large_data_that_follow_the_model_need_no_search_unless_one_is_asked_for(kind, monkeypatch):
    monkeypatch.setitem(EFFORTS, "thorough", replace(EFFORTS["thorough"], n_finalists=2, patience=2))
    x, *_ = draw(d=6, k=3, separation=8.0, differ=kind == "spherical")
    fits = {effort: GaussianMixture(3, kind, effort=effort, random_state=0).fit(x) for effort in ("auto", "thorough")}
    assert "starts" not in fits["auto"].diagnostics_.details
    assert len(fits["thorough"].diagnostics_.details["starts"]) > 5
    assert fits["auto"].score(x) > fits["thorough"].score(x) - 1e-4


@pytest.mark.parametrize("kind", ["full", "tied"])
def test_spheres_that_fall_behind_clusters_are_not_trusted(kind):
    """Long clusters side by side: the spectrum shows two components, and spheres cut both of them across."""
    rng = np.random.default_rng(0)
    long = rng.standard_normal((20_000, 6)) * [20, 1, 1, 1, 1, 1]
    x = long + np.outer(rng.integers(2, size=20_000), [0.0, 8, 0, 0, 0, 0])
    model = GaussianMixture(2, kind, random_state=0).fit(x)
    assert np.abs(model.means_[0] - model.means_[1])[1] > 7
    assert np.abs(model.means_[0] - model.means_[1])[0] < 1


def spheres(k, d, n, separation, weights=None, seed=0):
    rng = np.random.default_rng(seed)
    means = separation / np.sqrt(2 * d) * rng.standard_normal((k, d))
    return means[rng.choice(k, n, p=weights)] + rng.standard_normal((n, d))


def test_a_component_too_light_to_stand_out_needs_no_search():
    weights = np.append(np.full(19, 0.994 / 19), 0.006)
    model = GaussianMixture(20, random_state=0).fit(spheres(20, 60, 20_000, 8.0, weights))
    assert model.diagnostics_.method.startswith("moments, then ")
    assert model.diagnostics_.suggested_components is None  # the spectrum shows 19, and knows of no light ones
    assert model.weights_[-1] == pytest.approx(0.006, rel=0.3)


@pytest.mark.parametrize("asked", [6, 9])
def test_all_rows_are_asked_whether_fewer_components_would_do(asked, monkeypatch):
    """Of 300 rows BIC sees five components; of 8,000, six."""
    small = replace(POLICY, sample_rows=300, sample_rows_each=1, sample_numbers=0)
    monkeypatch.setattr("odeco.models.gaussian_mixture.choice.POLICY", small)
    monkeypatch.setattr("odeco.models.gaussian_mixture.refine.is_trusted", lambda *_, **__: False)
    x = spheres(6, 20, 8000, 4.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        counted = GaussianMixture(asked, random_state=0).fit(x).diagnostics_.suggested_components
        monkeypatch.setattr("odeco.models.gaussian_mixture.refine._recounted", lambda found, whole: found)
        of_few = GaussianMixture(asked, random_state=0).fit(x).diagnostics_.suggested_components
        elsewhere = GaussianMixture(asked, random_state=0).fit(out_of_core(x)).diagnostics_.suggested_components
    assert (counted, of_few < 6) == (6, True)
    assert elsewhere is None  # a part of the rows does not tell, and more passes are dear


def test_spheres_that_cover_two_components_or_a_few_rows_are_not_round():
    rng = np.random.default_rng(0)
    means = np.array([[0.0, 0], [8, 0], [0, 8], [3, 8]])
    z = means[rng.integers(4, size=2000)] + rng.standard_normal((2000, 2))
    rows = ProjectedRows(z, (z * z).sum(axis=1) + rng.chisquare(3, 2000), None)  # five columns in all
    found = GaussianParameters(np.full(4, 0.25), means, np.ones(4), "spherical")
    assert are_round(rows, found, 5)
    assert not are_round(rows.take(np.arange(20)), found, 5)
    merged = np.array([[0.0, 0], [8, 0], [1.5, 8]])  # the last one covers two
    variances = np.array([1.0, 1, 1 + 1.5**2 / 5])
    assert not are_round(rows, GaussianParameters(np.array([0.25, 0.25, 0.5]), merged, variances, "spherical"), 5)
