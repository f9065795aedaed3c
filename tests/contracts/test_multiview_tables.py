"""Tables of docs/multiview.md are what the result file says, and nothing else."""

from __future__ import annotations

import pytest

from benchmarks import harness, multiview


def test_tables_are_made_from_the_result_file():
    if not (harness.RESULTS / "multiview.json").exists():
        pytest.skip("no stored results: run make bench-multiview")
    result = harness.load("multiview")
    page = harness.ROOT / "docs" / "multiview.md"
    assert harness.read_between(page, "benchmark:multiview") == multiview.docs_tables(result)
    assert not result["quick"]
