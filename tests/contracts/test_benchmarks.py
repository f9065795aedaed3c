"""Tables in README and docs are what the result files say, and nothing else."""

from __future__ import annotations

from importlib import import_module

import pytest

from benchmarks import harness

PAGES = {
    "decomposition": "decomposition",
    "topics": "topics",
    "gaussian_mixture": "mixtures",
    "product_mixture": "product_mixture",
    "multiview": "multiview",
    "hmm": "hmm",
    "ica": "ica",
}


@pytest.mark.parametrize("name", PAGES)
def test_tables_are_made_from_the_result_file(name):
    if not (harness.RESULTS / f"{name}.json").exists():
        pytest.skip(f"no stored results: run make bench-{name.replace('_', '-')}")
    benchmark, result, marker = import_module(f"benchmarks.{name}"), harness.load(name), f"benchmark:{name}"
    assert harness.read_between(harness.ROOT / "README.md", marker) == benchmark.readme_table(result)
    assert harness.read_between(harness.ROOT / "docs" / f"{PAGES[name]}.md", marker) == benchmark.docs_tables(result)
    assert not result["quick"]


@pytest.mark.parametrize("name", ["text", "files"])
def test_the_tables_of_a_guide_are_made_from_its_result_file(name):
    if not (harness.RESULTS / f"{name}.json").exists():
        pytest.skip(f"no stored results: run make bench-{name}")
    benchmark, result = import_module(f"benchmarks.{name}"), harness.load(name)
    page = harness.ROOT / "docs" / f"{name}.md"
    assert harness.read_between(page, f"benchmark:{name}") == benchmark.docs_tables(result)
    assert not result["quick"]


def test_write_between_replaces_only_what_is_between(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- x -->\nold\n<!-- /x -->\nafter\n")
    harness.write_between(page, "x", "new")
    assert page.read_text() == "before\n<!-- x -->\nnew\n<!-- /x -->\nafter\n"
    assert harness.read_between(page, "x") == "new"
