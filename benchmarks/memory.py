"""Peak memory of one fit. `python -m benchmarks.memory tensor.npy threads` prints that of one decomposition."""

from __future__ import annotations

import ctypes
import gc
import re
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

STATUS, CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def peak_bytes() -> int:
    """The largest resident size so far. Not ru_maxrss: that one is inherited from the parent process."""
    return _status("VmHWM")


def peak_above(function: Callable[[], Any]) -> int:
    """The largest resident size during a call, above the size before it."""
    gc.collect()
    with suppress(OSError, AttributeError):  # what was freed before must not hide what is needed now
        ctypes.CDLL("libc.so.6").malloc_trim(0)
    CLEAR.write_text("5")  # the peak begins anew
    before = _status("VmRSS")
    function()
    return peak_bytes() - before


def _status(field: str) -> int:
    found = re.search(rf"{field}:\s+(\d+) kB", STATUS.read_text())
    assert found is not None
    return 1024 * int(found.group(1))


def _decomposition(path: str, threads: int) -> int:
    import numpy as np

    import odeco
    from benchmarks import harness

    # Everything that is loaded anyway comes before the first look.
    odeco.decompose(odeco.simulate.odeco_tensor(70, random_state=0).tensor, 70, random_state=0)

    def load_and_decompose() -> None:
        tensor = np.load(path)
        odeco.decompose(tensor, tensor.shape[0], random_state=0)

    with harness.threads(threads):
        return peak_above(load_and_decompose)


if __name__ == "__main__":
    print(_decomposition(sys.argv[1], int(sys.argv[2])))
