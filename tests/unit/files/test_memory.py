"""A corpus larger than the memory there is: the fit goes through, and the same rows at once do not fit."""

import os
import subprocess
import sys

import pytest

_SCRIPT = """
import re, resource, sys
from pathlib import Path
import numpy as np
import pyarrow as pa
import pyarrow.csv
from scipy import sparse
import odeco
from odeco.exceptions import InputFileError
from odeco.files import opening, parquet, read_counts, rows, write_counts

# An eighth of the usual sizes: a corpus of an eighth is then larger than memory.
opening.BLOCK_BYTES, rows.BATCH_NONZEROS, parquet._BATCH_BYTES = 2**17, 2**18, 2**22
path, repeats, mebibytes = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
counts = sparse.csr_array(np.random.default_rng(0).poisson(0.5, (20_000, 100)))

def write():
    if path.suffix == ".parquet":
        write_counts(path, lambda: (counts for _ in range(repeats)))
        return
    documents, words = counts.nonzero()
    options = pa.csv.WriteOptions(include_header=False, delimiter=" ")
    with path.open("wb") as stream:
        stream.write(b"%d\\n100\\n%d\\n" % (20_000 * repeats, counts.nnz * repeats))
        for i in range(repeats):
            table = pa.table({"document": documents + 1 + 20_000 * i, "word": words + 1, "count": counts.data})
            pa.csv.write_csv(table, stream, options)

def fit(X):
    return odeco.LatentDirichletAllocation(2, alpha0=1.0, refine=None, random_state=0).fit(X)

write()
fit(counts)  # everything that is loaded and compiled anyway comes before the cap
sum(len(batch) for batch in read_counts(path).source)
used = 1024 * int(re.search(r"VmData:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])
resource.setrlimit(resource.RLIMIT_DATA, (used + mebibytes * 2**20, used + mebibytes * 2**20))
source = read_counts(path).source
print(fit(source).components_.shape, sum(len(batch) for batch in source))
try:
    sparse.vstack([batch.counts for batch in source])
except (MemoryError, InputFileError):  # whoever asks for the last of it: the rows or their reader
    print("not at once")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits the memory that is written to (RLIMIT_DATA)")
@pytest.mark.parametrize(
    ("name", "repeats", "mebibytes"),
    [("a.parquet", 20, 90), ("docword.a.txt", 10, 56)],  # the batches are 125 and 62 MB, their matrix as much again
)
def test_a_corpus_larger_than_memory_is_fitted(tmp_path, name, repeats, mebibytes):
    # One thread: the stacks of others would count. Arrow's own allocator takes memory in advance, malloc does not.
    environment = os.environ | {
        "ARROW_DEFAULT_MEMORY_POOL": "system",
        "ODECO_NUM_THREADS": "1",
        "PYTHONWARNINGS": "ignore",
    }
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT, str(tmp_path / name), str(repeats), str(mebibytes)],
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.splitlines() == [f"(2, 100) {20_000 * repeats}", "not at once"]
