"""Tables in README and docs are what the result files say, and nothing else."""

from __future__ import annotations

import pytest

from benchmarks import decomposition, harness

RESULT = harness.RESULTS / "decomposition.json"


@pytest.mark.skipif(not RESULT.exists(), reason="no stored results: run make bench-decomposition")
def test_decomposition_tables_are_made_from_the_result_file():
    result = harness.load("decomposition")
    marker = "benchmark:decomposition"
    assert harness.read_between(harness.ROOT / "README.md", marker) == decomposition.readme_table(result)
    assert harness.read_between(harness.ROOT / "docs" / "decomposition.md", marker) == decomposition.docs_tables(result)
    assert not result["quick"]


def test_write_between_replaces_only_what_is_between(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- x -->\nold\n<!-- /x -->\nafter\n")
    harness.write_between(page, "x", "new")
    assert page.read_text() == "before\n<!-- x -->\nnew\n<!-- /x -->\nafter\n"
    assert harness.read_between(page, "x") == "new"
