"""A model that odeco does not have, declared in this file from its five parts, gets everything that odeco's own have.

Counts in several columns come from k components; given the component they are independent and geometric, each column
with a mean of its own. Any three groups of columns are three views of the component (Theorem 3.6). Every place that
rows may lie in is compared with the fit in memory.
"""

from __future__ import annotations

import json

import dask.array as da
import numpy as np
import pandas as pd
import pytest

import odeco
from odeco import shared_moments
from odeco.diagnostics import Diagnostics
from odeco.exceptions import MomentError
from odeco.families.responsibilities import posterior
from odeco.files import read_table
from odeco.fitting.card import Card, Stored, shapes
from odeco.fitting.options import check_choice, check_integer, check_number
from odeco.fitting.stream import StreamPlan
from odeco.metrics import match_components
from odeco.models.card_parts import MAX_ITER, MIXTURE, TOL, refine
from odeco.models.cards import register, unregister
from odeco.models.mixture_base import MixtureEstimator
from odeco.models.multiview.card import THREE_VIEWS
from odeco.moments.base import Additive
from odeco.moments.passes import fill
from odeco.moments.vectors import ColumnMoments
from odeco.moments.views import ViewBasis, ViewMoments
from odeco.reduction.views import recover_views
from odeco.refinement.loop import StoppingRule, run_refinement
from odeco.sources import checkpointed, out_of_core
from odeco.sources.rows import VECTORS
from odeco.sources.views import ViewBatch
from tests.command_line import call, write_rows

LEAST = 1e-6  # of a mean, where its logarithm is taken


# The parts.


class ThreeGroups(Additive):
    """Sums: cross moments of three groups of columns about a shift."""

    _sums = ("views",)
    _on = ("shift",)
    _by_threads = True

    def __init__(self, shift):
        self.shift = shift
        blocks = tuple(np.array_split(shift, 3))
        self.views = ViewMoments(ViewBasis(((0,), (1,), (2,)), tuple(np.eye(len(block)) for block in blocks), blocks))

    def update(self, batch):
        self.views.update(ViewBatch(tuple(np.array_split(batch.rows, 3, axis=1)), batch.weights))
        return self

    def merge(self, other):
        self.views.merge(other.views)  # which compares the shifts
        return self


class Expectations(Additive):
    """Sums: what a step of EM needs."""

    _sums = ("totals", "first", "log_likelihood")
    _on = ("weights", "means")
    _by_threads = True

    def __init__(self, weights, means):
        self.weights, self.means = weights, means
        self.totals, self.first, self.log_likelihood = np.zeros(len(weights)), np.zeros(means.shape), 0.0

    def update(self, batch):
        shares, scores = posterior(log_joint(batch.rows, self.weights, self.means))
        weights = np.ones(len(batch)) if batch.weights is None else batch.weights
        self.totals += weights @ shares
        self.first += (weights[:, None] * shares).T @ batch.rows
        self.log_likelihood += float(weights @ scores)


def log_joint(rows, weights, means):
    """Log weights plus log densities: a geometric count x of mean m has probability m^x / (1 + m)^(x + 1)."""
    m = np.maximum(means, LEAST)
    return np.log(weights) + rows @ (np.log(m) - np.log1p(m)).T - np.log1p(m).sum(axis=1)


class GeometricMixture(MixtureEstimator):
    """A mixture of independent geometric counts."""

    def __init__(
        self, n_components=2, *, refine="auto", method="auto", method_options=None, max_iter=200, tol=1e-9,
        random_state=None,
    ):  # fmt: skip
        self.n_components, self.refine, self.method, self.method_options = n_components, refine, method, method_options
        self.max_iter, self.tol, self.random_state = max_iter, tol, random_state

    def _check_options(self):
        super()._check_options()
        check_integer("n_components", self.n_components)
        check_choice("refine", self.refine, ("auto", "em", None))
        check_integer("max_iter", self.max_iter)
        check_number("tol", self.tol)

    def _passes(self, source, rng):
        columns = yield ColumnMoments(source.n_features, np.zeros(source.n_features))
        return (yield ThreeGroups(columns.mean))

    def _plan(self):
        return StreamPlan(VECTORS, 500, lambda first, rng: ThreeGroups(first.rows.mean(axis=0)))

    def _theorem(self, moments, rng):
        found = recover_views(moments.views.read(), self.n_components, rng, method=self._decomposer())
        return found, moments.shift + np.hstack(found.means)

    def _refine(self, found, rng):
        if found.error is not None:
            raise found.error

        def step(state, iteration):
            sums = fill(Expectations(*state), found.rows)
            return (sums.totals / sums.totals.sum(), sums.first / sums.totals[:, None]), sums.log_likelihood / n

        n, (views, means) = found.moments.views.weight, found.estimate
        return run_refinement(step, (views.weights, np.maximum(means, LEAST)), StoppingRule(self.max_iter, self.tol))

    def _conclude(self, found, refined):
        views, means = found.estimate
        weights, means = (views.weights, means) if refined is None else refined.state
        order = np.argsort(-weights, kind="stable")
        self.weights_, self.means_ = weights[order], means[order]
        self.n_iter_ = 0 if refined is None else refined.trace.n_iter
        method = "moments, one pass" if found.rows is None else "moments"
        return Diagnostics(
            n_components=self.n_components,
            spectrum=views.spectrum,
            gap=1.0,
            condition=float(views.spectrum[0] / views.spectrum[-1]),
            residual=views.residual,
            method=method if refined is None else f"{method}, then {self.n_iter_} EM steps",
            details={} if refined is None else {"refinement": refined.trace},
        )

    def _log_joint(self, clean):
        return log_joint(clean, self.weights_, self.means_)

    def _draw(self, labels, rng):
        return rng.geometric(1 / (1 + self.means_[labels])) - 1.0

    def _n_parameters(self):
        return self.weights_.size - 1 + self.means_.size


CARD = Card(
    "geometric",
    GeometricMixture,
    "table",
    "component",
    "Groups of rows of counts, each count geometric given the group.",
    options=(refine("em"), MAX_ITER, TOL),
    examples=("odeco fit geometric counts.csv -k 3 --out groups.odeco",),
    learned={**MIXTURE, "means_": "finite k d", "_stream": "maybe stream ThreeGroups d; DenseBatch d"},
    stored={**THREE_VIEWS, "ThreeGroups": Stored(ThreeGroups, "d", shapes("shift: finite d, views: ViewMoments"))},
)


# What it gets.

WEIGHTS = np.array([0.5, 0.3, 0.2])
MEANS = np.array(
    [
        [1.0, 6, 2, 0.5, 8, 1, 1, 5, 3],
        [7.0, 1, 1, 6, 2, 0.5, 5, 1, 9],
        [2.0, 2, 8, 1, 1, 7, 9, 2, 0.5],
    ]
)
K, D, N = 3, 9, 6000
ROUNDING = 1e-8  # of sums in another order, through a decomposition and steps of EM that end at a gain of 1e-9
NAMES = [f"count{j}" for j in range(D)]


@pytest.fixture(scope="module", autouse=True)
def _known():
    register(CARD)
    yield
    unregister("geometric")


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    return rng.geometric(1 / (1 + MEANS[rng.choice(K, N, p=WEIGHTS)])) - 1.0


@pytest.fixture(scope="module")
def table(rows, tmp_path_factory):
    return write_rows(tmp_path_factory.mktemp("counts") / "counts.csv", NAMES, rows.astype(int).tolist())


@pytest.fixture(scope="module", params=["auto", None], ids=["refined", "theorem"])
def expected(rows, request):
    return GeometricMixture(K, refine=request.param, random_state=0).fit(rows)


def like(model):
    """One that is not fitted, with the same arguments."""
    return type(model)(**model.get_params())


def assert_same(found, model, tolerance=ROUNDING):
    for name in ("weights_", "means_"):
        np.testing.assert_allclose(getattr(found, name), getattr(model, name), rtol=tolerance, atol=tolerance)


def standard_errors(n):
    """Of the mean of each column in each component, were the components known: the variance of x is m (1 + m)."""
    return np.sqrt(MEANS * (1 + MEANS) / (n * WEIGHTS[:, None]))


# Standard errors that the largest of 27 errors may have: 3.1 would be exceeded once in twenty draws by chance alone,
# and components have to be told apart first. Seen in 12 draws: 1.8 to 3.6 refined, 3.7 to 17 by third moments alone.
@pytest.mark.parametrize(("how", "bound"), [("em", 5.0), (None, 25.0)])
def test_parameters_come_back(rows, how, bound):
    model = GeometricMixture(K, refine=how, random_state=0).fit(rows)
    order = match_components(model.means_.T, MEANS.T).permutation
    assert np.abs((model.means_[order] - MEANS) / standard_errors(N)).max() < bound
    assert np.abs(model.weights_[order] - WEIGHTS).max() < bound * np.sqrt(0.25 / N)
    shuffled = model.means_[np.roll(order, 1)]
    assert np.abs((shuffled - MEANS) / standard_errors(N)).max() > 2 * bound


@pytest.mark.parametrize("method", ["auto", "power", "jennrich", "joint", "svd"])
def test_a_population_comes_back_to_rounding(method):
    """Two points for each column and component with its mean, in all combinations within a group: views with these
    means, independent given the component.
    """
    samples, weights = [], []
    for component, weight in zip(MEANS, WEIGHTS, strict=True):
        for signs in np.array(np.meshgrid(*([[-1, 1]] * 3))).reshape(3, -1).T:
            samples.append(component * (1 + 0.5 * np.repeat(signs, 3)))
            weights.append(weight / 8)
    model = GeometricMixture(K, refine=None, method=method, random_state=0)
    model.fit(np.array(samples), sample_weight=np.array(weights))
    order = match_components(model.means_.T, MEANS.T).permutation
    np.testing.assert_allclose(model.means_[order], MEANS, atol=1e-7)
    np.testing.assert_allclose(model.weights_[order], WEIGHTS, atol=1e-7)


def test_likelihood_never_falls(rows):
    trace = GeometricMixture(K, random_state=0).fit(rows).diagnostics_.details["refinement"]
    assert trace.n_iter > 3
    assert (np.diff(trace.values) > -1e-12).all()


PLACES = {
    "DataFrame": lambda rows: pd.DataFrame(rows, columns=NAMES),
    "list of batches": lambda rows: np.array_split(rows, 7),
    "function": lambda rows: lambda: iter(np.array_split(rows, 5)),
    "out of core": lambda rows: out_of_core(lambda: iter(np.array_split(rows, 5))),
    "Dask": lambda rows: da.from_array(rows, chunks=(1700, D)),
}


@pytest.mark.parametrize("place", PLACES)
def test_rows_may_lie_anywhere(rows, expected, place):
    assert_same(like(expected).fit(PLACES[place](rows)), expected)


def test_rows_of_a_file(table, expected):
    assert_same(like(expected).fit(out_of_core(read_table(table).source)), expected)


def test_weights_are_repetitions(rows, expected):
    weights = np.arange(N) % 3
    repeated = like(expected).fit(np.repeat(rows, weights, axis=0))
    assert_same(like(expected).fit(rows, sample_weight=weights), repeated)


def test_a_fit_that_was_killed_goes_on(rows, expected, tmp_path):
    def dies():
        yield from np.array_split(rows, 5)[:3]
        if (tmp_path / "kept" / "pass-00000.odeco-moments").exists():  # in the second pass
            raise KeyboardInterrupt
        yield from np.array_split(rows, 5)[3:]

    with pytest.raises(KeyboardInterrupt):
        like(expected).fit(checkpointed(dies, tmp_path / "kept", seconds=0))
    with checkpointed(lambda: iter(np.array_split(rows, 5)), tmp_path / "kept") as data:
        assert_same(like(expected).fit(data), expected)


def test_chunks_of_a_stream(rows):
    """One pass, sums only: the theorem's estimate, whatever the chunks."""
    expected = GeometricMixture(K, refine=None, random_state=0).fit(rows)
    for n_chunks in (1, 4, 23):
        model = GeometricMixture(K, random_state=0)
        for chunk in np.array_split(rows, n_chunks):
            model.partial_fit(chunk)
        assert_same(model, expected)
        assert model.diagnostics_.method == "moments, one pass"


def test_what_cannot_be_done_is_said(rows):
    with pytest.raises(ValueError, match="n_components must be a positive integer, got 0"):
        GeometricMixture(0).fit(rows)
    with pytest.raises(ValueError, match="2 passes over the data are needed"):
        GeometricMixture(K).fit(iter([rows]))
    with pytest.raises(MomentError):
        GeometricMixture(K, refine=None, random_state=0).fit(np.tile(rows[:1], (50, 1)))
    model = GeometricMixture(K, random_state=0).partial_fit(rows)
    model.n_components = 2
    with pytest.raises(ValueError, match="n_components=2 does not go with the moments kept so far"):
        model.partial_fit(rows)


def test_the_data_choose_the_number(rows, tmp_path):
    choice = odeco.choose_components(GeometricMixture(random_state=0), rows, range(1, 5))
    assert choice.best == K
    assert choice.evidence(K).replication > 0.9
    assert choice.evidence(K).held_out == max(row.held_out for row in choice if row.held_out == row.held_out)
    model = GeometricMixture("auto", random_state=0).fit(PLACES["Dask"](rows))
    assert model.n_components_ == K
    odeco.save(model, tmp_path / "chosen.odeco")
    assert odeco.load(tmp_path / "chosen.odeco").diagnostics_.details["choice"].best == K


def test_answers(rows, expected):
    shares = expected.predict_proba(rows)
    lazy = expected.predict_proba(da.from_array(rows, chunks=(1700, D)))
    np.testing.assert_allclose(lazy.compute(), shares, rtol=1e-12)
    assert np.array_equal(expected.predict(rows), shares.argmax(axis=1))
    assert expected.bic(rows) == pytest.approx(-2 * N * expected.score(rows) + (2 + K * D) * np.log(N))
    drawn, labels = expected.sample(2000)
    assert drawn.shape == (2000, D)
    assert drawn.min() == 0
    assert np.array_equal(np.unique(labels), np.arange(K))


def test_files_hold_it(rows, expected, tmp_path):
    odeco.save(expected, tmp_path / "model.odeco")
    loaded = odeco.load(tmp_path / "model.odeco")
    assert_same(loaded, expected, 0.0)
    assert loaded.get_params() == expected.get_params()
    assert loaded.diagnostics_.method == expected.diagnostics_.method


@pytest.mark.parametrize("n_first", [300, 3000])  # rows that wait, and sums
def test_a_stream_goes_on_from_a_file(rows, tmp_path, n_first):
    begun = GeometricMixture(K, random_state=0).partial_fit(rows[:n_first])
    odeco.save(begun, tmp_path / "stream.odeco")
    found = odeco.load(tmp_path / "stream.odeco").partial_fit(rows[n_first:])
    assert_same(found, begun.partial_fit(rows[n_first:]), 0.0)


def test_moments_made_apart(rows, tmp_path):
    basis = shared_moments.make_basis(GeometricMixture(K, random_state=0), rows[:1000])
    for day, part in enumerate(np.array_split(rows, 3)):
        shared_moments.write_moments(shared_moments.add_moments(basis, part), tmp_path / str(day))
    parts = [shared_moments.read_moments(tmp_path / str(day))[0] for day in range(3)]
    found = shared_moments.fit_moments(shared_moments.merge_moments(parts))
    assert_same(found, GeometricMixture(K, refine=None, random_state=0).fit(rows))
    other = shared_moments.make_basis(GeometricMixture(K, random_state=0), rows[1000:2000])
    with pytest.raises(
        ValueError, match="part 2 cannot be added to the first: cannot merge moments of different bases"
    ):
        shared_moments.merge_moments([parts[0], other])


def command(*args):
    done = call(*args)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout


def test_intervals(rows, expected):
    """By replicates of the whole estimator, or of its sums; near the errors that known components would have."""
    found = odeco.intervals(expected, rows, n_replicates=20, random_state=0)
    assert found.method == ("block sums" if expected.refine is None else "replicates")
    order = match_components(expected.means_.T, MEANS.T).permutation
    ratio = found.standard_error["means_"][order] / standard_errors(N)
    assert 0.7 < np.median(ratio) < (1.5 if expected.refine else 8)
    assert found.replicated.all()
    assert (found.low["weights_"] > 0).all()


def test_the_command_line(rows, table, tmp_path):
    model, shares = tmp_path / "groups.odeco", tmp_path / "shares.csv"
    expected = GeometricMixture(K, random_state=0).fit(rows)
    assert CARD.examples[0] in " ".join(command("fit", "geometric", "--help").replace("│", " ").split())
    assert call("fit", "geometric", table, "-k", "3", "--tol", "1e-9", "--out", model).returncode == 0
    assert_same(odeco.load(model), expected)
    told = json.loads(command("show", model, "--json"))
    assert [part["component"] for part in told["components"]] == [0, 1, 2]
    assert "GeometricMixture: 3 components, fitted to 6,000 rows" in command("show", model)
    assert call("transform", model, table, "--out", shares).returncode == 0
    found = np.loadtxt(shares, delimiter=",", skiprows=1)[:, 1:]
    np.testing.assert_allclose(found, expected.predict_proba(rows), atol=ROUNDING)
    assert call("report", model, table, "--out", tmp_path / "report.html").returncode == 0
    assert "<h1>3 components</h1>" in (tmp_path / "report.html").read_text(encoding="utf-8")
    assert call("intervals", model, table, "--replicates", "10", "--out", tmp_path / "errors.csv").returncode == 0
    assert "replicates" in command("show", model, "--intervals", tmp_path / "errors.csv")


def test_moments_files_of_the_command_line(rows, table, tmp_path):
    basis, sums, model = (tmp_path / name for name in ("shared.odeco-basis", "day.odeco-moments", "model.odeco"))
    assert call("moments", "basis", "geometric", table, "-k", "3", "--out", basis).returncode == 0
    assert call("moments", "compute", basis, table, "--out", sums).returncode == 0
    assert call("moments", "fit", sums, "--out", model).returncode == 0
    assert_same(odeco.load(model), GeometricMixture(K, refine=None, random_state=0).fit(rows))
