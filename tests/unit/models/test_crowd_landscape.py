"""The landscape of crowds: mergers, splits, weights, and what `effort` does."""

from __future__ import annotations

import numpy as np
import pytest

from odeco import DawidSkene, MomentWarning
from odeco.fitting.candidates import EFFORTS, Candidate, search
from odeco.models.dawid_skene.landscape import CrowdLandscape
from odeco.refinement.dawid_skene import CrowdPosteriors, crowd_log_joint
from odeco.sources.crowd import read_labels
from odeco.sources.votes import VoteBatch
from tests.oracles.mergers import merger_cost

K, N, W = 4, 600, 9


def draw(seed=0):
    """Labels (n, W), right in 85 of 100 cases, a fifth of them missing, and the classes."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(K, size=N)
    labels = np.where(rng.random((N, W)) < 0.85, truth[:, None], rng.integers(K, size=(N, W)))
    return np.where(rng.random((N, W)) < 0.8, labels, -1), truth


def landscape(labels, weights=None):
    return CrowdLandscape(VoteBatch(read_labels(labels, "wide").votes, weights), K, 1e-9)


def from_classes(land, classes):
    return land.of_shares(np.eye(classes.max() + 1)[classes].T.copy())


def test_a_merger_costs_what_the_expected_likelihood_loses():
    labels, truth = draw()
    land = landscape(labels)

    def likelihood(classes):
        return crowd_log_joint(land.batch.votes, from_classes(land, classes))[np.arange(N), classes].sum()

    expected = likelihood(truth) - likelihood(np.where(truth == 2, 0, np.where(truth == 3, 2, truth)))
    found = merger_cost(land, np.eye(K)[truth].T.copy(), 0, 2)
    assert found == pytest.approx(expected, rel=1e-6)  # smoothing is a billionth of a label


def test_halves_of_a_class_are_merged_first():
    labels, truth = draw()
    land = landscape(labels)
    halved = truth.copy()
    halved[np.flatnonzero(truth == 1)[::2]] = K
    merged = land.merge(from_classes(land, halved), 1)
    np.testing.assert_allclose(merged.confusion, from_classes(land, truth).confusion, atol=0.02)


def test_weights_count_as_repetitions_and_splitting_keeps_totals():
    labels, truth = draw()
    weights = 1.0 + np.arange(N) % 3
    repeat = np.repeat(np.arange(N), weights.astype(int))
    once, often = landscape(labels, weights), landscape(labels[repeat])
    start, again = once.of_shares(np.eye(K)[truth].T * weights), from_classes(often, truth[repeat])
    for one, two in (
        (start, again),
        (once.merge(start, 1), often.merge(again, 1)),
        (once.split(start, np.random.default_rng(0), 8), often.split(again, np.random.default_rng(0), 8)),
    ):
        np.testing.assert_allclose(one.weights, two.weights, atol=1e-9)
        np.testing.assert_allclose(one.confusion, two.confusion, atol=1e-7)
    doubled, sums = once.split(start, np.random.default_rng(0), 8).weights, CrowdPosteriors([start])
    sums.update(once.batch)
    np.testing.assert_allclose(doubled[:K] + doubled[K:], sums.totals[0] / weights.sum(), atol=1e-9)


def test_a_stuck_start_moves_free():
    """Two classes for one kind of items, one for two others: EM stays there, moves find all four."""
    labels, truth = draw()
    land = landscape(labels)
    wrong = np.where(truth == 3, 2, truth)
    wrong[(truth == 0) & (labels[:, 0] == 0)] = 3
    start = from_classes(land, wrong)
    _, stuck = land.climb(start, 60, 0.0)
    found = search(land, [Candidate("wrong", lambda: start)], K, EFFORTS["auto"], np.random.default_rng(0))
    _, best = land.climb(from_classes(land, truth), 60, 0.0)
    assert stuck < best - 0.1
    assert found.best.value > best - 1e-3
    assert found.best.moves >= 1


def test_a_crowd_whose_first_starts_are_stuck_says_what_led_further(monkeypatch):
    """All first starts are made the same wrong one: the search leaves it, and is named."""
    labels, truth = draw()
    wrong = np.where(truth == 3, 2, truth)
    wrong[(truth == 0) & (labels[:, 0] == 0)] = 3
    stuck = from_classes(landscape(labels), wrong)
    monkeypatch.setattr("odeco.models.dawid_skene.estimator._blurred", lambda parameters: stuck)
    with pytest.warns(MomentWarning, match="names of the classes are in doubt"):  # two names for one kind of items
        quick = DawidSkene(effort="quick", max_iter=15, random_state=0).fit(labels)
    model = DawidSkene(max_iter=15, random_state=0).fit(labels)
    assert model.lower_bound_ > quick.lower_bound_ + 0.1
    assert "the best of 7 starts" in model.diagnostics_.method
    assert model.diagnostics_.details["start"] == model.diagnostics_.details["starts"][0][0]
    assert np.mean(model.predict(labels) == truth) > 0.95


def test_effort():
    labels, _ = draw()
    with pytest.raises(ValueError, match="effort"):
        DawidSkene(effort="most").fit(labels)
    fits = {e: DawidSkene(effort=e, random_state=0).fit(labels) for e in ("quick", "auto", "thorough")}
    assert "starts" not in fits["quick"].diagnostics_.details
    assert "majority" not in fits["quick"].diagnostics_.method
    starts = {e: fits[e].diagnostics_.details["starts"] for e in ("auto", "thorough")}
    assert len(starts["thorough"]) > len(starts["auto"]) > 1
    # The posterior has smoothing in it, and so the likelihood alone may fall a little.
    assert fits["thorough"].lower_bound_ >= fits["auto"].lower_bound_ - 1e-3
    assert fits["auto"].lower_bound_ >= fits["quick"].lower_bound_ - 1e-3
    again = DawidSkene(random_state=0).fit(labels)
    np.testing.assert_array_equal(again.confusion_, fits["auto"].confusion_)
