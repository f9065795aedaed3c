"""`python -m benchmarks NAME`: measure, write the result file, then the tables and figures made from it."""

from __future__ import annotations

from importlib import import_module
from typing import Annotated

import typer

from benchmarks import harness

NAMES = ["decomposition", "topics", "gaussian_mixture", "product_mixture", "multiview", "hmm", "ica"]


def main(
    name: Annotated[str, typer.Argument(help=f"One of: {', '.join(NAMES)}.")],
    quick: Annotated[bool, typer.Option(help="Fewer seeds and sizes; prints, writes nothing.")] = False,
    only: Annotated[list[str] | None, typer.Option(help="Measure these sections; the others stay as stored.")] = None,
    report_only: Annotated[bool, typer.Option(help="Rewrite tables and figures from the stored results.")] = False,
) -> None:
    if name not in NAMES:
        raise typer.BadParameter(f"{name!r} is not one of {', '.join(NAMES)}")
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


if __name__ == "__main__":
    typer.run(main)
