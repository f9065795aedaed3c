"""One default fit against the best of ten plain starts of the peers, on every open real data set, model and k.

`python -m benchmarks trust --only fits` measures ours alone, some minutes; the peers do not depend on our code.
`counts` asks how many components a fit suggests, `ablation` what each part of the search is worth.
The section `before` is a copy of `fits` from before anything was done about lost cells; nothing measures it again.
"""

from __future__ import annotations

import logging
import os
import sys
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from functools import partial
from typing import Any

from threadpoolctl import threadpool_limits

from benchmarks import harness, provenance
from benchmarks.provenance import CODE, Section
from benchmarks.trust_ablation import WAYS, searching
from benchmarks.trust_counts import counts
from benchmarks.trust_data import Cell, cells
from benchmarks.trust_models import ERRORS, Problem, problem
from benchmarks.trust_tables import docs_tables, report
from odeco import MomentWarning

__all__ = ["docs_tables", "report", "run"]

SEEDS = 3  # of our own fit


def run(*, quick: bool = False, only: list[str] | None = None) -> dict[str, Section]:
    """Both sections, or one `only`; one thread for everyone, `quick` takes a few small cells."""
    if not os.environ.get("ODECO_DATA"):
        raise ValueError("ODECO_DATA is not set: this benchmark is of real data and has nothing to measure.")
    packages = ["numpy", "scipy", "scikit-learn", "hmmlearn", "tomotopy", "python-picard"]
    measurements: dict[str, Callable[[], Any]] = {name: partial(measure, name, quick) for name in SECTIONS}
    measurements["counts"] = partial(counts, quick=quick)
    with harness.one_thread():
        settings = {"seeds": SEEDS, "cells": len(cells(quick=quick))}
        return provenance.measure(measurements, only, packages, _code, settings=settings, quick=quick)


def _code(section: str) -> tuple[str, ...]:
    """Of ours the formulas alone judge the peers."""
    models = [name for name in CODE if name not in ("words", "formats", "partitions")]
    return ("completion.py", "metrics.py") if section == "peers" else provenance.code(*models)


def measure(section: str, quick: bool) -> list[dict[str, Any]]:
    """A row for each cell, and on standard error how far it is; a process for each core, as only CPU seconds count."""
    rows, begin = [], time.perf_counter()
    with ProcessPoolExecutor(harness.cores(), initializer=threadpool_limits, initargs=(1,)) as pool:
        todo = [cell for cell in cells(quick=quick) if section != "ablation" or _is_searched(cell)]
        for cell, row in zip(todo, pool.map(partial(measure_cell, section), todo), strict=True):
            rows.append(row)
            spent = time.perf_counter() - begin
            print(f"{section} {spent:.0f} s: {label(cell)} {sum(row['seconds']):.1f} s", file=sys.stderr, flush=True)
    return rows


def measure_cell(section: str, cell: Cell) -> dict[str, Any]:
    logging.getLogger("hmmlearn").setLevel(logging.CRITICAL)
    return cell.plain() | SECTIONS[section](problem(cell))


def _is_searched(cell: Cell) -> bool:
    """Tuning data of models whose starts are searched for."""
    return cell.group == "tuning" and cell.estimator not in ERRORS


def label(cell: Cell) -> str:
    return f"{cell.estimator}, {cell.data}, k = {cell.k}"


def _peers(found: Problem) -> dict[str, Any]:
    """Every start by itself: value, least variance, CPU seconds."""
    runs = [_fit(start, found) for start in found.starts]
    return {key: [run[key] for run in runs] for key in ("value", "least_variance", "seconds")}


def _ours(found: Problem) -> dict[str, Any]:
    """The default fit with each seed, and what it says of itself."""
    runs = [_fit(partial(found.ours, seed), found) for seed in range(SEEDS)]
    keys = ("value", "least_variance", "seconds", "verdict", "warnings", "luck", "method")
    return {key: [run[key] for run in runs] for key in keys}


def _ablation(found: Problem) -> dict[str, Any]:
    """One fit for each way to search."""
    rows = {}
    for way in WAYS:
        with searching(way):
            run = _fit(partial(found.ours, 0), found)
        rows[way] = {key: run[key] for key in ("value", "seconds")}
    return rows | {"seconds": [run["seconds"] for run in rows.values()]}


def _fit(fit: Callable[[], Any], found: Problem) -> dict[str, Any]:
    """One fit: value, least variance and CPU seconds; of ours the verdict, the number of warnings and the way it took.

    A fit that fails has no value, and its error in place of the way.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        begin = time.process_time()
        try:
            model = fit()
        except (ValueError, ArithmeticError) as error:
            return {"seconds": time.process_time() - begin, **FAILED, "method": str(error)[:200]}
        spent = time.process_time() - begin
        raised = sum(issubclass(warning.category, MomentWarning) for warning in caught)
        judged = found.judge(model)
    return {"seconds": spent, "warnings": raised, **asdict(judged), **_said(model)}


def _said(model: Any) -> dict[str, Any]:
    diagnostics = getattr(model, "diagnostics_", None)
    if diagnostics is None:
        return {}
    verdict = diagnostics.verdict
    luck = any("another seed" in reason.text for reason in verdict.reasons)
    return {"verdict": verdict.trust.name, "luck": luck, "method": diagnostics.method}


FAILED = {"value": None, "least_variance": None, "verdict": "FAILED", "warnings": 0, "luck": True}
SECTIONS: dict[str, Callable[[Problem], dict[str, Any]]] = {
    "peers": _peers,
    "fits": _ours,
    "ablation": _ablation,
}
