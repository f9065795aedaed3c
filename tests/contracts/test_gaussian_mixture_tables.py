"""Tables of docs/mixtures.md are what the result file says, and nothing else."""

from __future__ import annotations

import pytest

from benchmarks import gaussian_mixture, harness


def test_tables_are_made_from_the_result_file():
    if not (harness.RESULTS / "gaussian_mixture.json").exists():
        pytest.skip("no stored results: run make bench-gaussian-mixture")
    result = harness.load("gaussian_mixture")
    page = harness.ROOT / "docs" / "mixtures.md"
    assert harness.read_between(page, "benchmark:gaussian_mixture") == gaussian_mixture.docs_tables(result)
    assert not result["quick"]
