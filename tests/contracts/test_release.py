"""A release takes its version from the tag, and is none without a section in the changelog."""

import importlib.util
import subprocess
import sys

import pytest

from benchmarks.harness import ROOT

spec = importlib.util.spec_from_file_location("release", ROOT / "tools" / "release.py")
release = importlib.util.module_from_spec(spec)
spec.loader.exec_module(release)


@pytest.mark.parametrize(
    ("tag", "version"), [("v0.1.0", "0.1.0"), ("v10.2.3rc1", "10.2.3rc1"), ("v1.0.0b2", "1.0.0b2")]
)
def test_a_tag_names_a_version(tag, version):
    assert release.version_of(tag) == version


@pytest.mark.parametrize("tag", ["0.1.0", "v0.1", "v0.1.0.dev0", "v0.1.0-1", "release"])
def test_other_tags_are_no_releases(tag):
    with pytest.raises(release.ReleaseError, match="names no version: a release is tagged v0.1.0"):
        release.version_of(tag)


def test_the_changelog_has_a_section_of_the_version():
    release.check_changelog("# Changelog\n\n## 0.1.0 (2026-01-01)\n", "0.1.0")
    release.check_changelog("## 0.1.0\n", "0.1.0rc1")
    with pytest.raises(release.ReleaseError, match="no section '## 0.1.1'"):
        release.check_changelog("## 0.1.0\n\n## Unreleased (0.1.1)\n", "0.1.1")


def test_the_version_is_replaced_in_the_package_itself():
    text = (ROOT / release.VERSION_FILE).read_text()
    changed = release.with_version(text, "7.8.9")
    assert changed.count('__version__ = "7.8.9"') == 1
    assert len(changed.splitlines()) == len(text.splitlines())
    with pytest.raises(release.ReleaseError, match="has 0 lines that set __version__"):
        release.with_version("", "7.8.9")


def test_this_python_is_among_those_that_wheels_are_made_for():
    assert sys.version_info.minor in release.pythons()


def test_a_failing_command_is_told_with_what_it_said():
    with pytest.raises(release.ReleaseError, match=r"-c .* failed:\nwhy not"):
        release._run(sys.executable, "-c", "import sys; sys.exit('why not')")


def test_without_a_tag_there_is_no_release(tmp_path):
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "release.py").write_text((ROOT / "tools" / "release.py").read_text())
    done = subprocess.run([sys.executable, tmp_path / "tools" / "release.py"], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.startswith("no release: there are uncommitted changes")
