"""Text from users is text: hostile words, names, documents and commands stay what they are and run nothing."""

import json
import re

import pytest

from odeco.report import render_report
from tests.fitted_models import FITTED, fitted_model
from tests.unit.report.test_reports import Page, assert_self_contained

HOSTILE = "</script></style><img src=x onerror=alert(1)>\"'<svg onload=alert(2)>&amp;{{7*7}}\u2028\u2029"


def hostile_inputs(name):
    """The inputs of a report with every name replaced by something hostile."""
    model, inputs = fitted_model(name)
    changed = dict(inputs)
    for key in ("vocabulary", "feature_names"):
        if key in inputs and name == "multiview":
            changed[key] = [[f"{HOSTILE}{t}{i}" for i, _ in enumerate(view)] for t, view in enumerate(inputs[key])]
        elif key in inputs:
            changed[key] = [f"{HOSTILE}{i}" for i, _ in enumerate(inputs[key])]
    if "documents" in inputs:
        changed["documents"] = [f"{HOSTILE} {text}" for text in inputs["documents"]]
    return model, changed


@pytest.mark.parametrize("name", FITTED)
def test_hostile_names_are_shown_and_not_obeyed(name):
    model, inputs = hostile_inputs(name)
    plain = Page(render_report(model))
    html = render_report(model, **inputs, fitted={"command": HOSTILE, HOSTILE: HOSTILE}, title=HOSTILE)
    hostile = Page(html)
    assert_self_contained(hostile)
    assert hostile.tags["script"] == plain.tags["script"]
    assert hostile.tags["style"] == 1
    assert HOSTILE in hostile.text("h1")
    assert "49" not in hostile.text("h1").replace(HOSTILE, "")  # {{7*7}} is not a template


def test_the_data_of_the_script_survive_the_way_into_the_page():
    model, inputs = hostile_inputs("lda")
    html = render_report(model, **inputs)
    inside = re.search(r'<script type="application/json" id="report-data">(.*?)</script>', html, re.S)
    assert inside is not None
    assert "<" not in inside.group(1)
    assert set(json.loads(inside.group(1))["words"]) <= set(inputs["vocabulary"])


def test_a_policy_lets_the_page_run_its_own_script_and_load_nothing():
    html = render_report(fitted_model("lda")[0])
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', html)
    assert policy is not None
    assert "default-src 'none'" in policy.group(1)
    assert re.search(r"script-src 'sha256-[A-Za-z0-9+/=]{44}'", policy.group(1))


def test_names_of_annotators_are_escaped():
    import numpy as np
    import pandas as pd

    import odeco

    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=120)
    labels = np.where(rng.random((120, 5)) < 0.85, truth[:, None], 1 - truth[:, None])
    frame = pd.DataFrame(labels, columns=[f"{HOSTILE}{i}" for i in range(5)])
    model = odeco.DawidSkene(layout="wide", random_state=0).fit(frame)
    page = Page(render_report(model, data=frame))
    assert_self_contained(page)
    assert f"{HOSTILE}0" in page.text("th")
