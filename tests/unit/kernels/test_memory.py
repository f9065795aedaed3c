"""Freed memory stays inside, and goes back at the end: counted in pages that the system had to give."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="is about glibc")

PAGE = 4096
SCRIPT = """
import json, resource, sys
import numpy as np
from odeco.kernels.memory import kept_memory

def pages():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(20):
        np.ones(1_000_000)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

pages()
before = pages()
with kept_memory():
    first = pages()
    with kept_memory():
        nested = pages()
    inside = pages()
try:
    with kept_memory():
        raise KeyError
except KeyError:
    pass
print(json.dumps([before, first, nested, inside, pages()]))
"""


def counted(environment):
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=True, timeout=120
    )
    return json.loads(done.stdout)


@pytest.fixture
def environment(monkeypatch):
    for name in ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_"):
        monkeypatch.delenv(name, raising=False)
    return dict(os.environ, NUMPY_MADVISE_HUGEPAGE="0")


@pytest.mark.parametrize("threshold", ["65536", "0"])
def test_a_worker_that_must_trim_uses_its_pages_again(environment, threshold):
    """Twenty arrays of 8 MB: new pages for each outside, for one of them inside, whatever is nested."""
    one = 8_000_000 // PAGE
    before, first, nested, inside, after = counted({**environment, "MALLOC_TRIM_THRESHOLD_": threshold})
    if before < 15 * one:
        pytest.skip("the C library does not follow MALLOC_TRIM_THRESHOLD_")
    assert first < 3 * one
    assert nested < one
    assert inside < one
    assert after > 15 * one


def test_nothing_changes_where_nobody_asked_for_trimming(environment):
    one = 8_000_000 // PAGE
    assert all(count < 3 * one for count in counted(environment))
