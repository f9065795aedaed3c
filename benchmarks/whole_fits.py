"""What a second thread gains in whole fits that take about a second: default options, data drawn from the model."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import odeco
from benchmarks import harness

REPEATS = 3
Draw = Callable[..., Any]


def fits(draws: dict[str, Draw]) -> dict[str, tuple[Callable[[int], Any], Callable[[Any], Any], int]]:
    """By model: how n rows are drawn, how they are fitted, how many there are."""
    return {
        "LatentDirichletAllocation": (
            lambda n: draws["documents"](n, 60, 10_000, 50),
            lambda x: odeco.LatentDirichletAllocation(50, random_state=0).fit(x),
            60_000,
        ),
        "SingleTopicModel": (
            lambda n: draws["documents"](n, 60, 10_000, 20),
            lambda x: odeco.SingleTopicModel(20, random_state=0, effort="quick").fit(x),
            100_000,
        ),
        "GaussianMixture": (
            lambda n: draws["rows"](n, 50, 20),
            lambda x: odeco.GaussianMixture(20, random_state=0).fit(x),
            400_000,
        ),
        "ProductMixture": (
            lambda n: draws["answers"](n, 60, 10),
            lambda x: odeco.ProductMixture(10, family="bernoulli", random_state=0).fit(x),
            400_000,
        ),
        "MultiViewMixture": (
            lambda n: _views(draws["rows"](n, 60, 10)),
            lambda x: odeco.MultiViewMixture(10, random_state=0).fit(x),
            400_000,
        ),
        "CategoricalHMM": (
            lambda n: draws["symbols"](n, 50, 10),
            lambda x: odeco.CategoricalHMM(10, random_state=0).fit(x),
            1_500_000,
        ),
        "GaussianHMM": (
            lambda n: draws["measurements"](n, 4, 6),
            lambda x: odeco.GaussianHMM(6, random_state=0).fit(x),
            500_000,
        ),
        "ICA": (lambda n: draws["signals"](n, 12), lambda x: odeco.ICA(12, random_state=0).fit(x), 1_000_000),
    }


def _views(rows: Any) -> list[Any]:
    return [rows[:, low : low + 20] for low in (0, 20, 40)]


def measure(draws: dict[str, Draw], name: str, quick: bool) -> dict[str, Any]:
    """Seconds of some fits, with as many threads as this process has."""
    draw, fit, n = fits(draws)[name]
    x = draw(n // 20 if quick else n)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {"n": n, "seconds": harness.times(lambda: fit(x), 1 if quick else REPEATS)}


def table(found: dict[str, dict[str, Any]]) -> str:
    """Wall seconds with one thread and with two, the least of all runs: other programs only add to them."""
    rows = []
    for name, measured in found.items():
        seconds = [min(of["seconds"]) for of in measured.values()]
        times = [f"{each:.2f} s" for each in seconds]
        rows.append([f"`{name}`", f"{measured['1']['n']:,}", *times, f"{seconds[0] / seconds[-1]:.2f}x"])
    return harness.markdown_table(["whole fits", "n", "one thread", "two threads", "gain"], rows)
