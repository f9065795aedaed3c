"""GaussianHMM and PoissonHMM: recovery, hmmlearn's manners, missing entries, bad input."""

from __future__ import annotations

import re
import warnings
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from odeco import GaussianHMM, MomentWarning, PoissonHMM
from odeco.exceptions import MomentError
from odeco.metrics import match_components
from odeco.models.hmm import stream as hmm_stream
from odeco.simulate import markov_chain

TYPES = ["spherical", "diag", "full", "tied"]
TRANSMAT = np.array([[0.8, 0.1, 0.1], [0.1, 0.7, 0.2], [0.2, 0.2, 0.6]])
MEANS = np.array([[0.0, 0.0, 0.0], [2.0, 0.0, 1.0], [-1.0, 2.0, 0.0]])
DEVIATIONS = np.array([[0.5, 1.0, 0.7], [1.0, 0.4, 1.0], [0.8, 0.8, 0.3]])


def draw(kind: str, n: int, seed: int = 0) -> np.ndarray:
    """Sequences whose states differ in their means, in their deviations alone, or in both."""
    rng = np.random.default_rng(seed)
    states = markov_chain(n, TRANSMAT, random_state=rng)
    noise = rng.standard_normal((n, 3))
    means = 0 if kind == "variances" else MEANS[states]
    return means + noise * (2 * DEVIATIONS[states] if kind != "means" else 0.6)


@pytest.fixture(scope="module")
def x() -> np.ndarray:
    return draw("both", 12_000)


@pytest.fixture(scope="module")
def fitted(x: np.ndarray) -> GaussianHMM:
    return GaussianHMM(3, random_state=0).fit(x)


@pytest.mark.parametrize("kind", ["means", "variances", "both"])
def test_states_are_recovered(kind: str) -> None:
    model = GaussianHMM(3, random_state=0).fit(draw(kind, 30_000, seed=1))
    means = np.zeros((3, 3)) if kind == "variances" else MEANS
    deviations = np.full((3, 3), 0.6) if kind == "means" else 2 * DEVIATIONS
    found = np.hstack([model.means_, np.sqrt(model.covars_)])
    truth = np.hstack([means, deviations])
    order = match_components(found.T, truth.T).permutation
    # Standard errors: a deviation of at most 2 over sqrt(30,000 / 5), 0.026, and states are not seen; four of them.
    np.testing.assert_allclose(found[order], truth, atol=0.1)
    np.testing.assert_allclose(model.transmat_[np.ix_(order, order)], TRANSMAT, atol=0.06)
    assert np.abs(found[order[[1, 2, 0]]] - truth).max() > 0.1  # states that are shuffled are not recovered


def test_moments_alone_improve_with_the_data() -> None:
    errors = []
    for n in (10_000, 160_000):  # of fewer steps a variance of 0.36 may come out negative, which is an error
        runs = []
        for seed in range(3):
            model = GaussianHMM(3, refine=None, random_state=0).fit(draw("means", n, seed))
            runs.append(match_components(model.means_.T, MEANS.T).largest)
        errors.append(np.mean(runs))
    assert errors[1] < errors[0] / 2  # n^(-1/2) says 4, over three seeds


@pytest.mark.parametrize("kind", TYPES)
def test_peer_and_model_agree(kind: str, x: np.ndarray) -> None:
    pytest.importorskip("hmmlearn")
    model = GaussianHMM(3, covariance_type=kind, effort="quick", random_state=0, max_iter=20).fit(x[:3_000])
    shapes = {"spherical": (3,), "diag": (3, 3), "full": (3, 3, 3), "tied": (3, 3)}
    assert model.covars_.shape == shapes[kind]
    peer, lengths = model.to_hmmlearn(), [1_000, 1, 999]
    np.testing.assert_allclose(peer.covars_, model.covariance_matrices())
    y = x[3_000:5_000]
    assert model.score(y, lengths) == pytest.approx(peer.score(y, lengths), rel=1e-10)
    np.testing.assert_allclose(model.predict_proba(y, lengths), peer.predict_proba(y, lengths), atol=1e-8)
    np.testing.assert_array_equal(model.predict(y, lengths), peer.predict(y, lengths))
    if kind != "tied":  # hmmlearn counts the parameters of "tied" as one matrix too, but adds them differently
        assert model.aic(y) == pytest.approx(peer.aic(y), rel=1e-10)
    back = GaussianHMM.from_hmmlearn(peer)
    assert back.score(y) == pytest.approx(model.score(y), rel=1e-12)
    np.testing.assert_array_equal(back.covars_, model.covars_)


@pytest.mark.parametrize("kind", TYPES)
def test_the_objective_never_falls(kind: str, x: np.ndarray) -> None:
    model = GaussianHMM(3, covariance_type=kind, effort="quick", random_state=0, max_iter=30, tol=0).fit(x[:2_000])
    assert np.diff(model.monitor_.history).min() >= -1e-7


def test_one_state_is_the_mean_and_the_variance(x: np.ndarray) -> None:
    model = GaussianHMM(covars_prior=0.0).fit(x)
    np.testing.assert_allclose(model.means_[0], x.mean(axis=0))
    np.testing.assert_allclose(model.covars_[0], x.var(axis=0))
    np.testing.assert_array_equal(model.transmat_, [[1.0]])
    full = GaussianHMM(covariance_type="full", covars_prior=0.0).fit(x)
    np.testing.assert_allclose(full.covars_[0], np.cov(x.T, bias=True))


def test_units_and_offsets_of_the_columns_do_not_matter(x: np.ndarray, fitted: GaussianHMM) -> None:
    unit, offset = np.array([1e-4, 1.0, 1e5]), np.array([1e3, -5.0, 1e9])
    model = GaussianHMM(3, random_state=0).fit(x * unit + offset)
    # 1e9 / 1e5 in the last column leaves 12 digits; tol leaves 1e-6 nats per step.
    np.testing.assert_allclose((model.means_ - offset) / unit, fitted.means_, atol=1e-3)
    np.testing.assert_allclose(model.transmat_, fitted.transmat_, atol=1e-3)


@pytest.mark.parametrize("kind", TYPES)
def test_missing_entries_and_rows(kind: str, x: np.ndarray) -> None:
    rng = np.random.default_rng(5)
    holes = x[:6_000].copy()
    holes[rng.random(holes.shape) < 0.1] = np.nan
    holes[100:130] = np.nan
    model = GaussianHMM(3, covariance_type=kind, random_state=0, max_iter=40).fit(holes)
    whole = GaussianHMM(3, covariance_type=kind, random_state=0, max_iter=40).fit(x[:6_000])
    order = match_components(model.means_.T, whole.means_.T).permutation
    # A tenth of the entries: standard errors of 0.03 grow by a twentieth; the two samples share the rest.
    np.testing.assert_allclose(model.means_[order], whole.means_, atol=0.15)
    assert np.isfinite(model.score(holes))
    assert np.isfinite(model.predict_next(holes)).all()
    # Steps of which nothing is known change nothing at the end of a sequence.
    longer = np.vstack([x[:50], np.full((5, 3), np.nan)])
    assert model.score(longer) == pytest.approx(model.score(x[:50]), rel=1e-12)


def test_weights_are_repetitions(x: np.ndarray) -> None:
    parts = [x[:500], x[500:700], x[700:1500]]
    repeated = GaussianHMM(2, random_state=0).fit([*parts, parts[1], parts[1]])
    weighted = GaussianHMM(2, random_state=0).fit(parts, sequence_weight=[1, 3, 1])
    everything = [*parts, parts[1], parts[1]]
    # The starts differ (samples are of other sequences); the likelihood they lead to does not.
    assert weighted.score(everything[0]) == pytest.approx(repeated.score(everything[0]), rel=1e-3)
    np.testing.assert_allclose(weighted.means_, repeated.means_, atol=0.02)


def test_predict_next_does_not_look_ahead(x: np.ndarray, fitted: GaussianHMM) -> None:
    ahead = fitted.predict_next(x[:200])
    changed = x[:200].copy()
    changed[120:] += 3.0
    np.testing.assert_allclose(fitted.predict_next(changed)[:120], ahead[:120], atol=1e-12)
    assert ahead.shape == (200, 3)
    better = np.mean((ahead[:-1] - x[1:200]) ** 2) < np.mean((x[:200].mean(axis=0) - x[1:200]) ** 2)
    assert better


def test_the_same_seed_gives_the_same_model(x: np.ndarray) -> None:
    first, second = (GaussianHMM(3, random_state=5).fit(x[:1_000]) for _ in range(2))
    np.testing.assert_array_equal(first.means_, second.means_)


def test_states_come_in_the_order_of_their_stationary_probability(fitted: GaussianHMM) -> None:
    assert (np.diff(fitted.get_stationary_distribution()) <= 0).all()
    assert fitted.diagnostics_.ok
    assert fitted.diagnostics_.suggested_components == 3


@pytest.mark.filterwarnings("ignore:Baum-Welch has not converged:odeco.MomentWarning")
def test_nothing_of_the_caller_is_changed(x: np.ndarray) -> None:
    before = x[:200].copy()
    before[3, 1] = np.nan
    after = before.copy()
    GaussianHMM(2, covariance_type="full", random_state=0, max_iter=3).fit(after)
    np.testing.assert_array_equal(before, after)


def test_drawn_sequences_fit_the_model(fitted: GaussianHMM) -> None:
    observations, states = fitted.sample(20_000, random_state=1)
    assert observations.shape == (20_000, 3)
    for j in range(3):
        # Four standard errors of at most 2 / sqrt(20,000 / 5).
        np.testing.assert_allclose(observations[states == j].mean(axis=0), fitted.means_[j], atol=0.13)


# MomentEstimator


@pytest.mark.filterwarnings("ignore:correlation 3:odeco.MomentWarning")  # 2,500 steps do not show the third state
@pytest.mark.filterwarnings("ignore:the [0-9,]* steps so far:odeco.MomentWarning")  # enough of them come later
@pytest.mark.parametrize("refine", [None, "auto"])
def test_partial_fit_does_not_depend_on_the_division(
    x: np.ndarray, refine: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hmm_stream, "POLICY", replace(hmm_stream.POLICY, head_steps=2_500))
    parts = np.array_split(x[:6_000] if refine else draw("means", 24_000), 12)
    one, many = (GaussianHMM(3, refine=refine, random_state=0, max_iter=10) for _ in range(2))
    one.partial_fit(parts)
    for start, stop in [(0, 1), (1, 6), (6, 12)]:
        many.partial_fit(parts[start:stop])
    np.testing.assert_allclose(many.means_, one.means_, atol=1e-6)  # sums in another order, then ten passes
    np.testing.assert_allclose(many.transmat_, one.transmat_, atol=1e-6)
    kept = r"the first 2,\d\d\d steps, which are kept"
    exact = {
        None: r"moments \(Proposition 3.4\), of all 24,000 steps",
        "auto": rf"(k-means.*, of {kept}|.*moments.*, of all 6,000 steps), then \d+ Baum-Welch passes on {kept}",
    }
    assert re.fullmatch(exact[refine], one.diagnostics_.method)


def test_a_stream_waits_until_the_theorem_has_enough() -> None:
    """Not an error: more may come. `fit` has all there is, and refuses."""
    few = draw("both", 60)
    with pytest.raises(MomentError, match="refine='auto'"):
        GaussianHMM(3, refine=None, random_state=0).fit(few)
    model = GaussianHMM(3, refine=None, random_state=0)
    with pytest.warns(MomentWarning, match="the 60 steps so far do not determine the states"):
        model.partial_fit(few)
    assert model.diagnostics_.method == "waiting for more steps"
    np.testing.assert_allclose(model.means_, np.tile(few.mean(axis=0), (3, 1)))
    model.partial_fit(draw("means", 20_000))
    assert model.diagnostics_.method == "moments (Proposition 3.4)"


def test_what_the_theorem_needs_and_data_lack_is_named() -> None:
    rng = np.random.default_rng(3)
    hardly_any = rng.poisson(np.array([0.02, 3.0])[np.repeat(rng.integers(0, 2, 40), 5)])[:, None]
    for x, model, text in [
        (np.tile([[0.0], [1.0]], (100, 1)), GaussianHMM(3), "span 2 dimensions and 3 states need as many"),
        (np.array_split(draw("means", 200), 100), GaussianHMM(2), "no three steps"),
        (draw("both", 200), GaussianHMM(3), "variances are positive"),
        (hardly_any, PoissonHMM(2), "rates are positive"),
    ]:
        with pytest.raises(MomentError, match=text):
            model.set_params(refine=None, random_state=0).fit(x)


@pytest.mark.filterwarnings("ignore:1 of 3 components stand out:odeco.MomentWarning")
def test_the_start_that_won_is_named() -> None:
    """Independent steps, far apart: clusters are right, and neighbours say nothing. States of one centre: clusters see
    nothing, and moments are best; without a search, the theorem's own.
    """
    rng = np.random.default_rng(0)
    noise = rng.standard_normal((300, 1))
    apart = 50.0 * rng.integers(0, 3, (300, 1)) + noise
    assert GaussianHMM(3, random_state=0).fit(apart).diagnostics_.method.startswith("k-means, then")
    centred = GaussianHMM(3, random_state=0).fit(draw("variances", 20_000))
    assert centred.diagnostics_.method.startswith("moments (Proposition 3.4), then")
    quick = GaussianHMM(3, effort="quick", random_state=0).fit(draw("variances", 20_000))
    assert quick.diagnostics_.method.startswith("moments (Proposition 3.4), then")
    with pytest.warns(MomentWarning, match="no three steps"):
        pairs = GaussianHMM(2, random_state=0).fit(np.array_split(apart, 150))
    assert pairs.diagnostics_.method.startswith("k-means")


def test_partial_fit_is_fit_while_everything_is_kept(x: np.ndarray) -> None:
    parts = np.array_split(x[:900], 3)
    whole = GaussianHMM(2, random_state=0).fit(parts)
    stream = GaussianHMM(2, random_state=0)
    for part in parts:
        stream.partial_fit([part])
    np.testing.assert_allclose(stream.means_, whole.means_, atol=1e-12)
    stream.fit(parts)  # starts anew
    assert not hasattr(stream, "_stream")


# Bad input


def test_bad_options_are_named(x: np.ndarray) -> None:
    for options, text in [
        ({"covariance_type": "banded"}, "covariance_type"),
        ({"min_covar": 0.0}, "min_covar"),
        ({"covars_prior": -1.0}, "covars_prior"),
        ({"n_components": 0}, "n_components"),
        ({"refine": "restarts"}, "refine"),
        ({"max_iter": 0}, "max_iter"),
    ]:
        with pytest.raises(ValueError, match=text):
            GaussianHMM(**{"n_components": 2, **options}).fit(x[:100])


def test_bad_data_are_named(x: np.ndarray, fitted: GaussianHMM) -> None:
    model = GaussianHMM(2, random_state=0)
    infinite, empty = x[:50].copy(), x[:50].copy()
    infinite[3, 1], empty[:, 2] = np.inf, np.nan
    with pytest.raises(ValueError, match="infinity"):
        model.fit(infinite)
    with pytest.raises(ValueError, match=r"columns \[2\]"):
        model.fit(empty)
    with pytest.raises(ValueError, match="add up to 40"):
        model.fit(x[:50], [20, 20])
    with pytest.raises(ValueError, match="must hold numbers"):
        model.fit([["a", "b"], ["c", "d"]], lengths=[2])
    with pytest.raises(ValueError, match="2 features"):
        fitted.score(x[:10, :2])
    with pytest.raises(ValueError, match="n_components=5"):
        GaussianHMM(5).fit(x[:4])
    with pytest.raises(NotFittedError):
        clone(model).score(x)


def test_constant_data_get_an_answer_and_a_warning() -> None:
    with pytest.warns(MomentWarning, match=r"constant|dimensions"):
        model = GaussianHMM(2, random_state=0).fit(np.ones((50, 2)))
    np.testing.assert_allclose(model.means_, 1.0)
    assert np.isfinite(model.score(np.ones((5, 2))))
    assert np.isfinite(model.transmat_).all()


def test_sequences_too_short_for_triples(x: np.ndarray) -> None:
    for length, text in [(1, "no two steps"), (2, "no three steps")]:
        parts = np.array_split(x[: 300 * length], 300)
        with pytest.warns(MomentWarning, match=text):
            model = GaussianHMM(2, random_state=0).fit(parts)
        assert np.isfinite(model.score(parts))
        np.testing.assert_allclose(model.transmat_.sum(axis=1), 1.0)


def test_repeated_values_stop_at_the_floor() -> None:
    rng = np.random.default_rng(0)
    x = np.where(np.repeat(rng.random(2000) < 0.6, 20), 3.0, rng.standard_normal(40_000))[:, None]
    with pytest.warns(MomentWarning, match="least variance"):
        model = GaussianHMM(2, random_state=0).fit(x)
    # Of 24,000 values of 3 the prior would leave 1e-2 / 24,000 of a variance of at most 1, less than the floor.
    assert 1e-8 < model.covars_.min() <= 1e-6


def test_states_far_apart_keep_their_variances() -> None:
    rng = np.random.default_rng(0)
    x = np.where(rng.random((3000, 1)) < 0.5, 0.0, 1e4) + rng.standard_normal((3000, 1))
    # Four standard errors of a variance of 1: sqrt(2 / 1,500) each.
    np.testing.assert_allclose(GaussianHMM(2, random_state=0).fit(x).covars_, 1.0, atol=0.15)


# Poisson


@pytest.mark.parametrize("columns", [1, 2])
def test_poisson_rates_are_recovered(columns: int) -> None:
    rng = np.random.default_rng(3)
    states = markov_chain(20_000, TRANSMAT, random_state=rng)
    rates = np.array([[1.0, 8.0], [5.0, 2.0], [12.0, 5.0]])[:, :columns]
    x = rng.poisson(rates[states])
    model = PoissonHMM(3, random_state=0).fit(x)
    order = match_components(model.lambdas_.T, rates.T).permutation
    # Standard errors: sqrt(12 / 4,000) is 0.055; states overlap.
    np.testing.assert_allclose(model.lambdas_[order], rates, atol=0.4)
    np.testing.assert_allclose(model.transmat_[np.ix_(order, order)], TRANSMAT, atol=0.06)
    assert model.predict_next(x[:10]).shape == (10, columns)
    moments = PoissonHMM(3, refine=None, random_state=0).fit(x)
    assert match_components(moments.lambdas_.T, rates.T).largest < 3.0
    pytest.importorskip("hmmlearn")
    peer = model.to_hmmlearn()
    assert peer.score(x[:500]) == pytest.approx(model.score(x[:500]), rel=1e-10)
    assert PoissonHMM.from_hmmlearn(peer).score(x[:500]) == pytest.approx(model.score(x[:500]), rel=1e-12)


def test_poisson_takes_counts_alone_and_missing_ones() -> None:
    x = np.random.default_rng(0).poisson(4.0, (200, 1)).astype(float)
    with pytest.raises(ValueError, match="not negative"):
        PoissonHMM(2).fit(-x)
    with pytest.raises(ValueError, match="GaussianHMM"):
        PoissonHMM(2).fit(x + 0.5)
    x[[3, 50, 51]] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MomentWarning)
        model = PoissonHMM(2, random_state=0).fit(x)
        zeros = PoissonHMM(2, random_state=0).fit(np.zeros((50, 1)))
    assert np.isfinite(model.score(x))
    assert np.isfinite(zeros.score(np.zeros((5, 1))))


def test_spherical_models_come_from_hmmlearn():
    """Its fit leaves spherical covariances once per feature; a loaded or hand-made model has one per state."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(200, 2)) + 5.0 * (np.arange(200) % 20 < 10)[:, None]
    hmm = pytest.importorskip("hmmlearn.hmm")
    peer = hmm.GaussianHMM(2, covariance_type="spherical", n_iter=3, random_state=0).fit(X)
    model = GaussianHMM.from_hmmlearn(peer)
    assert model.covars_.shape == (2,)
    np.testing.assert_allclose(model.score(X), peer.score(X), rtol=1e-9)  # 200 steps of doubles


@pytest.mark.parametrize("kind", ["spherical", "diag", "full", "tied"])
def test_an_observation_far_from_all_states_that_can_be_is_unlikely_not_impossible(kind):
    model = GaussianHMM(2, covariance_type=kind)
    model.startprob_, model.transmat_, model.n_features_in_ = np.array([1.0, 0.0]), np.eye(2), 1
    model.means_ = np.array([[0.0], [1e4]])
    shapes = {"spherical": np.ones(2), "diag": np.ones((2, 1)), "full": np.ones((2, 1, 1)), "tied": np.ones((1, 1))}
    model.covars_ = shapes[kind]
    value, states = model.score_samples(np.array([[0.0], [1e4]]))
    assert -np.inf < value < -600
    np.testing.assert_allclose(states, [[1, 0], [1, 0]])


@pytest.mark.filterwarnings("ignore::odeco.MomentWarning")
def test_counts_beyond_integers_are_refused_when_drawn():
    model = PoissonHMM(1).fit(np.full((4, 1), 1e20))
    with pytest.raises(ValueError, match="beyond the range of 64-bit integers"):
        model.sample(2)


def test_equal_rows_of_counts_are_coded_once_and_fitted_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    x = rng.poisson(np.array([[1.0, 3.0], [4.0, 0.5]])[np.repeat(rng.integers(0, 2, 200), 10)]).astype(float)
    x[rng.random(x.shape) < 0.05] = np.nan
    model = PoissonHMM(2, effort="quick", random_state=0)
    data = model._open(x, None)
    assert data.codes is not None
    assert 4 * len(data.values) <= len(x)
    np.testing.assert_array_equal(data.values[data.codes], x)
    coded = model.fit(x).lambdas_
    monkeypatch.setattr(PoissonHMM, "_packed", lambda self, data: data)
    # The same sums in another order, over some dozens of steps.
    np.testing.assert_allclose(PoissonHMM(2, effort="quick", random_state=0).fit(x).lambdas_, coded, rtol=1e-6)
