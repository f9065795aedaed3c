"""CategoricalHMM: recovery, hmmlearn's manners, bad input."""

from __future__ import annotations

import tracemalloc
import warnings
from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from odeco import CategoricalHMM, MomentWarning
from odeco.exceptions import MomentError
from odeco.fitting.candidates import EFFORTS, Candidate, search
from odeco.metrics import match_components
from odeco.models.hmm import stream as hmm_stream
from odeco.models.hmm.base import stationary_distribution
from odeco.models.hmm.landscape import ChainLandscape
from odeco.models.hmm.policy import POLICY
from odeco.models.hmm.symbol_starts import most_likely
from odeco.refinement.categorical_emission import CategoricalEmission
from odeco.refinement.emissions import HMMParameters
from odeco.refinement.hmm import Smoothing
from odeco.simulate import categorical_hmm, random_chain
from odeco.sources.sequences import Sequences


@pytest.fixture(scope="module")
def truth():
    transmat, emissions = random_chain(4, 15, random_state=10)
    return transmat, emissions


@pytest.fixture(scope="module")
def sample(truth):
    return categorical_hmm(30_000, *truth, random_state=12)


@pytest.fixture(scope="module")
def fitted(sample):
    return CategoricalHMM(4, random_state=0).fit(sample.observations)


def error(model, truth):
    """Largest error of the emissions, after matching, and of the transitions in that order."""
    transmat, emissions = truth
    matching = match_components(model.emissionprob_.T, emissions.T)
    order = matching.permutation
    return matching.largest, np.abs(model.transmat_[np.ix_(order, order)] - transmat).max()


def test_the_model_is_recovered(fitted, truth):
    emissions, transitions = error(fitted, truth)
    # Standard errors: sqrt(p (1 - p) / n_state) is at most 0.5 / sqrt(30,000 / 4 / 2); states are seen through symbols.
    assert emissions < 0.05
    assert transitions < 0.05
    shuffled = clone(fitted)
    shuffled.emissionprob_, shuffled.transmat_ = fitted.emissionprob_, fitted.transmat_[[1, 0, 3, 2]]
    assert error(shuffled, truth)[1] > 0.05


def test_the_moment_estimate_alone_improves_with_the_data(truth):
    errors = []
    for n in (5_000, 80_000):
        runs = [categorical_hmm(n, *truth, random_state=seed).observations for seed in range(3)]
        errors.append(np.mean([error(CategoricalHMM(4, refine=None, random_state=0).fit(x), truth) for x in runs]))
    assert errors[1] < errors[0] / 2  # n^(-1/2) says 4, over three seeds


def test_it_is_as_likely_as_the_truth_refined(fitted, sample, truth):
    true = CategoricalHMM(4, n_features=15)
    true.startprob_, true.transmat_, true.emissionprob_ = sample.startprob, *truth
    true.n_symbols_, true.n_features_in_ = 15, 1
    assert fitted.score(sample.observations) > true.score(sample.observations)


def test_states_come_in_the_order_of_their_stationary_probability(fitted):
    weights = fitted.get_stationary_distribution()
    assert (np.diff(weights) <= 0).all()
    np.testing.assert_allclose(weights @ fitted.transmat_, weights, atol=1e-12)


def test_rows_are_on_their_simplices(fitted):
    for refine in (None, "auto"):
        model = CategoricalHMM(4, refine=refine, random_state=1).fit(fitted.sample(20_000, random_state=3)[0])
        for rows in (model.startprob_, model.transmat_, model.emissionprob_):
            assert (rows >= 0).all()
            np.testing.assert_allclose(rows.sum(axis=-1), 1.0, rtol=1e-12)


def test_the_same_seed_gives_the_same_model(sample):
    first, second = (CategoricalHMM(4, random_state=5).fit(sample.observations[:5_000]) for _ in range(2))
    np.testing.assert_array_equal(first.transmat_, second.transmat_)
    np.testing.assert_array_equal(first.emissionprob_, second.emissionprob_)


def test_the_monitor_is_monotone_and_says_what_happened(fitted):
    monitor = fitted.monitor_
    assert monitor.converged
    assert monitor.iter == fitted.n_iter_ <= fitted.max_iter
    assert np.diff(monitor.history).min() >= -1e-7  # rounding of sums of 30,000 logarithms
    assert "Baum-Welch" in fitted.diagnostics_.method
    assert fitted.diagnostics_.ok


def test_peer_and_model_agree_on_everything(fitted, sample):
    pytest.importorskip("hmmlearn")
    peer, x, lengths = fitted.to_hmmlearn(), sample.observations[:3_000], [1_000, 1, 1_999]
    assert fitted.score(x, lengths) == pytest.approx(peer.score(x, lengths), rel=1e-12)
    np.testing.assert_allclose(fitted.predict_proba(x, lengths), peer.predict_proba(x, lengths), atol=1e-10)
    for algorithm in ("viterbi", "map"):
        ours, theirs = fitted.decode(x, lengths, algorithm), peer.decode(x, lengths, algorithm)
        assert ours[0] == pytest.approx(theirs[0], rel=1e-10)
        np.testing.assert_array_equal(ours[1], theirs[1])
    assert fitted.aic(x) == pytest.approx(peer.aic(x), rel=1e-12)
    assert fitted.bic(x) == pytest.approx(peer.bic(x), rel=1e-12)
    np.testing.assert_allclose(fitted.get_stationary_distribution(), peer.get_stationary_distribution(), atol=1e-9)
    back = CategoricalHMM.from_hmmlearn(peer)
    np.testing.assert_array_equal(back.transmat_, fitted.transmat_)
    assert back.score(x) == pytest.approx(fitted.score(x), rel=1e-12)


@pytest.mark.parametrize("n", [7, 20_000])  # one stretch, and many in lockstep
def test_of_paths_that_are_as_good_the_lowest_states_are_taken(n):
    model = CategoricalHMM(3)
    model.startprob_, model.transmat_ = np.full(3, 1 / 3), np.full((3, 3), 1 / 3)
    model.emissionprob_, model.n_symbols_, model.n_features_in_ = np.full((3, 2), 0.5), 2, 1
    value, path = model.decode(np.arange(n) % 2)
    assert not path.any()
    assert value == pytest.approx(-n * np.log(6))


def test_predict_next_does_not_look_ahead(fitted, sample):
    x = sample.observations[:200]
    ahead = fitted.predict_next(x)
    assert ahead.shape == (200, 15)
    np.testing.assert_allclose(ahead.sum(axis=1), 1.0, rtol=1e-12)
    changed = x.copy()
    changed[120:] = (changed[120:] + 1) % 15
    np.testing.assert_allclose(fitted.predict_next(changed)[:120], ahead[:120], atol=1e-9)
    # The chain rule: log p(x) is the sum of the logs of what was predicted, and of the first symbol.
    first = np.log(fitted.startprob_ @ fitted.emissionprob_[:, x[0, 0]])
    chain = first + np.log(ahead[np.arange(199), x[1:, 0]]).sum()
    assert chain == pytest.approx(fitted.score(x), rel=1e-10)


def test_lists_columns_and_lengths_are_the_same_input(fitted, sample):
    flat = sample.observations[:60, 0]
    expected = fitted.score(flat[:, None], [20, 40])
    for given in ([flat[:20], flat[20:]], [flat[:20, None], flat[20:, None]], [list(flat[:20]), list(flat[20:])]):
        assert fitted.score(given) == pytest.approx(expected, rel=1e-13)
    assert fitted.score(flat, [20, 0, 40]) == pytest.approx(expected, rel=1e-13)
    assert fitted.score([[int(s)] for s in flat]) == pytest.approx(fitted.score(flat), rel=1e-13)


def test_missing_symbols_are_summed_over(fitted, sample):
    x = sample.observations[:40, 0].copy()
    x[10:13] = -1
    likelihoods = []
    for a in range(15):
        full = x.copy()
        full[11] = a
        likelihoods.append(fitted.score(full))
    assert np.logaddexp.reduce(likelihoods) == pytest.approx(fitted.score(x), rel=1e-12)
    assert fitted.score(np.where(x < 0, np.nan, x.astype(float))) == pytest.approx(fitted.score(x), rel=1e-13)
    holes = sample.observations[:, 0].copy()
    holes[np.random.default_rng(0).random(30_000) < 0.2] = -1
    model = CategoricalHMM(4, random_state=0).fit(holes)
    assert model.score(sample.observations) > fitted.score(sample.observations) - 0.01 * 30_000


def test_a_weight_is_a_repetition(sample):
    x = sample.observations[:6_000, 0]
    parts = [x[:1_000], x[1_000:3_000], x[3_000:]]
    weighted = CategoricalHMM(4, random_state=0).fit(parts, sequence_weight=[3, 1, 2])
    repeated = CategoricalHMM(4, random_state=0).fit([*[parts[0]] * 3, parts[1], *[parts[2]] * 2])
    # The same objective and the same start but for rounding; both end when a pass gains less than tol = 1e-6 per step.
    assert weighted.score(x) == pytest.approx(repeated.score(x), rel=1e-4)


def test_streams_are_chunk_free_and_up_to_the_head_equal_to_fit(sample, monkeypatch):
    monkeypatch.setattr(hmm_stream, "POLICY", replace(hmm_stream.POLICY, head_steps=5_000))
    x = sample.observations[:20_000]

    def stream(size):
        model = CategoricalHMM(4, n_features=15, random_state=0)
        for start in range(0, len(x), size):
            beyond = start + size > 5_000
            with pytest.warns(MomentWarning, match="without Baum-Welch") if beyond else nullcontext():
                model.partial_fit(x[start : start + size], [500] * (size // 500))
        assert model.diagnostics_.method.endswith(
            "and EM on pairs, of all 20,000 steps, most likely on the 5,000 kept, not refined"
        )
        return model

    first, second = stream(2_000), stream(10_000)
    np.testing.assert_allclose(first.transmat_, second.transmat_, atol=1e-9)
    whole = CategoricalHMM(4, n_features=15, refine=None, random_state=0).fit(x, [500] * 40)
    assert first.score(x) > whole.score(x) - 0.002 * len(x)  # the basis of the stream comes from its head
    pure = CategoricalHMM(4, n_features=15, refine=None, random_state=0).partial_fit(x, [500] * 40)
    assert pure.diagnostics_.method == "moments (Proposition 3.4), of all 20,000 steps"
    np.testing.assert_allclose(pure.transmat_, whole.transmat_, atol=0.05)  # two bases: a standard error apart
    head = CategoricalHMM(4, n_features=15, random_state=0).partial_fit(x[:4_000])
    same = CategoricalHMM(4, n_features=15, random_state=0).fit(x[:4_000])
    np.testing.assert_array_equal(head.transmat_, same.transmat_)


def test_any_integers_give_the_same_fit_and_nothing_of_the_caller_is_kept(sample):
    x = sample.observations[:6_000, 0]
    wide = np.stack([x, x], axis=1)
    frozen = x.astype(np.int32)
    frozen.flags.writeable = False
    fits = [CategoricalHMM(4, random_state=0).fit(y) for y in (x, x.astype(np.uint8), wide[:, 1], frozen, x * 1.0)]
    for fit in fits[1:]:
        np.testing.assert_array_equal(fit.emissionprob_, fits[0].emissionprob_)
        np.testing.assert_array_equal(fit.predict(wide[:, 0]), fits[0].predict(x))
    stream, mine = CategoricalHMM(4, n_features=15, random_state=0), x[:3_000].copy()
    stream.partial_fit(mine)
    mine[:] = 0
    stream.partial_fit(x[3_000:])
    other = CategoricalHMM(4, n_features=15, random_state=0).partial_fit([x[:3_000], x[3_000:]])
    np.testing.assert_array_equal(stream.emissionprob_, other.emissionprob_)


@pytest.mark.filterwarnings("ignore:Baum-Welch has not converged:odeco.MomentWarning")
def test_memory_beyond_the_data_does_not_grow_with_them(truth, monkeypatch):
    monkeypatch.setenv("ODECO_NUM_THREADS", "1")  # a second thread holds a block of its own, if it gets to work at all
    drawn = categorical_hmm(1_200_000, *truth, random_state=12).observations[:, 0]

    def most(n):
        x = drawn[:n].copy()
        model = CategoricalHMM(4, max_iter=2, random_state=0)
        model.fit(x)  # what compiles and is imported is not the point
        tracemalloc.start()
        model.fit(x)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return peak

    # Blocks of 2^16 steps are full at both; a tenth of a byte for each further step is for messages between stretches.
    assert most(1_200_000) - most(300_000) < 90_000


def test_fewer_symbols_than_states_use_windows():
    transmat = np.array([[0.9, 0.1, 0.0], [0.0, 0.8, 0.2], [0.3, 0.0, 0.7]])
    emissions = np.array([[0.9, 0.1], [0.5, 0.5], [0.05, 0.95]])
    x = categorical_hmm(100_000, transmat, emissions, random_state=0).observations
    with pytest.raises(MomentError, match=r"2 different symbols cannot tell 3 states apart.*refine='auto'"):
        CategoricalHMM(3, refine=None, random_state=0).fit(x)
    for effort in ("quick", "auto"):
        with pytest.warns(MomentWarning, match="windows of 3 symbols"):
            model = CategoricalHMM(3, effort=effort, random_state=0, max_iter=1).fit(x)
        assert effort == "auto" or model.diagnostics_.method.startswith("moments of windows, then")
        emission_error, transition_error = error(model, (transmat, emissions))
        assert emission_error < 0.1
        assert transition_error < 0.1
    assert model.diagnostics_.suggested_components == 3


def test_a_stream_of_fewer_symbols_than_states_waits(monkeypatch):
    """Windows would need the steps again; symbols that are still missing may come."""
    monkeypatch.setattr(hmm_stream, "POLICY", replace(hmm_stream.POLICY, head_steps=1_000))
    x = np.random.default_rng(0).integers(2, size=2_000)
    model = CategoricalHMM(3, n_features=15, refine=None, random_state=0)
    with pytest.warns(MomentWarning, match=r"2,000 steps so far do not determine the states \(2 different symbols"):
        model.partial_fit(x)
    np.testing.assert_allclose(model.emissionprob_, np.tile(np.bincount(x[:1_000], minlength=15) / 1_000, (3, 1)))
    with pytest.raises(MomentError, match="2 different symbols cannot tell 3 states apart"):
        model.set_params(refine="auto").partial_fit(x)


def chain_of(k, d, n, seed):
    return k, categorical_hmm(n, *random_chain(k, d, random_state=seed), random_state=seed).observations


def long_segments():
    rng = np.random.default_rng(0)
    return 2, np.concatenate([rng.choice(4, 600, p=p) for p in rng.dirichlet(np.full(4, 8.0), 40)])


@pytest.mark.parametrize(
    ("start", "draw"),
    [
        ("symmetrized moments with ridge 0.01 and EM on pairs", lambda: chain_of(3, 6, 50_000, 2)),
        ("clusters of segments", lambda: (3, np.zeros(300, dtype=int))),  # no moments: the first of the others
        ("frequencies", lambda: (1, np.arange(300) % 7)),
    ],
)
@pytest.mark.filterwarnings("ignore::odeco.MomentWarning")
def test_without_a_search_the_first_start_is_taken(start, draw):
    k, x = draw()
    model = CategoricalHMM(k, effort="quick", random_state=0, max_iter=5).fit(x)
    assert model.diagnostics_.method.startswith(f"{start}, then")


@pytest.mark.parametrize("draw", [lambda: chain_of(4, 15, 600, 1), lambda: chain_of(5, 12, 3_000, 0), long_segments])
@pytest.mark.filterwarnings("ignore::odeco.MomentWarning")
def test_the_start_that_won_is_named(draw, monkeypatch):
    """Of all starts: a search that ends when enough of them agree is not asked for here."""
    monkeypatch.setitem(POLICY.efforts, "auto", replace(POLICY.efforts["auto"], enough=0))
    k, x = draw()
    quick, model = (CategoricalHMM(k, effort=effort, random_state=0).fit(x) for effort in ("quick", "auto"))
    details = model.diagnostics_.details
    assert model.diagnostics_.method.startswith(f"{details['starts'][0][0]}, then")
    names = {name for name, _ in details["starts"]}
    merged = {f"{kind}, merged from {2 * k}" for kind in ("moments", "a random guess", "clusters of segments")}
    assert (
        merged | {"common eigenvectors of moments and EM on pairs", "a random guess", "clusters of segments"} <= names
    )
    assert details["replicated"] >= 1
    assert details["spread"] >= 0
    assert model.score(x) > quick.score(x) - 0.001 * len(x)


@pytest.mark.parametrize("turned", [False, True])
def test_names_stay_with_their_candidates(sample, truth, turned):
    transmat, emissions = truth
    good = HMMParameters(sample.startprob, transmat, CategoricalEmission(emissions, 0.0))
    saddle = HMMParameters(np.full(4, 0.25), np.full((4, 4), 0.25), CategoricalEmission(np.full((4, 15), 1 / 15), 0.0))
    candidates = [Candidate("the truth", lambda: good), Candidate("a saddle", lambda: saddle)][:: -1 if turned else 1]
    x = sample.observations[:3_000, 0]
    data = Sequences(np.append(np.arange(15), -1), x, np.array([0, 3_000]), None)
    quick = replace(EFFORTS["auto"], patience=0)
    found = search(ChainLandscape(data, Smoothing()), candidates, 4, quick, np.random.default_rng(0))
    assert found.best.name == "the truth"
    assert most_likely(candidates, data)[0] == "the truth"


def test_non_stationary_starts_are_found(truth):
    start = np.array([0.0, 1.0, 0.0, 0.0])
    runs = [categorical_hmm(8, *truth, startprob=start, random_state=seed).observations for seed in range(1_500)]
    model = CategoricalHMM(4, n_features=15, random_state=0).fit(runs)
    order = match_components(model.emissionprob_.T, truth[1].T).permutation
    assert model.startprob_[order[1]] > 0.9


def test_sample_repeats_with_its_seed_and_follows_the_chain(fitted):
    x, states = fitted.sample(20_000, random_state=7)
    again, _ = fitted.sample(20_000, random_state=7)
    np.testing.assert_array_equal(x, again)
    assert x.shape == (20_000, 1)
    moves = np.zeros((4, 4))
    np.add.at(moves, (states[:-1], states[1:]), 1.0)
    np.testing.assert_allclose(moves / moves.sum(axis=1, keepdims=True), fitted.transmat_, atol=0.05)
    assert fitted.sample(3, random_state=1, currstate=2)[1][0] == 2


@pytest.mark.usefixtures("short_search")
@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize(
    "x",
    [np.zeros(300, dtype=int), np.tile([0, 1, 2], 200), np.array([0, 1]), np.array([1]), np.repeat([0, 1, 2], 100)],
    ids=["constant", "periodic", "two steps", "one step", "absorbing"],
)
def test_degenerate_sequences_give_valid_models(x, k):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MomentWarning)
        model = CategoricalHMM(k, random_state=0).fit(x)
    assert np.isfinite(model.score(x))
    np.testing.assert_allclose(model.predict_proba(x).sum(axis=1), 1.0)
    np.testing.assert_allclose(model.transmat_.sum(axis=1), 1.0)


def test_a_period_is_found():
    model = CategoricalHMM(3, smoothing=0.0, random_state=0).fit(np.tile([0, 1, 2], 200))
    assert model.score(np.tile([0, 1, 2], 50)) / 150 > -0.02
    assert (model.transmat_.max(axis=1) > 0.99).all()


def test_more_states_than_the_pairs_show_are_announced():
    x = np.random.default_rng(0).integers(0, 6, 3_000)
    with pytest.warns(MomentWarning, match="pairs of symbols show about"):
        model = CategoricalHMM(4, random_state=0).fit(x)
    assert model.diagnostics_.suggested_components == 1
    assert np.isfinite(model.score(x))


@pytest.mark.parametrize(
    ("x", "arguments", "message"),
    [
        ([0, 1, 2], {"lengths": [1, 1]}, "lengths add up to 2, but X has 3"),
        ([0, 1, 2], {"lengths": [4, -1]}, "must not be negative"),
        ([0, 1, 2], {"lengths": [1.5, 1.5]}, "list of integers"),
        (np.zeros((0, 1)), {}, "0 sample"),
        (np.zeros((4, 2), dtype=int), {}, "one symbol for each step"),
        ([0.5, 1.0], {}, "integer symbols"),
        (["a", "b"], {}, "encode them first"),
        ([-1, -1], {}, "every observation is missing"),
        ([0, 1, 2], {"sequence_weight": [1, 2]}, "one number for each of the 1"),
        ([0, 1, 2], {"sequence_weight": [-1]}, "not negative"),
    ],
)
def test_bad_input_is_named(x, arguments, message):
    with pytest.raises(ValueError, match=message):
        CategoricalHMM(2).fit(x, **arguments)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_components": 0}, "n_components must be a positive integer"),
        ({"refine": "em"}, "refine must be"),
        ({"max_iter": 0}, "max_iter must be a positive integer, got 0"),
        ({"smoothing": -1.0}, "smoothing must be"),
        ({"n_features": 0}, "n_features must be"),
    ],
)
def test_bad_options_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        CategoricalHMM(**options).fit([0, 1, 0, 1, 1])


@pytest.mark.usefixtures("short_search")
def test_symbols_unseen_in_training_are_refused_or_possible(sample):
    x = sample.observations[:2_000]
    model = CategoricalHMM(2, random_state=0).fit(np.minimum(x, 9))
    with pytest.raises(ValueError, match="holds the symbol 14, but the model knows 10 symbols"):
        model.score(np.array([1, 14]))
    wide = CategoricalHMM(2, n_features=20, random_state=0).fit(np.minimum(x, 9))
    assert np.isfinite(wide.score(np.array([1, 14])))  # a pseudo-count keeps it possible


@pytest.mark.usefixtures("short_search")
def test_estimator_manners(sample):
    model = CategoricalHMM(2, tol=1e-4, random_state=2)
    assert clone(model).get_params() == model.get_params()
    with pytest.raises(NotFittedError):
        model.score([0, 1])
    x = sample.observations[:500].copy()
    before = x.copy()
    model.fit(x)
    np.testing.assert_array_equal(x, before)
    assert model.n_features_in_ == 1


def test_stationary_distributions_of_awkward_chains():
    periodic = np.array([[0.0, 1, 0], [0, 0, 1], [1, 0, 0]])
    np.testing.assert_allclose(stationary_distribution(periodic), np.full(3, 1 / 3), atol=1e-12)
    absorbing = np.array([[0.5, 0.5], [0.0, 1.0]])
    np.testing.assert_allclose(stationary_distribution(absorbing), [0.0, 1.0], atol=1e-12)


@pytest.mark.parametrize("options", [{"max_iter": 2.5}, {"max_iter": 0}, {"tol": -1.0}, {"tol": np.nan}])
def test_options_that_cannot_be_used_are_refused(options):
    with pytest.raises(ValueError, match=f"{next(iter(options))} must be"):
        CategoricalHMM(2, **options).fit(np.tile([0, 1, 1], 50))


def test_states_before_an_impossible_symbol_are_those_of_the_symbols_so_far():
    model = CategoricalHMM(2)
    model.startprob_, model.transmat_ = np.array([0.5, 0.5]), np.full((2, 2), 0.5)
    model.n_symbols_, model.n_features_in_ = 3, 1
    model.emissionprob_ = np.array([[0.8, 0.2, 0.0], [0.4, 0.6, 0.0]])
    value, states = model.score_samples(np.array([[0], [1], [2], [0]]))
    assert value == -np.inf
    np.testing.assert_allclose(states, [[2 / 3, 1 / 3], [1 / 4, 3 / 4], [1 / 2, 1 / 2], [2 / 3, 1 / 3]])


class TestSymbolsAndLengths:
    x = np.random.default_rng(0).integers(0, 3, 60)

    def test_symbols_that_hardly_occur_are_not_paid_for(self):
        symbols = np.append(self.x, 3_000_000)
        with pytest.raises(ValueError, match="X holds the symbol 3000000 in 61 steps.*give n_features"):
            CategoricalHMM(2).fit(symbols)
        model = CategoricalHMM(1, n_features=12_000).fit(np.append(self.x, 11_999))
        assert model.n_symbols_ == 12_000

    @pytest.mark.parametrize("given", [2**31, 2**70, 0, 2.0])
    def test_sizes_of_the_alphabet(self, given):
        with pytest.raises(ValueError, match=r"n_features must be None or a positive integer below 2\*\*31"):
            CategoricalHMM(2, n_features=given).fit(self.x)

    @pytest.mark.parametrize("symbol", [2.0**60, np.inf, 0.5])
    def test_floats_that_are_no_symbols(self, symbol):
        with pytest.raises(ValueError, match="must hold integer symbols"):
            CategoricalHMM(2).fit(np.append(self.x, symbol))

    @pytest.mark.parametrize(
        ("lengths", "message"),
        [
            ([2**63 - 1, 2**63 - 1, 62], "add up to 18446744073709551676, but X has 60"),
            ([30, 31], "add up to 61"),
            ([], "add up to 0"),
            ([-1, 61], "must not be negative, got -1"),
            ([30.0, 30.0], "list of integers, one for each sequence, got 30.0"),
            ([np.inf, 1.0], "got inf"),
            ([None, 60], "got None"),
            ([[30, 30]], r"got \[30, 30\]"),
        ],
    )
    def test_lengths(self, lengths, message):
        with pytest.raises(ValueError, match=f"lengths .*{message}"):
            CategoricalHMM(2).fit(self.x, lengths)


@pytest.mark.parametrize("form", [np.asfortranarray, lambda a: a.astype(np.float32), np.ndarray.tolist])
def test_parameters_set_by_hand_may_lie_in_any_form(form):
    model = CategoricalHMM(2, random_state=0)
    model.startprob_, model.transmat_ = form(np.array([0.5, 0.5])), form(np.array([[0.75, 0.25], [0.5, 0.5]]))
    model.emissionprob_, model.n_symbols_, model.n_features_in_ = form(np.array([[0.5, 0.5], [0.25, 0.75]])), 2, 1
    x, states = model.sample(20)
    assert set(states) <= {0, 1}
    np.testing.assert_allclose(model.predict_proba(x).sum(axis=1), 1.0)
