"""The fuzz campaign: past failures stay mended, and what goes wrong in a worker is noticed."""

import json
import shutil
from pathlib import Path

import pytest

from fuzz import cases, targets
from fuzz.__main__ import Campaign, main
from fuzz.worker import Worker

CORPUS = sorted(path.parent for path in (Path(__file__).parents[1] / "data" / "fuzz").glob("*/case.json"))
FAULTY = "tests.faulty_target"


@pytest.mark.parametrize("folder", CORPUS, ids=lambda folder: folder.name)
def test_what_failed_once_does_not_fail_again(folder, tmp_path):
    shutil.copytree(folder, tmp_path / "case")
    outcome = cases.run(tmp_path / "case")
    assert outcome.kind != "failed", outcome.details


@pytest.fixture
def worker(tmp_path):
    worker = Worker(tmp_path / "case", seconds=10)
    yield worker
    worker.close()


def faulty(worker, fault):
    worker.folder.mkdir(exist_ok=True)
    (worker.folder / cases.CASE).write_text(json.dumps({"target": FAULTY, "fault": fault}))
    return worker.replay()


def test_a_worker_notices_what_goes_wrong(worker):
    """One after the other: a worker that is lost is replaced."""
    assert faulty(worker, "none").kind == "valid"
    assert faulty(worker, "crash").title == "the interpreter died: SIGABRT"
    assert faulty(worker, "clean").kind == "refused"
    assert faulty(worker, "exit").title == "the interpreter died: exit code 3"
    assert faulty(worker, "unclean").title.startswith("KeyError at tests/faulty_target.py")
    assert faulty(worker, "memory").title.startswith("MemoryError")
    assert faulty(worker, "none").kind == "valid"


def test_a_worker_does_not_wait_for_ever(tmp_path):
    worker = Worker(tmp_path / "case", seconds=0.5)
    assert faulty(worker, "hang").title == "hang"
    worker.close()


def test_a_campaign_keeps_what_fails_with_its_seed(tmp_path, capsys):
    campaign = Campaign([FAULTY], seed=5, found=tmp_path, seconds_per_case=10)
    outcomes = [campaign.one(FAULTY, number) for number in range(20)]
    campaign.close()
    kinds = [outcome.kind for outcome in outcomes]
    assert set(kinds) == {"valid", "refused", "failed"}
    first = kinds.index("failed")
    assert [folder.name for folder in tmp_path.iterdir()] == [f"{FAULTY}-5-{first}"]  # the others are the same
    assert (tmp_path / f"{FAULTY}-5-{first}" / "outcome.txt").read_text().startswith(outcomes[first].title)
    assert f"--seed 5 --case {first}" in capsys.readouterr().out
    assert not campaign.clean


@pytest.mark.parametrize("name", ["forged_models", "readers", "writers", "estimators", "command_line"])
def test_the_same_seed_gives_the_same_case(name, tmp_path):
    for folder in ("first", "second"):
        cases.make(name, 3, 7, tmp_path / folder)
    first, second = (
        {path.name: path.read_bytes() for path in sorted((tmp_path / folder).iterdir())}
        for folder in ("first", "second")
    )
    assert first == second
    cases.make(name, 4, 7, tmp_path / "second")
    assert {path.name: path.read_bytes() for path in (tmp_path / "second").iterdir()} != first


def test_every_target_has_its_two_functions():
    assert {"readers", "writers", "models", "forged_models", "checkpoints", "moments_files"} < set(targets.NAMES)
    for name in targets.NAMES:
        assert callable(targets.load(name).generate)
        assert callable(targets.load(name).run)


def test_targets_that_are_not_there(capsys):
    with pytest.raises(SystemExit):
        main(["nonsense"])
    assert "targets are checkpoints, command_line" in capsys.readouterr().err
