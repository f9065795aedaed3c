"""`make mutants` tells wrong formulas that are noticed from those that are not, and a list that has rotted."""

from __future__ import annotations

import pytest

from tests.mutants.__main__ import KILLED, ROOT, SURVIVED, copy_of_sources, judge
from tests.mutants.mutations import Mutation

FILE, TESTS = "metrics.py", "unit/test_metrics.py::test_amari_is_the_mean_crosstalk"


@pytest.mark.parametrize(
    ("old", "new", "tests", "verdict"),
    [
        ("2 * k * (k - 1)", "k * (k - 1)", TESTS, KILLED),
        ("2 * k * (k - 1)", "k * 2 * (k - 1)", TESTS, SURVIVED),
        ("text that is gone", "", TESTS, "NOT ONCE IN THE FILE (0 times)"),
        ("2 * k * (k - 1)", "k * (k - 1)", "unit/test_metrics.py::test_that_is_gone", "TESTS CANNOT RUN (pytest: 4)"),
    ],
)
def test_verdicts(tmp_path, old, new, tests, verdict):
    copy = copy_of_sources(tmp_path / "src")
    assert judge(Mutation(FILE, old, new, tests), copy, timeout=120) == verdict
    for source in (ROOT / "src", copy):  # neither the work tree nor, afterwards, the copy is changed
        assert "2 * k * (k - 1)" in (source / "odeco" / FILE).read_text()
