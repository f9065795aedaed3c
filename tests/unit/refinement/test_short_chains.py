"""The loops for short data against enumeration, against those for long data, and climbs against Python's."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from odeco.kernels import short_chains
from odeco.refinement.categorical_emission import CategoricalEmission
from odeco.refinement.emissions import HMMParameters
from odeco.refinement.emissions_poisson import PoissonEmission
from odeco.refinement.expectation_sums import recursions_of
from odeco.refinement.forward_backward import ForwardBackward
from odeco.refinement.hmm import Smoothing, baum_welch
from odeco.refinement.short_chains import SHORT, ShortRecursions
from odeco.sources.sequences import Sequences
from tests.oracles.hidden_markov import enumerate_model

ROUNDING = 1e-11  # a few hundred products of numbers near 1, in double precision; logarithms of up to 1,000
# Climbs of some dozen steps: acceleration solves systems of condition up to 1e8, and later steps forget what that did.
CLIMBED = 1e-7
SYMBOLS = 7


def symbols(n, lengths=None, weights=None, seed=0):
    rng = np.random.default_rng(seed)
    states = np.cumsum(rng.random(n) < 0.2) % 3
    codes = (states * 2 + rng.integers(0, 3, n)).astype(np.int32)
    codes[rng.random(n) < 0.05] = SYMBOLS
    offsets = np.concatenate([[0], np.cumsum([n] if lengths is None else lengths)])
    return Sequences(np.append(np.arange(SYMBOLS), -1), codes, offsets, None if weights is None else np.array(weights))


def chain(k, emission, seed=0):
    rng = np.random.default_rng(seed)
    return HMMParameters(rng.dirichlet(np.ones(k)), rng.dirichlet(np.ones(k), k), emission)


def symbol_chain(k, smoothing=0.0, seed=0):
    return chain(k, CategoricalEmission(np.random.default_rng(seed).dirichlet(np.ones(SYMBOLS), k), smoothing), seed)


def rates(values):
    return chain(len(values), PoissonEmission(np.array(values)))


def counts(n, *, coded, missing, seed=0):
    rng = np.random.default_rng(seed)
    values = rng.poisson(1.0 + 4.0 * (np.cumsum(rng.random(n) < 0.1) % 3)[:, None], size=(n, 2)).astype(float)
    if missing:
        values[rng.random((n, 2)) < 0.05] = np.nan
    offsets = np.array([0, n // 3, n])
    if not coded:
        return Sequences(values, None, offsets)
    distinct, codes = np.unique(values, axis=0, return_inverse=True)
    return Sequences(distinct, codes.ravel(), offsets)


def assert_same_expectations(found, wanted):
    assert found.log_likelihood == pytest.approx(wanted.log_likelihood, rel=ROUNDING)
    np.testing.assert_allclose(found.start, wanted.start, atol=ROUNDING)
    # Stretches agree with their neighbours to 1e-8, and a few dozen steps next to each place feel it.
    np.testing.assert_allclose(found.transitions, wanted.transitions, atol=1e-6)
    for mine, theirs in zip(found.emission, wanted.emission, strict=True):
        np.testing.assert_allclose(mine, theirs, atol=1e-6)


@pytest.mark.parametrize("k", [1, 2, 3, 5])
def test_one_sequence_against_enumeration(k):
    parameters, data = symbol_chain(k), symbols(6)
    data.codes[2] = SYMBOLS
    rows = parameters.emission.likelihood(data.values)[0][data.codes]
    total, posterior, transitions, _, _ = enumerate_model(parameters.startprob, parameters.transmat, rows)
    found = ShortRecursions(data).expectations(parameters)
    assert found.log_likelihood == pytest.approx(np.log(total), abs=ROUNDING)
    np.testing.assert_allclose(found.transitions, transitions, atol=ROUNDING)
    np.testing.assert_allclose(found.start, posterior[0], atol=ROUNDING)
    seen = [posterior[data.codes == symbol].sum(axis=0) for symbol in range(SYMBOLS)]
    np.testing.assert_allclose(found.emission[0], np.transpose(seen), atol=ROUNDING)


@pytest.mark.parametrize("k", [1, 3, 8, 9, 20, 33, 65])
@pytest.mark.parametrize("weights", [None, [1.0, 2.5, 0.0, 1.0]])
def test_passes_match_those_for_long_data(k, weights):
    data, parameters = symbols(900, [1, 600, 2, 297], weights), symbol_chain(k)
    assert_same_expectations(
        ShortRecursions(data).expectations(parameters), ForwardBackward(data).expectations(parameters)
    )


def test_observations_that_differ_at_every_step():
    data = counts(500, coded=False, missing=True)
    parameters = rates([[1.0, 2], [5, 5], [9, 8]])
    assert_same_expectations(
        ShortRecursions(data).expectations(parameters), ForwardBackward(data).expectations(parameters)
    )


def test_impossible_observations_have_no_likelihood_and_no_nan():
    parameters = HMMParameters(np.array([1.0, 0.0]), np.eye(2), CategoricalEmission(np.eye(2)))
    data = Sequences(np.arange(2), np.array([0, 0, 1, 0], dtype=np.int32), np.array([0, 4]))
    found, wanted = (each(data).expectations(parameters) for each in (ShortRecursions, ForwardBackward))
    assert found.log_likelihood == wanted.log_likelihood == -np.inf
    np.testing.assert_allclose(found.emission[0], wanted.emission[0])
    np.testing.assert_allclose(found.transitions, wanted.transitions)


def test_likelihoods_at_the_end_of_the_range_of_numbers():
    # Each state is excluded by 1e-280 at every other step.
    data = Sequences(np.arange(2), np.tile([0, 1], 50).astype(np.int32), np.array([0, 100]))
    emission = CategoricalEmission(np.array([[1.0, 1e-280], [1e-280, 1.0]]))
    parameters = HMMParameters(np.array([0.5, 0.5]), np.array([[1 - 1e-9, 1e-9], [1e-9, 1 - 1e-9]]), emission)
    assert_same_expectations(
        ShortRecursions(data).expectations(parameters), ForwardBackward(data).expectations(parameters)
    )


CLIMBS = {
    "symbols": (symbols(800), symbol_chain(3, 0.01, seed=1), Smoothing(0.0, 0.01)),
    "weighted sequences": (
        symbols(800, [1, 500, 2, 297], [1.0, 2.5, 0.0, 1.0]), symbol_chain(6, 0.0, seed=2), Smoothing(0.5, 0.0)
    ),
    "one state": (symbols(50), symbol_chain(1, 0.01), Smoothing()),
    "counts": (
        counts(400, coded=True, missing=False), rates([[1.0, 2], [3, 4], [5, 6]]), Smoothing()
    ),
    "missing counts": (
        counts(400, coded=False, missing=True), rates([[1.0, 1], [5, 6]]), Smoothing(0, 0.1)
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CLIMBS)
@pytest.mark.parametrize(("max_iter", "tol"), [(1, 0.0), (12, 1e-6), (60, 1e-5)])
def test_climbs_match_the_loop_in_python(name, max_iter, tol):
    data, parameters, smoothing = CLIMBS[name]
    climbs = [
        baum_welch(recursions, parameters, smoothing=smoothing, max_iter=max_iter, tol=tol)
        for recursions in (ShortRecursions(data), ForwardBackward(data))
    ]
    found, wanted = climbs
    np.testing.assert_allclose(found.trace.values, wanted.trace.values, atol=CLIMBED)
    assert (found.trace.n_iter, found.trace.reason) == (wanted.trace.n_iter, wanted.trace.reason)
    np.testing.assert_allclose(found.state.transmat, wanted.state.transmat, atol=1e-4)  # the root of that, where flat
    np.testing.assert_allclose(found.state.startprob, wanted.state.startprob, atol=1e-4)
    np.testing.assert_allclose(found.state.emission.pack(), wanted.state.emission.pack(), atol=1e-3)


def test_what_it_is_given_stays_as_it_is():
    data, parameters, smoothing = CLIMBS["symbols"]
    before = parameters.emission.probabilities.copy()
    baum_welch(ShortRecursions(data), parameters, smoothing=smoothing)
    np.testing.assert_array_equal(parameters.emission.probabilities, before)


def test_other_observations_than_the_alphabet_are_left_to_python():
    data, parameters, smoothing = CLIMBS["symbols"]
    data = replace(data, values=np.append(np.arange(SYMBOLS)[::-1], -1))
    found, wanted = (
        baum_welch(recursions, parameters, smoothing=smoothing, max_iter=10)
        for recursions in (ShortRecursions(data), ForwardBackward(data))
    )
    np.testing.assert_allclose(found.trace.values, wanted.trace.values, atol=CLIMBED)


def test_short_data_and_no_others_are_taken_step_by_step():
    assert type(recursions_of(symbols(SHORT))) is ShortRecursions
    assert type(recursions_of(symbols(SHORT + 1))) is ForwardBackward


def climb(**change):
    given = {
        "index": np.zeros(3, dtype=np.int32), "first": np.array([1, 0, 0], dtype=np.uint8), "weights": np.empty(0),
        "k": 2, "n_symbols": 2, "start": 0.0, "transitions": 0.0, "emissions": 0.0, "total": 3.0, "tol": 0.0,
        "patience": 3, "state": np.full(10, 0.5), "seen": np.empty(4),
    }  # fmt: skip
    return short_chains.climb_symbols(*(given | change).values())


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"index": np.array([0, 3, 0], dtype=np.int32)}, IndexError),
        ({"index": np.array([0, -1, 0], dtype=np.int32)}, IndexError),
        ({"index": np.empty(0, dtype=np.int32), "first": np.empty(0, dtype=np.uint8)}, ValueError),
        ({"first": np.array([0, 0, 0], dtype=np.uint8)}, ValueError),
        ({"first": np.array([1, 0], dtype=np.uint8)}, ValueError),
        ({"weights": np.ones(2)}, ValueError),
        ({"state": np.full(9, 0.5)}, ValueError),
        ({"k": 0, "state": np.empty(0)}, ValueError),
        ({"n_symbols": 2**31 - 1}, ValueError),
        ({"total": 0.0}, ValueError),
    ],
)
def test_wrong_arguments_are_an_error(change, error):
    assert climb() == 4
    with pytest.raises(error):
        climb(**change)
