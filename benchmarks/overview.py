"""Every model beside its peers in one table: time, quality, peak memory, optima.

Each case runs in a process of its own, where everybody gets the same data and the same threads; peak memory is measured
in a further process for each contender.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from benchmarks import harness, provenance
from benchmarks.cases import CASES, Case, use_threads
from benchmarks.memory import peak_above
from benchmarks.provenance import Result, Section

NAME = "overview"
PEERS = ["scikit-learn", "tensorly", "pyttb", "tomotopy", "gensim", "hmmlearn", "stepmix", "python-picard", "crowd-kit"]
PACKAGES = ["numpy", "scipy", *PEERS]
FIRST_SEED = 300  # no constant was chosen on these
SEEDS = 5
# Of the slowest peers, on how many seeds: they are the same data sets, from the first on.
FEWER = {
    "StepMix, n_init=1": 3,
    "StepMix, n_init=5": 1,
    "scikit-learn, 10 epochs": 1,
    "gensim, 10 passes": 1,
    "tomotopy, 200 iterations": 3,
    "scikit-learn, n_init=10": 1,
    "hmmlearn, 100 passes": 3,
    "tensorly": 2,
}


def run(*, quick: bool = False, only: list[str] | None = None) -> dict[str, Section]:
    """All cases, or some `only`."""
    measurements = {name: partial(_case, name, quick) for name in CASES}
    return provenance.measure(measurements, only, PACKAGES, provenance.code, quick=quick)


def _case(name: str, quick: bool) -> dict[str, Any]:
    measured = _child("case", name, quick)
    if quick:  # without what takes processes of its own: memory that nobody used before
        return measured
    return measured | {"memory": {who: _child("memory", name, quick, who)["bytes"] for who in CASES[name].fits}}


def _child(job: str, name: str, quick: bool, who: str = "odeco") -> dict[str, Any]:
    return harness.child("benchmarks.overview", job, name, int(quick), who)


def _sizes(case: Case, quick: bool) -> tuple[Any, ...]:
    return case.quick_sizes if quick else case.sizes


def job_memory(case: Case, quick: bool, who: str) -> dict[str, Any]:
    """Peak memory of one fit above what the process holds with the data and everything loaded."""
    _timed(case, who, case.draw(*case.quick_sizes, FIRST_SEED), 0)
    data = case.draw(*_sizes(case, quick), FIRST_SEED)
    return {"bytes": peak_above(lambda: _timed(case, who, data, 0))}


def job_case(case: Case, quick: bool, who: str) -> dict[str, Any]:
    """Seconds and quality of everybody on the same data sets; imports and a first fit come before."""
    for module in case.peers:
        import_module(module)
    _timed(case, "odeco", case.draw(*_sizes(case, quick), FIRST_SEED - 1), 0)
    runs: dict[str, list[dict[str, float]]] = {name: [] for name in case.fits}
    for i in range(1 if quick else SEEDS):
        data = case.draw(*_sizes(case, quick), FIRST_SEED + i)
        for name in case.fits:
            if i < FEWER.get(name, SEEDS):
                model, seconds = _timed(case, name, data, i)
                runs[name].append({"seconds": seconds, "quality": case.quality(model, data)})
    measured = {"sizes": list(_sizes(case, quick)), "threads": case.threads, "runs": runs}
    if quick:
        measured["memory"] = {name: peak_above(lambda name=name: _timed(case, name, data, 0)) for name in case.fits}
    return measured


def _timed(case: Case, who: str, data: Any, seed: int) -> tuple[Any, float]:
    models: list[Any] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what anybody warns of is not the point here
        seconds = harness.once(lambda: models.append(case.fits[who](data, seed)))
    # Topic models say themselves: what it takes to hand documents over to a peer is left out.
    return models[0], getattr(models[0], "seconds", seconds)


# Tables


def summary(case: Case, measured: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """By contender: medians of times and of what differs on the same data sets, and on how many it was best or near."""
    runs, sign = measured["runs"], -1.0 if case.lower else 1.0
    n_seeds = len(runs["odeco"])
    best = [max(sign * rows[i]["quality"] for rows in runs.values() if i < len(rows)) for i in range(n_seeds)]
    table = {}
    for name in sorted(runs, key=list(case.fits).index):
        rows = runs[name]
        pairs = list(zip(rows, runs["odeco"], strict=False))
        table[name] = {
            "seconds": float(np.median([row["seconds"] for row in rows])),
            "slowest": max(row["seconds"] for row in rows),
            "ratio": float(np.median([row["seconds"] / ours["seconds"] for row, ours in pairs])),
            "quality": float(np.median([row["quality"] for row in rows])),
            "difference": float(np.median([row["quality"] - ours["quality"] for row, ours in pairs])),
            "reached": sum(best[i] - sign * row["quality"] <= case.tolerance for i, row in enumerate(rows)),
            "seeds": len(rows),
        }
    return table


def times(ratio: float) -> str:
    """A ratio or a number of seconds, as short as it may be."""
    return f"{ratio:,.0f}" if ratio >= 10 else f"{ratio:.2g}"


def docs_tables(result: Result) -> str:
    parts = []
    for name, case in CASES.items():
        if name not in result:
            continue
        measured = result[name]
        rows: list[list[str]] = []
        for who, row in summary(case, measured).items():
            memory = measured["memory"].get(who)
            rows.append(
                [
                    who,
                    f"{times(row['seconds'])} s",
                    f"{times(row['slowest'])} s",
                    times(row["ratio"]),
                    f"{row['quality']:,.5g}" if who == "odeco" else f"{row['difference']:+.3g}",
                    f"{row['reached']} of {row['seeds']}",
                    "" if memory is None else f"{memory / 1e6:,.0f} MB",
                ]
            )
        best = f"best optimum (within {case.tolerance:g})"
        header = ["", "seconds", "slowest", "times odeco's", case.measure, best, "peak memory"]
        table = harness.markdown_table(header, rows)
        threads = "one thread" if measured["threads"] == 1 else f"{measured['threads']} threads"
        sizes = " x ".join(f"{size:,}" for size in measured["sizes"])
        direction = "lower" if case.lower else "higher"
        head = f"**{case.title}** ({sizes}; {threads} for everybody; {direction} is better)"
        parts.append(f"{head}\n\n{table}\n\n{result.told(name)}")
    return "\n\n".join([*parts, _notes(result)])


def _notes(result: Result) -> str:
    where = "after the other fits" if any(s.quick for s in result.sections.values()) else "in its own process"
    return (
        "Medians over data sets, and the slowest fit; of others, by how much their quality differs from odeco's and "
        "the ratio of times, both on the same data sets. Best optimum: quality within the tolerance of the best that "
        "anybody reached on a data set; of as many as the contender ran on. Peak memory: of one fit, "
        f"{where}, above what the process holds with the data loaded (processes that gensim and scikit-learn start are "
        f"not counted). Made by `python -m benchmarks overview`.\n\n{result.machines()}"
    )


def report(result: Result) -> None:
    """Tables of README and docs from a result file."""
    from benchmarks import front_page  # which is made of these results and others

    front_page.write()
    harness.write_between(harness.ROOT / "docs" / "benchmarks.md", f"benchmark:{NAME}", docs_tables(result))


JOBS: dict[str, Callable[[Case, bool, str], dict[str, Any]]] = {
    "case": job_case,
    "memory": job_memory,
}

if __name__ == "__main__":
    job, name, quick, who = sys.argv[1:]
    use_threads(CASES[name].threads)
    with harness.threads(CASES[name].threads):
        print(json.dumps(JOBS[job](CASES[name], bool(int(quick)), who)))
