"""Every command as a user types it, for every model: answers on stdout, words on stderr, files that are whole.

Every model is fitted, and every command run, in a process of its own; what remains of models x commands in this one.
"""

import json
import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import odeco
from odeco.diagnostics import Trust
from odeco.models.cards import OWN
from odeco.persistence import load_with_metadata
from odeco.plots import topic_use
from odeco.report.svg import percent
from tests.command_line import FITS, call, run, write_rows, written

MODELS = {card.name: card for card in OWN}


@dataclass(frozen=True)
class Fitted:
    """A model that was fitted by the command line, and what it was fitted to."""

    name: str
    data: Path
    model: Path
    done: Any

    @property
    def parts(self) -> str:
        return FITS[self.name][1]


def fit(name: str, folder: Path) -> Fitted:
    data, model = written(name, folder), folder / f"{name}.odeco"
    arguments = [data if each == "FILE" else each for each in FITS[name][0]]
    return Fitted(name, data, model, run("fit", name, *arguments, "--out", model))


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Fitted]:
    """All models, two at a time: most of each command is the start of its interpreter."""
    folder = tmp_path_factory.mktemp("models")
    with ThreadPoolExecutor(2) as pool:
        return dict(zip(FITS, pool.map(lambda name: fit(name, folder), FITS), strict=True))


def test_every_estimator_has_a_command() -> None:
    assert set(MODELS) == set(FITS)
    assert {card.class_name for card in OWN} == {
        name for name in odeco.__all__ if hasattr(getattr(odeco, name), "get_params")
    }


@pytest.mark.parametrize("name", FITS)
def test_fit_writes_a_model_that_loads(fitted: dict[str, Fitted], name: str) -> None:
    done = fitted[name].done
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    lines = done.stderr.splitlines()
    assert len(lines) == 3  # read, fitted, wrote: quiet lines where there is no terminal
    assert all(line.startswith("odeco: ") for line in lines)
    saved = load_with_metadata(fitted[name].model)
    assert type(saved.model).__name__ == MODELS[name].class_name
    assert saved.metadata["model"] == name
    assert saved.metadata["fitted"]["command"].startswith(f"odeco fit {name} ")


@pytest.mark.parametrize("name", FITS)
def test_show_says_what_was_learned(fitted: dict[str, Fitted], name: str) -> None:
    done = (run if name == "hmm" else call)("show", fitted[name].model)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"2 {fitted[name].parts}" in done.stdout
    assert "How far to trust it" in done.stdout
    expected = {
        "lda": ["fish", "bread"],
        "gaussian-mixture": [" a ", " c "],
        "product-mixture": ["q0 = yes", "q0 = no"],
        "dawid-skene": ["cat", "dog", "worker0"],
        "hmm": ["b", "a"],
        "ica": ["left", "right"],
    }
    for words in expected.get(name, []):
        assert words in done.stdout


@pytest.mark.parametrize("name", FITS)
def test_transform_answers_for_every_row(fitted: dict[str, Fitted], name: str, tmp_path: Path) -> None:
    done = call("transform", fitted[name].model, fitted[name].data, "--out", tmp_path / "answers.jsonl")
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in (tmp_path / "answers.jsonl").read_text().splitlines()]
    n_rows = {"dawid-skene": 80, "hmm": 3200, "poisson-hmm": 1200}.get(name)
    assert len(rows) == (
        n_rows or len(fitted[name].data.read_text().splitlines()) - (fitted[name].data.suffix == ".csv")
    )
    part = MODELS[name].part
    numbers = [key for key in rows[0] if key.startswith(f"{part}_")]
    assert len(numbers) == 2
    values = np.array([[row[key] for key in numbers] for row in rows])
    if name == "ica":
        assert np.corrcoef(values.T)[0, 1] == pytest.approx(0, abs=0.05)  # 3,000 samples: 2.7 standard errors
        return
    np.testing.assert_allclose(values.sum(axis=1), 1, atol=1e-6)
    assert min(np.bincount(values.argmax(axis=1), minlength=2)) > 0.2 * len(rows)  # halves, about: both are found


@pytest.mark.parametrize("name", FITS)
def test_report_is_one_page(fitted: dict[str, Fitted], name: str, tmp_path: Path) -> None:
    done = (run if name == "lda" else call)(
        "report", fitted[name].model, fitted[name].data, "--out", tmp_path / "page.html"
    )
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "page.html").read_text()
    assert page.lstrip().lower().startswith("<!doctype html>")
    assert f"odeco fit {name}" in page  # how to repeat it


def test_groups_are_those_of_the_data(fitted: dict[str, Fitted], tmp_path: Path) -> None:
    """Columns are found by name: another order and other columns beside do not matter."""
    kept = fitted["gaussian-mixture"].data.read_text().splitlines()
    rows = [line.split(",") for line in kept[1:]]
    other = write_rows(tmp_path / "other.csv", ["c", "new", "b", "a"], [[c, 1, b, a] for a, b, c, _ in rows])
    first = call("transform", fitted["gaussian-mixture"].model, fitted["gaussian-mixture"].data, "--out", "-", "-q")
    second = call("transform", fitted["gaussian-mixture"].model, other, "--out", "-")
    assert (first.returncode, first.stderr) == (0, "")
    assert first.stdout == second.stdout
    groups = [line.split(",")[0] for line in first.stdout.splitlines()[1:]]
    pairs = set(zip(groups, [row[3] for row in rows], strict=True))
    assert len(pairs) == 2  # one name for each group


def test_a_model_of_text_reads_other_text(fitted: dict[str, Fitted]) -> None:
    done = run("transform", fitted["lda"].model, "-", "--out", "-", input="sea boat fish\noven yeast sunshine bread\n")
    assert done.returncode == 0, done.stderr
    rows = np.array([line.split(",") for line in done.stdout.splitlines()[1:]], dtype=float)
    assert rows.shape == (2, 2)
    assert rows[0].argmax() != rows[1].argmax()


def test_show_as_json_has_every_parameter(fitted: dict[str, Fitted]) -> None:
    answer = json.loads(call("show", fitted["lda"].model, "--json", "--top", "3").stdout)
    model = odeco.load(fitted["lda"].model)
    np.testing.assert_array_equal(answer["parameters"]["components_"], model.components_)
    assert [len(topic["words"]) for topic in answer["topics"]] == [3, 3]
    assert answer["metadata"]["vocabulary"] == sorted(answer["metadata"]["vocabulary"])
    assert answer["diagnostics"]["residual"] == model.diagnostics_.residual


def test_probabilities_are_shown_as_shares(tmp_path: Path) -> None:
    yes = np.random.default_rng(0).random((2000, 5)) < np.repeat([[0.9], [0.2]], 1000, axis=0)
    data = write_rows(tmp_path / "yes.csv", list("abcde"), yes.astype(int).tolist())
    assert call("fit", "product-mixture", data, "-k", "2", "--out", tmp_path / "yes.odeco").returncode == 0
    lines = call("show", tmp_path / "yes.odeco").stdout.splitlines()[4:6]
    shares = [int(share) for line in lines for share in re.findall(r"\b[a-e] (\d+) %", line)]
    # five standard errors of a share of 1,000 rows, sqrt(p (1 - p) / 1000) <= 1.3 points
    assert sorted(shares) == pytest.approx([20] * 5 + [90] * 5, abs=7)


def test_the_same_command_gives_the_same_model(fitted: dict[str, Fitted], tmp_path: Path) -> None:
    again = tmp_path / "again.odeco"
    arguments = [fitted["lda"].data if each == "FILE" else each for each in FITS["lda"][0]]
    assert call("fit", "lda", *arguments, "--out", again, "--quiet").stderr == ""
    np.testing.assert_array_equal(odeco.load(again).components_, odeco.load(fitted["lda"].model).components_)


def test_options_reach_the_estimator_and_the_vectorizer(fitted: dict[str, Fitted], tmp_path: Path) -> None:
    out = tmp_path / "model.odeco"
    words = tmp_path / "stop.txt"
    words.write_text("fish\nbread\n")
    options = ["--alpha0", "0.5", "--refine", "none", "--stop-words", words, "--max-words", "8", "--seed", "3"]
    done = call("fit", "lda", fitted["lda"].data, "-k", "2", *options, "--out", out)
    assert done.returncode == 0, done.stderr
    saved = load_with_metadata(out)
    model = saved.model
    assert (model.alpha0, model.refine, model.random_state, model.n_features_in_) == (0.5, None, 3, 8)
    assert not {"fish", "bread"} & set(saved.metadata["vocabulary"])


def choices() -> list[tuple[str, str, str]]:
    """Every value of every option of a model that has a list of them, as its card gives it."""
    found = []
    for name, card in MODELS.items():
        for option in card.options:
            flag = option.flag or f"--{option.name.replace('_', '-')}"
            found += [(name, flag, value) for value in option.choices]
    return found


# Noise that is equal in all channels is told by further channels; answers are no numbers, and numbers no counts.
REFUSED = {("ica", "isotropic"), *(("product-mixture", kind) for kind in ("gaussian", "bernoulli", "poisson"))}
REFUSED |= {("multiview", kind) for kind in ("bernoulli", "poisson", "multinomial")}


@pytest.mark.usefixtures("short_search")
@pytest.mark.parametrize(("name", "flag", "value"), choices())
def test_every_choice_gives_a_model_or_a_reason(
    fitted: dict[str, Fitted], tmp_path: Path, name: str, flag: str, value: str
) -> None:
    arguments = [fitted[name].data if each == "FILE" else each for each in FITS[name][0]]
    out = tmp_path / "model.odeco"
    done = call("fit", name, *arguments, flag, value, "--out", out, "-q")
    if (name, value) in REFUSED:
        assert (done.returncode, done.stderr.count("odeco: error: ")) == (1, 1)
        assert not out.exists()
    else:
        assert done.returncode == 0, done.stderr
        assert call("show", out).returncode == 0


def test_convert_counts_there_and_back(fitted: dict[str, Fitted], tmp_path: Path) -> None:
    names = ["counts.npz", "docword.corpus.txt.gz", "counts.ldac", "counts.mtx"]
    source, answers = fitted["lda"].data, []
    for name in names:
        done = call("convert", source, "--out", tmp_path / name)
        assert done.returncode == 0, done.stderr
        source = tmp_path / name
    for each in (fitted["lda"].data, tmp_path / names[-1]):
        out = tmp_path / f"{each.stem}.odeco"
        done = call("fit", "single-topic", each, "-k", "2", "--out", out)
        assert done.returncode == 0, done.stderr
        answers.append(load_with_metadata(out))
    np.testing.assert_allclose(answers[0].model.components_, answers[1].model.components_, rtol=1e-6)
    assert answers[0].metadata["vocabulary"] == answers[1].metadata["vocabulary"]


def test_convert_a_table(fitted: dict[str, Fitted], tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    out = tmp_path / "groups.parquet"
    done = run("convert", fitted["gaussian-mixture"].data, "--as", "table", "--out", out)
    assert done.returncode == 0, done.stderr
    back = call("convert", out, "--as", "table", "--out", "-")
    there = [line.split(",") for line in fitted["gaussian-mixture"].data.read_text().splitlines()]
    here = [line.split(",") for line in back.stdout.splitlines()]
    assert here[0] == there[0]
    assert [[*map(float, row[:3]), row[3]] for row in here[1:]] == [[*map(float, row[:3]), row[3]] for row in there[1:]]


def test_demo_shows_topics_and_writes_the_report(tmp_path: Path) -> None:
    done = run("demo", "-k", "8", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for word in ("treaty", "navy", "odeco-demo/report.html", "Try next", "odeco fit"):
        assert word in done.stdout
    assert {path.name for path in (tmp_path / "odeco-demo").iterdir()} == {"model.odeco", "passages.txt", "report.html"}
    page = (tmp_path / "odeco-demo" / "report.html").read_text()
    assert "treaty" in page


@pytest.mark.parametrize("command", ["", "demo", "fit", "show", "transform", "report", "convert", *FITS])
def test_help_teaches_by_example(command: str) -> None:
    from typer.testing import CliRunner

    from odeco.cli.app import app

    arguments = ["fit", command] if command in FITS else [command] if command else []
    shown = CliRunner(env={"COLUMNS": "200"}).invoke(app, [*arguments, "--help"]).output
    examples = [line for line in shown.splitlines() if line.strip().startswith(("odeco ", "zcat ", "head "))]
    assert len(examples) >= 2


@pytest.fixture(scope="module")
def doubtful(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """Two of four clusters asked for: the spectrum has no step after two."""
    folder = tmp_path_factory.mktemp("doubtful")
    means = 1.5 * np.random.default_rng(0).standard_normal((4, 20))
    np.save(folder / "rows.npy", odeco.simulate.gaussian_mixture(20_000, means, [0.25] * 4, random_state=0).rows)
    model = folder / "two.odeco"
    return model, call("fit", "gaussian-mixture", folder / "rows.npy", "-k", "2", "--out", model)


def test_every_screen_says_the_same_of_a_doubtful_fit(doubtful: tuple[Path, Any], tmp_path: Path) -> None:
    model, done = doubtful
    verdict = odeco.load(model).diagnostics_.verdict
    assert verdict.trust is Trust.DOUBT
    (reason,) = verdict.reasons
    assert f"odeco: in doubt: {reason.text}" in done.stderr.splitlines()
    shown = call("show", model).stdout.splitlines()
    assert f"verdict        {verdict.trust.value}" in shown
    assert f"because        {reason.text}" in shown
    answer = json.loads(call("show", model, "--json").stdout)["verdict"]
    assert answer == {
        "trust": "doubt",
        "text": verdict.trust.value,
        "reasons": [{"field": "gap", "text": reason.text}],
    }
    assert call("report", model, "--out", tmp_path / "page.html").returncode == 0
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    banner = page.split('<div class="verdict ')[1].split("</div>")[0]
    assert banner.startswith('doubt"')
    assert verdict.trust.value in banner
    assert reason.text[1:] in banner


def test_a_quiet_fit_does_not_speak_of_doubt(doubtful: tuple[Path, Any], tmp_path: Path) -> None:
    rows = doubtful[0].with_name("rows.npy")
    done = call("fit", "gaussian-mixture", rows, "-k", "2", "--out", tmp_path / "m.odeco", "--quiet")
    assert (done.returncode, done.stderr) == (0, "")


def test_shares_and_words_of_topics_are_the_same_on_every_screen(tmp_path: Path) -> None:
    """Long documents of one topic: what the model expects of a document is not what a topic has of all words."""
    rng = np.random.default_rng(0)
    topics = np.array([[0.4, 0.3, 0.2, 0.1, 0, 0], [0, 0, 0.1, 0.2, 0.3, 0.4]])
    counts = np.array([rng.multinomial(200 if i % 4 == 0 else 20, topics[int(i % 4 == 0)]) for i in range(400)])
    np.save(tmp_path / "counts.npy", counts)
    model, page = tmp_path / "m.odeco", tmp_path / "page.html"
    assert call("fit", "single-topic", tmp_path / "counts.npy", "-k", "2", "--out", model).returncode == 0
    assert call("report", model, tmp_path / "counts.npy", "--out", page).returncode == 0
    parts = json.loads(call("show", model, "--json").stdout)["topics"]
    estimator = odeco.load(model)
    prevalence = topic_use(estimator, counts).shares
    assert abs(prevalence - estimator.weights_).min() > 0.4  # 20 % and 77 %
    for topic, articles in zip(parts, page.read_text().split("<article ")[1:], strict=True):
        assert topic["share"] == estimator.weights_[topic["topic"]]
        assert f"Share <b>{percent(topic['share'])}</b>" in articles
        assert f"prevalence <b>{percent(prevalence[topic['topic']])}</b>" in articles
        shown = re.findall(r'<th scope="row">(.*?)</th>', articles)
        assert [word["name"] for word in topic["words"]] == shown[: len(topic["words"])]
