"""Intervals: how many hold the truth, whether replication tells true components from others, and what they cost.

`python -m benchmarks intervals --only "GaussianMixture diag"` measures one section and keeps the others.
"""

from __future__ import annotations

import time
import warnings
from functools import partial
from typing import Any

import numpy as np

import odeco
from benchmarks import harness, provenance
from benchmarks.intervals_cases import CASES, Case
from benchmarks.provenance import Result, Section
from odeco.models.cards import known_card
from odeco.uncertainty.opened import open_again
from odeco.uncertainty.replication import replication_of_rows

NAME = "intervals"
# The constants of the intervals were chosen on seeds from 1000 on: figures come from others.
FIRST_SEED = 5000
DATA_SETS = 200
REPLICATION_SETS = 10
EXTRA = (1, 2)  # components too many; of three, half as many again are two
# Models whose number of components cannot be larger than what the data have.
_FIXED = ("DawidSkene",)
_LEVEL = 0.95
_TURNS = 3
GOAL = (0.93, 0.97)


def run(*, quick: bool = False, only: list[str] | None = None) -> dict[str, Section]:
    """All sections, or some `only`; `quick` takes fewer data sets."""
    measurements = {name: partial(measure, quick) for name, measure in SECTIONS.items()}
    packages = ["numpy", "scipy", "scikit-learn"]
    return provenance.measure(
        measurements, only, packages, lambda name: ("uncertainty", "fitting/free.py"), quick=quick
    )


def _coverage(case: Case, quick: bool) -> list[dict[str, Any]]:
    """For both sizes the share of intervals that hold the truth, attribute by attribute."""
    n_sets = 5 if quick else case.n_sets or DATA_SETS
    with harness.one_thread(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [_covered(case, n, n_sets) for n in case.sizes[: 1 if quick else 2]]


def _covered(case: Case, n: int, n_sets: int) -> dict[str, Any]:
    shares: dict[str, list[float]] = {name: [] for name in case.truth}
    methods, failed = set(), 0
    for seed in range(FIRST_SEED, FIRST_SEED + n_sets):
        X, given = case.draw(np.random.default_rng(seed), n)
        try:
            model = case.make(seed).fit(X, **given)
            found = odeco.intervals(model, X, random_state=seed, replication=False, **given, **case.options)
        except ValueError:
            failed += 1
            continue
        methods.add(found.method)
        order = case.order(model)
        for name in case.truth:
            shares[name].append(_share(case, found, name, order))
    return {"n": n, "sets": n_sets, "failed": failed, "methods": sorted(methods), "shares": shares}


def _share(case: Case, found: odeco.Intervals, name: str, order: Any) -> float:
    """The share of the numbers of an attribute whose intervals hold the truth; none that the model fixes."""
    truth, low, high = (_items(each) for each in (case.truth[name], found.low[name], found.high[name]))
    inside = []
    for true, least, most in zip(truth, low, high, strict=True):
        true = case.permute(name, true, order)
        inside.append(((least <= true + 1e-12) & (true <= most + 1e-12))[most > least])
    return float(np.concatenate(inside).mean())


def _items(value: Any) -> list[Any]:
    return [np.asarray(item) for item in value] if isinstance(value, list) else [np.asarray(value)]


def _replication(quick: bool) -> list[dict[str, Any]]:
    """Replication of components of fits that have too many, true ones apart from the others."""
    rows = []
    with harness.one_thread(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, case in CASES.items():
            if name not in _FIXED and case.replicates:
                rows += [_told_apart(case, extra, 2 if quick else REPLICATION_SETS) for extra in EXTRA]
    return rows


def _told_apart(case: Case, extra: int, n_sets: int) -> dict[str, Any]:
    true, spurious = [], []
    for seed in range(FIRST_SEED, FIRST_SEED + n_sets):
        X, given = case.draw(np.random.default_rng(seed), case.sizes[1])
        model = case.make(seed).set_params(n_components=3 + extra).fit(X, **given)
        data, rng = open_again(known_card(model), model, X, given.get("lengths"), None), np.random.default_rng(seed)
        partners = set(case.partners(model).tolist())
        for place, value in enumerate(replication_of_rows(data.model, data.units(rng), rng)):
            (true if place in partners else spurious).append(float(value))
    return {"model": case.name, "extra": extra, "true": true, "spurious": spurious}


def area(true: list[float], spurious: list[float]) -> float:
    """The chance that a true component replicates better than one that is not."""
    first, second = np.array(true)[:, None], np.array(spurious)
    return float(np.mean((first > second) + 0.5 * (first == second)))


def _cost(quick: bool) -> list[dict[str, Any]]:
    """A hundred replicates of mixtures, in units of a fit: seconds of all processors."""
    rows = []
    with harness.one_thread(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in ("GaussianMixture spherical", "GaussianMixture diag", "ProductMixture mixed", "MultiViewMixture"):
            case = CASES[name]
            X, given = case.draw(np.random.default_rng(FIRST_SEED), 1000 if quick else 20_000)
            model = case.make(0).fit(X, **given)
            runs = {
                "fit": lambda case=case, X=X: case.make(0).fit(X),
                "sandwich": lambda model=model, X=X: odeco.intervals(model, X, random_state=0),
                "replicates": lambda model=model, X=X: odeco.intervals(model, X, method="replicates", random_state=0),
            }
            rows.append({"model": name, "n": len(X[0]) if isinstance(X, list) else len(X), **_seconds(runs)})
    return rows


def _seconds(runs: dict[str, Any]) -> dict[str, float]:
    """The least of some runs in turn: what else the machine does only adds."""
    found = dict.fromkeys(runs, np.inf)
    for _ in range(_TURNS):
        for name, function in runs.items():
            start = time.process_time()
            function()
            found[name] = min(found[name], time.process_time() - start)
    return found


SECTIONS: dict[str, Any] = {
    **{name: partial(_coverage, case) for name, case in CASES.items()},
    "replication": _replication,
    "cost": _cost,
}


def report(result: Result) -> None:
    """Write the tables of the page."""
    harness.write_between(harness.ROOT / "docs" / "intervals.md", f"benchmark:{NAME}", docs_tables(result))


def docs_tables(result: Result) -> str:
    """All tables that there are results for, and where they come from."""
    parts = []
    covered = {name: result[name] for name in CASES if name in result}
    if covered:
        parts.append(f"Share of {_LEVEL:.0%} intervals that hold the truth, bold outside of 93 to 97 %:")
        parts.append(_coverage_table(covered))
    if rows := result.get("replication"):
        parts += ["Replication of components of fits with too many, at the larger size:", _replication_table(rows)]
    if rows := result.get("cost"):
        parts += ["Seconds of all processors, replication by halves included:", _cost_table(rows)]
    return "\n\n".join([*parts, result.told(), result.machines()])


def _coverage_table(covered: dict[str, list[dict[str, Any]]]) -> str:
    rows = []
    for name, sizes in covered.items():
        for attribute in sizes[0]["shares"]:
            cells = [_share_cell(size["shares"][attribute]) for size in sizes]
            numbers = ", ".join(f"{size['n']:,}" for size in sizes)
            sets = str(max(size["sets"] for size in sizes))
            method = ", ".join(sorted({method for size in sizes for method in size["methods"]}))
            rows.append([name, method, f"`{attribute}`", numbers, sets, *cells])
    return harness.markdown_table(["model", "method", "attribute", "sizes", "data sets", "smaller", "larger"], rows)


def _share_cell(shares: list[float]) -> str:
    """Mean over data sets, and its error: intervals of one data set are not independent of each other."""
    if not shares:
        return "none"
    mean, error = float(np.mean(shares)), float(np.std(shares) / np.sqrt(len(shares)))
    text = f"{100 * mean:.1f} % ± {100 * error:.1f}"
    return text if GOAL[0] <= mean <= GOAL[1] else f"**{text}**"


def _replication_table(rows: list[dict[str, Any]]) -> str:
    return harness.markdown_table(
        ["model", "too many", "true: median", "others: median", "area under the curve"],
        [
            [
                row["model"],
                str(row["extra"]),
                f"{np.median(row['true']):.2f}",
                f"{np.median(row['spurious']):.2f}",
                f"{area(row['true'], row['spurious']):.3f}",
            ]
            for row in rows
        ],
    )


def _cost_table(rows: list[dict[str, Any]]) -> str:
    return harness.markdown_table(
        ["model", "rows", "fit", "sandwich", "100 replicates", "in fits"],
        [
            [
                row["model"],
                f"{row['n']:,}",
                *(f"{row[name]:.2f} s" for name in ("fit", "sandwich", "replicates")),
                f"{row['replicates'] / row['fit']:.1f}",
            ]
            for row in rows
        ],
    )
