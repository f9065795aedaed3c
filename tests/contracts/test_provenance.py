"""Sections of result files say on what they were measured, and whether their code has changed since."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from importlib import import_module

import numpy as np
import pytest

from benchmarks import __main__ as main
from benchmarks import provenance
from benchmarks.provenance import Environment, Result, Section

ONE = Environment("3", "one processor", {"odeco": "0"})
OTHER = Environment("3", "another", {"odeco": "0"}, cores=2, memory=2**33, system="a system", blas="a BLAS")


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A git repository with one file of two models each, and what runs git in it."""
    for name in ("ica", "hmm"):
        file = tmp_path / "src" / "odeco" / "models" / f"{name}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("before = 1\n")
    monkeypatch.setattr(provenance, "REPOSITORY", tmp_path)
    provenance.changed_since.cache_clear()

    def git(*arguments):
        who = ("-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false")
        subprocess.run(["git", *who, *arguments], cwd=tmp_path, check=True, capture_output=True)
        provenance.changed_since.cache_clear()

    git("init", "--quiet")
    git("add", ".")
    git("commit", "--quiet", "-m", "first")
    yield git
    provenance.changed_since.cache_clear()


def measured(**options):
    return provenance.measure(
        {"speed": lambda: [1.0, 2.0]}, None, ["numpy"], lambda name: ("models/ica*.py",), **options
    )


def test_a_measured_section_names_commit_machine_and_runs(repository):
    section = measured()["speed"]
    assert section.commit == provenance.git("rev-parse", "HEAD")
    assert section.dirty is False
    assert section.runs == [1.0, 2.0]
    assert section.environment.cores
    assert section.environment.memory > 2**20
    assert section.environment.system
    assert section.environment.blas
    assert section.environment.packages["numpy"] == np.__version__
    assert section.told() == f"Measured on commit {section.commit[:7]} ({section.date})."


def test_a_section_is_old_once_its_own_code_has_changed(repository, tmp_path):
    section = measured()["speed"]
    models = tmp_path / "src" / "odeco" / "models"
    (models / "hmm.py").write_text("after = 1\n")
    provenance.changed_since.cache_clear()
    assert section.changes() == ()  # other code
    assert measured()["speed"].dirty is True
    assert "with uncommitted changes" in measured()["speed"].told()
    (models / "ica.py").write_text("after = 1\n")
    provenance.changed_since.cache_clear()
    assert section.changes() == ("src/odeco/models/ica.py",)
    repository("commit", "--quiet", "--all", "-m", "second")
    assert section.changes() == ("src/odeco/models/ica.py",)  # committing changes nothing that a page says
    assert section.told().endswith("The code it measures has changed since.")
    assert measured()["speed"].changes() == ()
    (models / "ica_more.py").write_text("new = 1\n")
    assert section.changes() == ("src/odeco/models/ica.py", "src/odeco/models/ica_more.py")


def test_the_age_of_a_section_does_not_need_its_commit(repository, tmp_path):
    section = replace(measured()["speed"], commit="0" * 40)
    assert section.changes() == ()
    (tmp_path / "src" / "odeco" / "models" / "ica.py").write_text("after = 1\n")
    assert section.told().endswith("The code it measures has changed since.")


def test_sections_that_know_a_commit_alone_ask_git(repository, tmp_path):
    section = replace(measured()["speed"], files=None)
    assert section.changes() == ()
    (tmp_path / "src" / "odeco" / "models" / "ica.py").write_text("after = 1\n")
    provenance.changed_since.cache_clear()
    assert section.changes() == ("src/odeco/models/ica.py",)


def test_where_git_does_not_know_the_commit_the_line_says_so(repository):
    lost = Section(ONE, ("models/ica*.py",), [1.0], commit="0" * 40, dirty=False, date="2026-01-01")
    assert lost.changes() is None
    assert "Git cannot say whether" in lost.told()


def test_sections_from_before_are_never_said_to_be_new(repository):
    known = {"stored": provenance.git("rev-parse", "HEAD"), "date": "2026-01-01"}
    told = Section(ONE, ("models/ica*.py",), summary=[1.0], **known).told()
    assert told == (
        f"Measured before commit {known['stored'][:7]} (2026-01-01). Raw runs were not kept. "
        "It may be older than the code it measures."
    )


def test_sections_that_are_not_measured_keep_their_environment(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(provenance, "RESULTS", tmp_path)
    monkeypatch.setattr(import_module("benchmarks.ica"), "report", lambda result: None)
    voices = {"d": 1, "noise": 0.0, "odeco": [1.0], "odeco, sinr": [1.0], "FastICA": [1.0]}
    speed = {"noise": 0.0, "odeco": [1.0], "FastICA": [1.0], "picard": [1.0]}
    main.publish("ica", {"voices": Section(ONE, (), [voices], date="2026-01-01")})
    main.publish("ica", {"speed": Section(OTHER, (), [speed], date="2026-01-02")})
    kept = provenance.stored("ica")
    assert (kept["voices"].environment, kept["speed"].environment) == (ONE, OTHER)
    assert kept["voices"].date == "2026-01-01"
    printed = capsys.readouterr().out
    assert "- voices: one processor, Python 3, odeco 0; cores, memory, system and BLAS were not noted." in printed
    assert "- speed: another, 2 cores, 8 GiB, a system, a BLAS, Python 3, odeco 0." in printed


def test_quick_measurements_are_not_stored(tmp_path, monkeypatch):
    monkeypatch.setattr(provenance, "RESULTS", tmp_path)
    with pytest.raises(ValueError, match="quick measurements are not stored, but speed is one"):
        provenance.save("ica", measured(quick=True))
    assert not list(tmp_path.iterdir())


def test_tables_are_made_of_the_runs_and_of_a_summary_where_there_are_none():
    summary = provenance.each("seconds", "nothing", how=np.mean)
    runs = [{"k": 3, "seconds": [1.0, 2.0, 6.0], "nothing": []}]
    rows = [{"k": 3, "seconds": 3.0, "nothing": None}]
    assert Result({"a": Section(ONE, (), runs)}, {"a": summary})["a"] == rows
    assert Result({"a": Section(ONE, (), summary=rows)}, {"a": summary})["a"] == rows


def test_ages_name_the_command_and_the_files(repository, tmp_path, monkeypatch):
    monkeypatch.setattr(provenance, "RESULTS", tmp_path)
    provenance.save("ica", measured())
    (tmp_path / "src" / "odeco" / "models" / "ica.py").write_text("after = 1\n")
    provenance.changed_since.cache_clear()
    line = provenance.ages("ica")
    assert line.startswith('python -m benchmarks ica --only "speed": Measured on commit ')
    assert line.endswith("has changed since. [1: models/ica.py]")
