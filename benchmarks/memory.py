"""Peak memory of one decomposition in a process of its own: `python -m benchmarks.memory tensor.npy threads`."""

from __future__ import annotations

import resource
import sys

import numpy as np

import odeco
from benchmarks import harness

if __name__ == "__main__":
    # Everything that is loaded anyway comes before the first look at the clock of memory.
    odeco.decompose(odeco.simulate.odeco_tensor(70, random_state=0).tensor, 70, random_state=0)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with harness.threads(int(sys.argv[2])):
        tensor = np.load(sys.argv[1])
        odeco.decompose(tensor, tensor.shape[0], random_state=0)
    print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024)
