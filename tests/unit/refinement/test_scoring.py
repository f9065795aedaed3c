"""The scoring step: score and information of every kind of mixture against naive ones, and where it ends."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.special import logsumexp, softmax

from odeco.families.tables import Families
from odeco.refinement.dawid_skene import CrowdParameters
from odeco.refinement.family_scoring import FamilyMixture, columns_of
from odeco.refinement.gaussian_mixture import GaussianParameters, Points
from odeco.refinement.gaussian_scoring import _Blocks, _Gaussians, _read
from odeco.refinement.multinomial_mixture import Mixture
from odeco.refinement.one_step import _statistics, crowd_step, topic_step
from odeco.refinement.scoring import ScoreSums, scoring_step
from odeco.refinement.view_scoring import ViewTable, view_step
from odeco.refinement.views import ViewModel, ViewParameters
from odeco.sources.dense import DenseBatch
from odeco.sources.tables import open_table
from odeco.sources.views import ViewBatch
from odeco.sources.votes import VoteBatch

WEIGHTS = np.array([0.6, 0.4])
K, N = 2, 200


@dataclass
class Case:
    batches: Any
    read: Any
    mixture: Any

    def joint(self, mixture):
        """Log joint density of every row, (k, n)."""
        return np.hstack(
            [mixture.joint()(features) for batch in self.batches for features, _ in self.read(batch)]
        ).astype(float)

    def weights(self):
        parts = [w for batch in self.batches for _, w in self.read(batch)]
        return np.ones(self.joint(self.mixture).shape[1]) if parts[0] is None else np.concatenate(parts)

    def sums(self, mixture, along=None):
        return ScoreSums(self.read, mixture.joint(), along).update_all(self.batches)


def hidden(rng):
    return (rng.random(N) > WEIGHTS[0]).astype(int)


def of_columns():
    rng = np.random.default_rng(0)
    h = hidden(rng)
    numbers, categories = rng.normal(3 * h, 1 + h), rng.binomial(2, 0.3 + 0.4 * h)
    values = np.column_stack([numbers, categories, rng.random(N) < 0.2 + 0.5 * h, rng.poisson(2 + 4 * h)])
    values[rng.random(values.shape) < 0.1] = np.nan
    schema = open_table(values, ["gaussian", "categorical", "bernoulli", "poisson"]).schema
    families = Families.of(schema, np.zeros(4), np.ones(4))
    # Bernoulli, three categories, rate, mean, variance
    table = np.array([[0.2, 0.5, 0.4, 0.1, 2, 0, 1.2], [0.7, 0.1, 0.4, 0.5, 6, 3, 3.5]])
    batches = [(families.statistics(part), None) for part in np.split(values, 2)]
    return Case(batches, _statistics, FamilyMixture(families, WEIGHTS, table))


def of_words():
    rng = np.random.default_rng(1)
    topics = np.array([[0.4, 0.3, 0.1, 0.1, 0.1], [0.1, 0.1, 0.2, 0.2, 0.4]])
    counts = sparse.csr_array(rng.poisson(9 * topics[hidden(rng)]).astype(float))
    mixture = FamilyMixture(columns_of(blocks=(5,)), np.array([0.5, 0.5]), topics)
    return Case([(counts, rng.uniform(0.5, 2, N))], _statistics, mixture)


def of_gaussians(kind):
    rng = np.random.default_rng(2)
    means, sizes = np.array([[0.0, 0, 0], [2, 1, -2]]), rng.uniform(0.7, 1.4, (K, 3))
    covariances = {"spherical": sizes[:, 0], "tied_spherical": 1.1, "diag": sizes}[kind]
    points = Points([DenseBatch(means[hidden(rng)] + rng.standard_normal((N, 3)))], None, np.float64, 3)
    parameters = GaussianParameters(WEIGHTS, means, covariances, kind)
    return Case(list(_Blocks(points, kind)), _read, _Gaussians(parameters, 3))


NAMES = ("poisson", "gaussian", "multinomial", "bernoulli", "gaussian")
BARE = [False, False, True, False, True]


def views():
    """Views of all kinds, out of order; two of numbers, one of them sparse."""
    rng = np.random.default_rng(3)
    means = (
        np.array([[1.0, 3], [4, 2]]),
        np.array([[3.0, 0], [1, 1]]),
        np.array([[2.0, 1, 1, 2], [1, 2, 2, 1]]),
        np.array([[0.3, 0.6, 0.2], [0.7, 0.4, 0.4]]),
        np.array([[0.0, 1], [1, 0]]),
    )
    drawn = [mean[hidden(np.random.default_rng(4))] for mean in means]
    blocks = (
        rng.poisson(drawn[0]).astype(float),
        rng.normal(drawn[1]),
        sparse.csr_array(rng.poisson(drawn[2]).astype(float)),
        (rng.random(drawn[3].shape) < drawn[3]).astype(float),
        sparse.csr_array(rng.normal(drawn[4])),
    )
    centers = tuple(values.mean(axis=0) for values in drawn)
    model = ViewModel(NAMES, centers, tuple(np.full(center.size, 1e-6) for center in centers))
    variances = (None, np.ones((K, 2)), None, None, np.ones((K, 2)))
    return ViewBatch(blocks, rng.uniform(0.5, 2, N)), ViewParameters(WEIGHTS, means, variances), model


def of_views():
    batch, parameters, model = views()
    table = ViewTable.of(parameters, model, BARE)
    return Case([batch], table, table.mixture(parameters, model.centers))


CASES = {
    "columns": of_columns,
    "words": of_words,
    "views": of_views,
    **{kind: lambda kind=kind: of_gaussians(kind) for kind in ("spherical", "tied_spherical", "diag")},
}
each_case = pytest.mark.parametrize("case", [make() for make in CASES.values()], ids=list(CASES))


def complete_scores(case):
    """Derivatives of the log joint densities along each coordinate, (size, k, n), by central differences."""
    about = case.mixture.coordinates(case.sums(case.mixture))
    h = 1e-5
    steps = h * np.eye(about.score(case.sums(case.mixture)).size)
    return np.array([case.joint(about.moved(step)) - case.joint(about.moved(-step)) for step in steps]) / (2 * h)


# Central differences at 1e-5: truncation 1e-10 and rounding 1e-11 of logarithms of order ten, in sums of two hundred.
DIFFERENCES = 1e-7


@each_case
def test_score_and_information_are_those_of_single_rows(case):
    """Louis: the information is the identity less the covariance of the complete scores under the posterior."""
    scores, shares, weights = complete_scores(case), softmax(case.joint(case.mixture), axis=0), case.weights()
    first = case.sums(case.mixture)
    about = case.mixture.coordinates(first)
    observed = np.einsum("skn,kn->sn", scores, shares)
    np.testing.assert_allclose(about.score(first), observed @ weights, atol=DIFFERENCES)
    assert first.value == pytest.approx(weights @ logsumexp(case.joint(case.mixture), axis=0) / weights.sum())
    missing = np.einsum("skn,tkn,kn->st", scores, scores, shares * weights) - (observed * weights) @ observed.T
    vector = np.random.default_rng(0).standard_normal(len(scores))
    found = about.score(case.sums(case.mixture, about.along(vector)))
    np.testing.assert_allclose(found, missing @ vector, atol=DIFFERENCES)


@each_case
def test_the_information_is_the_curvature_at_the_maximum(case):
    """Second differences of the log-likelihood along directions that a score can have."""
    mixture = case.mixture
    for _ in range(40):
        mixture = scoring_step(case.batches, case.read, mixture).mixture
    first = case.sums(mixture)
    about = mixture.coordinates(first)
    assert np.abs(about.score(first)).max() < 1e-6 * first.weight
    random = ScoreSums(case.read, mixture.joint())
    random.features = np.random.default_rng(1).random(random.features.shape)
    random.totals = random.features[:, -1]  # which Gaussians count by
    direction = about.score(random)
    direction /= np.linalg.norm(direction)
    h = 1e-3
    values = [case.sums(about.moved(step * direction)).value for step in (-h, 0, h)]
    curvature = -(values[0] - 2 * values[1] + values[2]) / h**2
    information = direction @ (direction - about.score(case.sums(mixture, about.along(direction))) / first.weight)
    # Fourth derivatives times 1e-6, and rounding of 1e-15 * 10 / h^2.
    assert curvature == pytest.approx(information, abs=1e-4)


@each_case
def test_the_likelihood_rises_however_far_the_start(case):
    done = scoring_step(case.batches, case.read, case.mixture)
    assert done.gain > 0
    assert done.sums.value - case.sums(case.mixture).value == pytest.approx(done.gain)
    assert done.trace.values[-1] == done.sums.value
    joint = done.mixture.joint()
    assert np.isfinite(joint.slopes).all()
    assert np.isfinite(joint.offsets).all()


def test_populations_stay_where_they_are():
    """All documents of four words, all labels of three annotators, by their probabilities: the truth is the maximum."""
    topics = np.array([[0.5, 0.3, 0.2], [0.2, 0.2, 0.6]])
    words = np.array(list(product(range(3), repeat=4)))
    probabilities = WEIGHTS @ topics[:, words].prod(axis=2)
    counts = sparse.csr_array(np.array([np.bincount(w, minlength=3) for w in words], dtype=float))
    moved, done = topic_step([(counts, 1e4 * probabilities)], Mixture(WEIGHTS, topics))
    # The score is rounding, 1e-16, and the least eigenvalue of the information 0.05.
    np.testing.assert_allclose(moved.topics, topics, atol=1e-11)
    np.testing.assert_allclose(moved.weights, WEIGHTS, atol=1e-11)
    assert abs(done.gain) < 1e-13

    confusion = np.array([[[0.8, 0.2], [0.3, 0.7]], [[0.6, 0.4], [0.1, 0.9]], [[0.7, 0.3], [0.2, 0.8]]])
    labels = np.array(list(product(range(2), repeat=3)))
    votes = np.hstack([np.eye(2)[labels[:, w]] for w in range(3)])
    probabilities = WEIGHTS @ np.prod([confusion[w][:, labels[:, w]] for w in range(3)], axis=0)
    batch = VoteBatch(sparse.csr_array(votes), 1e4 * probabilities)
    found, _ = crowd_step([batch], CrowdParameters(WEIGHTS, confusion))
    np.testing.assert_allclose(found.confusion, confusion, atol=1e-11)

    model = ViewModel(("multinomial",) * 3, tuple((WEIGHTS @ table) for table in confusion), (np.ones(2),) * 3)
    blocks = tuple(np.eye(2)[labels[:, w]] for w in range(3))
    seen, _ = view_step(
        [ViewBatch(blocks, 1e4 * probabilities)],
        ViewParameters(WEIGHTS, tuple(confusion), (None,) * 3),
        model,
        [False] * 3,
    )
    np.testing.assert_allclose(np.array(seen.means), confusion, atol=1e-11)


def test_views_come_back_in_their_order():
    batch, parameters, model = views()
    table = ViewTable.of(parameters, model, BARE)
    mixture = table.mixture(parameters, model.centers)
    back = table.parameters(mixture, ScoreSums(table, mixture.joint()).update_all([batch]))
    for name, mean, variance, found, spread in zip(
        NAMES, parameters.means, parameters.variances, back.means, back.variances, strict=True
    ):
        shares = name == "multinomial"  # lengths follow the posteriors
        scale = found.sum(axis=1, keepdims=True) / mean.sum(axis=1, keepdims=True) if shares else 1.0
        np.testing.assert_allclose(found, mean * scale, rtol=1e-12)
        np.testing.assert_array_equal(spread, variance)


def test_zeros_of_the_start_are_no_end():
    """A word that the moments gave to one topic alone, and of which the other has a hundredth."""
    rng = np.random.default_rng(5)
    topics = np.array([[0.5, 0.3, 0.2], [0.01, 0.29, 0.7]])
    labels = (rng.random(5000) < 0.4).astype(int)
    counts = sparse.csr_array(np.array([rng.multinomial(8, topics[i]) for i in labels]).astype(float))
    start = Mixture(WEIGHTS, np.array([[0.5, 0.3, 0.2], [0.0, 0.3, 0.7]]))
    moved, done = topic_step([(counts, None)], start)
    assert done.share > 0
    # Four standard errors of a hundredth among 2,000 documents of 8 words; the start is twelve away.
    assert abs(moved.topics[1, 0] - 0.01) < 4 * np.sqrt(0.01 / 16_000)
