"""From the first call: import, first fit of a process and small fits, beside the peers; what an installation takes.

`python -m benchmarks instant --only fits` measures some sections and keeps the others. Seconds are those of all
processors, which the load of other programs changes least.
"""

from __future__ import annotations

import json
import re
import sys
import time
import tomllib
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module, metadata
from typing import Any

import numpy as np

from benchmarks import harness, provenance
from benchmarks.provenance import Result, Section

NAME = "instant"
SIZES = (300, 1_000, 10_000)
QUICK_SIZES = (300,)
REPEATS = 3
COMMANDS = {
    "import numpy": "import numpy",
    "import odeco": "import odeco",
    "import sklearn.base": "import sklearn.base",
    "odeco --help": "from odeco.cli import main; main(['--help'])",
    "odeco fit lda --help": "from odeco.cli import main; main(['fit', 'lda', '--help'])",
}
CLOCK = """
import contextlib, io, time
with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()):
    {}
print(time.process_time())
"""


@dataclass(frozen=True)
class Small:
    """Small data of a model, drawn by numpy alone: nothing else may be loaded before the clock runs."""

    model: str
    draw: Callable[[np.random.Generator, int], Any]
    arguments: dict[str, Any] = field(default_factory=dict)
    peer: str = ""  # module:class, and what it is called with
    peer_arguments: dict[str, Any] = field(default_factory=dict)
    k: int = 3


def _spheres(rng: np.random.Generator, n: int) -> Any:
    return rng.normal(size=(n, 4)) + 4.0 * np.eye(3, 4)[rng.integers(3, size=n)]


def _documents(rng: np.random.Generator, n: int) -> Any:
    topics, mixing = rng.dirichlet(np.full(40, 0.1), 3), rng.dirichlet(np.full(3, 0.2), n)
    return rng.multinomial(50, mixing @ topics)


def _one_topic_each(rng: np.random.Generator, n: int) -> Any:
    return rng.multinomial(20, rng.dirichlet(np.full(40, 0.3), 3)[rng.integers(3, size=n)])


def _answers(rng: np.random.Generator, n: int) -> Any:
    return (rng.random((n, 9)) < rng.uniform(0.1, 0.9, (3, 9))[rng.integers(3, size=n)]).astype(float)


def _views(rng: np.random.Generator, n: int) -> Any:
    hidden = rng.integers(3, size=n)
    return [rng.normal(size=(n, 4)) + 3.0 * rng.normal(size=(3, 4))[hidden] for _ in range(3)]


def _votes(rng: np.random.Generator, n: int) -> Any:
    truth = rng.integers(2, size=(n, 1))
    return np.where(rng.random((n, 6)) < 0.8, truth, 1 - truth)


def _states(rng: np.random.Generator, n: int) -> Any:
    return np.cumsum(rng.random(n) < 0.1) % 3


def _symbols(rng: np.random.Generator, n: int) -> Any:
    levels = rng.dirichlet(np.full(8, 0.3), 3).cumsum(axis=1)[_states(rng, n)]
    return np.minimum((rng.random((n, 1)) > levels).sum(axis=1), 7)[:, None]


def _measurements(rng: np.random.Generator, n: int) -> Any:
    return rng.normal(size=(n, 2)) + 3.0 * _states(rng, n)[:, None]


def _counts(rng: np.random.Generator, n: int) -> Any:
    return rng.poisson(1.0 + 5.0 * _states(rng, n))[:, None]


def _signals(rng: np.random.Generator, n: int) -> Any:
    return rng.uniform(-1.0, 1.0, (n, 4)) @ rng.normal(size=(4, 4))


SMALL = {
    small.model: small
    for small in (
        Small("LatentDirichletAllocation", _documents, {}, "sklearn.decomposition:LatentDirichletAllocation"),
        Small("SingleTopicModel", _one_topic_each),
        Small("GaussianMixture", _spheres, {}, "sklearn.mixture:GaussianMixture", {"covariance_type": "spherical"}),
        Small(
            "ProductMixture",
            _answers,
            {"family": "bernoulli"},
            "stepmix:StepMix",
            {"measurement": "binary", "verbose": 0, "progress_bar": 0},
        ),
        Small("MultiViewMixture", _views),
        Small("DawidSkene", _votes, k=2),
        Small("CategoricalHMM", _symbols, {}, "hmmlearn.hmm:CategoricalHMM", {"n_iter": 100}),
        Small("GaussianHMM", _measurements, {}, "hmmlearn.hmm:GaussianHMM", {"n_iter": 100}),
        Small("PoissonHMM", _counts, {}, "hmmlearn.hmm:PoissonHMM", {"n_iter": 100}),
        Small("ICA", _signals, {}, "sklearn.decomposition:FastICA", k=4),
    )
}


def fit_in_this_process(model: str, who: str, sizes: list[int]) -> dict[str, Any]:
    """Seconds of the import beyond scikit-learn's base, of the first fit, and of later ones by size."""
    import sklearn.base

    small, start = SMALL[model], time.process_time()
    path = small.peer if who == "peer" else f"odeco:{model}"
    estimator = getattr(import_module(path.split(":")[0]), path.split(":")[1])
    imported = time.process_time() - start
    arguments = small.peer_arguments if who == "peer" else small.arguments
    arguments = arguments | ({"effort": "quick"} if who == "quick" else {})
    warnings.simplefilter("ignore")  # advice on small data, of both

    def fits(n: int, repeats: int) -> list[float]:
        data = small.draw(np.random.default_rng(0), n)
        unfitted = [estimator(small.k, **arguments, random_state=seed) for seed in range(repeats)]
        return [_processor_seconds(sklearn.base.clone(each).fit, data) for each in unfitted]

    first = fits(1_000, 1)[0]
    return {"import": imported, "first": first, "later": {str(n): fits(n, REPEATS) for n in sizes}}


def _processor_seconds(call: Callable[[Any], Any], data: Any) -> float:
    start = time.process_time()
    call(data)
    return time.process_time() - start


def _contenders(small: Small) -> list[str]:
    quick = ["quick"] if small.model not in ("LatentDirichletAllocation", "ICA") else []  # these never search
    return ["odeco", *quick, *(["peer"] if small.peer else [])]


def _fits(quick: bool) -> list[dict[str, Any]]:
    sizes = ",".join(map(str, QUICK_SIZES if quick else SIZES))
    return [
        {"model": model, "who": who, **harness.child("benchmarks.instant", model, who, sizes)}
        for model, small in SMALL.items()
        for who in _contenders(small)
    ]


def _start(quick: bool) -> dict[str, list[float]]:
    """Seconds of whole processes, Python itself among them."""
    return {
        name: [harness.child_code(CLOCK.format(statement)) for _ in range(1 if quick else 5)]
        for name, statement in COMMANDS.items()
    }


def _size(quick: bool) -> dict[str, float]:
    """Bytes of odeco and of each package that it requires without extras, from the records of what was installed."""
    project = tomllib.loads((harness.ROOT / "pyproject.toml").read_text())["project"]
    sizes = {"odeco": float(sum(f.stat().st_size for f in _own_files()))}
    waiting = list(project["dependencies"])
    while waiting:
        name = re.split(r"[^\w.-]", waiting.pop())[0].lower()
        try:
            found = metadata.distribution(name)
        except metadata.PackageNotFoundError:  # of another system: its marker is not ours
            continue
        if name not in sizes:
            sizes[name] = float(sum(file.size or 0 for file in found.files or ()))
            waiting += [each for each in found.requires or () if ";" not in each]
    return sizes


def _own_files() -> list[Any]:
    source = harness.ROOT / "src" / "odeco"
    return [f for f in source.rglob("*") if f.is_file() and "__pycache__" not in f.parts]


SECTIONS: dict[str, Callable[[bool], Any]] = {"start": _start, "fits": _fits, "size": _size}


def run(*, quick: bool = False, only: list[str] | None = None) -> dict[str, Section]:
    """All measurements, or some sections `only`."""
    measurements = {name: lambda measure=measure: measure(quick) for name, measure in SECTIONS.items()}
    packages = ["numpy", "scipy", "scikit-learn", "hmmlearn", "stepmix"]
    return provenance.measure(measurements, only, packages, lambda name: ("*.py",), quick=quick)


def report(result: Result) -> None:
    """Write the tables of the page."""
    harness.write_between(harness.ROOT / "docs" / "instant.md", f"benchmark:{NAME}", docs_tables(result))


def docs_tables(result: Result) -> str:
    """All tables that there are results for, and where they come from."""
    made = [table(result[name]) for name, table in TABLES.items() if name in result]
    return "\n\n".join([*made, result.told(), result.machines()])


def _start_table(runs: dict[str, list[float]]) -> str:
    rows = [[f"`{name}`", f"{min(runs[name]):.2f} s"] for name in COMMANDS]
    return harness.markdown_table(["a whole process, best of 5", "of all processors"], rows)


def _fits_table(runs: list[dict[str, Any]]) -> str:
    sizes = sorted(runs[0]["later"], key=int)  # files have them in the order of letters
    header = ["model", "who", "import", "first fit", *(f"later, n = {int(n):,}" for n in sizes)]
    return harness.markdown_table(header, [_fits_row(run, sizes) for run in runs])


def _fits_row(run: dict[str, Any], sizes: list[str]) -> list[str]:
    peer = SMALL[run["model"]].peer.replace(":", ".")
    who = {"odeco": "odeco", "quick": 'odeco, `effort="quick"`', "peer": f"`{peer}`"}[run["who"]]
    later = [f"{1000 * min(run['later'][n]):.0f} ms" for n in sizes]
    return [f"`{run['model']}`", who, f"{run['import']:.2f} s", f"{run['first']:.2f} s", *later]


def _size_table(runs: dict[str, float]) -> str:
    largest = sorted(runs.items(), key=lambda item: (-item[1], item[0]))
    rows = [["all", f"{sum(runs.values()) / 1e6:.0f} MB"], *([name, f"{size / 1e6:.1f} MB"] for name, size in largest)]
    return harness.markdown_table(["installed, without extras", "size"], rows)


TABLES: dict[str, Callable[[Any], str]] = {"start": _start_table, "fits": _fits_table, "size": _size_table}


if __name__ == "__main__":
    print(json.dumps(fit_in_this_process(sys.argv[1], sys.argv[2], [int(n) for n in sys.argv[3].split(",")])))
