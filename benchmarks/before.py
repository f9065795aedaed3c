"""Today's tree beside an older commit: default fits of every model on the same data, in turns, one thread.

The older commit is cloned and installed in an environment of its own, with what it required then.
"""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
import tempfile
import venv
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks import harness, provenance
from benchmarks.cases import CASES, use_threads
from benchmarks.overview import FIRST_SEED, SEEDS
from benchmarks.provenance import Result, Section

NAME = "before"
BEFORE = "8650e4f"  # the last commit whose loops were compiled at run time
ROUNDS = 3  # of each tree, in turns
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "topics": ("LatentDirichletAllocation", {}),
    "one topic each": ("SingleTopicModel", {}),
    "spheres": ("GaussianMixture", {}),
    "latent classes": ("ProductMixture", {"family": "bernoulli"}),
    "views": ("MultiViewMixture", {}),
    "crowd": ("DawidSkene", {}),
    "symbols": ("CategoricalHMM", {}),
    "measurements": ("GaussianHMM", {}),
    "counts": ("PoissonHMM", {}),
    "signals": ("ICA", {}),
}
# What either tree runs, with nothing of this package: a fit that loads, then the data sets one after the other.
FITS = """
import json, pickle, sys, time, warnings
import odeco
warnings.simplefilter("ignore")
with open(sys.argv[1], "rb") as file:
    model, options, data = pickle.load(file)
def seconds(rows, k, seed):
    start = time.perf_counter()
    getattr(odeco, model)(k, random_state=seed, **options).fit(rows)
    return time.perf_counter() - start
seconds(*data[0])
print(json.dumps([seconds(*each) for each in data[1:]]))
"""


def run(*, quick: bool = False, only: list[str] | None = None) -> dict[str, Section]:
    """All models, or some `only`; `quick` takes small data and one round."""
    use_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        interpreter = _installed(Path(folder)) if provenance.choose(MODELS, only) else ""
        measurements = {name: partial(_measure, name, interpreter, quick) for name in MODELS}
        settings = {"before": BEFORE, "seeds": SEEDS, "threads": 1}
        return provenance.measure(
            measurements, only, ["numpy", "scipy"], provenance.code, settings=settings, quick=quick
        )


def _installed(folder: Path) -> str:
    """The interpreter of a new environment that has the older commit and nothing else."""
    clone, environment = folder / "clone", folder / "environment"
    subprocess.run(["git", "clone", "--quiet", str(harness.ROOT), str(clone)], check=True)
    subprocess.run(["git", "checkout", "--quiet", BEFORE], cwd=clone, check=True)
    venv.create(environment, with_pip=True)
    interpreter = str(environment / "bin" / "python")
    subprocess.run([interpreter, "-m", "pip", "install", "--quiet", str(clone), "pandas", "pyarrow"], check=True)
    return interpreter


def _measure(name: str, interpreter: str, quick: bool) -> dict[str, list[list[float]]]:
    """By tree and round the seconds of a fit to each data set."""
    with tempfile.NamedTemporaryFile() as file:
        pickle.dump((*MODELS[name], _data(name, quick)), file)
        file.flush()
        trees = {"before": interpreter, "now": sys.executable}
        rounds = 1 if quick else ROUNDS
        turns = [{who: _seconds(python, file.name) for who, python in trees.items()} for _ in range(rounds)]
    return {who: [turn[who] for turn in turns] for who in trees}


def _data(name: str, quick: bool) -> list[tuple[Any, int, int]]:
    """What `overview` fits: rows, k and the seed of the fit; the first data set is there to load everything."""
    case = CASES[name]
    drawn = [case.draw(*(case.quick_sizes if quick else case.sizes), FIRST_SEED - 1 + i) for i in range(SEEDS + 1)]
    return [(data.train, data.k, max(i - 1, 0)) for i, data in enumerate(drawn)]


def _seconds(interpreter: str, path: str) -> list[float]:
    command = [interpreter, "-c", FITS, path]
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=Path(path).parent).stdout
    found: list[float] = json.loads(output)
    return found


def report(result: Result) -> None:
    """The table of the page on small and first fits."""
    harness.write_between(harness.ROOT / "docs" / "instant.md", f"benchmark:{NAME}", docs_tables(result))


def docs_tables(result: Result) -> str:
    best = {name: _best(result[name]) for name in MODELS if name in result}
    together = {who: [spent for times in best.values() for spent in times[who]] for who in ("before", "now")}
    rows = [_row(f"`{MODELS[name][0]}`", times) for name, times in best.items()] + [_row("all", together)]
    header = ["model", f"{SEEDS} fits, commit {BEFORE}", "now", "times as fast", "slowest before", "slowest now"]
    return f"{harness.markdown_table(header, rows)}\n\n{result.told()}\n\n{result.machines()}"


def _best(runs: dict[str, list[list[float]]]) -> dict[str, list[float]]:
    """Of each data set the best round: other programs only add to it."""
    return {who: [min(rounds) for rounds in zip(*runs[who], strict=True)] for who in runs}


def _row(name: str, times: dict[str, list[float]]) -> list[str]:
    before, now = times["before"], times["now"]
    cells = [f"{sum(before):.2f} s", f"{sum(now):.2f} s", f"{sum(before) / sum(now):.2f}"]
    return [name, *cells, f"{max(before):.2f} s", f"{max(now):.2f} s"]
