"""`python -m benchmarks NAME`: measure, write the result file, then the tables and figures made from it.

`python -m benchmarks all` does so for every name, each in a process of its own; with `--quick` it prints those
that have every model in them, small.
"""

from __future__ import annotations

import subprocess
import sys
import time
from importlib import import_module
from typing import Annotated

import typer

from benchmarks import harness

NAMES = [
    "overview",
    "decomposition",
    "topics",
    "gaussian_mixture",
    "product_mixture",
    "multiview",
    "hmm",
    "ica",
    "curves",
    "scaling",
]
QUICK = ["overview", "curves", "scaling"]  # what `all --quick` runs: three minutes on two cores


def main(
    name: Annotated[str, typer.Argument(help=f"all, or one of: {', '.join(NAMES)}.")],
    quick: Annotated[bool, typer.Option(help="Fewer seeds and sizes; prints, writes nothing.")] = False,
    only: Annotated[list[str] | None, typer.Option(help="Measure these sections; the others stay as stored.")] = None,
    report_only: Annotated[bool, typer.Option(help="Rewrite tables and figures from the stored results.")] = False,
) -> None:
    if name == "all":
        raise typer.Exit(everything(quick=quick, report_only=report_only))
    if name not in NAMES:
        raise typer.BadParameter(f"{name!r} is not one of all, {', '.join(NAMES)}")
    bench = import_module(f"benchmarks.{name}")
    if report_only:
        bench.report(harness.load(name))
        return
    result = bench.run(quick=quick, only=only) if only else bench.run(quick=quick)
    if quick:
        print(bench.docs_tables(result))
        return
    if only:
        result = harness.stored(name) | result
    harness.save(name, result)
    bench.report(result)
    print(bench.docs_tables(result))


def everything(*, quick: bool, report_only: bool) -> int:
    """Each benchmark in its own process, one after the other; the number of those that failed."""
    failed = []
    for name in QUICK if quick else NAMES:
        if report_only and not harness.stored(name):
            continue
        options = [*(["--quick"] if quick else []), *(["--report-only"] if report_only else [])]
        start = time.perf_counter()
        done = subprocess.run([sys.executable, "-m", "benchmarks", name, *options], cwd=harness.ROOT, check=False)
        state = "done" if done.returncode == 0 else "FAILED"
        print(f"== {name}: {state} in {time.perf_counter() - start:.0f} s", file=sys.stderr, flush=True)
        failed += [name] * (done.returncode != 0)
    if failed:
        print(f"== failed: {', '.join(failed)}", file=sys.stderr)
    return len(failed)


if __name__ == "__main__":
    typer.run(main)
