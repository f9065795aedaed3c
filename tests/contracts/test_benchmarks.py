"""Tables in README and docs are what the result files say, and nothing else."""

from __future__ import annotations

import re
import shutil
from importlib import import_module

import pytest

from benchmarks import harness
from benchmarks.__main__ import NAMES

PAGES = [harness.ROOT / "README.md", *sorted((harness.ROOT / "docs").rglob("*.md"))]


def blocks(text, name):
    """What stands between the markers of a benchmark, `benchmark:name` or `benchmark:name-part`."""
    return re.findall(rf"<!-- (benchmark:{name}(?:-\w+)?) -->\n(.*?)<!-- /\1 -->", text, flags=re.DOTALL)


def a_digit_changed(text, name):
    """The pages as somebody would leave them who mends a figure by hand, in every table of a benchmark."""
    for _, block in blocks(text, name):
        changed = re.sub(r"\d", lambda digit: str((int(digit[0]) + 1) % 10), block, count=1)
        text = text.replace(block, changed) if block else text
    return text


@pytest.fixture
def written_anew(tmp_path, monkeypatch):
    """Of a benchmark and a change to the pages: the changed pages, and the same after its report was written."""
    monkeypatch.setattr(harness, "ROOT", tmp_path)
    monkeypatch.setattr(harness, "FIGURES", tmp_path / "docs" / "figures")
    monkeypatch.setattr("matplotlib.figure.Figure.savefig", lambda *args, **options: None)
    root = PAGES[0].parent
    shutil.copytree(root / "benchmarks", tmp_path / "benchmarks", ignore=shutil.ignore_patterns("results", "*.py*"))

    def write(name, change):
        for page in PAGES:
            copy = tmp_path / page.relative_to(root)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_text(change(page.read_text()))
        before = {page: (tmp_path / page.relative_to(root)).read_text() for page in PAGES}
        import_module(f"benchmarks.{name}").report(harness.load(name))
        return before, {page: (tmp_path / page.relative_to(root)).read_text() for page in PAGES}

    return write


@pytest.mark.parametrize("name", NAMES)
def test_pages_say_what_the_result_file_says(name, written_anew):
    pages = {page: page.read_text() for page in PAGES}
    tables = [block for text in pages.values() for _, block in blocks(text, name)]
    assert tables, f"no page shows {name}"
    if not harness.stored(name):
        assert not any("|" in table for table in tables), "figures without a result file"
        pytest.skip(f"no stored results: run python -m benchmarks {name}")
    assert not harness.load(name)["quick"]
    assert all(tables)
    assert written_anew(name, lambda text: text)[1] == pages
    before, after = written_anew(name, lambda text: a_digit_changed(text, name))
    assert sum(before[page] != pages[page] for page in PAGES) > 0  # a figure changed by hand ...
    assert after == pages  # ... is not what the result file says


def test_write_between_replaces_only_what_is_between(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- x -->\nold\n<!-- /x -->\nafter\n")
    harness.write_between(page, "x", "new")
    assert page.read_text() == "before\n<!-- x -->\nnew\n<!-- /x -->\nafter\n"
    assert harness.read_between(page, "x") == "new"
