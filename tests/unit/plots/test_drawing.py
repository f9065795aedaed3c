"""Figures on matplotlib: they return their axes, show the numbers of the figure data, and load nothing before."""

import subprocess
import sys

import matplotlib.pyplot as plt
import numpy as np
import pytest

from odeco import plots
from tests.fitted_models import FITTED, fitted_model


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


@pytest.mark.parametrize("name", FITTED)
def test_every_model_has_its_spectrum_and_convergence(name):
    model, _ = fitted_model(name)
    ax = plots.plot_spectrum(model)
    assert ax.get_ylabel() == "eigenvalue"
    assert plots.plot_convergence(model, ax=ax) is ax  # given axes are used and returned
    for drawn in (ax,):
        drawn.figure.canvas.draw()


CASES = [
    ("lda", "plot_topics", {}),
    ("single_topic", "plot_topics", {}),
    ("lda", "plot_words", {"topic": 1}),
    ("lda", "plot_topic_map", {}),
    ("gaussian_mixture", "plot_profiles", {}),
    ("product_mixture", "plot_profiles", {}),
    ("gaussian_mixture", "plot_samples", {"data": "data"}),
    ("dawid_skene", "plot_confusion", {}),
    ("dawid_skene", "plot_confusion", {"annotator": 2}),
    ("dawid_skene", "plot_reliability", {}),
    ("gaussian_hmm", "plot_transitions", {}),
    ("categorical_hmm", "plot_emissions", {}),
    ("poisson_hmm", "plot_emissions", {}),
    ("categorical_hmm", "plot_sequence", {"data": "data"}),
    ("gaussian_hmm", "plot_sequence", {}),
    ("ica", "plot_mixing", {}),
    ("ica", "plot_sources", {"data": "data"}),
]


@pytest.mark.parametrize(("name", "function", "options"), CASES)
def test_every_figure_draws_on_given_axes(name, function, options):
    model, inputs = fitted_model(name)
    options = {key: inputs["data"] if key == "data" else value for key, value in options.items()}
    figure, ax = plt.subplots()
    assert getattr(plots, function)(model, ax=ax, **options) is ax
    assert ax.has_data() or ax.texts
    figure.canvas.draw()


def test_words_are_drawn_with_their_probabilities():
    model, inputs = fitted_model("lda")
    ax = plots.plot_words(model, 0, vocabulary=inputs["vocabulary"], n_words=4, weight=1.0)
    best = np.argsort(-model.components_[0], kind="stable")[:4]
    assert [label.get_text() for label in ax.get_yticklabels()] == [inputs["vocabulary"][w] for w in best]
    assert [bar.get_width() for bar in ax.patches[:4]] == pytest.approx(model.components_[0, best].tolist())
    with pytest.raises(ValueError, match="topic must be a number from 0 to 2, got 3"):
        plots.plot_words(model, 3)


def test_words_with_dollars_are_not_mathematics():
    model, _ = fitted_model("lda")
    ax = plots.plot_words(model, 0, vocabulary=["$\\frac{"] * 20)
    plots.plot_topics(model, vocabulary=["$\\frac{"] * 20).figure.canvas.draw()
    ax.figure.canvas.draw()


def test_measured_prevalence_is_drawn_where_data_are_given():
    model, inputs = fitted_model("lda")
    ax = plots.plot_topics(model, data=inputs["data"])
    assert [bar.get_width() for bar in ax.patches] == pytest.approx(
        plots.topic_use(model, inputs["data"]).shares.tolist()
    )


def test_matplotlib_is_loaded_by_the_first_figure_only():
    code = "import sys, odeco.plots, odeco.report; print('matplotlib' in sys.modules, 'jinja2' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["False", "False"]
