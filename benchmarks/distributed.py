"""Beyond one machine: two Dask workers against one, against the plain stream, and Parquet against memory.

Every figure is of one process (or cluster) that does nothing else: the median of five, taken in turns.
`python -m benchmarks.distributed JOB ...` runs one.
"""

from __future__ import annotations

import gc
import itertools
import json
import pickle
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import harness, memory, provenance
from benchmarks.provenance import Result, Section
from benchmarks.scaling import _documents
from odeco.sources.partitions import TREE_WIDTH

NAME = "distributed"
# 20 M nonzeros: about 92 different words in each of 220,000 documents, or 78 where words are fewer; quick: a twentieth.
N_DOCUMENTS, LENGTH, N_WORDS, K = 220_000, 130, 20_000, 50
FEWER_WORDS, MORE_DOCUMENTS = 5_000, 260_000
N_PARTITIONS = 8
REPEATS = 5
FEW = 11_000  # documents on which passes take what they take besides reading
# Workers of the cost model at the end, and its corpus: documents and nonzeros per document.
MODEL_WORKERS, MODEL_DOCUMENTS, MODEL_NONZEROS = 100, 1e9, 100
NETWORK = 125e6  # bytes per second between workers: 1 Gbit/s
PASSES = {
    "FrequenciesAndPairs": "word frequencies and pairs",
    "WordPairs": "word pairs, each",
    "WordTriples": "word triples",
}


def run(*, quick: bool = False, only: list[str] | None = None) -> dict[str, Section]:
    part = 20 if quick else 1
    n = N_DOCUMENTS // part
    packages = ["numpy", "scipy", "dask", "distributed", "pyarrow"]
    with tempfile.TemporaryDirectory() as folder:
        described = harness.child("benchmarks.distributed", "write", folder, n)
        few = harness.child("benchmarks.distributed", "write", _few(folder), min(n // 2, FEW))["n_nonzeros"]
        sizes = {**described, "n_words": N_WORDS, "n_topics": K, "n_partitions": N_PARTITIONS, "few": few}
        fewer = harness.child("benchmarks.distributed", "write", _fewer(folder), MORE_DOCUMENTS // part, FEWER_WORDS)
        sizes["fewer_words"] = {**fewer, "n_words": FEWER_WORDS}
        repeats = 1 if quick else REPEATS
        measurements = {name: partial(measure, folder, repeats) for name, measure in SECTIONS.items()}
        return provenance.measure(measurements, only, packages, CODE.__getitem__, settings=sizes, quick=quick)


def _few(folder: str) -> str:
    return str(Path(folder) / "few")


def _fewer(folder: str) -> str:
    return str(Path(folder) / "fewer")


def _moments(folder: str, n_repeats: int) -> dict[str, Any]:
    """LDA moments (refine=None): the plain stream on one thread, two at a time, one worker (few documents too), two."""
    engines = {"one": ("dask", folder, 1), "two": ("dask", folder, 2), "few": ("dask", _few(folder), 1)}
    return _in_turns({"stream": ("stream", folder), "apart": ("apart", folder), **engines}, n_repeats)


def _fewer_words(folder: str, n_repeats: int) -> dict[str, Any]:
    """The same on a smaller vocabulary: less to send, to merge and to do here for as many nonzeros."""
    fewer = _fewer(folder)
    return _in_turns({"stream": ("stream", fewer), "one": ("dask", fewer, 1), "two": ("dask", fewer, 2)}, n_repeats)


def _parquet(folder: str, n_repeats: int) -> dict[str, Any]:
    """The same fit on both cores from memory and from a Parquet file, with its peak memory."""
    return _in_turns({name: (name, folder) for name in ("in_memory", "from_parquet")}, n_repeats)


def _in_turns(jobs: dict[str, tuple[Any, ...]], n_repeats: int) -> dict[str, Any]:
    """The runs of each job; they take turns, so that what slows the machine slows all of them."""
    runs: dict[str, list[Any]] = {name: [] for name in jobs}
    for _ in range(n_repeats):
        for name, job in jobs.items():
            runs[name].append(harness.child("benchmarks.distributed", *job))
    return runs


def _median_runs(jobs: dict[str, Any]) -> dict[str, Any]:
    """The median run of each job by its seconds, with the seconds of all."""
    ordered = {name: sorted(found, key=lambda run: run["seconds"]) for name, found in jobs.items()}
    return {
        name: {**found[len(found) // 2], "all_seconds": [run["seconds"] for run in found]}
        for name, found in ordered.items()
    }


SECTIONS = {"moments": _moments, "fewer_words": _fewer_words, "parquet": _parquet}
SUMMARIES = dict.fromkeys(SECTIONS, _median_runs)
CODE = {name: provenance.code("partitions", *(["formats"] if name == "parquet" else [])) for name in SECTIONS}


def job_write(folder: str, n: str, n_words: str = str(N_WORDS)) -> dict[str, Any]:
    """Draw the corpus once: blocks for the workers, a Parquet file for the stream."""
    from scipy import sparse

    from odeco.files import write_counts
    from odeco.sources import as_source

    Path(folder).mkdir(exist_ok=True)
    counts = sparse.csr_matrix(_documents(int(n), LENGTH, int(n_words), K))
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


def job_apart(folder: str) -> dict[str, Any]:
    """Two such fits at once that have nothing to do with each other: what the second core is worth on this machine."""
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(lambda _: harness.child("benchmarks.distributed", "stream", folder), range(2))
    passes = {
        name: [(a + b) / 2 for a, b in zip(first["passes"][name], second["passes"][name], strict=True)]
        for name in PASSES
    }
    return {
        **first,
        "seconds": (first["seconds"] + second["seconds"]) / 2,
        "cpu": first["cpu"] + second["cpu"],
        "passes": passes,
    }


def job_dask(folder: str, n_workers: str) -> dict[str, Any]:
    """The same on workers of one thread each; what their tasks return, and what leaves a worker, is counted."""
    import dask
    import dask.bag as db
    from distributed import Client, LocalCluster

    with (
        dask.config.set({"distributed.worker.profile.enabled": False}),  # as docs/scaling.md advises
        LocalCluster(n_workers=int(n_workers), threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        Client(cluster, direct_to_workers=True) as client,  # the same
        _sent() as sent,
    ):
        client.run(_warm_up)
        _fit(db.from_delayed([dask.delayed(_few_documents)() for _ in range(N_PARTITIONS)]), 5)  # what tasks need too
        client.run(lambda: gc.collect())
        client.run(_count_returned)
        bag = db.from_delayed([dask.delayed(load_block)(folder, index) for index in range(N_PARTITIONS)])
        found = _timed(bag)
        returned = [pair for pairs in client.run(_returned).values() for pair in pairs]
        left = client.run(lambda dask_worker: dask_worker.transfer_outgoing_bytes_total)
        return {
            **found,
            "returned_bytes": {name: max(size for kind, size in returned if kind == name) for name in PASSES},
            "sent_bytes": {name: len(pickle.dumps(make())) for name, make in sent.items()},
            "left_bytes": sorted(left.values()),
            "link": _link_speed(client),
        }


RETURNED: list[tuple[str, int]] = []  # by a worker's tasks, in its own process


def _count_returned() -> None:
    """Note the bytes of all sums that tasks of this worker return."""
    from benchmarks import distributed  # not __main__, which is another module there
    from odeco.sources.partitions import SumRows

    run = SumRows.over

    def counted(self: SumRows, parts: Any) -> Any:
        packed = run(self, parts)
        distributed.RETURNED.append((type(self.empty).__name__, packed.nbytes))
        return packed

    SumRows.over = counted  # type: ignore[method-assign]


def _returned() -> list[tuple[str, int]]:
    from benchmarks import distributed

    return distributed.RETURNED


@contextmanager
def _sent() -> Iterator[dict[str, Any]]:
    """What makes the empty sums that are sent in each kind of pass: to be weighed when time is no longer taken."""
    from odeco.sources.dask import DaskPartitions

    fold = DaskPartitions.fold
    sent: dict[str, Any] = {}

    def noted(self: DaskPartitions, work: Any, merge: Any, pieces: Any) -> Any:
        sent[type(work.empty).__name__] = partial(type(work.empty), vars(work.empty).get("pairs", work.empty).basis)
        return fold(self, work, merge, pieces)

    DaskPartitions.fold = noted  # type: ignore[method-assign]
    try:
        yield sent
    finally:
        DaskPartitions.fold = fold  # type: ignore[method-assign]


def _link_speed(client: Any) -> float:
    """Bytes per second from a worker to here, measured on 80 MB."""
    speeds = []
    for _ in range(3):
        made = client.submit(np.ones, 10_000_000, pure=False)
        client.submit(len, made).result()
        speeds.append(80e6 / harness.once(made.result))
    return float(np.median(speeds))


def _warm_up() -> None:
    """Load all code, which a worker that has run for a while has done, and clear what that left."""
    _fit(lambda: iter([_few_documents()]), 5)
    gc.collect()


def _few_documents() -> Any:
    return _documents(300, LENGTH, N_WORDS, 5)


def _fit(X: Any, k: int = K) -> Any:
    import warnings

    from odeco import LatentDirichletAllocation

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return LatentDirichletAllocation(k, refine=None, random_state=0).fit(X)


def _timed(X: Any) -> dict[str, Any]:
    """Seconds by the clock and of all processors, in all and for each kind of pass over all documents."""
    _warm_up()
    with _passes() as passes:
        start, cpu = time.perf_counter(), _processor_seconds()
        model = _fit(X)
        found = {"seconds": time.perf_counter() - start, "cpu": _processor_seconds() - cpu}
    everything = max(n for _, n, _ in passes)
    spent = {name: [s for kind, n, s in passes if kind == name and n == everything] for name in PASSES}
    assert sum(map(len, spent.values())) == model.diagnostics_.n_passes
    return {**found, "n_passes": model.diagnostics_.n_passes, "passes": spent}


@contextmanager
def _passes() -> Iterator[list[tuple[str, int, float]]]:
    """What every pass is for, its documents and its seconds."""
    from odeco.moments.base import Additive

    update_all, passes = Additive.update_all, []

    def noted(self: Any, batches: Any) -> Any:
        start = time.perf_counter()
        sums = update_all(self, batches)
        passes.append((type(self).__name__, sums.n, time.perf_counter() - start))
        return sums

    Additive.update_all = noted  # type: ignore[method-assign]
    try:
        yield passes
    finally:
        Additive.update_all = update_all  # type: ignore[method-assign]


def _processor_seconds() -> float:
    """Of this process and of all that it has started."""
    import psutil

    own = psutil.Process()
    return float(sum(sum(process.cpu_times()[:4]) for process in [own, *own.children(recursive=True)]))


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


def cost_model(result: Result, n_workers: int, n_documents: float, nonzeros: float, link: float) -> Any:
    """Seconds of LDA moments, from one worker: {"computing", "fixed", "here", "moving", "left_bytes"}.

    Assumptions: the work of a pass grows as the nonzeros, and workers share it evenly; besides it takes what it takes
    on no documents at all, by the line through the runs on few and on all of them; what is done here (directions,
    decomposition) does not grow. Sums move at `link` bytes per second: one from every worker at the same time, which
    its own tasks are merged in; then a few at a time, one after the other, up the levels of the tree; and what a pass
    needs goes from worker to worker by doubling.
    """
    sizes, one, few = result.settings("moments"), result["moments"]["one"], result["moments"]["few"]
    spent, least = _in_passes(one), _in_passes(few)
    per_nonzero = (spent - least) / (sizes["n_nonzeros"] - sizes["few"])
    per_pass = [(one["returned_bytes"][name], one["sent_bytes"][name], len(s)) for name, s in one["passes"].items()]
    out = sum(returned * n for returned, _, n in per_pass)
    into = sum(sent * n for _, sent, n in per_pass)
    upper = TREE_WIDTH * max(np.ceil(np.log(n_workers) / np.log(TREE_WIDTH)) - 1, 0)
    return {
        "computing": per_nonzero * n_documents * nonzeros / n_workers,
        "fixed": max(least - per_nonzero * sizes["few"], 0.0),
        "here": one["seconds"] - spent,
        "moving": 0.0 if n_workers == 1 else (out * (1 + upper) + into * np.log2(n_workers)) / link,
        "left_bytes": out,
    }


def docs_tables(result: Result) -> str:
    parts = []
    if "moments" in result:
        told = result.told("moments", "fewer_words")
        parts += [_runs_table(result), _passes_table(result), told, _model_said(result)]
    if "parquet" in result:
        here, there = result["parquet"]["in_memory"], result["parquet"]["from_parquet"]
        peaks = {"in memory": "", "streamed from Parquet": f"{there['peak_bytes'] / 2**20:,.0f} MiB"}
        rows = [
            [label, *_seconds(run), f"{run['seconds'] / here['seconds']:.2f}", peak]
            for (label, peak), run in zip(peaks.items(), (here, there), strict=True)
        ]
        head = ["the same moments, two cores", "seconds", "processor seconds", "ratio", "peak memory of the fit"]
        parts += [harness.markdown_table(head, rows), result.told("parquet")]
    return "\n\n".join([*parts, result.machines()])


def _seconds(run: dict[str, Any]) -> list[str]:
    low, high = min(run["all_seconds"]), max(run["all_seconds"])
    return [f"{run['seconds']:.3g} ({low:.3g} to {high:.3g})", f"{run['cpu']:.3g}"]


def _runs_table(result: Result) -> str:
    sizes, runs = result.settings("moments"), result["moments"]
    rows = _runs_rows(runs, sizes["n_nonzeros"], sizes["n_words"])
    if "fewer_words" in result:
        fewer = result.settings("fewer_words")["fewer_words"]
        rows += _runs_rows(result["fewer_words"], fewer["n_nonzeros"], fewer["n_words"])
    n_runs = len(runs["one"]["all_seconds"])
    limit = 2 * _in_passes(runs["stream"]) / _in_passes(runs["apart"])
    said = (
        f"{sizes['n_documents']:,} documents, {sizes['n_nonzeros']:,} nonzeros, {sizes['n_words']:,} words, "
        f"{sizes['n_topics']} topics, {sizes['n_partitions']} partitions, read from disk at each of the "
        f"{runs['one']['n_passes']} passes; medians of {n_runs} runs and their range. Two plain streams at once, "
        f"which share nothing but the machine, go through the data {limit:.2f} times as fast as one. Workers run "
        "without Dask's profiler, and the client fetches results from them directly. What a pass takes whatever it "
        f"reads, and what is done here, grows with the vocabulary: the same with {FEWER_WORDS:,} words is below."
    )
    speed = ["times the stream's speed", "times one worker's", "passes alone"]
    head = ["LDA moments", "words", "seconds", "processor seconds", *speed, "per nonzero and pass"]
    return f"{said}\n\n{harness.markdown_table(head, rows)}"


def _runs_rows(runs: dict[str, Any], n_nonzeros: int, n_words: int) -> list[list[str]]:
    names = {"stream": "plain stream, one thread", "one": "one Dask worker", "two": "two Dask workers"}
    rows = []
    for name, label in names.items():
        measured = runs[name]
        per_pass = 1e9 * measured["seconds"] / (n_nonzeros * measured["n_passes"])
        speeds = [f"{runs[base]['seconds'] / measured['seconds']:.2f}" for base in ("stream", "one")]
        alone = f"{_in_passes(runs['one']) / _in_passes(measured):.2f}"
        rows.append([label, f"{n_words:,}", *_seconds(measured), *speeds, alone, f"{per_pass:.3g} ns"])
    return rows


def _in_passes(run: dict[str, Any]) -> float:
    """Seconds that passes over the documents took."""
    return sum(map(sum, run["passes"].values()))


def _passes_table(result: Result) -> str:
    runs, rows = result["moments"], []
    for name, label in PASSES.items():
        means = [float(np.mean(runs[run]["passes"][name])) for run in ("stream", "one", "two")]
        moved = [f"{runs['one'][kind][name] / 1e6:.3g} MB" for kind in ("sent_bytes", "returned_bytes")]
        per_nonzero = f"{1e9 * means[1] / result.settings('moments')['n_nonzeros']:.3g} ns"
        rows.append([label, *(f"{mean:.3g} s" for mean in means), per_nonzero, *moved])
    rest = [runs[run]["seconds"] - _in_passes(runs[run]) for run in ("stream", "one", "two")]
    rows.append(["the rest, here", *(f"{seconds:.3g} s" for seconds in rest), "", "", ""])
    head = ["pass", "stream", "one worker", "two workers", "one worker, per nonzero"]
    return harness.markdown_table([*head, "to every worker", "back from every task"], rows)


def _model_said(result: Result) -> str:
    sizes, two = result.settings("moments"), result["moments"]["two"]
    near = cost_model(result, 2, sizes["n_documents"], sizes["n_nonzeros"] / sizes["n_documents"], two["link"])
    far = cost_model(result, MODEL_WORKERS, MODEL_DOCUMENTS, MODEL_NONZEROS, NETWORK)
    predicted = near["computing"] + near["fixed"] + near["here"] + near["moving"]
    left = " and ".join(f"{size / 1e6:.3g}" for size in two["left_bytes"])
    return (
        f"The cost model, fitted to one worker, says {predicted:.3g} s for two, at the {two['link'] / 1e6:,.0f} MB/s "
        f"measured between the processes; {two['seconds']:.3g} s were measured "
        f"({100 * (predicted / two['seconds'] - 1):+.0f} %). It says that {near['left_bytes'] / 1e6:.3g} MB of sums "
        f"leave each of them on average; Dask counted {left} MB, the result included, samples not. For "
        f"{MODEL_DOCUMENTS:.0e} documents of {MODEL_NONZEROS} different words on {MODEL_WORKERS} workers of one thread "
        f"it says {far['computing'] / 60:.3g} minutes of computing, {far['moving'] / 60:.3g} of moving sums "
        f"({far['left_bytes'] / 1e6:.3g} MB out of every worker at {NETWORK / 1e6:.0f} MB/s), {far['fixed']:.2g} "
        f"seconds that passes take whatever they read, and {far['here']:.2g} here."
    )


def report(result: Result) -> None:
    """The tables of docs/scaling.md."""
    harness.write_between(harness.ROOT / "docs" / "scaling.md", f"benchmark:{NAME}", docs_tables(result))


JOBS = {
    "write": job_write,
    "stream": job_stream,
    "apart": job_apart,
    "dask": job_dask,
    "in_memory": job_in_memory,
    "from_parquet": job_from_parquet,
}

if __name__ == "__main__":
    print(json.dumps(JOBS[sys.argv[1]](*sys.argv[2:])))
