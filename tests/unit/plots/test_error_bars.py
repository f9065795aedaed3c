"""Intervals in figures."""

from __future__ import annotations

import numpy as np
import pytest

import odeco
from odeco import plots
from odeco.plots.errors import error_bars
from tests.fitted_models import fitted_model

pytest.importorskip("matplotlib")


def intervals_of(name):
    model, given = fitted_model(name)
    X, lengths = given["data"] if isinstance(given["data"], tuple) else (given["data"], None)
    return model, odeco.intervals(model, X, lengths=lengths, n_replicates=10, replication=False, random_state=0)


def test_bars_reach_from_the_values_to_the_ends():
    _, found = intervals_of("gaussian_mixture")
    low, high = error_bars(found, "means_")
    np.testing.assert_allclose(found.value["means_"] - low, found.low["means_"])
    np.testing.assert_allclose(found.value["means_"] + high, found.high["means_"])
    with pytest.raises(ValueError, match="have no 'transmat_'"):
        error_bars(found, "transmat_")


def test_profiles_have_the_intervals_of_the_means():
    model, found = intervals_of("gaussian_mixture")
    shown = plots.plot_profiles(model, intervals=found)
    plain = plots.plot_profiles(model)

    def longest(axes):
        return max(np.ptp(segment[:, 0]) for bars in axes.collections for segment in bars.get_segments())

    assert longest(shown) < 0.4 * longest(plain)  # errors of a mean of 80 rows or more, not deviations of rows


def test_words_have_bars():
    model, found = intervals_of("lda")
    axes = plots.plot_words(model, 0, intervals=found)
    assert axes.collections
    assert not plots.plot_words(model, 0).collections


def test_transitions_and_emissions():
    model, found = intervals_of("gaussian_hmm")
    texts = [text.get_text() for text in plots.plot_transitions(model, intervals=found).texts]
    assert sum(" to " in text for text in texts) == 2
    assert plots.plot_emissions(model, intervals=found).collections


@pytest.mark.parametrize(
    ("name", "plot", "arguments", "attribute"),
    [
        ("categorical_hmm", "plot_emissions", {}, "emissionprob_"),
        ("dawid_skene", "plot_confusion", {"annotator": 2}, "confusion_"),
        ("ica", "plot_mixing", {}, "mixing_"),
    ],
)
def test_cells_have_both_ends(name, plot, arguments, attribute):
    model, found = intervals_of(name)
    cells = [text.get_text() for text in getattr(plots, plot)(model, intervals=found, **arguments).texts]
    assert all(" to " in cell for cell in cells)
    low = np.asarray(found.low[attribute])
    low = low[2] if name == "dawid_skene" else low.T if name == "categorical_hmm" else low
    assert [cell.split("\n")[1].split(" to ")[0] for cell in cells] == [f"{value:.2g}" for value in low.ravel()]


def test_views_have_the_intervals_of_their_means():
    model, found = intervals_of("multiview")
    axes = plots.plot_profiles(model, intervals=found, n_columns=5)
    assert axes.get_yticklabels()[0].get_text().startswith("view 0: ")
    reach = [np.ptp(segment[:, 0]) for bars in axes.collections for segment in bars.get_segments()]
    assert len(reach) == 10  # five columns in two components
    assert max(reach) < 0.5  # errors of means of 300 rows, in units of the columns


def test_what_has_no_intervals_is_said():
    crowd, found = intervals_of("dawid_skene")
    with pytest.raises(ValueError, match="name one as annotator"):
        plots.plot_confusion(crowd, intervals=found)
    with pytest.raises(ValueError, match="intervals of another model: weights_ differs"):
        plots.plot_profiles(fitted_model("gaussian_mixture")[0], intervals=found)
