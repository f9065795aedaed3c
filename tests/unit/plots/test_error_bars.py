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
    symbols, of_symbols = intervals_of("categorical_hmm")
    with pytest.raises(ValueError, match="profiles of columns"):
        plots.plot_emissions(symbols, intervals=of_symbols)
