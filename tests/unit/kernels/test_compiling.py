"""Loops are compiled where nothing can be kept, too."""

from __future__ import annotations

from pathlib import Path

import numba
import pytest

import odeco.kernels
from odeco.kernels.compiling import njit


def twice(number):
    return 2 * number


def test_without_a_writable_folder_loops_are_compiled_and_not_kept(monkeypatch):
    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("tempfile.TemporaryFile", refuse)  # numba's way to see whether a folder can be written to
    with pytest.raises(RuntimeError, match="cannot cache"):
        numba.njit(cache=True)(twice)
    assert njit(cache=True, nogil=True)(twice)(21) == 42


def test_every_kernel_is_compiled_so():
    sources = {path.name: path.read_text() for path in Path(odeco.kernels.__file__).parent.glob("*.py")}
    assert [name for name, text in sources.items() if "from numba import" in text or "numba.njit(" in text] == [
        "compiling.py"
    ]
