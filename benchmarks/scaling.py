"""How time grows with n, nonzeros, d and k, and where it goes: fitted slopes, and stages against the machine's limits.

Each sweep and each table of stages runs in a process of its own.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import odeco
from benchmarks import harness, provenance, stages, whole_fits
from benchmarks.cases import CASES, use_threads
from benchmarks.provenance import Result, Section
from odeco import simulate

NAME = "scaling"
SEED = 600
REPEATS = 3


# Threads of the stages.
THREADS = (1, 2)


def _documents(n: int, length: int, d: int, k: int) -> Any:
    topics = simulate.zipf_topics(k, d, random_state=SEED)
    return simulate.lda_documents(n, topics, np.full(k, 0.5 / k), mean_length=length, random_state=SEED).counts


def _rows(n: int, d: int, k: int) -> Any:
    means = 4.0 / np.sqrt(2 * d) * np.random.default_rng(SEED).standard_normal((k, d))
    return simulate.gaussian_mixture(n, means, np.full(k, 1 / k), random_state=SEED).rows


def _answers(n: int, d: int, k: int) -> Any:
    tables = [np.column_stack([1 - p, p]) for p in np.random.default_rng(SEED).uniform(0.1, 0.9, (d, k))]
    return simulate.latent_classes(n, np.full(k, 1 / k), tables, random_state=SEED).codes


def _symbols(n: int, d: int, k: int) -> Any:
    return simulate.categorical_hmm(n, *simulate.random_chain(k, d, random_state=SEED), random_state=SEED).observations


def _measurements(n: int, d: int, k: int) -> Any:
    rng = np.random.default_rng(SEED)
    transmat = 0.7 * np.eye(k) + 0.3 * rng.dirichlet(np.ones(k), size=k)
    states = simulate.markov_chain(n, transmat, random_state=rng)
    return 2.0 * rng.standard_normal((k, d))[states] + rng.standard_normal((n, d))


def _signals(n: int, k: int) -> Any:
    rng = np.random.default_rng(SEED)
    return rng.laplace(size=(n, k)) @ rng.standard_normal((k, k)).T + 0.3 * rng.standard_normal((n, k))


def _tensor(k: int) -> Any:
    return simulate.odeco_tensor(k, noise=0.1 / np.sqrt(k), random_state=SEED).tensor


DRAWS: dict[str, Callable[..., Any]] = {
    "documents": _documents,
    "rows": _rows,
    "answers": _answers,
    "symbols": _symbols,
    "measurements": _measurements,
    "signals": _signals,
}

# How data are drawn, how a model is fitted (with a fixed number of steps), its base size, the values of each axis.
Sweep = tuple[Callable[..., Any], Callable[[Any, int], Any], dict[str, int], dict[str, tuple[int, ...]]]
SWEEPS: dict[str, Sweep] = {
    "LatentDirichletAllocation": (
        _documents,
        lambda x, k: odeco.LatentDirichletAllocation(k, max_iter=5, tol=0, random_state=0).fit(x),
        {"n": 20_000, "length": 60, "d": 5_000, "k": 20},
        {
            "n": (10_000, 20_000, 40_000, 80_000),
            "length": (30, 60, 120, 240),
            "d": (2_500, 5_000, 10_000, 20_000),
            "k": (10, 20, 40, 80),
        },
    ),
    "LatentDirichletAllocation, refine=None": (
        _documents,
        lambda x, k: odeco.LatentDirichletAllocation(k, refine=None, random_state=0).fit(x),
        {"n": 20_000, "length": 60, "d": 5_000, "k": 20},
        {"n": (10_000, 20_000, 40_000, 80_000), "d": (2_500, 5_000, 10_000, 20_000), "k": (10, 20, 40, 80)},
    ),
    "GaussianMixture": (
        _rows,
        lambda x, k: odeco.GaussianMixture(k, max_iter=10, tol=0, random_state=0).fit(x),
        {"n": 50_000, "d": 100, "k": 10},
        {"n": (25_000, 50_000, 100_000, 200_000), "d": (50, 100, 200, 400), "k": (5, 10, 20, 40)},
    ),
    "ProductMixture": (
        _answers,
        lambda x, k: odeco.ProductMixture(k, family="bernoulli", max_iter=10, tol=0, random_state=0).fit(x),
        {"n": 20_000, "d": 60, "k": 6},
        {"n": (10_000, 20_000, 40_000, 80_000), "d": (30, 60, 120, 240), "k": (3, 6, 12, 24)},
    ),
    "CategoricalHMM": (
        _symbols,
        lambda x, k: odeco.CategoricalHMM(k, max_iter=10, tol=0, random_state=0).fit(x),
        {"n": 100_000, "d": 50, "k": 8},
        {"n": (50_000, 100_000, 200_000, 400_000), "d": (25, 50, 100, 200), "k": (4, 8, 16, 32)},
    ),
    "GaussianHMM": (
        _measurements,
        lambda x, k: odeco.GaussianHMM(k, max_iter=10, tol=0, random_state=0).fit(x),
        {"n": 50_000, "d": 4, "k": 5},
        {"n": (25_000, 50_000, 100_000, 200_000), "d": (2, 4, 8, 16), "k": (3, 5, 10, 20)},
    ),
    "ICA": (
        _signals,
        lambda x, k: odeco.ICA(k, random_state=0).fit(x),
        {"n": 50_000, "k": 8},
        {"n": (25_000, 50_000, 100_000, 200_000), "k": (4, 8, 16, 32)},
    ),
    "decompose": (
        _tensor,
        lambda x, k: odeco.decompose(x, k, random_state=0),
        {"k": 50},
        {"k": (25, 50, 100, 200)},
    ),
}


def run(*, quick: bool = False, only: list[str] | None = None) -> dict[str, Section]:
    """The sweeps, the stages and whole fits, or `only` some of them."""
    measurements = {name: partial(_measure, name, quick) for name in KINDS}
    measured = provenance.code(*(name for name in provenance.CODE if name in CASES))
    return provenance.measure(measurements, only, ["numpy", "scipy"], lambda name: measured, quick=quick)


# What is measured, and of which names.
KINDS: dict[str, list[str]] = {
    "sweeps": list(SWEEPS),
    "stages": list(stages.STAGES),
    "whole fits": list(whole_fits.fits(DRAWS)),
}


def _measure(kind: str, quick: bool) -> dict[str, Any]:
    names = KINDS[kind][:: 3 if quick else 1]
    if kind == "whole fits":
        return {name: whole_fits.measure(name, quick) for name in names}
    counts = (1,) if kind == "sweeps" else THREADS
    measured = {
        name: {str(count): harness.child("benchmarks.scaling", kind, name, int(quick), count) for count in counts}
        for name in names
    }
    return {name: found["1"] for name, found in measured.items()} if kind == "sweeps" else measured


def sweep(name: str, quick: bool) -> dict[str, Any]:
    """By axis: its values (nonzeros for the length of documents), and the seconds of each run."""
    draw, fit, base, axes = SWEEPS[name]
    if quick:
        base = base | {"n": base["n"] // 10} if "n" in base else base
        axes = {axis: tuple(v // 10 if axis == "n" else v for v in values[:2]) for axis, values in axes.items()}
    table: dict[str, Any] = {}
    for axis, values in axes.items():
        points = []
        for value in values:
            sizes = base | {axis: value}
            x = draw(**sizes)
            seconds = harness.times(lambda x=x, k=sizes["k"]: _quietly(fit, x, k), 1 if quick else REPEATS)
            points.append({"value": int(x.nnz) if axis == "length" else value, "seconds": seconds})
        table["nonzeros" if axis == "length" else axis] = points
    return {"base": base, "axes": table}


def _quietly(fit: Callable[[Any, int], Any], x: Any, k: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a fixed number of steps does not converge, and is not meant to
        fit(x, k)


# Tables and figure


def _medians(sweeps: dict[str, Any]) -> dict[str, Any]:
    seconds = provenance.each("seconds")
    return {
        name: measured | {"axes": {axis: seconds(points) for axis, points in measured["axes"].items()}}
        for name, measured in sweeps.items()
    }


SUMMARIES: dict[str, Callable[[Any], Any]] = {
    "sweeps": _medians,
    "whole fits": lambda tables: tables,
    "stages": lambda tables: {
        name: {count: stages.with_limits(measured) for count, measured in found.items()}
        for name, found in tables.items()
    },
}


def report(result: Result) -> None:
    """The tables and the figure of the docs from a result file."""
    harness.save_figure(harness.FIGURES / "scaling.png", lambda figure: draw_sweeps(result, figure))
    harness.write_between(harness.ROOT / "docs" / "benchmarks.md", f"benchmark:{NAME}", docs_tables(result))


def docs_tables(result: Result) -> str:
    parts = []
    if "sweeps" in result:
        parts.append(
            "Exponents of time, fitted over a range of 8 (one thread, a fixed number of refinement steps, the other "
            f"sizes at their base):\n\n{_slopes(result['sweeps'])}\n\n{result.told('sweeps')}\n\n"
            "![Seconds against sizes](figures/scaling.png)"
        )
    for name, measured in result.get("stages", {}).items():
        parts.append(_stage_table(name, measured))
    if "stages" in result:
        parts.append(f"Stages: {result.told('stages')}")
    if "whole fits" in result:
        parts.append(
            "What a second thread gains in whole default fits, and in the machine itself; one thread and two in turns, "
            "medians:\n\n"
            f"{whole_fits.table(result['whole fits'])}\n\nWhole fits: {result.told('whole fits')}"
        )
    parts.append(
        "Limit: the larger of flops at the speed of a matrix product and bytes at the speed of memory, both measured "
        "in the same process with the same threads; a stage at 100 % could not be faster without doing less. Flops "
        "and bytes are those of the least work, counted in `benchmarks/stages.py`. "
        "Made by `python -m benchmarks scaling`."
    )
    return "\n\n".join([*parts, result.machines()])


def _slopes(sweeps: dict[str, Any]) -> str:
    axes = ["n", "nonzeros", "d", "k"]
    rows = []
    for name, measured in sweeps.items():
        cells = [f"{_slope(measured['axes'][axis]):.2f}" if axis in measured["axes"] else "" for axis in axes]
        base = ", ".join(f"{axis} = {value:,}" for axis, value in measured["base"].items())
        rows.append([f"`{name}`", *cells, base])
    return harness.markdown_table(["", *axes, "base"], rows)


def _slope(points: list[dict[str, float]]) -> float:
    return harness.slope([point["value"] for point in points], [point["seconds"] for point in points])


def _stage_table(name: str, found: dict[str, Any]) -> str:
    """Seconds and fraction of the limit for each number of threads; the last column is what the threads gain."""
    one, *others = found.values()
    header = ["stage", "share", "Gflop", "GB"]
    for count in found:
        header += [f"time, {_threads(count)}", "of the limit"]
    totals = {"stage": "all", "flops": 0.0, "bytes": 0.0, "limit": 0.0}
    tables = [measured["stages"] + [totals | {"seconds": measured["seconds"]}] for measured in found.values()]
    rows = [_stage_row(stages_of, one["seconds"]) for stages_of in zip(*tables, strict=True)]
    sizes = " x ".join(f"{size:,}" for size in one["sizes"])
    speeds = "; ".join(
        f"{_threads(count)}: matrix products {measured['gemm float32'] / 1e9:.0f} Gflop/s in single and "
        f"{measured['gemm float64'] / 1e9:.0f} in double precision, memory {measured['memory'] / 1e9:.1f} GB/s"
        for count, measured in found.items()
    )
    table = harness.markdown_table(header + (["gain"] if others else []), rows)
    return f"**{CASES[name].title}** ({sizes}; {speeds})\n\n{table}{_loop_table(one)}"


def _loop_table(measured: dict[str, Any]) -> str:
    """What one word costs in one step, by the number of topics; nothing where no loops were measured."""
    loops = measured.get("loops", [])
    if not loops:
        return ""
    speed, rows = measured["gemm float32"], []
    for k in sorted({row["topics"] for row in loops}):
        cells = [str(k)]
        for name in ("EM", "CVB0"):
            row = next(row for row in loops if row["topics"] == k and row["loop"] == name)
            cells += [f"{1e9 * row['seconds']:.1f} ns", f"{100 * row['flops'] / row['seconds'] / speed:.0f} %"]
        rows.append(cells)
    header = ["topics", "a step of EM, each word", "of the limit", "a step of CVB0, each word", "of the limit"]
    return (
        "\n\nThe same loops by themselves, one thread, all words in cache. A word takes as long with few topics as "
        "with all that fit a register: three sums across registers and three divisions come with each word, and "
        "registers that topics do not fill are lost. Beyond that each register takes a step of CVB0 eleven "
        "multiplications and a reciprocal, where a matrix product would count eight. Three groups of words are on "
        "their way at a time, so that none waits for its sums; that brought little, while three multiplications fewer "
        "(of fourteen) brought a sixth: the units that multiply bind the loop, not the waits. Outside of the cache "
        "rows of topics come from farther away, and are fetched a document ahead.\n\n"
        + harness.markdown_table(header, rows)
    )


def _threads(count: str) -> str:
    return "one thread" if count == "1" else f"{count} threads"


def _stage_row(rows: tuple[dict[str, Any], ...], total: float) -> list[str]:
    """One stage, with every number of threads."""
    first, last = rows[0], rows[-1]
    cells = [
        first["stage"],
        f"{100 * first['seconds'] / total:.0f} %",
        f"{first['flops'] / 1e9:.3g}" if first["flops"] else "",
        f"{first['bytes'] / 1e9:.3g}" if first["bytes"] else "",
    ]
    for row in rows:
        fraction = f"{100 * row['limit'] / row['seconds']:.0f} %" if row["limit"] and row["seconds"] > 0 else ""
        cells += [f"{1e3 * row['seconds']:,.3g} ms", fraction]
    return cells + ([f"{first['seconds'] / last['seconds']:.2f}x" if last["seconds"] > 0 else ""] if rows[1:] else [])


def draw_sweeps(result: Result, figure: Any) -> None:
    figure.set_size_inches(10, 6.4)
    axes = ("n", "nonzeros", "d", "k")
    lines: dict[str, Any] = {}
    for place, axis in zip(figure.subplots(2, 2).flat, axes, strict=True):
        for i, (name, measured) in enumerate(result["sweeps"].items()):
            if axis in measured["axes"]:
                points = measured["axes"][axis]
                style = {"color": f"C{i % 7}", "marker": "osD^vPXd"[i], "linestyle": "-" if i < 7 else ":"}
                x, y = [p["value"] for p in points], [p["seconds"] for p in points]
                lines[name] = place.loglog(x, y, **style)[0]
                place.annotate(f"{_slope(points):.2f}", (x[-1], y[-1]), (5, -2), textcoords="offset points", fontsize=7)
        place.set(xlabel=axis, ylabel="seconds", title=f"Time against {axis}, and its exponent")
        place.margins(x=0.12)
    figure.legend(lines.values(), lines, loc="outside lower center", ncols=4, fontsize=8)


if __name__ == "__main__":
    kind, name, quick, count = sys.argv[1], sys.argv[2], bool(int(sys.argv[3])), int(sys.argv[4])
    use_threads(count)
    with harness.threads(count):
        print(json.dumps({"sweeps": sweep, "stages": stages.measure}[kind](name, quick)))
