"""`python -m benchmarks NAME`: measure, write the result file, then the tables and figures made from it.

`python -m benchmarks all` does so for every name, each section in a process of its own; with `--quick` it prints those
benchmarks that have every model in them, small.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
import traceback
from importlib import import_module
from typing import Annotated

import typer

from benchmarks import harness, provenance
from benchmarks.provenance import Section

NAMES = [
    "overview",
    "decomposition",
    "topics",
    "gaussian_mixture",
    "product_mixture",
    "multiview",
    "hmm",
    "ica",
    "text",
    "files",
    "curves",
    "scaling",
    "distributed",
    "trust",
    "instant",
    "before",
    "choice",
    "intervals",
]
QUICK = ["overview", "curves", "scaling"]  # what `all --quick` runs: three minutes on two cores


def main(
    name: Annotated[str, typer.Argument(help=f"all, or one of: {', '.join(NAMES)}.")],
    quick: Annotated[bool, typer.Option(help="Fewer seeds and sizes; prints, writes nothing.")] = False,
    only: Annotated[list[str] | None, typer.Option(help="Measure these sections; the others stay as stored.")] = None,
    report_only: Annotated[bool, typer.Option(help="Rewrite tables and figures from the stored results.")] = False,
    ages: Annotated[bool, typer.Option(help="Print how old each section is; measure nothing.")] = False,
    raw: Annotated[bool, typer.Option(help="Print the result as JSON; write nothing.")] = False,
) -> None:
    if ages:
        print("\n".join(filter(None, map(provenance.ages, NAMES if name == "all" else [name]))))
        return
    if name == "all":
        raise typer.Exit(everything(quick=quick, report_only=report_only))
    if name not in NAMES:
        raise typer.BadParameter(f"{name!r} is not one of all, {', '.join(NAMES)}")
    bench = import_module(f"benchmarks.{name}")
    if report_only:
        bench.report(provenance.load(name))
        return
    sections = bench.run(quick=quick, only=only)
    if raw:
        print(json.dumps(provenance.plain(sections)))
    elif quick:
        print(bench.docs_tables(provenance.tables(name, sections)))
    else:
        publish(name, sections)


def publish(name: str, sections: dict[str, Section]) -> None:
    """The result file, in which sections that were not measured stay as they are, then what is made from it."""
    bench = import_module(f"benchmarks.{name}")
    provenance.save(name, provenance.stored(name) | sections)
    result = provenance.load(name)  # as any later report has it, rows in the same order
    bench.report(result)
    print(bench.docs_tables(result))


def everything(*, quick: bool, report_only: bool) -> int:
    """One benchmark after the other, each section in its own process; the number of benchmarks that failed."""
    failed = []
    for name in QUICK if quick else NAMES:
        if report_only and not provenance.stored(name):
            continue
        start = time.perf_counter()
        try:
            if quick or report_only:
                option = "--quick" if quick else "--report-only"
                subprocess.run([sys.executable, "-m", "benchmarks", name, option], cwd=harness.ROOT, check=True)
            else:
                publish(name, by_section(name))
            state = "done"
        except Exception:  # hours of others must not be lost for one
            traceback.print_exc()
            failed.append(name)
            state = "FAILED"
        print(f"== {name}: {state} in {time.perf_counter() - start:.0f} s", file=sys.stderr, flush=True)
    if failed:
        print(f"== failed: {', '.join(failed)}", file=sys.stderr)
    return len(failed)


def by_section(name: str) -> dict[str, Section]:
    """The sections of a benchmark, put together from processes that measure one each."""
    names = getattr(import_module(f"benchmarks.{name}"), "SECTIONS", ())
    if not names:
        return provenance.read(harness.child("benchmarks", name, "--raw"))
    sections: dict[str, Section] = {}
    for section in names:
        sections |= provenance.read(harness.child("benchmarks", name, "--raw", "--only", section))
    return sections


if __name__ == "__main__":
    typer.run(main)
