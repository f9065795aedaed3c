"""Nothing that a file or a model holds reaches a terminal as a command."""

import json
from pathlib import Path

import numpy as np
import pytest

from odeco.cli.console import Stages
from odeco.cli.printing import print_json, printable
from tests.command_line import call, write_rows

# Colours, the title of the window, an eight-bit escape, a line that was never said, text turned round.
COMMANDS = ["\x1b[31m", "\x1b]0;title\x07", "\x9b2J", "\nodeco: all is well", "\r", "\u202e", "\u2028", "\x7f"]


@pytest.mark.parametrize("command", COMMANDS)
def test_what_a_terminal_would_obey_is_spelled(command: str) -> None:
    shown = printable(f"wo{command}rd")
    assert shown.isprintable()
    assert shown.startswith("wo\\u")
    assert json.loads(f'"{shown}"') == f"wo{command}rd"


@pytest.mark.parametrize("text", ["naïve", "語彙", "می\u200cخواهم", "👩\u200d🔬", "a\u00a0b", "back\\slash", ""])
def test_what_it_shows_is_left_alone(text: str) -> None:
    assert printable(text) == text


def test_half_a_character_can_be_printed() -> None:
    assert printable("caf\udce9.txt").encode("utf-8") == b"caf\\udce9.txt"


def test_json_is_harmless_and_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"words": COMMANDS})
    out = capsys.readouterr().out
    assert out.removesuffix("\n").isprintable()
    assert json.loads(out)["words"] == COMMANDS


def harmless(*streams: str) -> bool:
    return all(line.isprintable() for stream in streams for line in stream.split("\n"))


def test_words_of_a_model(tmp_path: Path) -> None:
    words = tmp_path / "words.txt"
    words.write_text("".join(f"{i}\x1b[31m\x9b2J\n" for i in range(6)))
    rng = np.random.default_rng(0)
    halves = [rng.multinomial(20, p, size=60) for p in ([0.3, 0.3, 0.3, 0.1, 0, 0], [0, 0, 0.1, 0.3, 0.3, 0.3])]
    np.save(tmp_path / "counts.npy", np.vstack(halves))
    model = tmp_path / "m.odeco"
    command = ["fit", "single-topic", tmp_path / "counts.npy", "--vocabulary", words, "-k", "2"]
    assert call(*command, "--out", model).returncode == 0
    for more in ([], ["--json"]):
        done = call("show", model, *more)
        assert (done.returncode, harmless(done.stdout)) == (0, True)
        assert "\\u001b[31m" in done.stdout


def test_names_of_files_and_columns(tmp_path: Path) -> None:
    data = write_rows(tmp_path / "a\x1b[31m.csv", ["x\x1b]0;title\x07", "y"], [[i % 7, "b\x1b[2Ja"] for i in range(40)])
    done = call("fit", "gaussian-mixture", data, "-k", "2", "--out", tmp_path / "m.odeco")
    assert (done.returncode, harmless(done.stderr)) == (1, True)
    assert "\\u001b[31m.csv" in done.stderr
    done = call("fit", "gaussian-mixture", data, "-k", "2", "--columns", "x\x1b]0;title\x07", "--out", tmp_path / "n")
    assert (done.returncode, harmless(done.stderr)) == (0, True)
    done = call("show", tmp_path / "absent\x1b[31m")
    assert (done.returncode, harmless(done.stderr)) == (1, True)
    done = call("show", tmp_path / "n", "--\x1b[31m")
    assert (done.returncode, harmless(done.stderr)) == (2, True)


def test_the_bar_shows_names_as_they_are(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    stages = Stages()
    stages.terminal = True
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("FORCE_COLOR", "1")
    with stages.stage("reading [red]a\x1b]0;title\x07") as stage:
        for _ in stage.watch(lambda: [np.zeros((3, 2))])():
            pass
    assert "[red]a\\u001b]0;title\\u0007" in capsys.readouterr().err
