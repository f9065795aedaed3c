"""Reading counts from files: a pass over each format, and a streamed fit beside the same fit in memory.

`python -m benchmarks files --only passes` measures some sections and keeps the others. Every fit runs in a process of
its own, which reports its time and its peak memory.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from scipy import sparse

from benchmarks import harness, memory, provenance
from benchmarks.provenance import Result, Section

NAME = "files"
# Documents and words as in the scale section of the topics benchmark: about 20 million nonzeros.
SIZES = {"n": 830_000, "d": 30_000, "k": 50}
QUICK = {"n": 20_000, "d": 2_000, "k": 10}
FORMATS = ["counts.parquet", "docword.counts.txt", "docword.counts.txt.gz", "counts.ldac", "counts.svm", "counts.mtx"]
# Text is parsed at every pass: a tenth of the documents shows the time per nonzero.
_SHARE = 0.1
_CHUNK = 50_000


def chunks(sizes: dict[str, int], n: int) -> Iterator[sparse.csr_array]:
    """Documents of a topic model, drawn in parts: the whole is never needed at once."""
    from odeco.simulate import lda_documents, zipf_topics

    topics = zipf_topics(sizes["k"], sizes["d"], random_state=0)
    alpha = [0.5 / sizes["k"]] * sizes["k"]
    for seed, start in enumerate(range(0, n, _CHUNK)):
        rows = min(_CHUNK, n - start)
        yield lda_documents(rows, topics, alpha, mean_length=33, random_state=1000 + seed).counts


def run(*, quick: bool = False, only: list[str] | None = None) -> dict[str, Section]:
    """All measurements, or some sections `only`."""
    sizes = QUICK if quick else SIZES
    measurements = {name: partial(measure, sizes) for name, measure in SECTIONS.items()}
    packages = ["pyarrow", "numpy", "scipy"]
    return provenance.measure(measurements, only, packages, CODE.__getitem__, settings=sizes, quick=quick)


def passes(sizes: dict[str, int]) -> list[dict[str, Any]]:
    """Bytes, and the seconds of one pass, for each nonzero of each format."""
    from odeco.files import read_counts, write_counts

    counts = sparse.csr_array(sparse.vstack(list(chunks(sizes, int(_SHARE * sizes["n"])))))
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name in FORMATS:
            path = Path(folder) / name
            write_counts(path, counts)
            source = read_counts(path).source
            spent = harness.times(lambda source=source: [batch.lengths for batch in source], repeats=3)  # type: ignore[misc]
            rows.append({"file": name, "nonzeros": counts.nnz, "bytes": path.stat().st_size, "seconds": spent})
    return rows


def fits(sizes: dict[str, int]) -> list[dict[str, Any]]:
    """LDA on documents in memory, and streamed from Parquet."""
    from odeco.files import write_counts

    with tempfile.TemporaryDirectory() as folder:
        parquet, npz = Path(folder) / "counts.parquet", Path(folder) / "counts.npz"
        write_counts(parquet, lambda: chunks(sizes, sizes["n"]))
        whole = sparse.vstack(list(chunks(sizes, sizes["n"])))
        sparse.save_npz(npz, whole, compressed=False)
        jobs = [(path, sizes["k"], refine) for refine in (False, True) for path in (npz, parquet)]
        return [{"nonzeros": whole.nnz, **_child(*job)} for job in jobs]


SECTIONS = {"passes": passes, "fits": fits}
SUMMARIES = {"passes": provenance.each("seconds")}
CODE = {"passes": provenance.code("formats"), "fits": provenance.code("formats", "topics")}


def _child(path: Path, k: int, refine: bool) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.files", str(path), str(k), str(int(refine))]
    done = subprocess.run(command, cwd=harness.ROOT, capture_output=True, text=True, check=True)
    measured: dict[str, Any] = json.loads(done.stdout)
    return measured


def fit(path: str, k: int, refine: bool) -> dict[str, Any]:
    """One fit in this process; what is loaded anyway comes before the clock starts."""
    import odeco
    from odeco.files import read_counts

    warnings.simplefilter("ignore", odeco.MomentWarning)
    model = odeco.LatentDirichletAllocation(k, refine="auto" if refine else None, random_state=0)
    small = next(chunks({"n": 2_000, "d": 500, "k": k}, 2_000))
    model.fit(small)
    model.fit(lambda: iter([small]))
    before = memory.peak_bytes()
    streamed = path.endswith(".parquet")
    counts: Any = read_counts(path).source if streamed else sparse.csr_array(sparse.load_npz(path))
    start, cpu = time.perf_counter(), time.process_time()
    model.fit(counts)
    return {
        "where": "streamed from Parquet" if streamed else "in memory",
        "refine": refine,
        "sweeps": model.n_iter_,
        "seconds": time.perf_counter() - start,
        "cpu": time.process_time() - cpu,
        "before": before,
        "peak": memory.peak_bytes(),
    }


def report(result: Result) -> None:
    """Write the tables of the guide."""
    harness.write_between(harness.ROOT / "docs" / "files.md", f"benchmark:{NAME}", docs_tables(result))


def docs_tables(result: Result) -> str:
    parts = []
    if "fits" in result:
        rows = [
            [
                f"{r['sweeps']} sweeps of CVB0" if r["refine"] else "moments alone",
                r["where"],
                f"{r['seconds']:.1f} s",
                f"{r['cpu']:.1f} s",
                f"{r['peak'] / 2**20:.0f} MiB",
            ]
            for r in result["fits"]
        ]
        sizes = result.settings("fits")
        parts.append(
            f"`LatentDirichletAllocation({sizes['k']})` on {sizes['n']:,} documents, {sizes['d']:,} words, "
            f"{result['fits'][0]['nonzeros']:,} nonzeros:\n\n"
            + harness.markdown_table(["fit", "documents", "time", "processor time", "peak memory of the process"], rows)
            + f"\n\n{result.told('fits')}"
        )
    if "passes" in result:
        rows = [
            [f"`{r['file']}`", f"{r['bytes'] / r['nonzeros']:.1f}", f"{1e9 * r['seconds'] / r['nonzeros']:.0f} ns"]
            for r in result["passes"]
        ]
        parts.append(harness.markdown_table(["file", "bytes per nonzero", "one pass, per nonzero"], rows))
        parts.append(result.told("passes"))
    return "\n\n".join([*parts, "By the clock, two cores.", result.machines()])


if __name__ == "__main__":
    print(json.dumps(fit(sys.argv[1], int(sys.argv[2]), sys.argv[3] == "1")))
