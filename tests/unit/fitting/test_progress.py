"""What a fit says while it works: the same words for every model, and none unless asked."""

from __future__ import annotations

import re

import numpy as np
import pytest

import odeco
from odeco.cli.console import Stage
from odeco.models.cards import OWN
from odeco.progress import Lines, listening, tell
from odeco.sources.signatures import described
from tests.fitted_models import FITTED, fitted_model


def refit(name, **options):
    model, inputs = fitted_model(name)
    data = inputs["data"]
    again = type(model)(**{**model.get_params(), **options})
    return again.fit(*data) if isinstance(data, tuple) else again.fit(data)


@pytest.mark.parametrize("name", FITTED)
def test_every_model_says_what_it_does(name, capsys):
    model = refit(name, verbose=True)
    lines = capsys.readouterr().err.splitlines()
    assert all(re.match(rf"{type(model).__name__} \[ *\d+\.\d s\] ", line) for line in lines)
    said = [line.split("s] ", 1)[1] for line in lines]
    assert said[0] == "pass 1 over the data"
    assert "estimate from the moments" in said
    assert ("refinement by likelihood" in said) == (name != "ica")  # whose theorem has all the steps there are
    assert said[-1] == f"done: {model.diagnostics_.method}. {model.diagnostics_.verdict.trust.value}"


def test_nothing_is_said_unless_asked(capsys):
    refit("single_topic")
    assert capsys.readouterr() == ("", "")


def test_verbose_changes_nothing():
    loud, quiet = refit("gaussian_mixture", verbose=True), refit("gaussian_mixture")
    np.testing.assert_array_equal(loud.means_, quiet.means_)
    assert described(loud) == described(quiet)  # a checkpoint of the one goes on with the other
    assert all(card.load()().verbose is False for card in OWN)


def test_steps_come_with_the_best_value_so_far():
    heard = []
    with listening(lambda text, step: heard.append((text, step))):
        refit("single_topic")
    steps = [text for text, step in heard if step]
    assert steps[0].startswith("refinement, step 1: ")
    values = [float(text.split(": ")[1]) for text in steps if text.startswith("refinement, step") and ": " in text]
    assert len(values) > 1
    assert not any(step for text, step in heard if text.startswith("pass"))


def test_many_steps_are_few_lines(capsys):
    with listening(Lines("model")):
        for i in range(1000):
            tell(f"step {i}", step=True)
        tell("done")
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) < 100
    assert lines[0].endswith("step 0")
    assert lines[-1].endswith("done")


def test_the_command_line_hears_the_same_words():
    stage, heard = Stage(), []
    stage.step_shown = lambda what, done, total: heard.append(what)
    with listening(stage.hear):
        odeco.GaussianMixture(1, random_state=0).fit(np.random.default_rng(0).standard_normal((50, 2)))
    assert heard[0] == "pass 1 over the data"
    assert heard[-1].startswith("done: ")
