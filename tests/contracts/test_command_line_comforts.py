"""What makes a command line pleasant: completion, comparison of two models, stop words, files as they come."""

from __future__ import annotations

import bz2
import json
import os
from pathlib import Path

import numpy as np
import pytest

import odeco
from odeco.metrics import match_memberships
from odeco.models.cards import OWN
from odeco.persistence import load_with_metadata
from tests.command_line import call, run, written

ENGLISH = (
    "The ship is on the sea and it was in the harbour of the town\nThe tax on the land is for the bank of the state\n"
)


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Two topic models, two mixtures, one chain and their data."""
    folder = tmp_path_factory.mktemp("compared")
    found = {name: written(name, folder) for name in ("lda", "gaussian-mixture", "hmm")}
    for name, kind, options in (
        ("topics2", "lda", ["-k", "2"]),
        ("topics3", "lda", ["-k", "3", "--refine", "none"]),
        ("fewer-words", "lda", ["-k", "2", "--max-words", "8"]),
        ("two", "gaussian-mixture", ["-k", "2", "--columns", "a,b,c"]),
        ("one", "gaussian-mixture", ["-k", "1", "--columns", "a,b,c"]),
        ("chain", "hmm", ["-k", "1", "--unit", "characters"]),
    ):
        out = folder / f"{name}.odeco"
        done = call("fit", kind, found[kind], *options, "--out", out, "-q")
        assert done.returncode == 0, done.stderr
        found[name] = out
    return found


def test_completion_knows_commands_models_and_options() -> None:
    for words, expected in (
        ("odeco com", {"compare"}),
        ("odeco fit ", {card.name for card in OWN}),
        ("odeco fit lda --stop", {"--stop-words"}),
    ):
        place = {"_ODECO_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(len(words.split(" ")) - 1)}
        before = {name: os.environ.get(name) for name in place}
        os.environ.update(place)
        try:
            done = run()
        finally:
            for name, value in before.items():
                os.environ.pop(name) if value is None else os.environ.update({name: value})
        assert set(done.stdout.split()) == expected, done.stderr


def test_help_offers_completion_and_comparison() -> None:
    help = call("--help").stdout
    assert "--install-completion" in help
    assert "compare" in help
    assert call("compare", "--help").returncode == 0


def test_compare_puts_scores_side_by_side_and_matches_components(models: dict[str, Path]) -> None:
    done = call("compare", models["two"], models["one"], models["gaussian-mixture"], "-q")
    assert (done.returncode, done.stderr) == (0, "")
    assert "higher is better" in done.stdout
    assert "of " + str(models["two"]) + " alone" in done.stdout
    found = json.loads(call("compare", models["two"], models["one"], models["gaussian-mixture"], "--json", "-q").stdout)
    X = np.genfromtxt(models["gaussian-mixture"], delimiter=",", names=True, usecols=("a", "b", "c"))
    X = np.column_stack([X[name] for name in "abc"])
    for side, name in zip(found["files"], ("two", "one"), strict=True):
        model = odeco.load(models[name])
        assert side["score"] == pytest.approx(model.score(X))
        assert side["bic"] == pytest.approx(model.bic(X))
    assert found["files"][0]["score"] > found["files"][1]["score"]
    assert len(found["matched"]) == 1


def test_compare_topics_and_chains(models: dict[str, Path]) -> None:
    done = call("compare", models["topics2"], models["topics3"], models["lda"])
    assert done.returncode == 0, done.stderr
    assert "perplexity" in done.stdout
    assert "vocabularies differ" not in done.stdout
    assert "vocabularies differ" in call("compare", models["topics2"], models["fewer-words"], models["lda"]).stdout
    found = json.loads(call("compare", models["chain"], models["chain"], models["hmm"], "--json").stdout)
    assert found["matched"] == [{"first": 0, "second": 0, "shared": 1.0}]
    assert found["files"][0]["score"] == found["files"][1]["score"] < 0


def test_exit_codes_of_compare(models: dict[str, Path]) -> None:
    done = call("compare", models["two"], models["topics2"], models["lda"])
    assert (done.returncode, done.stdout) == (1, "")
    assert "gaussian-mixture and lda are scored differently" in done.stderr
    assert call("compare", models["two"], models["one"], "nowhere.csv").returncode == 1
    assert call("compare", models["two"], "nowhere.odeco", models["lda"]).returncode == 1
    assert call("compare", models["two"], models["one"]).returncode == 2
    assert call("compare", models["two"], models["one"], "-").returncode == 2


def test_memberships_that_do_not_fit_are_named() -> None:
    with pytest.raises(ValueError, match=r"same rows, got shapes \(2, 2\) and \(3, 3\)"):
        match_memberships(np.eye(2), np.eye(3))


@pytest.mark.parametrize(
    ("given", "said", "kept"),
    [
        ([], "English, 318 stop words are left out", False),
        (["--stop-words", "en"], "", False),
        (["--stop-words", "none"], "", True),
        (["--stop-words", "de"], "", True),
    ],
)
def test_stop_words_of_the_language(tmp_path: Path, given: list[str], said: str, kept: bool) -> None:
    text, out = tmp_path / "a.txt.bz2", tmp_path / "model.odeco"
    text.write_bytes(bz2.compress((ENGLISH * 40).encode()))
    done = call("fit", "lda", text, "-k", "2", "--max-df", "1.0", *given, "--out", out)
    assert done.returncode == 0, done.stderr
    assert ("stop words" in done.stderr) == bool(said)
    assert said in done.stderr
    saved = load_with_metadata(out)
    assert ("the" in saved.metadata["vocabulary"]) == kept
    assert "ship" in saved.metadata["vocabulary"]
    assert call("transform", out, text, "--out", tmp_path / "shares.csv").returncode == 0


def test_texts_of_no_language_keep_their_words(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("bolt the nut\nzinc bolt steel\n" * 30)
    done = call("fit", "lda", tmp_path / "a.txt", "-k", "2", "--max-df", "1.0", "--out", tmp_path / "model.odeco")
    assert "no stop words are left out, for no language was recognised (--stop-words names one)" in done.stderr
    assert "the" in load_with_metadata(tmp_path / "model.odeco").metadata["vocabulary"]
