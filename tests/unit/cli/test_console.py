"""What a command says: one line each for warnings, errors and stages; bars on terminals alone."""

import json
import warnings
from pathlib import Path

import numpy as np
import pytest

from odeco.cli.as_json import as_plain
from odeco.cli.console import Stages, readable_errors
from odeco.exceptions import MomentWarning


def test_warnings_and_surprises_are_one_line_each(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop, readable_errors():
        warnings.warn("weak\nspectrum", MomentWarning, stacklevel=1)
        warnings.warn("for programmers", FutureWarning, stacklevel=1)
        raise KeyError("surprise")
    err = capsys.readouterr().err.splitlines()
    assert stop.value.code == 1
    assert err[0] == "odeco: warning: weak spectrum"
    assert "surprise" in err[1]
    assert "--debug" in err[1]
    assert len(err) == 2


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (FileNotFoundError(2, "No such file or directory", "a.txt"), "a.txt: no such file or directory"),
        (OSError(28, "No space left on device", "b.csv"), "b.csv: no space left on the device"),
        (OSError("of some other kind"), "of some other kind"),
        (MemoryError(), "not enough memory"),
        (ValueError("n_components=9 is too many: lower n_components"), "-k 9 is too many: lower -k"),
        (ValueError("n_components must be a positive integer, got 0."), "-k must be a positive integer, got 0."),
        (
            ValueError("try a lower min_df; layout='long'; in the wrong layout"),
            "try a lower --min-df; --layout 'long'; in",
        ),
        (ImportError("pip install odeco[files]"), "pip install odeco[files]"),
    ],
)
def test_errors_speak_to_a_person(capsys: pytest.CaptureFixture[str], error: Exception, said: str) -> None:
    with pytest.raises(SystemExit) as stop, readable_errors():
        raise error
    assert stop.value.code == 1
    assert capsys.readouterr().err.startswith(f"odeco: error: {said}")


def test_an_interrupt_is_130(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop, readable_errors():
        raise KeyboardInterrupt
    assert stop.value.code == 130
    assert capsys.readouterr().err.count("\n") == 1


def test_stages_count_what_passes(capsys: pytest.CaptureFixture[str]) -> None:
    stages = Stages()
    with stages.stage("reading") as stage:
        read = stage.watch(lambda: [np.zeros((3, 2)), np.zeros((4, 2))])
        for _ in range(2):
            assert len(list(read())) == 2
        stage.done = f"read {stage.rows} rows"
    assert stage.rows == 7
    assert capsys.readouterr().err == f"odeco: read 7 rows ({stage.seconds:.1f} s)\n"


def test_quiet_stages_say_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with Stages(quiet=True).stage("reading") as stage:
        stage.done = "read"
    assert capsys.readouterr() == ("", "")


def test_a_stage_that_fails_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ValueError), Stages().stage("reading") as stage:
        stage.done = "read"
        raise ValueError
    assert capsys.readouterr().err == ""


def test_a_terminal_gets_a_bar(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    stages = Stages()
    stages.terminal = True
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("FORCE_COLOR", "1")  # what makes rich believe in a terminal
    with stages.stage("reading a.txt") as stage:
        for _ in stage.watch(lambda: [np.zeros((3, 2))] * 2)():
            pass
        stage.done = "read"
    err = capsys.readouterr().err
    assert "reading a.txt" in err
    assert err.rstrip().endswith("s)")


def test_as_plain_is_strict_json() -> None:
    value = {
        "nan": float("nan"),
        "inf": np.inf,
        "array": np.array([1.5, np.nan]),
        "count": np.int64(3),
        "path": Path("a"),
    }
    text = json.dumps(as_plain(value), allow_nan=False)
    assert json.loads(text) == {"nan": None, "inf": None, "array": [1.5, None], "count": 3, "path": "a"}
