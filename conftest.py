"""Examples of README.md, of docs/ and of the docstrings as tests; which skips are allowed."""

import os
import re
from pathlib import Path

# Before numpy is imported. Two BLAS threads on a busy machine can be ten times slower than one.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import pytest
from sybil import Sybil
from sybil.document import PythonDocStringDocument
from sybil.parsers.doctest import DocTestParser
from sybil.parsers.markdown import PythonCodeBlockParser, SkipParser
from sybil.sybil import SybilCollection

documents = Sybil(
    parsers=[PythonCodeBlockParser(), SkipParser()],
    patterns=["README.md", "docs/*.md", "docs/**/*.md"],
)
docstrings = Sybil(
    parsers=[DocTestParser()],
    patterns=["src/odeco/*.py", "src/odeco/*/*.py", "src/odeco/*/*/*.py"],
    document_types={".py": PythonDocStringDocument},
)
pytest_collect_file = SybilCollection([documents, docstrings]).pytest()


def pytest_addoption(parser):
    parser.addoption(
        "--known-skips", type=Path, metavar="FILE", help="fail where a test skips for a reason that FILE does not allow"
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item):
    report = yield
    return _judged(report, item.config)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector):
    report = yield
    return _judged(report, collector.config)


def _judged(report, config):
    """A skip for an unknown reason as a failure."""
    allowed = config.getoption("--known-skips")
    if allowed is None or not report.skipped or hasattr(report, "wasxfail"):
        return report
    reason = report.longrepr[2]
    patterns = [line for line in allowed.read_text().splitlines() if line and not line.startswith("#")]
    if not any(re.search(pattern, reason) for pattern in patterns):
        report.outcome, report.longrepr = "failed", f"{allowed} does not allow to skip: {reason}"
    return report
