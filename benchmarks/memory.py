"""Peak memory of one decomposition in a process of its own: `python -m benchmarks.memory tensor.npy threads`."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np

import odeco
from benchmarks import harness


def peak_bytes() -> int:
    """The largest resident size so far. Not ru_maxrss: that one is inherited from the parent process."""
    status = Path("/proc/self/status").read_text()
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    assert found is not None
    return 1024 * int(found.group(1))


if __name__ == "__main__":
    # Everything that is loaded anyway comes before the first look.
    odeco.decompose(odeco.simulate.odeco_tensor(70, random_state=0).tensor, 70, random_state=0)
    before = peak_bytes()
    with harness.threads(int(sys.argv[2])):
        tensor = np.load(sys.argv[1])
        odeco.decompose(tensor, tensor.shape[0], random_state=0)
    print(peak_bytes() - before)
