"""Information and scores of likelihoods: fast paths against naive loops and closed forms."""

from __future__ import annotations

import numpy as np
import pytest

import odeco
from odeco.fitting.free import Free, entries_of
from odeco.moments.passes import fill
from odeco.sources.dense import DenseBatch
from odeco.uncertainty.likelihood import inverse_of
from odeco.uncertainty.mixture_scores import MixtureTold
from odeco.uncertainty.scores import unit_information
from tests.fitted_models import fitted_model

# Second differences are known to their step, 1e-4, and to rounding over its square.
CLOSE = 2e-3
N_COMPARED = 4  # columns of the information that naive differences are made for


def naive_information(model, frees, contributions):
    """Coordinates one at a time, second derivatives by central differences of the whole likelihood."""
    coordinates = [
        (entry, j)
        for entry in entries_of(frees)
        for j in ([None] if entry.shared else range(entry.free.values.shape[entry.free.axis]))
    ]

    def at(steps):
        values = {}
        for (entry, j), step in steps:
            free = entry.free
            if free.name in values:
                free = Free(free.name, free.kind, values[free.name], free.axis, free.scale, free.columns)
            size = 1 if j is None else free.values.shape[free.axis]
            alone = step if j is None else step * (np.arange(size) == j)
            values[free.name] = free.moved(entry.place, alone)
        return contributions(model._moved(values))

    h, p = 1e-3, len(coordinates)
    scores = np.column_stack([(at([(c, h)]) - at([(c, -h)])) / (2 * h) for c in coordinates])
    some = np.unique(np.linspace(0, p - 1, N_COMPARED).astype(int))
    hessian = np.zeros((p, len(some)))
    signs = [(s, t) for s in (1, -1) for t in (1, -1)]
    for a in range(p):
        for place, b in enumerate(some):
            corners = [s * t * at([(coordinates[a], s * h), (coordinates[b], t * h)]).sum() for s, t in signs]
            hessian[a, place] = sum(corners) / (4 * h * h)
    return coordinates, scores, some, -hessian


def compared(found, naive):
    """Observed information: some columns of the fast one and of the naive one, in the same order."""
    coordinates, scores, some, hessian = naive
    place = {key(*c): i for i, c in enumerate(found.coordinates)}
    rows = [place[key(*c)] for c in coordinates]
    columns = [rows[b] for b in some]
    return found.observed[np.ix_(rows, columns)], hessian, found.outer[np.ix_(rows, rows)], scores.T @ scores


@pytest.mark.parametrize("name", ["gaussian_mixture", "product_mixture", "dawid_skene", "multiview"])
def test_mixtures_match_naive_differences_of_the_likelihood(name):
    """All components at once and Louis' formula, against the likelihood itself, coordinate by coordinate."""
    model, given = fitted_model(name)
    X = [view[:60] for view in given["data"]] if name == "multiview" else given["data"][:60]
    frees = model._free_parameters()
    found = fill(MixtureTold(model), model._reopen(X)).information()
    naive = naive_information(model, frees, lambda moved: moved.score_samples(X))
    observed, hessian, outer, expected = compared(found, naive)
    np.testing.assert_allclose(outer, expected, atol=CLOSE * np.abs(expected).max())
    np.testing.assert_allclose(observed, hessian, atol=CLOSE * np.abs(hessian).max())


def key(entry, component):
    return entry.free.name, entry.place, component


def test_shared_covariances_match_naive_differences():
    rng = np.random.default_rng(0)
    rows = np.vstack([rng.normal(0, 1, (60, 3)), rng.normal(4, 1, (60, 3))])
    for kind in ("tied", "tied_spherical", "full", "diag"):
        model = odeco.GaussianMixture(2, kind, effort="quick", tol=1e-10, max_iter=500, random_state=0).fit(rows)
        frees = model._free_parameters()
        found = fill(MixtureTold(model), [DenseBatch(rows[:50]), DenseBatch(rows[50:])]).information()
        naive = naive_information(model, frees, lambda moved: moved.score_samples(rows))
        observed, hessian, _, _ = compared(found, naive)
        np.testing.assert_allclose(observed, hessian, atol=CLOSE * np.abs(hessian).max())


def test_one_gaussian_has_the_errors_of_the_textbook():
    rng = np.random.default_rng(1)
    rows = rng.normal([1.0, -2.0], [1.0, 3.0], (2000, 2))
    model = odeco.GaussianMixture(1, "diag", random_state=0).fit(rows)
    found = odeco.intervals(model, rows, method="information", replication=False)
    variances = np.asarray(model.covariances_)
    np.testing.assert_allclose(found.standard_error["means_"], np.sqrt(variances / 2000), rtol=1e-3)
    np.testing.assert_allclose(found.standard_error["covariances_"], variances * np.sqrt(2 / 2000), rtol=1e-3)


def test_weights_are_repetitions():
    rng = np.random.default_rng(2)
    rows = np.vstack([rng.normal(0, 1, (80, 3)), rng.normal(5, 1, (40, 3))])
    weights = rng.integers(1, 4, len(rows)).astype(float)
    model = odeco.GaussianMixture(2, random_state=0).fit(rows, sample_weight=weights)
    weighted = odeco.intervals(model, rows, sample_weight=weights, replication=False)
    repeated = odeco.intervals(model, np.repeat(rows, weights.astype(int), axis=0), replication=False)
    for name in weighted.value:
        np.testing.assert_allclose(weighted.standard_error[name], repeated.standard_error[name], rtol=1e-6)


@pytest.mark.parametrize("name", ["categorical_hmm", "gaussian_hmm", "poisson_hmm"])
def test_steps_of_a_chain_add_up_to_its_likelihood(name):
    model, given = fitted_model(name)
    X, lengths = given["data"] if isinstance(given["data"], tuple) else (given["data"], None)
    data = model._encode(X, lengths, None, reset=False)
    steps = model._step_log_likelihoods(data)
    assert steps.shape == (800,)
    assert steps.sum() == pytest.approx(model.score(X, lengths), rel=1e-10)


def test_a_chain_whose_states_are_seen_has_the_errors_of_counts():
    """Emissions that tell the state: transitions are then counted, and p (1 - p) / n is their variance."""
    rng = np.random.default_rng(3)
    states = np.cumsum(rng.random(3000) < 0.2) % 2
    values = states[:, None] * 20.0 + rng.normal(size=(3000, 1))
    model = odeco.GaussianHMM(2, effort="quick", random_state=0).fit(values)
    found = odeco.intervals(model, values, method="information", replication=False)
    visits = model.predict_proba(values)[:-1].sum(axis=0)
    p = model.transmat_
    np.testing.assert_allclose(found.standard_error["transmat_"], np.sqrt(p * (1 - p) / visits[:, None]), rtol=0.01)


def test_units_of_any_kind():
    """The mean of Gaussian numbers with variance 1: information n."""
    values = np.random.default_rng(4).normal(size=500)

    class Mean:
        def __init__(self, mean):
            self.mean = mean

        def _moved(self, changed):
            return Mean(changed.get("mean", self.mean))

    model = Mean(np.array([values.mean()]))
    frees = [Free("mean", "real", model.mean, axis=None, scale=np.ones(1))]
    found = unit_information(model._moved, frees, lambda moved: -0.5 * (values - moved.mean[0]) ** 2)
    assert found.observed[0, 0] == pytest.approx(500, rel=1e-4)
    assert found.outer[0, 0] == pytest.approx(500 * values.var(), rel=1e-6)


def test_directions_of_which_nothing_is_known_are_left_out():
    matrix = np.diag([4.0, 1e-30])
    assert inverse_of(matrix)[0, 0] == pytest.approx(0.25)
