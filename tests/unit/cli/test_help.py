"""Pages of help: for a terminal, a pipe and a person who copies an example."""

from __future__ import annotations

import sys

import pytest

from odeco.cli.help import styled
from odeco.models.cards import OWN
from tests.command_line import call


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    return monkeypatch


def test_a_terminal_gets_bold_words_and_colours(terminal: pytest.MonkeyPatch) -> None:
    assert styled("Options") == "\x1b[1mOptions\x1b[0m"
    assert styled("--out", fg="cyan") == "\x1b[36m\x1b[1m--out\x1b[0m"


def test_no_color_leaves_bold_words_and_a_dumb_terminal_nothing(terminal: pytest.MonkeyPatch) -> None:
    terminal.setenv("NO_COLOR", "1")
    assert styled("--out", fg="cyan") == "\x1b[1m--out\x1b[0m"
    terminal.setenv("TERM", "dumb")
    assert styled("--out", fg="cyan") == "--out"


def test_a_pipe_gets_plain_text() -> None:
    page = call("show", "--help").stdout
    assert "\x1b" not in page
    assert "[bold]" not in page
    assert "A file written by odeco fit." in page


def test_examples_are_lines_that_can_be_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    for card in OWN:
        lines = [line.strip() for line in call("fit", card.name, "--help").stdout.splitlines()]
        assert set(card.examples) <= set(lines)


def test_options_stand_in_their_groups() -> None:
    page = call("fit", "lda", "--help").stdout
    titles = ["Arguments:", "Options:", "Options of the model:", "Options of the input:"]
    places = [page.index(f"\n{title}\n") for title in titles]
    assert places == sorted(places)
    assert places[2] < page.index("--alpha0") < places[3] < page.index("--max-words")


@pytest.mark.parametrize("words", [[], ["fit"], ["moments"], ["moments", "basis"]])
def test_a_group_alone_shows_its_page(words: list[str]) -> None:
    done = call(*words)
    assert (done.returncode, done.stderr) == (2, "")
    assert done.stdout == call(*words, "--help").stdout


def test_a_misspelt_model_is_answered_with_the_nearest() -> None:
    assert "Did you mean 'lda'?" in call("fit", "ldaa").stderr
