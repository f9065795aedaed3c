"""The search for a start: mergers, splits, and what is said of the outcomes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from odeco.fitting import landscape as landscapes
from odeco.fitting.candidates import EFFORTS, TRIAL, Candidate, Found, Outcome, rank, resize, said_of, search
from odeco.fitting.ladder import shared
from odeco.fitting.landscape import Landscape, cheapest_pairs, halves, merged, merging, pair_costs, seeds
from odeco.models.gaussian_mixture.landscape import GaussianLandscape
from odeco.refinement.gaussian_mixture import COVARIANCE_TYPES, Kept, Points
from odeco.sources.dense import DenseBatch

KINDS = pytest.mark.parametrize("kind", COVARIANCE_TYPES)
CENTRES = 20.0 * np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 1]])


def landscape(kind: str, x: np.ndarray, weights: np.ndarray | None = None) -> GaussianLandscape:
    rows = x - np.average(x, axis=0, weights=weights)
    variances = np.average(rows * rows, axis=0, weights=weights)
    scales = np.full(1, variances.mean()) if "spherical" in kind else variances
    total = np.cov(rows.T, bias=True, aweights=weights) if kind == "tied" else None
    points = Points([DenseBatch(rows, weights)], None, np.float64, rows.shape[1], kept=Kept(len(rows)))
    return GaussianLandscape(rows, weights, points, kind, scales, 1e-6, total)


@pytest.fixture(scope="module")
def five_clusters() -> np.ndarray:
    rng = np.random.default_rng(3)
    return CENTRES[rng.integers(5, size=800)] + rng.standard_normal((800, 3))


def from_labels(land: GaussianLandscape, labels: np.ndarray) -> object:
    return land.of_shares(np.eye(labels.max() + 1)[labels].T.copy())


def distance_to_centres(land: GaussianLandscape, state: object, x: np.ndarray) -> float:
    found = state.means + x.mean(axis=0)  # type: ignore[attr-defined]
    return float(max(np.linalg.norm(found - centre, axis=1).min() for centre in CENTRES))


@KINDS
def test_a_search_leaves_a_local_optimum(kind: str, five_clusters: np.ndarray) -> None:
    """Two components on one cluster, one on two others: EM alone stays there, moves find all five."""
    x = five_clusters
    land = landscape(kind, x)
    nearest = np.argmin(((x[:, None] - CENTRES) ** 2).sum(axis=2), axis=1)
    wrong = np.where(nearest == 4, 3, nearest)  # clusters 3 and 4 are one component ...
    wrong[(nearest == 0) & (x[:, 0] > 0)] = 4  # ... and cluster 0 is two
    start = from_labels(land, wrong)
    stuck, value = land.climb(start, 20, 0.0)
    found = search(land, [Candidate("wrong", lambda: start)], 5, EFFORTS["auto"], np.random.default_rng(0))
    assert distance_to_centres(land, stuck, x) > 2
    assert distance_to_centres(land, found.best.state, x) < 0.5
    assert found.best.value > value + 0.05
    assert found.best.moves >= 1


def test_a_search_begins_where_one_for_more_components_ended(five_clusters: np.ndarray) -> None:
    """It is one of the starts; short looks neither leave nor take one, and projected rows take none."""
    land, rng = landscape("spherical", five_clusters), np.random.default_rng(0)
    poor = [Candidate("poor", lambda: from_labels(land, np.arange(len(five_clusters)) % 2))]
    alone = replace(EFFORTS["auto"], patience=1, most_moves=0)
    with shared(ladder := {}):
        search(land, poor, 7, TRIAL, rng)
        assert not ladder
        search(land, poor, 5, EFFORTS["auto"], rng)
        assert sorted(ladder) == [5]
        names = {each.name for each in search(land, poor, 4, alone, rng).outcomes}
        assert names == {"poor", "the fit of 5 components, merged"}
        assert [each.name for each in search(land, poor, 6, alone, rng).outcomes] == ["poor"]
        projected = replace(land, points=replace(land.points, rest=np.zeros(len(five_clusters))))
        assert [each.name for each in search(projected, poor, 3, alone, rng).outcomes] == ["poor"]
    assert [each.name for each in search(land, poor, 4, alone, rng).outcomes] == ["poor"]


@KINDS
@pytest.mark.parametrize("size", [1, 3, 5, 11])
def test_candidates_of_any_size_get_k_components(kind: str, size: int, five_clusters: np.ndarray) -> None:
    land = landscape(kind, five_clusters)
    start = from_labels(land, np.arange(len(five_clusters)) % size)
    state = resize(land, start, 5, EFFORTS["auto"], np.random.default_rng(0))
    assert land.size(state) == 5
    assert state.weights.sum() == pytest.approx(1)


@pytest.mark.parametrize("most_numbers", [2**22, 1])
def test_mergers_count_the_weights_of_components_whatever_is_judged_at_a_time(most_numbers, monkeypatch) -> None:
    """Where nothing else differs, ``n log n`` does: 1 and 5 are joined at less cost than 1 and 1."""
    monkeypatch.setattr(landscapes, "_MOST_NUMBERS", most_numbers)
    first = np.arange(6.0).reshape(3, 2)
    totals, found = merged((np.array([1.0, 1.0, 5.0]), first), lambda sums: np.zeros(len(sums[0])), 1)
    np.testing.assert_array_equal(totals, [6.0, 1.0])
    np.testing.assert_array_equal(found, [first[0] + first[2], first[1]])


@KINDS
def test_a_merger_costs_what_the_expected_likelihood_loses(kind: str, five_clusters: np.ndarray) -> None:
    """Two halves of one cluster are merged before any two clusters, and the merged component is the whole cluster."""
    land = landscape(kind, five_clusters)
    labels = np.argmin(((five_clusters[:, None] - CENTRES) ** 2).sum(axis=2), axis=1)
    halved = labels.copy()
    halved[np.flatnonzero(labels == 2)[::2]] = 5
    merged = land.merge(from_labels(land, halved), 1)
    whole = from_labels(land, labels)
    order, expected = np.argsort(merged.means @ [1, 10, 100]), np.argsort(whole.means @ [1, 10, 100])
    np.testing.assert_allclose(merged.means[order], whole.means[expected], atol=0.05)


@KINDS
def test_weights_count_as_repetitions(kind: str, five_clusters: np.ndarray) -> None:
    weights = 1.0 + np.arange(len(five_clusters)) % 3
    once, labels = landscape(kind, five_clusters, weights), np.arange(len(five_clusters)) % 4
    often = landscape(kind, np.repeat(five_clusters, weights.astype(int), axis=0))
    start = once.of_shares(np.eye(4)[labels].T * weights)
    again = often.of_shares(np.repeat(np.eye(4)[labels], weights.astype(int), axis=0).T.copy())
    for one, two in (
        (start, again),
        (once.merge(start, 1), often.merge(again, 1)),
        (once.split(start, np.random.default_rng(0), 8), often.split(again, np.random.default_rng(0), 8)),
    ):
        np.testing.assert_allclose(one.means, two.means, atol=1e-8)
        np.testing.assert_allclose(one.weights, two.weights, atol=1e-10)


def test_halves_cut_across_the_longest_direction() -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((500, 4)) * [1, 5, 1, 1]
    two = halves(x, np.ones((1, 500)), rng, 8)
    np.testing.assert_allclose(two.sum(axis=0), 1)
    assert np.corrcoef(two[0], x[:, 1])[0, 1] ** 2 > 0.8


def test_halves_of_equal_rows_are_finite() -> None:
    two = halves(np.ones((10, 3)), np.ones((2, 10)) / 2, np.random.default_rng(0), 8)
    assert np.isfinite(two).all()
    np.testing.assert_allclose(two.sum(axis=0), 1)


def test_pairs_are_disjoint_and_cheapest_first() -> None:
    costs = np.array([[np.inf, 1, 2, 9], [1, np.inf, 0.5, 9], [2, 0.5, np.inf, 9], [9, 9, 9, np.inf]])
    assert cheapest_pairs(costs, 1) == [(1, 2)]
    assert cheapest_pairs(costs, 2) == [(1, 2), (0, 3)]
    np.testing.assert_array_equal(merging(4, [(1, 2)]) @ np.arange(8).reshape(4, 2), [[0, 1], [6, 8], [6, 7]])
    one = np.array([1.0, 2.0, 4.0])
    found = pair_costs(one, lambda i, j: (one[i] + one[j]) / 2)
    assert found[0, 1] == found[1, 0] == 1.5
    assert np.isinf(np.diag(found)).all()


def outcome(name: str, value: float, degenerate: bool = False, *, chance: bool = False) -> Outcome[None]:
    return Outcome(Candidate(name, lambda: None, chance), None, value, degenerate)


def test_spikes_come_last_and_ties_keep_their_order() -> None:
    ranked = rank([outcome("a", 1.0), outcome("spike", 9.0, True), outcome("c", 2.0), outcome("d", 2.00005)])
    assert [each.name for each in ranked] == ["c", "d", "a", "spike"]


def start_from(name: str, value: float, origin: str, made: list[str]) -> Candidate[float]:
    """A state that is its own value, and says when it is made."""

    def make() -> float:
        made.append(name)
        return value

    return Candidate(name, make, origin=origin)  # type: ignore[arg-type]


class Flat(Landscape[float]):
    """States are values that nothing makes larger; moves are counted."""

    weight = 1.0

    n_moves = 0

    def size(self, state):
        return 2

    def n_parameters(self, state):
        return 2

    def climb(self, state, n_steps, tol):
        return state, state

    def merge(self, state, n_pairs):
        return state

    def split(self, state, rng, n_powers):
        self.n_moves += 1
        return state

    def degenerate(self, state):
        return False


def searched(values: list[tuple[str, float]], enough: int = 5) -> tuple[Found[float], list[str], int]:
    """What is found, which candidates were made for it, and how many moves were tried."""
    made: list[str] = []
    candidates = [start_from(f"{i}", value, origin, made) for i, (origin, value) in enumerate(values)]
    flat, effort = Flat(), replace(EFFORTS["auto"], enough=enough)
    return search(flat, candidates, 2, effort, np.random.default_rng(0)), made, flat.n_moves


def test_a_search_ends_where_one_start_of_each_origin_has_ended_at_one_optimum() -> None:
    values = [("theorem", 1.0), ("theorem", 0.5), ("larger", 1.00002), ("larger", 2.0), ("field", 0.99998)]
    found, made, n_moves = searched(values)
    assert made == ["0", "4", "2"]  # one of each origin in turn
    assert n_moves == 0
    assert found.agreed
    assert found.best.name == "0"
    assert searched(values, enough=0)[1] == ["0", "4", "2", "1", "3"]


@pytest.mark.parametrize("odd", ["theorem", "field", "larger"])
def test_a_search_goes_on_where_the_three_do_not_agree(odd: str) -> None:
    values = [(origin, 0.9 if origin == odd else 1.0) for origin in ("theorem", "field", "larger") for _ in range(4)]
    found, made, n_moves = searched(values)
    assert len(made) == {"theorem": 8, "field": 7, "larger": 7}[odd]  # five of the other two
    assert n_moves == 2 * EFFORTS["auto"].patience  # of the best, and of one at the other optimum: no third one
    assert not found.agreed
    assert len(searched(values, enough=9)[1]) == 12


def test_many_of_one_origin_are_no_evidence() -> None:
    values = [("theorem", 1.0 - 0.1 * i) for i in range(2)] + [("field", 2.0)] * 7
    _, made, n_moves = searched(values)
    assert len(made) == 9
    assert n_moves > 1


def test_what_is_said_of_the_outcomes() -> None:
    found = Found((outcome("a", 1.0), outcome("b", 0.9995), outcome("c", 0.5)), 2)
    assert found.replicated == 2
    assert found.spread == pytest.approx(0.0005)
    assert found.details()["starts"] == [("a", 1.0), ("b", 0.9995), ("c", 0.5)]
    assert Found((outcome("a", 1.0),), 1).spread == 0.0
    assert str(found) == "the best of 3 starts (a; 2 ended there)"
    moved = Found((replace(outcome("a", 1.0), moves=1), outcome("b", 0.5)), 2)
    assert str(moved) == "the best of 2 starts (a, moved once; 1 ended there)"


def test_a_component_on_one_row_is_cut_without_dividing_by_its_width() -> None:
    x = np.array([[0.0, 0.0], [1e12, 1.0], [-1e12, 2.0]])
    cut = halves(x, np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 1.0]]), np.random.default_rng(0), 0)
    np.testing.assert_allclose(cut.sum(axis=0), 1)
    far = 1 / (1 + np.exp(-2.0))  # of a row that lies as far out as its component is wide
    np.testing.assert_allclose(np.sort(cut[[1, 3], 1:], axis=0), [[1 - far] * 2, [far] * 2])


def test_new_components_are_put_on_rows_that_fit_worst() -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((300, 2))
    x[:15] += 50
    grown = seeds(x, np.ones((1, 300)), -(x**2).sum(axis=1), 1, rng)
    np.testing.assert_allclose(grown.sum(axis=0), 1)
    assert grown[1, :15].sum() >= min(15, grown[1].sum())
    assert grown[1].sum() >= 2


@pytest.mark.parametrize("asked", [2, 5, 9])
def test_the_number_of_components_is_suggested_whatever_was_asked_for(asked: int, five_clusters: np.ndarray) -> None:
    land = landscape("full", five_clusters)
    start = from_labels(land, np.arange(len(five_clusters)) % asked)
    one, rng = [Candidate("any", lambda: start)], np.random.default_rng(0)
    found = search(land, one, asked, EFFORTS["auto"], rng, counted=True)
    assert found.suggested == {2: None, 5: 5, 9: 5}[asked]  # of 2, four at most are looked at: as many as there are
    assert found.idle == {2: 0, 5: 0, 9: 4}[asked]
    said = said_of(found, asked)
    assert (len(said) == 1 and "Lower n_components to 5" in said[0]) == (asked == 9)


def test_an_optimum_found_once_is_announced_where_it_was_found_by_chance() -> None:
    def said(best: Outcome[None], second: float) -> tuple[str, ...]:
        return said_of(Found((best, outcome("b", second)), 2), 3)

    assert "found from 1 of 2 starts; the next best, from 'b', is 0.5" in said(outcome("a", 1.0, chance=True), 0.5)[0]
    assert said(outcome("a", 1.0, chance=True), 0.995) == ()
    assert said(outcome("moments", 1.0), 0.5) == ()


def test_no_candidate_is_an_error(five_clusters: np.ndarray) -> None:
    nothing = Candidate("none", lambda: None)
    with pytest.raises(ValueError, match="no candidate"):
        search(landscape("diag", five_clusters), [nothing], 2, EFFORTS["auto"], np.random.default_rng(0))
