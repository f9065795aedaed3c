"""Beyond one machine: two Dask workers against one, against the plain stream, and Parquet against memory.

Every figure is of one process (or cluster) that does nothing else. `python -m benchmarks.distributed JOB ...` runs one.
"""

from __future__ import annotations

import itertools
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import harness, memory
from benchmarks.scaling import _documents

NAME = "distributed"
SECTIONS = ["moments", "parquet"]
# 20 M nonzeros: about 100 different words in each of 200,000 documents; quick: a twentieth.
N_DOCUMENTS, LENGTH, N_WORDS, K = 200_000, 130, 20_000, 50
N_PARTITIONS = 8
# Workers of the cost model at the end, and its corpus: documents and nonzeros per document.
MODEL_WORKERS, MODEL_DOCUMENTS, MODEL_NONZEROS = 100, 1e9, 100
NETWORK = 125e6  # bytes per second between workers: 1 Gbit/s


def run(*, quick: bool = False, only: list[str] | None = None) -> dict[str, Any]:
    n = N_DOCUMENTS // 20 if quick else N_DOCUMENTS
    result: dict[str, Any] = {"environment": harness.environment(["numpy", "scipy", "dask", "pyarrow"])}
    with tempfile.TemporaryDirectory() as folder:
        described = harness.child("benchmarks.distributed", "write", folder, n)
        result["sizes"] = {**described, "n_words": N_WORDS, "n_topics": K, "n_partitions": N_PARTITIONS}
        for section in harness.choose(SECTIONS, only):
            result[section] = globals()[f"_{section}"](folder)
    return result


def _moments(folder: str) -> dict[str, Any]:
    """LDA moments (refine=None): the plain stream on one thread, one worker, two workers."""
    jobs = {"stream": ("stream", folder), "one": ("dask", folder, 1), "two": ("dask", folder, 2)}
    return {name: harness.child("benchmarks.distributed", *job) for name, job in jobs.items()}


def _parquet(folder: str) -> dict[str, Any]:
    """The same fit on both cores from memory and from a Parquet file, with its peak memory."""
    return {name: harness.child("benchmarks.distributed", name, folder) for name in ("in_memory", "from_parquet")}


def job_write(folder: str, n: str) -> dict[str, Any]:
    """Draw the corpus once: blocks for the workers, a Parquet file for the stream."""
    from scipy import sparse

    from odeco.files import write_counts
    from odeco.sources import as_source

    counts = sparse.csr_matrix(_documents(int(n), LENGTH, N_WORDS, K))
    edges = np.linspace(0, counts.shape[0], N_PARTITIONS + 1).astype(int)
    for index, (low, high) in enumerate(itertools.pairwise(edges)):
        sparse.save_npz(Path(folder) / f"block{index}.npz", counts[low:high], compressed=False)
    write_counts(Path(folder) / "counts.parquet", as_source(counts), None)
    return {"n_documents": int(n), "n_nonzeros": int(counts.nnz)}


def load_block(folder: str, index: int) -> Any:
    from scipy import sparse

    return sparse.load_npz(Path(folder) / f"block{index}.npz")


def job_stream(folder: str) -> dict[str, Any]:
    """The plain streamed fit on one thread, blocks read from disk at every pass as the workers do."""

    def read() -> Iterator[Any]:
        return (load_block(folder, index) for index in range(N_PARTITIONS))

    with harness.one_thread():
        return _timed(read)


def job_dask(folder: str, n_workers: str) -> dict[str, Any]:
    """The same on workers of one thread each; what their tasks return is counted."""
    import dask
    import dask.bag as db
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=int(n_workers), threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        client.run(_warm_up)
        blocks = [dask.delayed(load_block)(folder, index) for index in range(N_PARTITIONS)]
        return _timed(db.from_delayed(blocks).map_partitions(_itself))


def _itself(partition: Any) -> Any:
    return partition


def _warm_up() -> None:
    """Load the compiled code, which a worker that has run for a while has done."""
    _fit(lambda: iter([_documents(300, LENGTH, N_WORDS, 5)]), 5)


def _fit(X: Any, k: int = K) -> Any:
    import warnings

    from odeco import LatentDirichletAllocation

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return LatentDirichletAllocation(k, refine=None, random_state=0).fit(X)


def _timed(X: Any) -> dict[str, Any]:
    _warm_up()
    start = time.perf_counter()
    model = _fit(X)
    return {"seconds": time.perf_counter() - start, "n_passes": model.diagnostics_.n_passes}


def job_in_memory(folder: str) -> dict[str, Any]:
    from scipy import sparse

    counts = sparse.vstack([load_block(folder, index) for index in range(N_PARTITIONS)], format="csr")
    return _timed(counts)


def job_from_parquet(folder: str) -> dict[str, Any]:
    from odeco.files import read_counts

    found: dict[str, Any] = {}
    _warm_up()
    peak = memory.peak_above(lambda: found.update(_timed(read_counts(Path(folder) / "counts.parquet").source)))
    return {**found, "peak_bytes": peak}


def cost_model(result: dict[str, Any], n_workers: int, n_documents: float, nonzeros: float) -> dict[str, float]:
    """Seconds of LDA moments by what was measured: work per nonzero and pass, and bytes per partition and pass.

    Assumptions: partitions of as many documents as measured; work grows as nonzeros; workers share it evenly; the sums
    of a partition travel once up the tree at `NETWORK` bytes per second, at all workers at the same time, and the last
    levels of the tree one after the other.
    """
    sizes, one = result["sizes"], result["moments"]["one"]
    work = one["seconds"] / (sizes["n_nonzeros"] * one["n_passes"])
    partitions = n_documents / (sizes["n_documents"] / sizes["n_partitions"])
    pair_bytes = 8.0 * sizes["n_words"] * (sizes["n_topics"] + 10)
    levels = np.ceil(np.log(max(n_workers, 2)) / np.log(16))
    computing = work * n_documents * nonzeros * one["n_passes"] / n_workers
    moving = one["n_passes"] * pair_bytes / NETWORK * (partitions / n_workers + 16 * levels)
    return {"computing": computing, "moving": moving if n_workers > 1 else 0.0, "pair_bytes": pair_bytes}


def docs_tables(result: dict[str, Any]) -> str:
    sizes, parts = result["sizes"], []
    if "moments" in result:
        runs = result["moments"]
        base = runs["stream"]["seconds"]
        names = {"stream": "plain stream, one thread", "one": "one Dask worker", "two": "two Dask workers"}
        rows = []
        for name, label in names.items():
            measured = runs[name]
            per_pass = 1e9 * measured["seconds"] / (sizes["n_nonzeros"] * measured["n_passes"])
            rows.append(
                [label, f"{measured['seconds']:.3g} s", f"{base / measured['seconds']:.2f}", f"{per_pass:.3g} ns"]
            )
        head = ["LDA moments", "seconds", "times the stream's speed", "per nonzero and pass"]
        per_document = sizes["n_nonzeros"] / sizes["n_documents"]
        two = cost_model(result, 2, sizes["n_documents"], per_document)
        far = cost_model(result, MODEL_WORKERS, MODEL_DOCUMENTS, MODEL_NONZEROS)
        said = (
            f"{sizes['n_documents']:,} documents, {sizes['n_nonzeros']:,} nonzeros, {sizes['n_words']:,} words, "
            f"{sizes['n_topics']} topics, {sizes['n_partitions']} partitions. The cost model, fitted to one worker, "
            f"says {two['computing'] + two['moving']:.3g} s for two, and for {MODEL_DOCUMENTS:.0e} documents of "
            f"{MODEL_NONZEROS} different words on {MODEL_WORKERS} workers {far['computing'] / 60:.3g} minutes of "
            f"computing and {far['moving'] / 60:.3g} of moving sums ({far['pair_bytes'] / 1e6:.3g} MB per partition "
            "and pair pass)."
        )
        parts += [harness.markdown_table(head, rows), said]
    if "parquet" in result:
        here, there = result["parquet"]["in_memory"], result["parquet"]["from_parquet"]
        rows = [
            ["in memory", f"{here['seconds']:.3g} s", "1", ""],
            [
                "streamed from Parquet",
                f"{there['seconds']:.3g} s",
                f"{there['seconds'] / here['seconds']:.2f}",
                f"{there['peak_bytes'] / 1e6:,.0f} MB",
            ],
        ]
        parts.append(harness.markdown_table(["the same moments, two cores", "seconds", "ratio", "peak memory"], rows))
    return "\n\n".join(parts)


def report(result: dict[str, Any]) -> None:
    """The tables of docs/scaling.md."""
    harness.write_between(harness.ROOT / "docs" / "scaling.md", f"benchmark:{NAME}", docs_tables(result))


JOBS = {
    "write": job_write,
    "stream": job_stream,
    "dask": job_dask,
    "in_memory": job_in_memory,
    "from_parquet": job_from_parquet,
}

if __name__ == "__main__":
    print(json.dumps(JOBS[sys.argv[1]](*sys.argv[2:])))
