from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

import odeco
from odeco.diagnostics import WORRY, Diagnostics, Trust, Verdict, warn_all
from odeco.refinement.loop import StopReason, Trace
from tests.fitted_models import FITTED, fitted_model


@pytest.mark.parametrize("fit", ["fit", "partial_fit"])
def test_a_warning_points_to_the_line_that_called_the_library(fit):
    noise = np.random.default_rng(0).poisson(0.3, (300, 40))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        getattr(odeco.SingleTopicModel(4, random_state=0), fit)(noise)
    assert caught
    assert {warning.filename for warning in caught} == {__file__}


def test_every_advice_is_one_warning():
    diagnostics = Diagnostics(2, np.ones(2), 0.5, 1.0, 0.1, advice=("first", "second"))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert warn_all(diagnostics) is diagnostics
    assert [str(warning.message) for warning in caught] == ["first", "second"]
    assert not diagnostics.ok
    assert "second" in str(diagnostics)


FINE = Diagnostics(4, np.ones(6), gap=0.9, condition=5.0, residual=0.05, clipped_mass=0.01, suggested_components=4)
STOPPED = Trace((), 7, StopReason.MAX_ITER)
NOTHING = {"gap": np.nan, "condition": np.nan, "residual": np.nan, "suggested_components": None}


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"gap": 0.09}, "gap"),
        ({"gap": 0.49, "suggested_components": None}, "gap"),
        ({"gap": 0.49, "suggested_components": 30}, "gap"),
        ({"suggested_components": 3}, "suggested_components"),
        ({"suggested_components": 2}, "suggested_components"),
        ({"condition": 1001.0}, "condition"),
        ({"residual": 0.51}, "residual"),
        ({"clipped_mass": 0.21}, "clipped_mass"),
        ({"details": {"refinement": (STOPPED,)}}, "details"),
        ({"advice": ("use more data.",)}, "advice"),
    ],
)
def test_one_number_is_reason_enough_for_doubt(changes, field):
    verdict = replace(FINE, **changes).verdict
    assert verdict.trust is Trust.DOUBT
    assert [reason.field for reason in verdict.reasons] == [field]
    assert field in WORRY
    assert str(verdict).splitlines() == [Trust.DOUBT.value, f"- {verdict.reasons[0].text}"]


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"gap": 0.11},
        {"gap": 0.51, "suggested_components": 30},
        {"gap": 0.51, "suggested_components": None},
        {"condition": 999.0},
        {"condition": np.inf},
        {"residual": 0.49},
        {"clipped_mass": 0.19},
        {"details": {"refinement": (STOPPED, Trace((), 2, StopReason.CONVERGED))}},
        {"details": {"refinement": Trace((), 1, StopReason.MAX_ITER)}},  # the single step of refine="one-step"
        NOTHING,
    ],
)
def test_what_is_no_reason_for_doubt(changes):
    found = replace(FINE, **changes)
    assert (found.verdict, found.ok, found.warned) == (Verdict(Trust.FINE), True, ())


def test_doubt_by_numbers_is_no_warning_and_distrust_is_always_one():
    assert replace(FINE, gap=0.0).warned == ()
    noise = replace(FINE, suggested_components=1)
    assert noise.verdict.trust is Trust.DISTRUST
    (text,) = noise.warned
    assert "1 of 4 components" in text
    assert replace(noise, advice=("said better.",)).warned == ("said better.",)
    with pytest.warns(odeco.MomentWarning, match="1 of 4"):
        warn_all(noise)


def test_what_an_advice_says_is_not_said_again():
    stopped = replace(FINE, details={"refinement": STOPPED}, advice=(f"no end: {StopReason.MAX_ITER.value}",))
    assert [reason.field for reason in stopped.verdict.reasons] == ["advice"]


def test_noise_is_not_trusted():
    rows = np.random.default_rng(0).standard_normal((1000, 6))
    with pytest.warns(odeco.MomentWarning):
        model = odeco.GaussianHMM(5, random_state=0).fit(rows)
    assert model.diagnostics_.verdict.trust is Trust.DISTRUST


@pytest.mark.parametrize("name", FITTED)
def test_a_good_fit_is_fine(name):
    """Draws from the model, with its own number of components."""
    assert fitted_model(name)[0].diagnostics_.ok


@pytest.mark.real
@pytest.mark.parametrize("k", [10, 20])
def test_topics_of_real_text_are_in_doubt_and_no_warning_is_raised_for_the_numbers(real_data, k):
    data = real_data("sotu")
    parts = (data["counts_data"], data["counts_indices"], data["counts_indptr"])
    counts = sparse.csr_array(parts, shape=tuple(data["counts_shape"]))[::2]
    found = odeco.LatentDirichletAllocation(k, random_state=0).fit(counts).diagnostics_
    assert found.verdict.trust is Trust.DOUBT
    assert {reason.field for reason in found.verdict.reasons} == {"gap", "clipped_mass"}


@pytest.mark.parametrize(
    ("guide", "fields"), [("choosing_k", set(WORRY)), ("topics", set(WORRY) - {"details", "advice"})]
)
def test_the_guides_say_what_the_rule_does(guide, fields):
    text = (Path(__file__).parents[2] / "docs" / f"{guide}.md").read_text(encoding="utf-8")
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line[:3] == "| `"]
    told = {field: row[-1] for row in rows for field in fields if f"`{field}`" in row[0]}
    assert set(told) == fields
    for field, words in told.items():
        assert words.startswith(WORRY[field])
    if guide == "choosing_k":
        assert all(f'| "{trust.value}" |' in text for trust in Trust)


def test_a_search_is_judged_by_its_finalists_and_not_by_the_moments():
    """Moments with a large residual say nothing of a start that was compared with others."""
    moments = Diagnostics(3, np.ones(5), gap=0.9, condition=1e6, residual=0.9, clipped_mass=0.9)
    assert {reason.field for reason in moments.verdict.reasons} == {"condition", "residual", "clipped_mass"}
    found = {"replicated": 2, "spread": 0.0}
    assert replace(moments, details=found).ok
    lucky = replace(moments, details={"replicated": 1, "spread": 0.5}).verdict
    assert lucky.trust is Trust.DOUBT
    assert "0.5 nats per sample behind" in lucky.reasons[0].text
    assert replace(moments, details={"replicated": 1, "spread": 0.005}).ok
    assert not replace(moments, details=found, suggested_components=2).ok
    assert not replace(moments, details=found, gap=0.0).ok  # of the number of components, not of the start
