"""A model that odeco does not have, known by its card alone: listed, fitted, saved, loaded, shown, asked, reported."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import BaseEstimator

import odeco
from odeco import archive
from odeco.diagnostics import Diagnostics
from odeco.fitting.card import Card, Option, Part, Stored
from odeco.models.cards import register, unregister
from odeco.report import render_report
from odeco.report.page import Page
from tests.command_line import call, write_rows


class Cut:
    """Where rows are cut: kept in files."""

    def __init__(self, places):
        self.places = places


class Slices(BaseEstimator):
    """Rows in order of one column, cut into slices of equal size."""

    def __init__(self, n_slices=2, *, column=0, random_state=None):
        self.n_slices, self.column, self.random_state = n_slices, column, random_state

    def fit(self, X, y=None):
        values = np.asarray(X, dtype=float)
        shares = np.linspace(0, 1, self.n_slices + 1)[1:-1]
        self.n_features_in_ = values.shape[1]
        self.cut_ = Cut(np.quantile(values[:, self.column], shares))
        labels = self.predict_proba(values).argmax(axis=1)
        self.weights_ = np.bincount(labels, minlength=self.n_slices) / len(labels)
        self.means_ = np.array([values[labels == i].mean(axis=0) for i in range(self.n_slices)])
        self.diagnostics_ = Diagnostics(self.n_slices, np.ones(self.n_slices), 1.0, 1.0, 0.0, method="sorting")
        return self

    def predict_proba(self, X):
        labels = np.searchsorted(self.cut_.places, np.asarray(X, dtype=float)[:, self.column])
        return np.eye(self.n_slices)[labels]


CARD = Card(
    "slices",
    Slices,
    "table",
    "slice",
    "Rows in order of a column, cut into slices.",
    options=(Option("column", int, "The column that is sorted.", least=0),),
    examples=("odeco fit slices table.csv -k 3 --out slices.odeco",),
    count="n_slices",
    learned={"weights_": "simplex k", "means_": "finite k d", "cut_": "Cut"},
    stored={"Cut": Stored(Cut, "", {"places": "finite *"})},
)


@pytest.fixture
def card():
    register(CARD)
    yield CARD
    unregister("slices")


@pytest.fixture
def table(tmp_path):
    rows = np.random.default_rng(0).normal(size=(90, 2)).round(4)
    return rows, write_rows(tmp_path / "table.csv", ["a", "b"], rows.tolist())


@pytest.fixture
def fitted(card, table, tmp_path):
    """A model that the command line has fitted."""
    out = tmp_path / "model.odeco"
    done = call("fit", "slices", table[1], "-k", "3", "--column", "1", "--out", out)
    assert done.returncode == 0, done.stderr
    return out


def test_it_is_listed(card):
    assert "slices" in call("--help").stdout
    listed = call("fit", "--help").stdout
    assert "slices" in listed
    assert card.summary in " ".join(listed.replace("│", " ").split())
    help = " ".join(call("fit", "slices", "--help").stdout.replace("│", " ").split())
    assert "The column that is sorted." in help
    assert "Number of slices." in help
    assert card.examples[0] in help


def test_it_is_unknown_where_it_is_not_registered(table, tmp_path):
    assert "slices" not in call("--help").stdout
    assert "No such command 'slices'" in call("fit", "slices", table[1]).stderr


def test_it_is_fitted_saved_and_loaded(fitted, table):
    model, expected = odeco.load(fitted), Slices(3, column=1, random_state=0).fit(table[0])
    assert type(model) is Slices
    assert model.get_params() == expected.get_params()
    assert np.array_equal(model.means_, expected.means_)
    assert np.array_equal(model.cut_.places, expected.cut_.places)


def test_its_file_is_nothing_to_those_who_lack_the_card(fitted):
    unregister("slices")
    try:
        with pytest.raises(
            odeco.ModelFileError, match="unknown estimator 'Slices': no card of that name is registered"
        ):
            odeco.load(fitted)
    finally:
        register(CARD)


@pytest.mark.parametrize("place", ["no_such_package", "odeco.metrics"])
def test_a_card_whose_package_is_broken_says_so(fitted, table, place, tmp_path):
    register(replace(CARD, estimator=f"{place}:Slices"))
    with pytest.raises(odeco.ModelFileError, match=f"needs {place} to be read .*: install or mend it"):
        odeco.load(fitted)
    done = call("fit", "slices", table[1], "-k", "2", "--out", tmp_path / "other.odeco")
    assert done.returncode == 1
    assert re.fullmatch(rf"odeco: error: .*{place}.*\n", done.stderr)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda learned: learned.pop("weights_"), "weights_ is missing|should be"),
        (lambda learned: learned.update(more_=1), "Slices has no attribute 'more_'"),
        (lambda learned: learned.update(weights_=learned["means_"]), "weights_ should be 'simplex k'"),
        (
            lambda learned: learned.update(cut_={"is": "object", "class": "Cut", "state": {"places": 1}}),
            "cut_ should be",
        ),
        (lambda learned: learned.update(cut_={"is": "object", "class": "Slash", "state": {}}), "Slash"),
    ],
)
def test_its_file_is_checked_against_the_card(fitted, change, message, tmp_path):
    _, document, arrays = archive.read(fitted, "model", 2)
    change(document["learned"])
    archive.write(tmp_path / "forged", "model", 2, document, arrays)
    with pytest.raises(odeco.ModelFileError, match=message):
        odeco.load(tmp_path / "forged")


def test_it_is_shown(fitted):
    done = call("show", fitted)
    assert (done.returncode, done.stderr) == (0, "")
    assert "Slices: 3 slices, fitted to 90 rows" in done.stdout
    assert done.stdout.count("33.3 %") == 3
    told = json.loads(call("show", fitted, "--json").stdout)
    assert [part["slice"] for part in told["slices"]] == [0, 1, 2]


def test_it_answers_for_every_row(fitted, table, tmp_path):
    done = call("transform", fitted, table[1], "--out", tmp_path / "answers.csv")
    assert done.returncode == 0, done.stderr
    answers = np.loadtxt(tmp_path / "answers.csv", delimiter=",", skiprows=1)
    assert np.array_equal(answers[:, 1:], odeco.load(fitted).predict_proba(table[0]))


def test_it_is_reported(fitted, table, tmp_path):
    done = call("report", fitted, table[1], "--out", tmp_path / "report.html")
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "<h1>3 slices</h1>" in page
    assert page.count(">33%</td>") == 3
    assert f"import {__name__}" in page


def test_parts_and_page_of_its_own(card, table):
    def parts(model, names, top):
        return [
            Part(i, {"mean": mean}, [{"name": names["feature_names"][0]}]) for i, mean in enumerate(model.means_[:, 0])
        ]

    def page(model, inputs):
        return Page(
            "Slices and slices",
            "To be looked at.",
            "listing.html.jinja",
            {"part": "a", "parts": "b", "facts": [], "rows": []},
        )

    model = Slices(3).fit(table[0])
    register(Card("slices", Slices, "table", "slice", "Slices.", parts=parts))
    assert render_report(model, feature_names=["breadth", "b"]).count("breadth") == 3
    register(Card("slices", Slices, "table", "slice", "Slices.", page=page))
    assert "<h1>Slices and slices</h1>" in render_report(model)


def test_figures_that_do_not_suit_it_say_which_models_they_suit(card, table):
    with pytest.raises(ValueError, match="must be one of LatentDirichletAllocation, SingleTopicModel, got Slices"):
        odeco.plots.topic_shares(Slices(3).fit(table[0]))


def test_a_subclass_is_shown_but_not_saved(card, table, tmp_path):
    class Thin(Slices):
        pass

    model = Thin(3).fit(table[0])
    assert "<h1>3 slices</h1>" in render_report(model)
    with pytest.raises(ValueError, match=r"model must be an estimator of odeco \(.*Slices\), got"):
        odeco.save(model, tmp_path / "model.odeco")
