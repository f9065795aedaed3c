"""The benchmark of one fit against ten starts: its formulas, its plain EM, and how cells are counted."""

from __future__ import annotations

import warnings
from functools import partial

import numpy as np
import pytest
from scipy import sparse
from scipy.stats import multivariate_normal, poisson

import odeco
from benchmarks import trust, trust_ablation, trust_counts, trust_data, trust_tables
from benchmarks.provenance import Environment, Result, Section
from benchmarks.trust_data import Cell, Table
from benchmarks.trust_em import Mixture, Normals, Rates, Rows, Shares, indicators
from benchmarks.trust_models import least_variance, problem
from odeco.fitting.candidates import Candidate

RNG = np.random.default_rng(5)
POINTS = np.concatenate([RNG.standard_normal((150, 3)) * [1, 2, 3] + shift for shift in (0, 4)])
CODES = np.concatenate([RNG.choice(3, (200, 6), p=p) for p in ([0.7, 0.2, 0.1], [0.1, 0.2, 0.7])]).astype(float)
CODES[::9, 2] = np.nan
VIEWS = [POINTS, POINTS + RNG.standard_normal(POINTS.shape), POINTS**2]
WORDS = RNG.poisson(np.repeat(RNG.dirichlet(np.full(30, 0.3), 2) * 40, 100, axis=0)).astype(float)


@pytest.fixture
def data(monkeypatch):
    """Small data in the place of real ones, under the name of "points"."""
    table = Table(CODES, ("categorical",) * 6)
    votes = np.nan_to_num(CODES, nan=-1).astype(int).clip(max=1)
    replaced = {
        "measurements": lambda name: POINTS,
        "views": lambda name: VIEWS,
        "table": lambda name: table,
        "labels": lambda name: votes,
        "counts": lambda name: sparse.csr_array(WORDS),
        "symbols": lambda name: (CODES[:, :1].astype(int), np.array([150, 250])),
        "sequences": lambda name: (POINTS, np.array([100, 200])),
    }
    for function, found in replaced.items():
        monkeypatch.setattr(trust_data, function, found)
    return replaced


def fitted(cell):
    """Our model for a cell, and its value in the benchmark's formula."""
    found = problem(cell)
    model = found.ours(0)
    return model, found.judge(model).value


@pytest.mark.filterwarnings("ignore::odeco.MomentWarning")
@pytest.mark.parametrize("kind", ["spherical", "diag", "full", "tied"])
def test_gaussians_are_judged_by_what_they_say_themselves(data, kind):
    model, value = fitted(Cell(f"GaussianMixture {kind}", "points", 2))
    assert value == pytest.approx(model.score(POINTS), abs=1e-9)


@pytest.mark.filterwarnings("ignore::odeco.MomentWarning")
def test_tables_and_views_are_judged_by_what_they_say_themselves(data):
    model, value = fitted(Cell("ProductMixture", "points", 2))
    assert value == pytest.approx(model.score(CODES), abs=1e-9)
    model, value = fitted(Cell("MultiViewMixture", "points", 2))
    assert value == pytest.approx(model.score(VIEWS), abs=1e-9)


@pytest.mark.filterwarnings("ignore::odeco.MomentWarning")
def test_pseudo_counts_count_for_both(data):
    votes = data["labels"]("points")
    crowd, value = fitted(Cell("DawidSkene", "points", 2))
    prior = 0.5 * (np.log(crowd.confusion_).sum() + np.log(crowd.weights_).sum())
    assert value == pytest.approx(crowd.score(votes) + prior / len(votes), abs=1e-9)
    topics, value = fitted(Cell("SingleTopicModel", "points", 2))
    prior = 0.01 * (np.log(topics.components_).sum() + np.log(topics.weights_).sum())
    joint = WORDS @ np.log(topics.components_).T + np.log(topics.weights_)
    assert value == pytest.approx(np.logaddexp(*joint.T).mean() + prior / len(WORDS), abs=1e-6)


@pytest.mark.filterwarnings("ignore::odeco.MomentWarning")
@pytest.mark.parametrize("name", ["CategoricalHMM", "GaussianHMM diag", "GaussianHMM full"])
def test_chains_are_judged_by_what_they_say_themselves(data, name):
    pytest.importorskip("hmmlearn")
    x, lengths = data["symbols" if name == "CategoricalHMM" else "sequences"]("points")
    model, value = fitted(Cell(name, "points", 2))
    assert value == pytest.approx(model.score(x, lengths) / len(x), abs=1e-9)


def test_a_least_variance_is_that_of_any_direction():
    thin = np.array([[1.0, 0.999], [0.999, 1.0]])
    assert least_variance(np.stack([np.eye(2), thin]), "full") == pytest.approx(1e-3)
    assert least_variance(np.array([[1.0, 2.0], [3.0, 0.5]]), "diag") == 0.5


def test_the_objective_is_the_log_likelihood_of_every_family():
    codes = np.array([[0, 1.0], [1, np.nan], [1, 1]])
    counts, points = np.array([[0.0], [3], [7]]), np.array([[0.0], [1], [-2]])
    rows = Rows([Shares(*indicators(codes)), Rates(counts), Normals(points)], np.array([1.0, 2.0, 1.0]))
    tables = np.array([[0.25, 0.75, 0.4, 0.6], [0.5, 0.5, 0.9, 0.1]])
    normal = np.array([[[0.0], [1.0]], [[1.0], [4.0]]])
    mixture = Mixture(np.array([0.3, 0.7]), [tables, np.array([[1.0], [5.0]]), normal])
    answers = np.array([[0.25 * 0.6, 0.5 * 0.1], [0.75, 0.5], [0.75 * 0.6, 0.5 * 0.1]])
    densities = np.hstack([multivariate_normal(m, v).pdf(points)[:, None] for m, v in ((0, 1), (1, 4))])
    joint = answers * poisson.pmf(counts, [1, 5]) * densities * [0.3, 0.7]
    assert rows.objective(mixture) == pytest.approx([1, 2, 1] @ np.log(joint.sum(axis=1)) / 4, abs=1e-12)


@pytest.mark.parametrize("smoothing", [0.1, 5.0])
def test_plain_em_never_loses_and_ends_at_a_mode(smoothing):
    features, blocks = indicators(CODES)
    rows = Rows([Shares(features, blocks, smoothing), Normals(CODES[:, :1])], np.ones(len(CODES)), smoothing)
    start = rows.random_start(2, 0)
    values = [rows.objective(rows.fit(start, max_iter=steps, tol=-np.inf)) for steps in range(30)]
    assert np.diff(values).min() > -1e-12
    assert values[-1] > values[0] + 0.1
    end = rows.fit(start, tol=1e-13)
    tables, normals = end.parameters
    np.testing.assert_allclose(np.bincount(blocks, tables[0]), 1)
    for step in (-0.01, 0.01):  # from equal shares, and towards them
        assert rows.objective(Mixture(end.weights, [tables + step * (1 / 3 - tables), normals])) < rows.objective(end)
        weights = end.weights + step * (1 / 2 - end.weights)
        assert rows.objective(Mixture(weights, end.parameters)) <= rows.objective(end)


# How cells are counted


def peer(value, least=None, estimator="GaussianMixture diag", data="geyser", k=2):
    runs = {"value": value, "least_variance": least or [1.0] * len(value), "seconds": [1.0] * len(value)}
    return Cell(estimator, data, k).plain() | runs


def ours(value, *, least=None, verdict="FINE", warned=0, **cell):
    """Three equal fits."""
    said = {"verdict": [verdict] * 3, "warnings": [warned] * 3, "method": ["moments"] * 3}
    return peer([value] * 3, [1.0 if least is None else least] * 3, **cell) | said


@pytest.mark.parametrize(
    ("peers", "fit", "outcome"),
    [
        (peer([-2.0, -1.0]), ours(-0.99), "won"),
        (peer([-2.0, -1.0]), ours(-1.0009), "tied"),
        (peer([-2.0, -1.0]), ours(-1.002), "lost"),
        (peer([-2.0, None]), ours(-1.0), "won"),
        (peer([-2.0, -1.0], [1.0, 1e-6]), ours(-1.5), "won"),  # not lost to a component on one point
        (peer([-2.0, -1.0], [1e-6, 1e-6]), ours(-1.5), "degenerate"),
        (peer([-2.0, -1.0]), ours(9.0, least=1e-6), "degenerate"),
        (peer([-2.0, -1.0]), ours(-3.0, least=1e-6), "lost"),
        (peer([-2.0, -1.0]), ours(None), "lost"),
        (peer([100.0, 90.0], estimator="ICA"), ours(90.4, estimator="ICA"), "tied"),
        (peer([100.0, 90.0], estimator="ICA"), ours(91.0, estimator="ICA"), "lost"),
        (peer([100.0, 90.0], estimator="ICA"), ours(89.0, estimator="ICA"), "won"),
    ],
)
def test_a_cell_is_won_tied_lost_or_degenerate(peers, fit, outcome):
    (fits,) = trust_tables.compare([peers], [fit])
    assert [one.outcome for one in fits] == [outcome] * 3


def test_the_middle_fit_stands_for_a_cell():
    row = ours(-1.0) | {"value": [-1.0, -3.0, -2.0], "verdict": ["FINE", "DOUBT", "FINE"], "seconds": [1.0, 2.0, 3.0]}
    (fits,) = trust_tables.compare([peer([-1.5] * 10)], [row])
    one = trust_tables.middle(fits)
    assert (one.ours, one.outcome, one.loss, one.warned) == (-2.0, "lost", 0.5, False)
    assert one.time_ratio == pytest.approx(0.3)
    assert one.unsettled == (max(row["value"]) - min(row["value"]) > 0.001)


def test_tables_show_counts_warnings_and_lost_cells():
    grid = {"data": "penguins"}
    peers = [peer([-1.0] * 10), peer([-1.0] * 10, **grid), peer([-1.0] * 10, k=3), peer([-1.0], [1e-7], k=4)]
    before = [ours(-5.0), ours(-1.5, **grid), ours(-1.0, k=3), ours(-1.0, k=4)]
    fits = [ours(-0.5), ours(-1.5, verdict="DOUBT", **grid), ours(-1.0, warned=1, k=3), ours(-1.0, k=4)]
    runs = {"peers": peers, "before": before, "fits": fits}
    machine = Environment("3", "one processor", {"odeco": "0"})

    def told(cells):
        settings = {"cells": cells}
        sections = {name: Section(machine, ("metrics.py",), rows, settings=settings) for name, rows in runs.items()}
        return trust.docs_tables(Result(sections, {}))

    text = told(4)
    assert "cells are compared" not in text
    assert "**4 of the 9 cells are compared.**" in told(9)
    lines = text.splitlines()
    assert "| GaussianMixture diag | tuning | 1 | 0 / 0 / 1 | 0.5000 | 0.1 | 0 / 0 / 1 | 0.5000 | 0.1 |" in lines
    assert "| GaussianMixture diag | judging | 2 | 0 / 1 / 1 | 4.0000 | 0.1 | 1 / 1 / 0 |  | 0.1 |" in lines
    assert "| **all** | both | 3 | 0 / 1 / 2 | 4.0000 | 0.1 | 1 / 1 / 1 | 0.5000 | 0.1 |" in lines
    assert "| both | before | 9 | 0 | 6 | 0 |  | 0.00 | 0 | 0 |  |  |" in lines
    assert "| both | now | 9 | 6 | 3 | 3 | 0.50 | 1.00 | 0 | 0 | 0.00 |  |" in lines
    assert "| GaussianMixture diag | penguins | 2 | tuning | -1.5000 | -1.0000 | 0.5000 | 3 of 3 |" in lines
    assert "1 of 4 cells (GaussianMixture diag 1)" in text


def test_a_fit_that_fails_is_noted_and_one_that_warns_too(data):
    def fails():
        raise odeco.MomentError("no such moments")

    found = problem(Cell("GaussianMixture diag", "points", 2))
    row = trust._fit(fails, found)
    assert (row["value"], row["verdict"], row["method"]) == (None, "FAILED", "no such moments")

    def warns():
        warnings.warn("take care", odeco.MomentWarning, stacklevel=1)
        return found.ours(0)

    assert trust._fit(warns, found)["warnings"] == trust._fit(lambda: found.ours(0), found)["warnings"] + 1


def test_a_few_cells_are_measured_whole(real_data):
    real_data("geyser")
    quick = trust_data.cells(quick=True)
    assert {cell.group for cell in quick} == {"tuning", "judging"}
    assert set(quick) < set(trust_data.cells())
    assert len(set(trust_data.cells())) == len(trust_data.cells())
    (cell,) = [cell for cell in quick if cell.estimator == "GaussianMixture full"]
    found = problem(cell)
    rows = [cell.plain() | measure(found) for measure in trust.SECTIONS.values()]
    (fits,) = trust_tables.compare(rows[:1], rows[1:2])
    assert set(trust_ablation.WAYS) < set(rows[2])
    assert all(one.outcome != "lost" for one in fits)  # an easy one; rounded values may be found to be spikes
    assert sum(one.outcome == "tied" for one in fits) >= 2
    assert len(rows[0]["value"]) == 10


def test_numbers_of_components_are_counted_by_bic_and_by_halves() -> None:
    """Three far clusters: all agree."""
    rng = np.random.default_rng(0)
    x = np.array([[0.0, 0], [20, 0], [0, 20]])[rng.integers(3, size=240)] + rng.standard_normal((240, 2))
    make = partial(odeco.GaussianMixture, covariance_type="diag", random_state=0)
    found = trust_counts.count(trust_counts.Counted("clusters", "drawn", make, (x,), trust_counts._rows, len(x)))
    assert (found["bic"], found["held_out"], found["suggested"]) == (3, 3, [3, 3, 3])
    chains = trust_counts._chains((np.arange(6)[:, None], np.array([1, 2, 3])), np.array([0, 2]))
    assert chains[0].ravel().tolist() == [0, 3, 4, 5]
    assert chains[1].tolist() == [1, 3]


@pytest.mark.parametrize(
    ("way", "gone"),
    [
        ("without larger mixtures, merged", {"larger"}),
        ("without the theorem's start", {"theorem"}),
        ("without starts by chance", {"chance"}),
        ("all", set()),
    ],
)
def test_a_part_of_the_search_is_left_out(way, gone):
    rng = np.random.default_rng(0)
    x = 3 * rng.standard_normal((4, 5))[rng.choice(4, 400)] + rng.standard_normal((400, 5))
    with trust_ablation.searching(way):
        names = [name for name, _ in odeco.GaussianMixture(4, random_state=0).fit(x).diagnostics_.details["starts"]]
    left = {trust_ablation.origin(Candidate(name, lambda: None)) for name in names}
    assert left == {"larger", "theorem", "chance"} - gone


def test_searches_without_moves_and_their_table():
    rng = np.random.default_rng(0)
    with trust_ablation.searching("without moves"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        moved = odeco.GaussianMixture(6, random_state=0).fit(rng.random((300, 3))).diagnostics_.details["moves"]
    assert moved == 0
    row = {way: {"value": -1.0, "seconds": 2.0} for way in trust_ablation.WAYS}
    text = trust_ablation.tables([row, row | {"one finalist": {"value": -1.5, "seconds": 1.0}}])
    assert "| one finalist | 1 / 0 | 0.2500 | 0.500 | 0.75 |" in text
    assert "| without moves | 0 / 0 | 0.0000 | 0.000 | 1.00 |" in text
