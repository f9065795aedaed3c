"""The landscape of mixtures of views: mergers, splits, weights, and what `effort` does."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from odeco import MultiViewMixture
from odeco.fitting.candidates import EFFORTS, Candidate, search
from odeco.models.multiview.likelihoods import ViewLook, view_model
from odeco.models.multiview.search import sampled
from odeco.refinement.views import views_log_joint
from odeco.sources.views import ViewBatch, ViewSource
from tests.oracles.mergers import merger_cost

LIKELIHOODS = ("gaussian", "poisson", "bernoulli", "multinomial")
N, K = 800, 5


def draw(seed=0):
    """Four views of five components, one sparse, and the components."""
    rng = np.random.default_rng(seed)
    h = rng.integers(K, size=N)
    numbers = rng.normal(np.random.default_rng(1).normal(0, 6, (K, 4))[h], 1)
    counts = rng.poisson(np.random.default_rng(2).uniform(1, 30, (K, 4))[h]).astype(float)
    binary = (rng.random((N, 6)) < np.random.default_rng(3).uniform(0.05, 0.95, (K, 6))[h]).astype(float)
    words = np.stack([rng.multinomial(20, p) for p in np.random.default_rng(4).dirichlet(np.ones(8), K)[h]])
    return [numbers, counts, binary, sparse.csr_array(words.astype(float))], h


def landscape(views, weights=None):
    batch = ViewBatch(tuple(views), weights)
    look = ViewLook(batch.widths)
    look.update(batch)
    model = view_model(LIKELIHOODS, look.columns, 1e-9)
    return sampled(ViewSource(lambda: [batch]), look.columns, model, np.random.default_rng(0))


def from_labels(land, labels):
    return land.of_shares(np.eye(labels.max() + 1)[labels].T.copy())


def test_a_merger_costs_what_the_expected_likelihood_loses():
    views, h = draw()
    land = landscape(views)

    def likelihood(labels):
        joint = views_log_joint(land.batch.blocks, from_labels(land, labels), land.model)
        return joint[np.arange(N), labels].sum()

    expected = likelihood(h) - likelihood(np.where(h == 4, 1, h))
    found = merger_cost(land, np.eye(K)[h].T.copy(), 1, 4)
    assert found == pytest.approx(expected, rel=1e-6)  # smoothing is a billionth of a count


def test_halves_of_a_component_are_merged_first():
    views, h = draw()
    land = landscape(views)
    halved = h.copy()
    halved[np.flatnonzero(h == 2)[::2]] = K
    merged, whole = land.merge(from_labels(land, halved), 1), from_labels(land, h)
    order, expected = np.argsort(merged.means[1][:, 0]), np.argsort(whole.means[1][:, 0])
    for one, two in zip(merged.means, whole.means, strict=True):
        np.testing.assert_allclose(one[order], two[expected], atol=0.02, rtol=0.01)


def test_weights_count_as_repetitions_and_splitting_keeps_totals():
    views, _ = draw()
    weights, labels = 1.0 + np.arange(N) % 3, np.arange(N) % 4
    repeat = np.repeat(np.arange(N), weights.astype(int))
    once, often = landscape(views, weights), landscape([view[repeat] for view in views])
    start = once.of_shares(np.eye(4)[labels].T * weights)
    again = often.of_shares(np.eye(4)[labels[repeat]].T.copy())
    for one, two in (
        (start, again),
        (once.merge(start, 1), often.merge(again, 1)),
        (once.split(start, np.random.default_rng(0), 8), often.split(again, np.random.default_rng(0), 8)),
    ):
        # Features are told apart by noise of 1e-9, which differs.
        np.testing.assert_allclose(one.weights, two.weights, atol=1e-6)
        np.testing.assert_allclose(one.means[0], two.means[0], atol=1e-5)
    shares = once.posterior(start)[0].sum(axis=1) / weights.sum()
    halves = once.split(start, np.random.default_rng(0), 8).weights
    np.testing.assert_allclose(halves[:4] + halves[4:], shares, atol=1e-10)


def test_a_stuck_start_moves_free():
    views, h = draw()
    land = landscape(views)
    wrong = np.where(h == 4, 3, h)
    wrong[(h == 0) & (views[0][:, 0] > np.median(views[0][h == 0, 0]))] = 4
    start = from_labels(land, wrong)
    _, stuck = land.climb(start, 60, 0.0)
    found = search(land, [Candidate("wrong", lambda: start)], K, EFFORTS["auto"], np.random.default_rng(0))
    _, truth = land.climb(from_labels(land, h), 60, 0.0)
    assert stuck < truth - 0.1
    assert found.best.value > truth - 1e-3
    assert found.best.moves >= 1


def test_spikes_of_few_samples_are_degenerate():
    views, h = draw()
    views[0][:3, 0], h[:3] = 90.0, 5
    land = landscape(views)
    assert land.degenerate(from_labels(land, h))
    assert not land.degenerate(from_labels(land, np.where(h == 5, 0, h)))


def test_effort():
    views, _ = draw()
    with pytest.raises(ValueError, match="effort"):
        MultiViewMixture(3, effort="most").fit(views)
    fits = {e: MultiViewMixture(3, effort=e, random_state=0).fit(views) for e in ("quick", "auto", "thorough")}
    assert "starts" not in fits["quick"].diagnostics_.details
    starts = {e: fits[e].diagnostics_.details["starts"] for e in ("auto", "thorough")}
    assert len(starts["thorough"]) > len(starts["auto"]) > 1
    assert f"the best of {len(starts['auto'])} starts ({starts['auto'][0][0]}" in fits["auto"].diagnostics_.method
    assert fits["thorough"].score(views) >= fits["auto"].score(views) - 1e-3
    assert fits["auto"].score(views) >= fits["quick"].score(views) - 1e-3
    again = MultiViewMixture(3, random_state=0).fit(views)
    np.testing.assert_array_equal(again.means_[0], fits["auto"].means_[0])


def test_samples_that_follow_the_model_need_no_search():
    rng = np.random.default_rng(0)
    h, means = rng.integers(3, size=3_000), rng.normal(0, 3, (3, 3, 6))
    views = [rng.normal(part[h]) for part in means]
    assert "starts" not in MultiViewMixture(3, random_state=0).fit(views).diagnostics_.details
    assert len(MultiViewMixture(2, random_state=0).fit(views).diagnostics_.details["starts"]) > 1
