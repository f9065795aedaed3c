"""Quality against time: every point is a fit of its own with a larger budget of iterations; and errors against n.

Those are of ICA beside its peers, and of the moment estimates of all models (`benchmarks.errors`).

Each panel runs in a process of its own, the same data and threads for everybody, after a small fit.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any

import odeco
from benchmarks import errors, harness, provenance
from benchmarks import topics_peers as topics
from benchmarks.cases import CASES, Data, scorable, use_threads
from benchmarks.provenance import Result, Section
from odeco.completion import completion
from odeco.metrics import amari

NAME = "curves"
FIRST_SEED = 400  # no constant was chosen on these
OURS: list[dict[str, Any]] = [{"refine": None}, *({"max_iter": count} for count in (1, 2, 5, 10, 30)), {}]
Points = list[dict[str, Any]]
Measured = tuple[str, dict[str, Points]]  # what the data are, and a curve for everybody


@dataclass(frozen=True)
class Panel:
    """What is drawn: a title, what the two axes are, whether lower is better, threads, and how it is measured."""

    title: str
    x: str
    y: str
    measure: Callable[[bool], Measured]
    near: float  # as good as: within so much of it, as a share where lower is better
    lower: bool = False
    threads: int = 1


def run(*, quick: bool = False, only: list[str] | None = None) -> dict[str, Section]:
    """All panels, or some `only`."""
    packages = ["numpy", "scipy", "scikit-learn", "tomotopy", "gensim", "hmmlearn", "python-picard"]
    measurements = {name: partial(harness.child, "benchmarks.curves", name, int(quick)) for name in PANELS}
    measurements["errors"] = partial(harness.child, "benchmarks.errors", int(quick))
    return provenance.measure(measurements, only, packages, _code, quick=quick)


def _code(section: str) -> tuple[str, ...]:
    everything = [name for name in provenance.CODE if name not in ("tensor", "words", "formats", "partitions")]
    return provenance.code(*(everything if section == "errors" else [section]))


def _points(fits: dict[Any, Callable[[], tuple[float, float]]]) -> Points:
    """A point for every budget: seconds and quality."""
    points = []
    for budget, fit in fits.items():
        seconds, quality = fit()
        points.append({"budget": budget, "seconds": seconds, "quality": quality})
    return points


def _name(options: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in options.items()) or "default"


def _fitted(fit: Callable[[], Any], quality: Callable[[Any], float]) -> tuple[float, float]:
    """Seconds of a fit, and how good it is."""
    models: list[Any] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # budgets that end too early are what is measured
        seconds = harness.once(lambda: models.append(fit()))
    return seconds, quality(models[0])


# Topics


def _documents(quick: bool) -> Measured:
    """Descriptions of Debian's packages, a tenth held out (documents of the model itself where they are missing)."""
    from benchmarks.topics import Sizes, read_corpora

    found = None if quick else next(read_corpora(Sizes(corpora=("debian",))), None)
    case = CASES["topics"]
    data = found or case.draw(*(case.quick_sizes if quick else case.sizes), FIRST_SEED)
    title = "descriptions of Debian packages" if found else "documents drawn from the model"
    k, train = data.k, data.train
    for options in OURS[:2]:  # loads what is needed
        topics.fit_odeco(train, k, **options)
    for module in CASES["topics"].peers:
        import_module(module)

    def point(fit: Callable[[], topics.Fit]) -> tuple[float, float]:
        found = fit()
        return found.seconds, completion(data.test, found.topics).perplexity

    def online(fit: Callable[..., topics.Fit], epochs: tuple[int, ...]) -> Points:
        """The prior of words is the one of two, the second their default, that is better after the first budget."""
        first = {eta: point(partial(fit, train, k, 1 / k, eta, epochs[0])) for eta in (topics.ETA, None)}
        eta = min(first, key=lambda eta: first[eta][1])
        later = {n: partial(point, partial(fit, train, k, 1 / k, eta, n)) for n in epochs[1:]}
        points = _points({epochs[0]: lambda: first[eta]} | later)
        points[0]["other prior"] = next(found for other, found in first.items() if other != eta)
        return points

    steps = (5, 20) if quick else (10, 25, 50, 100, 200)
    return f"{title}, {k} topics", {
        "odeco": _points(
            {_name(o): partial(point, partial(topics.fit_odeco, train, k, **o)) for o in (OURS[::3] if quick else OURS)}
        ),
        "tomotopy": _points({n: partial(point, partial(topics.fit_tomotopy, train, k, 1 / k, n)) for n in steps}),
        "scikit-learn": online(topics.fit_sklearn, (1,) if quick else (1, 3)),
        "gensim": online(topics.fit_gensim, (1,) if quick else (1, 5)),
    }


# Sequences and mixtures


def _ours_and_peers(
    case: str,
    quick: bool,
    ours: Callable[..., Any],
    peers: dict[str, Any],
    finish: Callable[[Any], Any] = lambda model: model,
) -> Measured:
    """Budgets of `max_iter` for us, those of `peers` (name to budgets and a maker of models) for them.

    `finish` makes of a peer's model one that can be scored.
    """
    chosen = CASES[case]
    sizes = chosen.quick_sizes if quick else chosen.sizes
    data = chosen.draw(*sizes, FIRST_SEED)
    small = chosen.draw(*chosen.quick_sizes, FIRST_SEED + 1)
    for make in [make for _, make in peers.values()]:  # loads
        _fitted(lambda make=make: make(small, 2).fit(small.train), lambda model: 0.0)
    for options in OURS[:2]:  # loads what the whole data need
        _fitted(lambda options=options: ours(data, **options).fit(data.train), lambda model: 0.0)

    def point(make: Callable[[], Any], ready: Callable[[Any], Any]) -> tuple[float, float]:
        return _fitted(lambda: make().fit(data.train), lambda model: chosen.quality(ready(model), data))

    budgets = OURS[::3] if quick else OURS
    curves = {
        "odeco": _points({_name(o): partial(point, partial(ours, data, **o), lambda model: model) for o in budgets})
    }
    for who, (counts, make) in peers.items():
        curves[who] = _points(
            {n: partial(point, partial(make, data, n), finish) for n in (counts[:2] if quick else counts)}
        )
    axes = chosen.title.split(": ")[1].split(", ")
    return ", ".join(f"{size:,} {axis}" for size, axis in zip(sizes, axes, strict=True)), curves


def _symbols(quick: bool) -> Measured:
    def ours(data: Data, **options: Any) -> Any:
        return odeco.CategoricalHMM(data.k, n_features=data.truth[1].shape[1], random_state=0, **options)

    def peer(seed: int) -> Callable[[Data, int], Any]:
        def make(data: Data, passes: int) -> Any:
            from hmmlearn.hmm import CategoricalHMM

            return CategoricalHMM(
                data.k, n_iter=passes, tol=0, implementation="scaling", random_state=seed,
                n_features=data.truth[1].shape[1],
            )  # fmt: skip

        return make

    counts = (3, 10, 30, 100, 200)
    return _ours_and_peers(
        "symbols", quick, ours, {f"hmmlearn, seed {s}": (counts, peer(s)) for s in range(3)}, scorable
    )


def _spheres(quick: bool) -> Measured:
    def ours(data: Data, **options: Any) -> Any:
        return odeco.GaussianMixture(data.k, random_state=0, **options)

    def peer(n_init: int) -> Callable[[Data, int], Any]:
        def make(data: Data, passes: int) -> Any:
            from sklearn.mixture import GaussianMixture

            return GaussianMixture(
                data.k, covariance_type="spherical", n_init=n_init, max_iter=passes, tol=1e-6, random_state=0
            )

        return make

    counts = {1: (1, 3, 10, 30, 100, 300), 10: (10, 100)}
    return _ours_and_peers("spheres", quick, ours, {f"scikit-learn, n_init={n}": (counts[n], peer(n)) for n in counts})


# Signals


def _signals(quick: bool) -> Measured:
    """Amari distance x 100 against n under anisotropic noise of half the deviation of a source, medians."""
    from benchmarks import ica

    sizes = (1_000, 4_000) if quick else (1_000, 3_162, 10_000, 31_623, 100_000, 316_228)
    seeds = range(FIRST_SEED, FIRST_SEED + (1 if quick else 7))
    curves: dict[str, Points] = {method: [] for method in ica.METHODS}
    for n in sizes:
        draws = [ica.draw(n, 10, 10, 0.5, False, seed) for seed in seeds]
        for method, points in curves.items():
            errors = [100 * amari(ica.fit(method, x, 10).components_, mixing) for x, mixing in draws]
            points.append({"budget": n, "quality": errors})
    return "10 sources in 10 channels, anisotropic noise of deviation 0.5", curves


PANELS = {
    "topics": Panel("LDA", "seconds", "held-out perplexity", _documents, 0.005, lower=True, threads=topics.THREADS),
    "symbols": Panel("Categorical HMM", "seconds", "held-out log-likelihood per step", _symbols, 0.001),
    "spheres": Panel("Gaussian mixture", "seconds", "held-out log-likelihood", _spheres, 0.002),
    "signals": Panel("ICA under noise", "samples", "Amari distance x 100", _signals, 0.0, lower=True),
}


# Figure and table


def _medians(section: dict[str, Any]) -> dict[str, Any]:
    quality = provenance.each("quality")
    return section | {"curves": {who: quality(points) for who, points in section["curves"].items()}}


SUMMARIES = {"signals": _medians}


def report(result: Result) -> None:
    """The figure and the table of the docs from a result file."""
    harness.save_figure(harness.FIGURES / "curves.png", lambda figure: draw(result, figure))
    if "errors" in result:
        harness.save_figure(
            harness.FIGURES / "errors.png", lambda figure: errors.draw(result["errors"]["curves"], figure)
        )
    harness.write_between(harness.ROOT / "docs" / "benchmarks.md", f"benchmark:{NAME}", docs_tables(result))


def draw(result: Result, figure: Any) -> None:
    figure.set_size_inches(10, 7.4)
    for axes, (name, panel) in zip(figure.subplots(2, 2).flat, PANELS.items(), strict=True):
        styles = iter(zip("sD^vPX", ("C1", "C2", "C3", "C4", "C5", "C6"), strict=True))
        for who, points in result.get(name, {"curves": {}})["curves"].items():
            marker, color = ("o", "C0") if who == "odeco" else next(styles)
            x = [point["budget"] if panel.x == "samples" else point["seconds"] for point in points]
            axes.plot(x, [point["quality"] for point in points], marker=marker, color=color, label=who, zorder=3)
        axes.set(xscale="log", xlabel=panel.x, ylabel=panel.y)
        axes.set_title(f"{panel.title}\n{result[name]['data']}" if name in result else panel.title, fontsize=9.5)
        if panel.lower:
            axes.set_yscale("log")
            harness.plain_ticks(axes.yaxis)
        if name in result:
            axes.legend()


def reached(points: Points, target: float, panel: Panel) -> float | None:
    """The least seconds within which a curve is as good as `target`, or nearly; None where it never is."""
    sign = -1.0 if panel.lower else 1.0
    least = sign * target - panel.near * (target if panel.lower else 1.0)
    within = [point["seconds"] for point in points if sign * point["quality"] >= least]
    return min(within, default=None)


def docs_tables(result: Result) -> str:
    parts = ["![Quality against time, four models](figures/curves.png)"]
    for name, panel in PANELS.items():
        if name in result and panel.x == "seconds":
            within = f"{100 * panel.near:g} %" if panel.lower else f"{panel.near:g}"
            head = f"{panel.title} ({result[name]['data']}): the best {panel.y}"
            table = _table(result[name]["curves"], panel)
            parts.append(
                f"{head}, and seconds until within {within} of everybody's best:\n\n{table}\n\n{result.told(name)}"
            )
    if "signals" in result:
        parts.append(
            f"ICA under noise ({result['signals']['data']}), {PANELS['signals'].y}:\n\n"
            + f"{_errors_table(result['signals']['curves'])}\n\n{result.told('signals')}"
        )
    if "errors" in result:
        parts.append(
            "Error of the moment estimates alone (`refine=None`) against n, every estimator on draws of its own model; "
            "the theorems say a slope of -1/2:\n\n![Errors against n](figures/errors.png)\n\n"
            + f"{errors.table(result['errors']['curves'])}\n\n{result.told('errors')}"
        )
    parts.append(
        "Every point is a fit of its own with a larger budget (the first of odeco is `refine=None`); for topics by "
        "scikit-learn and gensim the prior of words, 0.01 or their default, that is better after the first budget. "
        "Made by `python -m benchmarks curves`."
    )
    parts.append(result.machines())
    return "\n\n".join(parts)


def _table(curves: dict[str, Points], panel: Panel) -> str:
    pick = min if panel.lower else max
    best = {who: pick(point["quality"] for point in points) for who, points in curves.items()}
    rows = []
    for who, points in curves.items():
        times = [reached(points, best[other], panel) for other in curves]
        cells = ["never" if spent is None else f"{spent:.2g} s" for spent in times]
        rows.append([who, f"{best[who]:,.5g}", *cells])
    return harness.markdown_table(["", "best", *(f"as good as {other}" for other in curves)], rows)


def _errors_table(curves: dict[str, Points]) -> str:
    sizes = [point["budget"] for point in next(iter(curves.values()))]
    rows = [
        [who, *(f"{p['quality']:.2f}" for p in points), f"{harness.slope(sizes, [p['quality'] for p in points]):.2f}"]
        for who, points in curves.items()
    ]
    return harness.markdown_table(["", *(f"n = {n:,}" for n in sizes), "slope"], rows)


if __name__ == "__main__":
    panel = PANELS[sys.argv[1]]
    use_threads(panel.threads)
    with harness.threads(panel.threads):
        data, curves = panel.measure(bool(int(sys.argv[2])))
        print(json.dumps({"data": data, "curves": curves}))
