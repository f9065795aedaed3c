"""Hidden Markov chains as the search for a start sees them: mergers, splits, and the effort of a fit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from odeco import CategoricalHMM, GaussianHMM, MomentWarning, PoissonHMM
from odeco.fitting.candidates import EFFORTS, Candidate, search
from odeco.models.hmm import landscape as module
from odeco.models.hmm.landscape import ChainLandscape, merger_costs
from odeco.models.hmm.policy import POLICY
from odeco.refinement.categorical_emission import CategoricalEmission
from odeco.refinement.emissions import HMMParameters
from odeco.refinement.hmm import Smoothing
from odeco.simulate import categorical_hmm, markov_chain
from odeco.sources.sequences import Sequences

TRANSMAT = np.array([[0.9, 0.07, 0.03, 0.0], [0.1, 0.8, 0.05, 0.05], [0.02, 0.08, 0.85, 0.05], [0.1, 0.1, 0.1, 0.7]])
MEANS = 3.0 * np.array([[0.0, 0], [1, 0], [0, 1], [1, 1]])
LENGTHS = (150, 80, 1, 169)
SHORT = {"tol": 1e-4, "max_iter": 500}


def drawn() -> dict[str, tuple[Any, np.ndarray]]:
    """An estimator and its observations, by name: 400 steps of four states."""
    rng = np.random.default_rng(0)
    states = markov_chain(sum(LENGTHS), TRANSMAT, random_state=rng)
    points = MEANS[states] + rng.standard_normal((len(states), 2))
    symbols = np.where(rng.random(len(states)) < 0.8, states, rng.integers(6, size=len(states)))
    found: dict[str, tuple[Any, np.ndarray]] = {
        kind: (GaussianHMM(4, covariance_type=kind), points) for kind in ("spherical", "diag", "full", "tied")
    }
    holes = np.where(rng.random(points.shape) < 0.1, np.nan, points)
    found["missing"] = GaussianHMM(4), holes
    found["symbols"] = CategoricalHMM(4), symbols
    found["counts"] = PoissonHMM(4), rng.poisson(1 + points.clip(0))
    found["one count"] = PoissonHMM(4), rng.poisson(1 + points[:, :1].clip(0))
    return found


CASES = drawn()
NAMES = pytest.mark.parametrize("name", list(CASES))


def climbed(name: str, weights: list[float] | None = None) -> tuple[ChainLandscape, Any]:
    """A landscape, and what a few passes make of a quick start."""
    model, x = CASES[name]
    parts = np.split(x, np.cumsum(LENGTHS)[:-1])
    model.set_params(effort="quick", random_state=0, **SHORT).fit(x, LENGTHS)
    data = model._encode(parts, None, weights, reset=False)
    return ChainLandscape(data, Smoothing(0.0, 0.01)), model._parameters()


def complete(state: Any, expected: Any) -> float:
    """The largest expected log-likelihood of states and observations, up to terms that no merger changes."""
    total = 0.0
    for counts in (expected.start, *expected.transitions):
        total += sum(n * np.log(n / counts.sum()) for n in counts if n > 0)
    emission = state.emission.maximize(expected.emission)
    if hasattr(emission, "covars") and emission.covars.ndim == 2 and type(emission).__name__ == "TiedGaussian":
        emission = type(emission)(emission.means, state.emission.covars, emission.center, emission.scale)
    return total + float(emission.expected(expected.emission).sum())


@NAMES
def test_a_merger_costs_what_the_expected_likelihood_loses(name: str) -> None:
    land, state = climbed(name)
    expected = land.recursions.expectations(state)
    costs = merger_costs(state, expected)
    before = complete(state, expected)
    for i, j in ((0, 1), (1, 3), (2, 3)):
        adding = np.delete(np.eye(4), j, axis=0)
        adding[i, j] = 1.0
        joined = type(expected)(
            0.0,
            adding @ expected.start,
            adding @ expected.transitions @ adding.T,
            tuple(np.tensordot(adding, sums, 1) for sums in expected.emission),
        )
        loss = before - complete(state.permute(np.delete(np.arange(4), j)), joined)
        assert costs[i, j] == pytest.approx(loss, rel=1e-8, abs=1e-6)  # sums of 400 terms
        assert costs[j, i] == costs[i, j]
    assert np.isinf(np.diagonal(costs)).all()


@NAMES
def test_splitting_keeps_totals(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is expected of the two halves of a state is, added up, what was expected of it."""
    land, state = climbed(name, [1.0, 2.0, 0.5, 1.0])
    seen = []
    original = module.maximize
    monkeypatch.setattr(module, "maximize", lambda *given: seen.append(given[1]) or original(*given))
    assert land.split(state, np.random.default_rng(0), 8).n_components == 8
    whole, adding = land.recursions.expectations(state), np.hstack([np.eye(4), np.eye(4)])
    np.testing.assert_allclose(adding @ seen[0].start, whole.start, atol=1e-8)
    np.testing.assert_allclose(adding @ seen[0].transitions @ adding.T, whole.transitions, atol=1e-6)
    for halves, sums in zip(seen[0].emission, whole.emission, strict=True):
        np.testing.assert_allclose(np.tensordot(adding, halves, 1), sums, atol=1e-6)


@NAMES
def test_a_weight_is_a_repetition(name: str) -> None:
    once, state = climbed(name, [2.0, 1.0, 3.0, 1.0])
    model, x = CASES[name]
    parts = np.split(x, np.cumsum(LENGTHS)[:-1])
    repeated = [parts[i] for i, n in enumerate((2, 1, 3, 1)) for _ in range(n)]
    often = ChainLandscape(model._encode(repeated, None, None, reset=False), once.smoothing)
    for one, two in (
        (once.merge(state, 1), often.merge(state, 1)),
        (once.split(state, np.random.default_rng(0), 8), often.split(state, np.random.default_rng(0), 8)),
        (once.climb(state, 3, 0.0)[0], often.climb(state, 3, 0.0)[0]),
    ):
        np.testing.assert_allclose(one.transmat, two.transmat, atol=1e-7)
        np.testing.assert_allclose(one.emission.pack(), two.emission.pack(), atol=1e-5)


def test_states_that_emit_alike_are_split_by_their_neighbours() -> None:
    """0 1 2 1 0 1 2 1 ...: what follows a 1 depends on what went before it, and nothing else tells its two states."""
    x = np.tile([0, 1, 2, 1], 100)
    data = Sequences(np.array([0, 1, 2, -1]), x, np.array([0, 400]))
    start = HMMParameters(np.ones(3) / 3, np.full((3, 3), 1 / 3), CategoricalEmission(0.98 * np.eye(3) + 0.01 / 1.5))
    land = ChainLandscape(data, Smoothing())
    state, value = land.climb(start, 50, 1e-8)
    assert value < -0.3  # log(2) / 2 for each step: after a 1 anything may come
    halved, better = land.climb(land.split(state, np.random.default_rng(0), 8), 50, 1e-8)
    assert halved.n_components == 6
    assert better > -0.02


def test_a_search_leaves_a_local_optimum() -> None:
    """Two states on one, one on two others: Baum-Welch alone stays there, moves find all of them."""
    transmat = 0.9 * np.eye(5) + 0.02
    emissions = 0.9 * np.repeat(np.eye(5), 2, axis=1) / 2 + 0.01
    x = categorical_hmm(3_000, transmat, emissions, random_state=1).observations[:, 0]
    land = ChainLandscape(Sequences(np.append(np.arange(10), -1), x, np.array([0, 3_000])), Smoothing(0.0, 0.01))
    wrong = emissions.copy()
    wrong[3] = (emissions[3] + emissions[4]) / 2
    wrong[0], wrong[4] = emissions[0] * np.tile([1.9, 0.1], 5), emissions[0] * np.tile([0.1, 1.9], 5)
    start = HMMParameters(
        np.full(5, 0.2), transmat, CategoricalEmission(wrong / wrong.sum(axis=1, keepdims=True), 0.01)
    )
    truth = HMMParameters(np.full(5, 0.2), transmat, CategoricalEmission(emissions, 0.01))
    stuck, best = land.climb(start, 30, 1e-6)[1], land.climb(truth, 100, 1e-7)[1]
    found = search(land, [Candidate("wrong", lambda: start)], 5, EFFORTS["auto"], np.random.default_rng(0))
    assert stuck < best - 0.02
    assert found.best.value > best - 1e-3
    assert found.best.moves >= 1


@NAMES
def test_efforts(name: str) -> None:
    """All three give a model; longer searches are not worse, and say what they did."""
    model, lengths = CASES[name][0], LENGTHS[:3]
    x = CASES[name][1][: sum(lengths)]
    options = {"n_components": 2, "random_state": 0, "tol": 1e-6}  # there are four: many optima
    scores = []
    for effort in ("quick", "auto", "thorough"):
        fit = type(model)(**{**model.get_params(), **options, "effort": effort}).fit(x, lengths)
        scores.append(fit.score(x, lengths) / len(x))
        assert ("starts" in fit.diagnostics_.details) == (effort != "quick")
    assert scores[0] < scores[1] + 1e-3
    assert scores[1] < scores[2] + 1e-3


@pytest.mark.parametrize("model", [CategoricalHMM, GaussianHMM, PoissonHMM])
@pytest.mark.parametrize("effort", ["slow", None, 3, ["auto"]])
def test_an_effort_that_is_none_is_named(model: Any, effort: Any) -> None:
    assert "effort" in model().get_params()
    with pytest.raises(ValueError, match="effort must be 'auto', 'quick' or 'thorough', got"):
        model(2, effort=effort).fit(np.arange(20) % 3)


@pytest.mark.parametrize("k", [2, 3, 5])
def test_the_states_that_the_data_show_are_counted_whatever_is_asked_for(k: int) -> None:
    rng = np.random.default_rng(4)
    states = markov_chain(4_000, TRANSMAT[:3, :3] / TRANSMAT[:3, :3].sum(axis=1, keepdims=True), random_state=rng)
    model = GaussianHMM(k, random_state=0).fit(MEANS[states] + rng.standard_normal((4_000, 2)))
    assert model.diagnostics_.suggested_components == 3


def test_a_fit_that_has_not_converged_says_so() -> None:
    model, x = CASES["symbols"]
    options = {"effort": "quick", "tol": 1e-9, "random_state": 0}
    with pytest.warns(MomentWarning, match="Baum-Welch has not converged: max_iter steps"):
        short = type(model)(4, max_iter=3, **options).fit(x, LENGTHS)
    assert not short.monitor_.converged
    assert not short.diagnostics_.ok
    assert type(model)(4, **options).fit(x, LENGTHS).monitor_.converged


def test_states_are_merged_and_split_on_a_few_thousand_steps() -> None:
    codes = np.random.default_rng(0).integers(3, size=POLICY.small + 1)
    long = ChainLandscape(Sequences(np.arange(3), codes, np.array([0, codes.size])), Smoothing())
    short = long.coarse
    assert len(short.data) <= POLICY.small < len(long.data)
    assert short.coarse is short
