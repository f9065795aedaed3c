"""Where the time of a fit goes: seconds of named functions while they run, and what they would take at the limit.

The limit of a stage is the larger of two times: its flops at the speed of a matrix product in the same precision, and
its bytes at the speed of memory, both measured in the same run with the same threads.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import wraps
from importlib import import_module
from inspect import isgeneratorfunction
from typing import Any
from unittest import mock

import numpy as np

import odeco
from benchmarks import harness
from benchmarks.cases import CASES
from benchmarks.loops import CVB0_FLOPS, document_loops

SEED = 500


@dataclass(frozen=True)
class Stage:
    """A function of the library, what it does, and the least work it must do.

    `work` takes the data and the fitted model and gives flops and bytes; `single` says in which precision.
    """

    place: str  # module:attribute
    label: str
    work: Callable[[Any, Any], tuple[float, float]]
    single: bool = True


def _nonzeros(data: Any) -> tuple[float, int, int]:
    return float(data.train.nnz), data.train.shape[0], data.k


def _directions(data: Any, model: Any) -> tuple[float, float]:
    """Two products C'(C R) with k + 10 columns, after the one made with the frequencies; 8 bytes a nonzero and pass."""
    z, _, k = _nonzeros(data)
    return 2 * 4 * z * (k + 10), 2 * 8 * z


def _triples(data: Any, model: Any) -> tuple[float, float]:
    """Projections of documents, then a Khatri-Rao product: k(k+1)/2 pairs times k for each document."""
    z, n, k = _nonzeros(data)
    return 2 * z * k + n * k * k * (k + 1), 8 * z + 4 * n * k


def _sweeps(data: Any, model: Any) -> tuple[float, float]:
    """Steps of EM (4 flops a nonzero and topic) and of CVB0: three of each in the first sweep, two in later ones.

    Counts are read once a sweep, expected counts of topics and their spreads read and written; topics stay in cache.
    """
    z, n, k = _nonzeros(data)
    steps, sweeps = 3 + 2 * (model.model_sweeps - 1), model.model_sweeps
    return (4 + CVB0_FLOPS) * z * k * steps, (8 * z + 16 * n * k) * sweeps


def _covariance(data: Any, model: Any) -> tuple[float, float]:
    n, d = data.train.shape
    return float(n * d * d), 8.0 * n * d


def _projection(data: Any, model: Any) -> tuple[float, float]:
    n, d = data.train.shape
    return 2.0 * n * d * (data.k - 1), 8.0 * n * d


def _moments(data: Any, model: Any) -> tuple[float, float]:
    """Third moments of the projected rows."""
    n, k = data.train.shape[0], data.k
    return float(n * k * k * (k + 1)), 4.0 * n * k


def _em(data: Any, model: Any) -> tuple[float, float]:
    """4 n k p flops a step: p = k on projected rows, d on whole ones; rows are read once a step."""
    n, d = data.train.shape
    details, k = model.diagnostics_.details, data.k
    few = int(details.get("projected_steps", 0))
    whole = max(model.n_iter_ - few, 0)
    return 4.0 * n * k * (few * k + whole * d), 4.0 * n * (few * k + whole * d)


def _symbol_moments(data: Any, model: Any) -> tuple[float, float]:
    n, k = len(data.train), data.k
    return 2.0 * n * k * k, 16.0 * n


def _baum_welch(data: Any, model: Any) -> tuple[float, float]:
    """Forward, backward and transitions: 6 k^2 flops a step and pass; forward variables are written and read."""
    n, k = len(data.train), data.k
    return 6.0 * n * k * k * model.n_iter_, (8.0 * k + 4) * n * model.n_iter_


def _whitened(data: Any, model: Any) -> tuple[float, float]:
    """Covariance, whitening, and fourth moments of pairs of coordinates."""
    n, d = data.train.shape
    pairs = data.k * (data.k + 1) / 2
    return n * d * d + 2.0 * n * d * data.k + n * pairs * pairs, 16.0 * n * d


def _separation(data: Any, model: Any) -> tuple[float, float]:
    """At least one pass over the whitened samples for every iteration."""
    n, k = data.train.shape[0], data.k
    return 4.0 * n * k * k * model.n_iter_, 4.0 * n * k * model.n_iter_


def _contractions(data: Any, model: Any) -> tuple[float, float]:
    """k^4 flops an iteration: half of a matrix product, because the tensor is symmetric."""
    k = data.k
    return float(model.n_iter) * k**3 * (k + 1), 4.0 * k**3 * model.n_iter / 2


def _nothing(data: Any, model: Any) -> tuple[float, float]:
    return 0.0, 0.0


STAGES: dict[str, list[Stage]] = {
    "tensor": [Stage("odeco.decomposition.methods:run_method", "orthogonal iteration", _contractions)],
    "topics": [
        Stage("odeco.models.topics.moments:directions", "directions of word pairs", _directions),
        Stage("odeco.models.topics.moments:pair_noise", "noise of the pairs", _nothing),
        Stage("odeco.models.topics.moments:_triples", "triples on them", _triples),
        Stage(
            "odeco.models.lda.estimator:LatentDirichletAllocation._theorem",
            "alpha0, decomposition, recovery",
            _nothing,
        ),
        Stage("odeco.refinement.streams:StreamedSweeps.sweep", "sweeps of CVB0", _sweeps),
        Stage("odeco.refinement.lda:finished", "prior of the proportions", _nothing),
    ],
    "spheres": [
        Stage("odeco.models.gaussian_mixture.passes:description_passes", "mean, covariance, directions", _covariance),
        Stage("odeco.moments.vectors:Projection.update_all", "projected rows", _projection),
        Stage("odeco.moments.vectors:ProjectedRows.moments", "third moments", _moments),
        Stage("odeco.models.gaussian_mixture.estimator:estimate", "decomposition, recovery", _nothing),
        Stage("odeco.models.gaussian_mixture.refine:_is_trusted", "rivals of the start, on samples", _nothing),
        Stage("odeco.models.gaussian_mixture.refine:_climbed", "EM", _em),
    ],
    "symbols": [
        Stage("odeco.fitting.estimator:MomentEstimator._find", "moments and theorem", _symbol_moments, False),
        Stage("odeco.models.hmm.base:best_start", "candidates", _nothing, False),
        Stage("odeco.models.hmm.base:baum_welch", "Baum-Welch", _baum_welch, False),
    ],
    "signals": [
        Stage("odeco.models.ica.estimator:channel_passes", "covariance, whitening, fourth cumulant", _whitened),
        Stage("odeco.models.ica.estimator:solve", "decomposition and separation", _separation),
    ],
}


def measure(name: str, quick: bool) -> dict[str, Any]:
    """The stages of one fit, the second of this process: everything is loaded."""
    case, stages = CASES[name], STAGES[name]
    sizes = case.quick_sizes if quick else case.sizes
    data = case.draw(*sizes, SEED)
    _fit(name, data)
    with _clocks(stages) as spent:
        start = time.perf_counter()
        model = _fit(name, data)
        total = time.perf_counter() - start
    rows: list[dict[str, Any]] = []
    for stage in stages:
        flops, size = stage.work(data, model)
        row = {"stage": stage.label, "seconds": spent[stage.place], "flops": flops, "bytes": size}
        rows.append(row | {"precision": "float32" if stage.single else "float64"})
    return {
        "sizes": list(sizes), "seconds": total, "stages": rows,
        "gemm float32": harness.gemm_speeds(np.float32), "gemm float64": harness.gemm_speeds(np.float64),
        "memory": harness.memory_speeds(4_000_000 if quick else 20_000_000),
        "loops": document_loops(quick) if name == "topics" else [],
    }  # fmt: skip


def with_limits(measured: dict[str, Any]) -> dict[str, Any]:
    """The stages with their limits at the median speeds of the machine, and everything else."""
    speeds = {name: float(np.median(measured[name])) for name in ("gemm float32", "gemm float64", "memory")}
    rows = [
        row | {"limit": max(row["flops"] / speeds[f"gemm {row['precision']}"], row["bytes"] / speeds["memory"])}
        for row in measured["stages"]
    ]
    rest = measured["seconds"] - sum(row["seconds"] for row in rows)
    rows.append({"stage": "everything else", "seconds": rest, "flops": 0.0, "bytes": 0.0, "limit": 0.0})
    return measured | speeds | {"stages": rows}


def _fit(name: str, data: Any) -> Any:
    """The fitted model itself, where `cases` gives what is left of it."""
    if name == "tensor":
        return odeco.decompose(data.train, data.k, random_state=0)
    if name == "topics":
        model = odeco.LatentDirichletAllocation(data.k, random_state=0).fit(data.train)
        model.model_sweeps = model.n_iter_
        return model
    return CASES[name].fits["odeco"](data, 0)


def resolve(place: str) -> tuple[Any, str]:
    """The object that holds a stage's function, and the name it has there."""
    module, path = place.split(":")
    holder: Any = import_module(module)
    *owners, name = path.split(".")
    for owner in owners:
        holder = getattr(holder, owner)
    getattr(holder, name)  # a stage that was renamed should not pass for one that takes no time
    return holder, name


@contextmanager
def _clocks(stages: list[Stage]) -> Iterator[dict[str, float]]:
    """Seconds of each stage while it runs; those of a stage within another count for the inner one alone."""
    spent = {stage.place: 0.0 for stage in stages}
    inner = [0.0]

    def clock(place: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @contextmanager
        def running() -> Iterator[None]:
            inner.append(0.0)
            start = time.perf_counter()
            try:
                yield
            finally:
                whole = time.perf_counter() - start
                spent[place] += whole - inner.pop()
                inner[-1] += whole

        @wraps(function)
        def timed(*args: Any, **options: Any) -> Any:
            with running():
                return function(*args, **options)

        @wraps(function)
        def timed_passes(*args: Any, **options: Any) -> Any:
            with running():  # the passes that it asks for included
                return (yield from function(*args, **options))

        return timed_passes if isgeneratorfunction(function) else timed

    with ExitStack() as stack:
        for stage in stages:
            holder, name = resolve(stage.place)
            stack.enter_context(mock.patch.object(holder, name, clock(stage.place, getattr(holder, name))))
        yield spent
