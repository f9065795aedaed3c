"""How many components: the number that `n_components="auto"` chooses on data drawn from every model, and on real data
beside what halves and the peers say; what the choice costs.

`python -m benchmarks choice --only ICA` measures one section (a model that is drawn from, "real tables" and the like,
or "cost") and keeps the others. Seconds are those of all processors.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import odeco
from benchmarks import choice_real, harness, provenance
from benchmarks.choice_data import DRAWN
from benchmarks.choice_real import several
from benchmarks.provenance import Result, Section
from benchmarks.topics import load

NAME = "choice"
N_DRAWS = 20  # of each model and size
FIRST_SEED = 11_000  # none that a rule or a number was chosen by: those were 100 to 139 (and 7,000 to 7,005 before)
TOPICS = range(2, 31)


def _drawn(model: str, quick: bool) -> list[dict[str, Any]]:
    drawn, seeds = DRAWN[model], range(FIRST_SEED, FIRST_SEED + (2 if quick else N_DRAWS))
    sizes = drawn.sizes[: 1 if quick else None]
    return [{"model": model, "n": n, "seed": seed, **_one(drawn, n, seed)} for n in sizes for seed in seeds]


def _one(drawn: Any, n: int, seed: int) -> dict[str, Any]:
    rng = np.random.default_rng([seed, n])
    k = int(rng.integers(2, 7))
    rows, start = drawn.draw(rng, k, n), time.process_time()
    model = drawn.make("auto").fit(rows)
    plausible = [int(each) for each in model.diagnostics_.details["choice"].plausible]
    seconds = time.process_time() - start
    return {"k": k, "chosen": int(model.n_components_), "plausible": plausible, "seconds": seconds}


def _cost(quick: bool) -> list[dict[str, Any]]:
    return [_cost_of(name) for name in (("sotu",) if quick else ("debian", "wordnet_glosses", "sotu"))]


def _cost_of(name: str) -> dict[str, Any]:
    """Of topics: one fit of 30 of them, the choice among 2 to 30, and the choice with a look at every number."""
    documents, model = load(name), odeco.LatentDirichletAllocation(TOPICS[-1], random_state=0)
    fit, _ = _seconds(lambda: model.fit(documents))
    run: dict[str, Any] = {"data": name, "n": int(documents.shape[0]), "fit": fit}
    for way, every in (("choice", False), ("every", True)):
        run[way], found = _seconds(partial(odeco.choose_components, model, documents, TOPICS, every=every))
        run[f"{way}_best"], run[f"{way}_plausible"] = found.best, list(found.plausible)
    return run


def _seconds(call: Callable[[], Any]) -> tuple[float, Any]:
    start = time.process_time()
    found = call()
    return time.process_time() - start, found


SECTIONS: dict[str, Callable[[bool], Any]] = {model: partial(_drawn, model) for model in DRAWN}
SECTIONS |= {group: partial(choice_real.measure, group) for group in choice_real.GROUPS}
SECTIONS |= {"cost": _cost}


def run(*, quick: bool = False, only: list[str] | None = None) -> dict[str, Section]:
    """All measurements, or some sections `only`."""

    def alone(measure: Callable[[bool], Any]) -> Any:
        with warnings.catch_warnings(), harness.one_thread():
            warnings.simplefilter("ignore")
            return measure(quick)

    measurements = {name: lambda measure=measure: alone(measure) for name, measure in SECTIONS.items()}
    packages = ["numpy", "scipy", "scikit-learn", "stepmix", "hmmlearn", "tomotopy"]
    return provenance.measure(measurements, only, packages, lambda name: ("fitting/choice", "models"), quick=quick)


def report(result: Result) -> None:
    """Write the tables of the page."""
    harness.write_between(harness.ROOT / "docs" / "choosing_k.md", f"benchmark:{NAME}", docs_tables(result))


def docs_tables(result: Result) -> str:
    """All tables that there are results for, and where they come from."""
    drawn = [run for model in DRAWN if model in result for run in result[model]]
    made = [_drawn_table(drawn)] if drawn else []
    real = [run for group in choice_real.GROUPS if group in result for run in result[group]]
    made += [choice_real.table(real)] if real else []
    made += [_cost_table(result["cost"])] if "cost" in result else []
    return "\n\n".join([*made, result.told(), result.machines()])


def _drawn_table(runs: list[dict[str, Any]]) -> str:
    rows = []
    for model in dict.fromkeys(run["model"] for run in runs):
        of_model = [run for run in runs if run["model"] == model]
        cells = [_hits([run for run in of_model if run["n"] == n]) for n in sorted({run["n"] for run in of_model})]
        rows.append([f"`{model}`", *cells, _share(of_model, 0), _share(of_model, 1)])
    header = ["drawn from", "small", "middle", "large", "true k chosen", "at most one off"]
    return harness.markdown_table(header, rows)


def _hits(runs: list[dict[str, Any]]) -> str:
    seconds = np.median([run["seconds"] for run in runs])
    return f"{sum(run['chosen'] == run['k'] for run in runs)} of {len(runs)} (n = {runs[0]['n']:,}, {seconds:.2g} s)"


def _share(runs: list[dict[str, Any]], off: int) -> str:
    return f"{100 * np.mean([abs(run['chosen'] - run['k']) <= off for run in runs]):.1f} %"


def _cost_table(runs: list[dict[str, Any]]) -> str:
    rows = [
        [
            run["data"],
            f"{run['n']:,}",
            f"{run['fit']:.1f} s",
            f"{run['choice'] / run['fit']:.1f}x",
            several(run["choice_best"], run["choice_plausible"]),
            f"{run['every'] / run['fit']:.1f}x",
            several(run["every_best"], run["every_plausible"]),
        ]
        for run in runs
    ]
    header = ["corpus", "documents", "one fit of 30 topics", "choice among 2 to 30", "chosen", "every number looked at",
              "chosen then"]  # fmt: skip
    return harness.markdown_table(header, rows)
