"""Forward-backward and Viterbi against the enumeration of all paths, and against each other however data are cut."""

from __future__ import annotations

import numpy as np
import pytest

from odeco.refinement import forward_backward as fb
from odeco.refinement import viterbi
from odeco.refinement.categorical_emission import CategoricalEmission
from odeco.refinement.emissions import HMMParameters
from odeco.simulate import categorical_hmm, random_chain
from odeco.sources.sequences import Sequences
from tests.oracles.hidden_markov import enumerate_model, filtered

ROUNDING = 1e-11  # a few hundred products of numbers near 1, in double precision; logarithms of up to 100


def model(k, d, seed=0):
    rng = np.random.default_rng(seed)
    transmat, emissions = random_chain(k, d, sparsity=0.7, random_state=rng)
    return HMMParameters(rng.dirichlet(np.ones(k)), transmat, CategoricalEmission(emissions))


def sequences(symbols, d, lengths=None, weights=None):
    symbols = np.asarray(symbols)
    offsets = np.concatenate([[0], np.cumsum([len(symbols)] if lengths is None else lengths)]).astype(np.int64)
    codes = np.where(symbols < 0, d, symbols).astype(np.int32)
    return Sequences(np.append(np.arange(d), -1), codes, offsets, None if weights is None else np.asarray(weights))


def likelihoods(parameters, symbols):
    return parameters.emission.likelihood(np.asarray(symbols))[0]


@pytest.mark.parametrize(("k", "d"), [(1, 2), (2, 3), (3, 4), (5, 3)])
def test_one_sequence_against_enumeration(k, d):
    parameters = model(k, d, seed=k)
    symbols = np.random.default_rng(k).integers(0, d, 6)
    symbols[2] = -1  # a missing observation in the middle
    rows = likelihoods(parameters, symbols)
    total, posterior, transitions, _, best = enumerate_model(parameters.startprob, parameters.transmat, rows)
    recursions = fb.ForwardBackward(sequences(symbols, d))
    expected = recursions.expectations(parameters)
    assert expected.log_likelihood == pytest.approx(np.log(total), abs=ROUNDING)
    np.testing.assert_allclose(expected.transitions, transitions, atol=ROUNDING)
    np.testing.assert_allclose(expected.start, posterior[0], atol=ROUNDING)
    np.testing.assert_allclose(recursions.posteriors(parameters)[1], posterior, atol=ROUNDING)
    np.testing.assert_allclose(
        recursions.filtered(parameters)[1], filtered(parameters.startprob, parameters.transmat, rows), atol=ROUNDING
    )
    counts = np.zeros((k, d))
    for t, symbol in enumerate(symbols):
        if symbol >= 0:
            counts[:, symbol] += posterior[t]
    np.testing.assert_allclose(expected.emission[0], counts, atol=ROUNDING)
    value, path = viterbi.best_path(sequences(symbols, d), parameters)
    assert value == pytest.approx(np.log(best), abs=ROUNDING)
    # Where paths tie (a missing observation may), the path found must be as good as the best.
    joint = parameters.startprob[path[0]] * np.prod(parameters.transmat[path[:-1], path[1:]])
    assert joint * np.prod(rows[np.arange(6), path]) == pytest.approx(best)


def test_many_weighted_sequences_are_the_sum_of_each():
    k, d, rng = 3, 4, np.random.default_rng(5)
    parameters = model(k, d)
    lengths, weights = [1, 5, 2, 6, 4], [1.0, 2.0, 0.5, 0.0, 3.0]
    symbols = rng.integers(0, d, sum(lengths))
    expected = fb.ForwardBackward(sequences(symbols, d, lengths, weights)).expectations(parameters)
    log_likelihood, transitions, start = 0.0, np.zeros((k, k)), np.zeros(k)
    for part, weight in zip(np.split(symbols, np.cumsum(lengths)[:-1]), weights, strict=True):
        total, posterior, moves, _, _ = enumerate_model(
            parameters.startprob, parameters.transmat, likelihoods(parameters, part)
        )
        log_likelihood += weight * np.log(total)
        transitions += weight * moves
        start += weight * posterior[0]
    assert expected.log_likelihood == pytest.approx(log_likelihood, abs=ROUNDING)
    np.testing.assert_allclose(expected.transitions, transitions, atol=ROUNDING)
    np.testing.assert_allclose(expected.start, start, atol=ROUNDING)


@pytest.mark.parametrize("lengths", [None, [3] * 500 + [18_500]])
def test_stretches_give_what_one_pass_gives(lengths, monkeypatch):
    # 20,000 steps run as 32 stretches. Without agreement between neighbours, messages come from one exact pass.
    k, d = 5, 12
    parameters = model(k, d)
    symbols = categorical_hmm(20_000, parameters.transmat, parameters.emission.probabilities, random_state=1)
    data = sequences(symbols.observations[:, 0], d, lengths)
    fast = fb.ForwardBackward(data).expectations(parameters)
    monkeypatch.setattr(fb, "_AGREE", -1.0)
    exact = fb.ForwardBackward(data).expectations(parameters)
    # Neighbours agree to 1e-8 relative at 31 places, and each place touches a few dozen steps.
    assert fast.log_likelihood == pytest.approx(exact.log_likelihood, abs=1e-6)
    np.testing.assert_allclose(fast.transitions, exact.transitions, atol=1e-6)


def test_a_model_that_never_forgets_is_still_exact():
    # Two states that never change and differ in one rare symbol alone: only the whole sequence can tell them apart.
    transmat, n = np.eye(2), 9_000
    emissions = np.array([[0.5, 0.5, 0.0], [0.5, 0.49, 0.01]])
    parameters = HMMParameters(np.array([0.999999, 1e-6]), transmat, CategoricalEmission(emissions))
    symbols = np.zeros(n, dtype=int)
    symbols[-1] = 2
    data = sequences(symbols, 3)
    expected = np.log(1e-6 * 0.01) + (n - 1) * np.log(0.5)
    recursions = fb.ForwardBackward(data)
    assert recursions.log_likelihood(parameters) == pytest.approx(expected, rel=1e-12)
    np.testing.assert_allclose(recursions.posteriors(parameters)[1], np.tile([0.0, 1.0], (n, 1)), atol=1e-9)


def test_impossible_observations_have_no_likelihood_and_no_nan():
    parameters = HMMParameters(np.array([1.0, 0.0]), np.eye(2), CategoricalEmission(np.eye(2)))
    data = sequences([0, 0, 1, 0], 2)
    log_likelihood, posteriors = fb.ForwardBackward(data).posteriors(parameters)
    assert log_likelihood == -np.inf
    assert np.isfinite(posteriors).all()


def test_the_number_of_threads_does_not_change_the_result(monkeypatch):
    parameters = model(4, 9)
    symbols = categorical_hmm(60_000, parameters.transmat, parameters.emission.probabilities, random_state=2)
    data = sequences(symbols.observations[:, 0], 9)
    values = []
    for count in ("1", "2", "3"):
        monkeypatch.setenv("ODECO_NUM_THREADS", count)
        values.append(fb.ForwardBackward(data).expectations(parameters))
    for other in values[1:]:
        assert other.log_likelihood == values[0].log_likelihood
        np.testing.assert_array_equal(other.transitions, values[0].transitions)


def test_what_does_not_count_may_be_impossible():
    parameters = HMMParameters(np.array([1.0, 0.0]), np.eye(2), CategoricalEmission(np.eye(2)))
    data = sequences([0, 0, 1, 1], 2, lengths=[2, 2], weights=[1.0, 0.0])
    assert fb.ForwardBackward(data).expectations(parameters).log_likelihood == 0


def test_scales_enter_the_likelihood_and_extreme_likelihoods_do_not_underflow():
    class Tiny(CategoricalEmission):
        def likelihood(self, observations):
            rows, scales = super().likelihood(observations)
            return rows * 1e-200, scales + 200 * np.log(10.0)

    base = model(3, 4)
    symbols = np.random.default_rng(0).integers(0, 4, 3_000)
    data = sequences(symbols, 4)
    tiny = HMMParameters(base.startprob, base.transmat, Tiny(base.emission.probabilities))
    ours, plain = (fb.ForwardBackward(data).log_likelihood(p) for p in (tiny, base))
    assert ours == pytest.approx(plain, abs=1e-6)  # 3,000 scales of 460 each: 1.4e6 in double precision


@pytest.mark.parametrize("lengths", [None, [7] * 300 + [17_900]])
def test_viterbi_in_stretches_is_viterbi_in_order(lengths):
    parameters = model(5, 9, seed=4)
    drawn = categorical_hmm(20_000, parameters.transmat, parameters.emission.probabilities, random_state=5)
    data = sequences(drawn.observations[:, 0], 9, lengths)
    logs = viterbi._Logs.of(data, parameters)
    value, path = viterbi.best_path(data, parameters)
    expected, in_order = viterbi._in_order(logs)
    assert value == pytest.approx(expected, rel=1e-12)
    np.testing.assert_array_equal(path, in_order)


def test_viterbi_where_paths_never_meet():
    # Two cycles that never mix, told apart by the last symbol alone: every stretch depends on the very end and start.
    transmat = np.array([[0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 1], [0, 0, 1, 0]], dtype=float)
    emissions = np.array([[0.5, 0.5, 0.0], [0.5, 0.5, 0.0], [0.5, 0.5, 0.0], [0.5, 0.4, 0.1]])
    parameters = HMMParameters(np.array([0.6, 0.2, 0.1, 0.1]), transmat, CategoricalEmission(emissions))
    symbols = np.zeros(10_001, dtype=int)
    symbols[-1] = 2
    value, path = viterbi.best_path(sequences(symbols, 3), parameters)
    assert value == pytest.approx(np.log(0.1) + 10_000 * np.log(0.5) + np.log(0.1), rel=1e-12)
    np.testing.assert_array_equal(path, np.where(np.arange(10_001) % 2 == 0, 3, 2))
