"""A test that skips for a reason nobody allowed is a failure where ``--known-skips`` is given."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
TESTS = """
import pytest


def test_allowed():
    pytest.skip("the moon is 12 days old")


def test_not_allowed():
    pytest.skip("no reason at all")
"""


def test_only_known_reasons_are_allowed(tmp_path: Path) -> None:
    (tmp_path / "test_some.py").write_text(TESTS)
    (tmp_path / "known.txt").write_text("# of the calendar\nthe moon is [0-9]+ days old\n")
    options = ["-q", "-p", "conftest", "-p", "no:cacheprovider", f"--known-skips={tmp_path / 'known.txt'}"]
    command = [sys.executable, "-m", "pytest", *options, "--rootdir", str(tmp_path), "-c", "/dev/null"]
    done = subprocess.run(
        [*command, str(tmp_path / "test_some.py")], cwd=ROOT, capture_output=True, text=True, timeout=300, check=False
    )
    assert "1 failed, 1 skipped" in done.stdout
    assert "does not allow to skip: Skipped: no reason at all" in done.stdout
