"""Tables in README and docs are what the result files say, and these are what was measured."""

from __future__ import annotations

import json
import re
import shutil
from importlib import import_module

import pytest

from benchmarks import harness, provenance
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
        import_module(f"benchmarks.{name}").report(provenance.load(name))
        return before, {page: (tmp_path / page.relative_to(root)).read_text() for page in PAGES}

    return write


@pytest.mark.parametrize("name", NAMES)
def test_pages_say_what_the_result_file_says(name, written_anew):
    pages = {page: page.read_text() for page in PAGES}
    tables = [block for text in pages.values() for _, block in blocks(text, name)]
    assert tables, f"no page shows {name}"
    if not provenance.stored(name):
        assert not any("|" in table for table in tables), "figures without a result file"
        pytest.skip(f"no stored results: run python -m benchmarks {name}")
    assert all(tables)
    anew = f"pages are not what the results and git say: run python -m benchmarks {name} --report-only"
    assert comparable(name, written_anew(name, lambda text: text)[1]) == comparable(name, pages), anew
    before, after = written_anew(name, lambda text: a_digit_changed(text, name))
    assert sum(before[page] != pages[page] for page in PAGES) > 0  # a figure changed by hand ...
    assert comparable(name, after) == comparable(name, pages)  # ... is not what the result file says


def comparable(name, pages):
    """The pages; without what they say of ages where git cannot tell them, as in a copy without its history."""
    if all(section.changes() is not None for section in provenance.stored(name).values()):
        return pages
    return {page: re.sub(r".*Measured (before|on).*", "", text) for page, text in pages.items()}


def test_where_git_cannot_say_pages_say_so_and_nothing_else_differs(written_anew, monkeypatch):
    monkeypatch.setattr(provenance, "changed_since", lambda commit, patterns: None)
    pages = {page: page.read_text() for page in PAGES}
    after = written_anew("ica", lambda text: text)[1]
    (page,) = (page for page in PAGES if after[page] != pages[page])
    assert "Git cannot say whether the code it measures has changed since." in after[page]
    assert comparable("ica", after) == comparable("ica", pages)


def numbers(value, place=()):
    """The places of all numbers below a value."""
    if isinstance(value, dict | list):
        for key, part in value.items() if isinstance(value, dict) else enumerate(value):
            yield from numbers(part, (*place, key))
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield place


@pytest.mark.parametrize("name", [name for name in NAMES if provenance.stored(name)])
def test_a_number_edited_in_a_result_file_is_noticed(name, tmp_path, monkeypatch):
    text = (provenance.RESULTS / f"{name}.json").read_text()
    monkeypatch.setattr(provenance, "RESULTS", tmp_path)
    for section in json.loads(text):
        edited = json.loads(text)
        *way, last = list(numbers(edited[section]))[-1]
        holder = edited[section]
        for key in way:
            holder = holder[key]
        holder[last] += 1
        (tmp_path / f"{name}.json").write_text(json.dumps(edited))
        with pytest.raises(ValueError, match=rf"{name}.json: section '{section}' is not what was measured"):
            provenance.load(name)


@pytest.mark.parametrize("name", NAMES)
def test_sections_know_their_code_and_have_their_runs_or_say_that_they_were_not_kept(name):
    for section in provenance.stored(name).values():
        assert section.code
        assert (section.runs is None) != (section.summary is None)
        assert ("Raw runs were not kept" in section.told()) == (section.runs is None)
        assert section.date


def test_patterns_of_measured_code_are_those_of_files_that_there_are():
    patterns = {pattern for patterns in provenance.CODE.values() for pattern in patterns}
    assert not [pattern for pattern in patterns if not any((provenance.REPOSITORY / "src/odeco").glob(pattern))]


def test_write_between_replaces_only_what_is_between(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- x -->\nold\n<!-- /x -->\nafter\n")
    harness.write_between(page, "x", "new")
    assert page.read_text() == "before\n<!-- x -->\nnew\n<!-- /x -->\nafter\n"
    assert harness.read_between(page, "x") == "new"
