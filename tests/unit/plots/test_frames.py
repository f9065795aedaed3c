"""Models as DataFrames and as HTML: every model, with the names of what it was fitted to."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

import odeco
from odeco.models.cards import known_card
from tests.fitted_models import FITTED, fitted_model

pandas = pytest.importorskip("pandas")


def names_of(inputs):
    return inputs.get("vocabulary", inputs.get("feature_names"))


@pytest.mark.parametrize("name", FITTED)
def test_every_model_is_a_frame_with_a_column_for_each_component(name):
    model, inputs = fitted_model(name)
    frame = model.to_frame(names_of(inputs))
    assert frame.shape[1] == model.diagnostics_.n_components
    assert frame.columns.name == known_card(model).part
    assert np.isfinite(frame.to_numpy()).all()
    assert model.to_frame().shape == frame.shape


def test_a_table_of_numbers_counts_and_categories():
    rng = np.random.default_rng(0)
    group = rng.integers(2, size=400)
    X = pandas.DataFrame(
        {
            "age": 30 + 30 * group + rng.standard_normal(400),
            "visits": rng.poisson(12 + 20 * group),
            "smokes": np.where(rng.random(400) < 0.1 + 0.8 * group, "yes", "no"),
            "retired": (rng.random(400) < 0.05 + 0.9 * group).astype(int),
        }
    )
    model = odeco.ProductMixture(2, random_state=0).fit(X)
    frame = model.to_frame()
    young = int(model.means_[:, 0].argmin())
    assert list(frame.index) == [
        ("age", "mean"),
        ("age", "deviation"),
        ("visits", "mean"),
        ("smokes", "no"),
        ("smokes", "yes"),
        ("retired", "probability"),
    ]
    np.testing.assert_array_equal(frame.loc[("age", "mean")], model.means_[:, 0])
    np.testing.assert_allclose(frame.loc[("age", "deviation")], np.sqrt(model.variances_[:, 0]))
    np.testing.assert_allclose(frame.loc["smokes"].sum(), 1)
    assert frame.loc[("smokes", "yes"), young] < 0.2 < 0.8 < frame.loc[("smokes", "yes"), 1 - young]


def test_topics_and_crowds_are_named():
    model, inputs = fitted_model("lda")
    frame = model.to_frame(inputs["vocabulary"])
    assert list(frame.index) == inputs["vocabulary"]
    np.testing.assert_array_equal(frame.to_numpy().T, model.components_)
    crowd, _ = fitted_model("dawid_skene")
    frame = crowd.to_frame()
    assert list(frame.columns) == list(crowd.classes_)
    np.testing.assert_allclose(frame.groupby(level="annotator").sum(), 1)
    worker, label = frame.index[1]
    assert (str(crowd.annotators_[0]), crowd.given_labels_[1]) == (worker, label)
    np.testing.assert_array_equal(frame.iloc[1], crowd.confusion_[0, :, 1])


def test_frames_say_what_does_not_fit():
    model, _ = fitted_model("lda")
    with pytest.raises(ValueError, match="vocabulary must hold 20 names"):
        model.to_frame(["one"])
    with pytest.raises(NotFittedError):
        odeco.GaussianMixture(2).to_frame()
    crowd, _ = fitted_model("dawid_skene")
    with pytest.raises(ValueError, match="one for each annotator, got 1"):
        crowd.to_frame(["one"])


@pytest.mark.parametrize("name", FITTED)
def test_notebooks_show_components_and_the_verdict(name):
    model, _ = fitted_model(name)
    html = model._repr_mimebundle_()["text/html"]
    assert html.split("<div><table>")[1] == model._repr_html_().split("<div><table>")[1]  # above: diagrams with ids
    assert type(model).__name__ in html
    assert f"<th>{known_card(model).part}</th>" in html
    assert html.count("<tr><th>") >= model.diagnostics_.n_components
    assert model.diagnostics_.verdict.trust.value.split(":")[0] in html
    assert (
        "<th>" not in type(model)()._repr_html_().split("</style>")[-1] or "verdict" not in type(model)()._repr_html_()
    )


def test_hostile_names_are_escaped():
    X = pandas.DataFrame(np.random.default_rng(0).poisson(3, (60, 3)), columns=["<b>x</b>", "y", "z"])
    html = odeco.SingleTopicModel(1, random_state=0).fit(X)._repr_html_()
    assert "<b>x</b>" not in html.split("</style>")[-1]
    assert "&lt;b&gt;x&lt;/b&gt;" in html


def test_diagnostics_in_a_notebook_say_what_they_print():
    report = fitted_model("gaussian_mixture")[0].diagnostics_
    html = report._repr_html_()
    for line in str(report).splitlines():
        assert line[:15].strip() in html
    assert html.count("<tr>") == len(str(report).splitlines())
