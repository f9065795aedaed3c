"""Pieces of the report: numbers in words, scales and ticks, excerpts, diagnostics in words."""

import numpy as np
import pytest

from odeco.plots.fit import Convergence, Spectrum
from odeco.report import findings
from odeco.report.chain_charts import state_runs
from odeco.report.charts import convergence_chart, spectrum_chart
from odeco.report.svg import Scale, axis_numbers, number, percent, tag
from odeco.report.topics import excerpt
from tests.fitted_models import fitted_model


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (1234567, "1,234,567"),
        (12.345, "12.3"),
        (0.012345, "0.0123"),
        (-2.5, "−2.5"),
        (100.0, "100"),
        (1e-4, "0.0001"),
        (1.2e-7, "1.2e-07"),
        (float("nan"), "–"),
        (float("inf"), "∞"),
        (float("-inf"), "−∞"),
    ],
)
def test_numbers_are_short(value, text):
    assert number(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0%"), (1e-5, "<0.1%"), (0.034, "3.4%"), (0.5, "50%"), (0.996, "99.6%"), (0.99999, ">99.9%"), (1, "100%")],
)
def test_shares_are_never_rounded_to_certainty(value, text):
    assert percent(value) == text


@pytest.mark.parametrize(("low", "high"), [(0, 1), (-15.625818, -15.625813), (3, 3000), (-2e-5, 7e-5), (0, 48_502)])
def test_ticks_are_round_few_and_tell_neighbours_apart(low, high):
    ticks = Scale(low, high, 0, 1).ticks()
    assert 2 <= len(ticks) <= 8
    assert all(low - 1e-9 * (high - low) <= t <= high + 1e-9 * (high - low) for t in ticks)
    assert len(set(axis_numbers(ticks))) == len(ticks)


def test_ticks_of_a_logarithmic_scale_are_powers_of_ten():
    assert axis_numbers(Scale(1e-6, 1, 0, 1, log=True).ticks(8)) == [
        "10⁻⁶",
        "10⁻⁵",
        "10⁻⁴",
        "10⁻³",
        "10⁻²",
        "10⁻¹",
        "10⁰",
    ]
    assert axis_numbers([0.1, 1.0, 10.0]) == ["0.1", "1", "10"]
    assert Scale(2, 9, 0, 1, log=True).ticks() == [2, 5]


def test_elements_escape_text_and_attributes():
    made = str(tag("text", "<b>&", title='"quoted" <i>', x=1.23456, nothing=None))
    assert made == '<text title="&#34;quoted&#34; &lt;i&gt;" x="1.23">&lt;b&gt;&amp;</text>'


def test_an_excerpt_is_where_the_telling_words_are():
    text = "nothing here " * 60 + "the navy and its ships at sea " + "nothing more " * 60
    shown = str(excerpt(text, {"navy", "ships"}))
    assert "<mark>navy</mark> and its <mark>ships</mark>" in shown
    assert shown.startswith("… ")
    assert shown.endswith(" …")
    assert len(shown) < 460
    assert str(excerpt("short & <b>", {"short"})) == "<mark>short</mark> &amp; &lt;b&gt;"
    assert str(excerpt("", {"word"})) == ""
    assert len(str(excerpt("x" * 5000, set()))) < 400


def test_runs_of_states():
    assert state_runs(np.array([1, 1, 0, 2, 2])) == [(1, 0, 2), (0, 2, 3), (2, 3, 5)]


def test_charts_of_odd_fits():
    assert spectrum_chart(Spectrum(np.empty(0), 0, float("nan"), None)) is None
    for values in ([1.0], [0.0, 0.0], [1.0, -0.5], [1e-300, 0.0], [1.0, 1.0, 1.0]):
        assert "NaN" not in str(spectrum_chart(Spectrum(np.array(values), 1, 0.5, 0.2))).replace("nan", "NaN")
    nothing = Convergence(np.empty(0), np.empty(0), (), "value", 3, True, "")
    assert convergence_chart(nothing) == (None, "")
    far = Convergence(np.arange(6.0), np.array([-1e6, -3.0, -2.0, -1.5, -1.4, -1.4]), (), "value", 6, True, "")
    assert "left out" in convergence_chart(far)[1]


def test_findings_have_a_sentence_and_a_level_each():
    model, _ = fitted_model("gaussian_mixture")
    found = {finding.name: finding for finding in findings(model)}
    assert set(found) >= {"Gap", "Condition", "Residual", "Refinement"}
    assert found["Gap"].level == "good"
    assert all(f.words.endswith(".") and f.level in ("good", "fair", "doubtful") for f in found.values())
    assert model.diagnostics_.ok
