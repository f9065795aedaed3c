"""MultiViewMixture: recovery, all kinds of views, streams, weights, and what it says of bad input."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from odeco import MomentWarning, MultiViewMixture
from odeco.exceptions import MomentError
from odeco.metrics import match_components

K, WIDTHS = 4, (5, 7, 6)


def draw(n: int, seed: int = 0, widths: tuple[int, ...] = WIDTHS, noise: float = 1.0, k: int = K):
    """Gaussian views with means of size 2."""
    rng = np.random.default_rng(seed)
    weights = np.sort(rng.dirichlet(np.full(k, 5.0)))[::-1]
    means = [2 * rng.standard_normal((k, d)) for d in widths]
    h = rng.choice(k, size=n, p=weights)
    return [mean[h] + noise * rng.standard_normal((n, mean.shape[1])) for mean in means], h, means, weights


def error(model: MultiViewMixture, means: list[np.ndarray]) -> float:
    return match_components(np.hstack(model.means_).T, np.hstack(means).T).largest


def mixed_views(n: int, seed: int = 0):
    """Words, answers, counts, a category and measurements of the same samples."""
    rng = np.random.default_rng(seed)
    h = rng.choice(K, size=n, p=[0.4, 0.3, 0.2, 0.1])
    words, answers = rng.dirichlet(np.full(60, 0.2), K), rng.uniform(0.1, 0.9, (K, 8))
    rates, shares, means = rng.gamma(2.0, 2.0, (K, 5)), rng.dirichlet(np.ones(5), K), rng.standard_normal((K, 4))
    views = [
        sparse.csr_array(np.array([rng.multinomial(20, words[i]) for i in h])),
        (rng.random((n, 8)) < answers[h]).astype(int),
        rng.poisson(rates[h]),
        np.eye(5)[[rng.choice(5, p=shares[i]) for i in h]],
        means[h] + 0.5 * rng.standard_normal((n, 4)),
    ]
    return views, h, [20 * words, answers, rates, shares, means]


@pytest.mark.parametrize("refine", [None, "least-squares", "one-step", "auto"])
def test_recovers_weights_and_means_of_every_view(refine):
    views, h, means, weights = draw(20_000)
    model = MultiViewMixture(K, refine=refine, random_state=0).fit(views)
    # Measured at eight seeds: 0.16 by the theorem at most, 0.13 after EM; means are 2 sqrt(18) = 8.5 long.
    bound = 0.3
    matching = match_components(np.hstack(model.means_).T, np.hstack(means).T)
    assert matching.largest < bound
    assert np.abs(model.weights_[matching.permutation] - weights).max() < 0.02
    shuffled = [model.means_[0][::-1], *model.means_[1:]]  # the components of one view in another order
    assert match_components(np.hstack(shuffled).T, np.hstack(means).T).largest > 3 * bound
    assert np.mean(matching.permutation[h] == model.predict(views)) > 0.99
    assert [mean.shape for mean in model.means_] == [(K, d) for d in WIDTHS]
    assert np.all(np.diff(model.weights_) <= 0)
    assert model.diagnostics_.ok
    assert model.diagnostics_.suggested_components == K


def test_error_falls_as_one_over_the_root_of_n():
    sizes = [2_000, 8_000, 32_000, 128_000]
    errors = []
    for n in sizes:
        runs = [draw(n, seed) for seed in range(8)]
        errors.append(
            np.median([error(MultiViewMixture(K, refine=None, random_state=0).fit(v), m) for v, _, m, _ in runs])
        )
    slope = np.polyfit(np.log(sizes), np.log(errors), 1)[0]
    assert -0.65 < slope < -0.35  # -1/2; the spread of four medians of eight seeds, measured, is 0.06


@pytest.mark.parametrize("seed", range(4))
def test_least_squares_where_the_theorem_alone_is_too_noisy(seed):
    """Ten components in views of twelve columns: the theorem misses some of them, or has no answer at all."""
    views, _, means, _ = draw(20_000, seed, widths=(12, 12, 12), noise=2.8, k=10)
    model = MultiViewMixture(10, refine="least-squares", random_state=0).fit(views)
    # Measured at 20 seeds: at most 2.9, after EM 1.0; means are 12 long, and the theorem alone errs by 2 to 800.
    assert error(model, means) < 4.0
    full = MultiViewMixture(10, random_state=0).fit(views)
    assert error(full, means) < 1.5
    assert "least squares" in full.diagnostics_.method


def test_every_kind_of_view_at_once():
    views, h, means = mixed_views(8_000)
    model = MultiViewMixture(K, random_state=0).fit(views)
    assert model.likelihoods_ == ("multinomial", "bernoulli", "poisson", "multinomial", "gaussian")
    matching = match_components(np.hstack(model.means_).T, np.hstack(means).T)
    assert np.mean(matching.permutation[h] == model.predict(views)) > 0.99
    for found, mean in zip(model.means_, means, strict=True):
        # Five standard errors of a mean of a tenth of the samples, of variance at most the largest mean (or 1).
        assert np.abs(found[matching.permutation] - mean).max() < 5 * np.sqrt(max(mean.max(), 1) / 800)
    assert sorted(t for group in model.groups_ for t in group) == [0, 1, 2, 3, 4]
    trace = model.diagnostics_.details["refinement"].values
    assert np.all(np.diff(trace) > -1e-9)  # EM never falls
    drawn, labels = model.sample(500)
    assert [block.shape[1] for block in drawn] == [60, 8, 5, 5, 4]
    assert sparse.issparse(drawn[0])
    assert np.array_equal(drawn[3].sum(axis=1), np.ones(500))
    assert np.mean(model.predict(drawn) == labels) > 0.97


def test_em_never_falls_even_where_it_takes_long():
    views, *_ = draw(600, noise=3.0)
    views[1] = (views[1] > 0).astype(float)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MomentWarning)
        model = MultiViewMixture(K, random_state=0, max_iter=60, tol=0).fit(views)
    trace = model.diagnostics_.details["refinement"].values
    assert len(trace) > 5
    assert np.all(np.diff(trace) > -1e-9)


def test_the_moments_need_no_rival_where_em_gains_no_more_than_sampling_errors_explain(monkeypatch):
    monkeypatch.setattr("odeco.models.multiview.search.clusters", None)  # no other start is made
    views, _, means, weights = draw(1_000)
    model = MultiViewMixture(K, random_state=0).fit(views)
    assert model.diagnostics_.method == f"moments, least squares, then {model.n_iter_} EM steps"
    assert error(model, means) < 2 * np.sqrt(sum(WIDTHS) / (1_000 * weights.min()))  # twice that of means of noise
    values = model.diagnostics_.details["refinement"].values
    assert model.n_iter_ == values.size
    assert np.all(np.diff(values) > 0)
    once = MultiViewMixture(K, random_state=0, effort="quick").fit(views)  # the same steps in one run
    np.testing.assert_array_equal(once.diagnostics_.details["refinement"].values, values)
    np.testing.assert_array_equal(once.weights_, model.weights_)


def test_moments_far_from_a_maximum_have_rivals():
    views = [np.exp(view) for view in draw(1_000)[0]]  # no normal distribution has such tails
    model = MultiViewMixture(K, random_state=0).fit(views)
    assert "starts" in model.diagnostics_.method


@pytest.mark.parametrize("wide", [False, True])
def test_sparse_views_give_what_dense_ones_give(wide):
    views, _, _, _ = draw(3_000, widths=(400, 300, 300) if wide else WIDTHS)
    views = [np.where(np.abs(v) < 1, 0.0, v) for v in views]
    dense = MultiViewMixture(K, refine=None, random_state=0).fit(views)
    thin = MultiViewMixture(K, refine=None, random_state=0).fit([sparse.csr_array(v) for v in views])
    np.testing.assert_allclose(np.hstack(thin.means_), np.hstack(dense.means_), atol=1e-6)


def test_no_square_of_a_wide_view_is_formed():
    """100,000 columns: their square would take 80 GB."""
    rng = np.random.default_rng(0)
    n, d, k = 4_000, 100_000, 3
    h = rng.integers(k, size=n)
    views = []
    for _ in range(3):
        words = (h[:, None] * 300 + rng.integers(300, size=(n, 20))) * (rng.random((n, 20)) < 0.7)
        rows = np.repeat(np.arange(n), 20)
        views.append(sparse.coo_array((np.ones(words.size), (rows, words.ravel())), shape=(n, d)).tocsr())
    model = MultiViewMixture(k, random_state=0).fit(views)
    table = np.array([[np.sum((h == i) & (model.predict(views) == j)) for j in range(k)] for i in range(k)])
    assert table.max(axis=1).sum() > 0.99 * n


def test_sample_weight_is_repetition():
    views, _, _, _ = draw(2_000)
    times = np.random.default_rng(1).integers(0, 3, 2_000)
    weighted = MultiViewMixture(K, random_state=0, tol=1e-9).fit(views, sample_weight=times.astype(float))
    repeated = MultiViewMixture(K, random_state=0, tol=1e-9).fit([np.repeat(v, times, axis=0) for v in views])
    np.testing.assert_allclose(np.hstack(weighted.means_), np.hstack(repeated.means_), atol=1e-6)
    np.testing.assert_allclose(weighted.weights_, repeated.weights_, atol=1e-8)


def test_samples_of_weight_zero_are_not_there():
    views, *_ = draw(100)
    with pytest.raises(ValueError, match="n_samples=1 is smaller"):
        MultiViewMixture(2).fit(views, sample_weight=np.eye(100)[0])
    for weights in (-np.ones(100), np.ones(3), np.full(100, np.nan), np.zeros(100)):
        with pytest.raises(ValueError, match="sample_weight"):
            MultiViewMixture(2).fit(views, sample_weight=weights)


def test_sources_and_streams():
    views, _, means, _ = draw(12_000)

    def batches():
        return ([v[i : i + 1000] for v in views] for i in range(0, 12_000, 1000))

    whole = MultiViewMixture(K, refine=None, random_state=0).fit(views)
    for source in (batches, list(batches()), [(b, np.ones(1000)) for b in batches()]):
        model = MultiViewMixture(K, refine=None, random_state=0).fit(source)
        np.testing.assert_allclose(np.hstack(model.means_), np.hstack(whole.means_), atol=1e-8)
    with pytest.raises(ValueError, match="read only once"):
        MultiViewMixture(K).fit(batches())
    streams = []
    for size in (12_000, 700):
        model = MultiViewMixture(K, random_state=0, basis_size=2000)
        for i in range(0, 12_000, size):
            model.partial_fit([v[i : i + size] for v in views])
        streams.append(np.hstack(model.means_))
    np.testing.assert_allclose(streams[0], streams[1], atol=1e-8)
    assert model.diagnostics_.n_passes == 1
    whole = MultiViewMixture(K, refine="least-squares", random_state=0).fit(views)
    assert error(model, means) < 0.4  # the moment estimate, as in the test above at 20,000 samples
    assert match_components(streams[0].T, np.hstack(whole.means_).T).largest < 0.1  # directions of 2,000 samples


def test_a_stream_says_when_it_does_not_know_yet():
    views, *_ = draw(40)
    model = MultiViewMixture(K, random_state=0).partial_fit([v[:2] for v in views])
    assert not model.diagnostics_.ok
    assert "yet" in model.diagnostics_.advice[0]
    assert model.predict_proba(views) == pytest.approx(np.full((40, K), 1 / K))


def test_same_seed_same_result_and_clone():
    views, *_ = draw(2_000)
    model = MultiViewMixture(K, random_state=3)
    first, second = clone(model).fit(views), clone(model).fit(views)
    assert all(np.array_equal(a, b) for a, b in zip(first.means_, second.means_, strict=True))
    assert MultiViewMixture().get_params()["n_components"] == 1


def test_nothing_of_the_callers_is_changed():
    views, *_ = draw(500)
    before = [v.copy() for v in views]
    for v in views:
        v.setflags(write=False)
    MultiViewMixture(2, random_state=0).fit(views)
    assert all(np.array_equal(a, b) for a, b in zip(views, before, strict=True))


def test_one_component_is_the_mean():
    views, *_ = draw(300)
    model = MultiViewMixture(1).fit(views)
    np.testing.assert_allclose(model.means_[0][0], views[0].mean(axis=0), atol=1e-10)
    assert model.weights_ == pytest.approx([1.0])


def test_views_with_fewer_columns_than_components_fall_back_and_say_so():
    views, *_ = draw(2_000, widths=(5, 2, 6))
    with pytest.warns(MomentWarning, match=r"view 1 has 2 columns that vary.*k-means"):
        model = MultiViewMixture(K, random_state=0).fit(views)
    assert "k-means" in model.diagnostics_.method
    with pytest.raises(MomentError, match="view 1"):
        MultiViewMixture(K, refine=None).fit(views)


def test_one_direction_less_than_components_is_enough():
    views, _, means, _ = draw(20_000, widths=(K - 1, K - 1, K - 1))
    assert error(MultiViewMixture(K, random_state=0).fit(views), means) < 0.5


def test_a_view_of_zeros():
    views, *_ = draw(1_000)
    views[2] = np.zeros_like(views[2])
    with pytest.raises(MomentError, match="view 2 has only constant columns"):
        MultiViewMixture(K, refine=None).fit(views)
    with pytest.warns(MomentWarning, match="view 2 has only constant columns"):
        model = MultiViewMixture(K, random_state=0).fit(views)
    assert np.isfinite(model.predict_proba(views)).all()


def test_constant_and_duplicated_columns_do_no_harm():
    views, h, _, _ = draw(5_000)
    views[0] = np.hstack([views[0], np.full((5_000, 1), 7.0)])
    views[1] = np.hstack([views[1], views[1][:, :2]])
    model = MultiViewMixture(K, random_state=0).fit(views)
    assert model.means_[0][:, -1] == pytest.approx(np.full(K, 7.0))
    table = np.array([[np.sum((h == i) & (model.predict(views) == j)) for j in range(K)] for i in range(K)])
    assert table.max(axis=1).sum() > 0.99 * 5_000


def test_too_many_components_are_announced():
    views, *_ = draw(3_000)
    with pytest.warns(MomentWarning, match="stand out|rank 4, below"):  # which, noise decides
        MultiViewMixture(5, random_state=0, max_iter=3).fit([v[:, :5] for v in views])


def _ragged():
    views, *_ = draw(50)
    return [views[0], views[1][:-1], views[2]]


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (_ragged(), r"same rows, one per sample, got \[50, 49, 50\]"),
        (draw(50)[0][:2], "X has 2 views"),
        (np.zeros((10, 3)), r"list of three or more views.*shape \(10, 3\)"),
        ([np.full((5, 2), np.nan)] * 3, "view 0 contains NaN"),
        ([np.zeros((5, 2)), np.zeros(5), np.zeros((5, 2))], "view 1 must be two-dimensional"),
        ([np.zeros((0, 2))] * 3, "0 samples"),
        ([np.array([["a"]])] * 3, "view 0 must hold numbers, and holds the text 'a'"),
        ([np.zeros((2, 2))] * 3, "n_samples=2 is smaller than n_components=3"),
        ("abc", "list of three or more views"),
        ([], "list of three or more views"),
    ],
)
def test_bad_views(X, message):
    with pytest.raises(ValueError, match=message):
        MultiViewMixture(3).fit(X)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_components": 0}, "n_components must be a positive integer, got 0"),
        ({"n_components": 2.5}, "n_components"),
        ({"refine": "newton"}, "refine must be one of"),
        ({"likelihood": "cauchy"}, "likelihood must be 'auto' or one of"),
        ({"likelihood": ["gaussian"]}, "1 entries for 3 views"),
        ({"likelihood": "poisson"}, "view 0 must hold no negative numbers"),
        ({"likelihood": "bernoulli"}, "view 0 must hold only 0 and 1"),
        ({"method": "magic"}, "method must be one of"),
        ({"tol": -1.0}, "tol"),
        ({"max_iter": 0}, "max_iter"),
        ({"smoothing": -1}, "smoothing"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ValueError, match=message):
        MultiViewMixture(**{"n_components": 2, **options}).fit(draw(50)[0])


def test_predict_wants_the_views_of_the_fit():
    views, *_ = draw(200)
    model = MultiViewMixture(2, random_state=0).fit(views)
    with pytest.raises(ValueError, match=r"views of \(7, 5, 6\) columns.*\(5, 7, 6\)"):
        model.predict([views[1], views[0], views[2]])
    with pytest.raises(ValueError, match="not fitted"):
        MultiViewMixture(2).predict(views)


def test_coherence_is_reported():
    views, *_ = draw(5_000)
    details = MultiViewMixture(K, random_state=0).fit(views).diagnostics_.details
    for value, width in zip(details["coherence"], WIDTHS, strict=True):
        assert (K - 1) / width - 1e-9 <= value <= 1 + 1e-9
    assert all(np.isfinite(value) and value >= 1 for value in details["view_conditions"])


@pytest.mark.filterwarnings("ignore::odeco.MomentWarning")
@pytest.mark.parametrize("thin", [False, True])
def test_a_view_without_words_says_nothing(thin):
    words = np.random.default_rng(0).poisson(1.0, (40, 5)).astype(float)
    views = [words, words[:, ::-1].copy(), np.zeros((40, 3))]
    views = [sparse.csr_array(view) for view in views] if thin else views
    model = MultiViewMixture(2, likelihood="multinomial", smoothing=0.0, random_state=0).fit(views)
    assert not model.means_[2].any()
    assert np.isfinite(model.bic(views))
    np.testing.assert_allclose(model.predict_proba(views).sum(axis=1), 1.0)
