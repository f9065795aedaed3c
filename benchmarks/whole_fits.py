"""What a second thread gains in whole fits that take over a second: default options, data drawn from the model.

A process with one thread and one with two hold the same data and fit it in turns, so that a busy minute of the machine
meets both. What the machine itself gains is measured the same way, in cache and in memory.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import odeco
from benchmarks import harness
from benchmarks.cases import use_threads
from odeco import simulate
from odeco.kernels.threads import map_parts

ROUNDS = 7
SEED = 600
Draw = Callable[..., Any]
Fit = tuple[Callable[[int], Any], Callable[[Any], Any], int]


def fits(draws: dict[str, Draw]) -> dict[str, Fit]:
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
            250_000,
        ),
        "GaussianMixture": (
            lambda n: draws["rows"](n, 50, 20),
            lambda x: odeco.GaussianMixture(20, random_state=0).fit(x),
            1_500_000,
        ),
        'GaussianMixture(covariance_type="full")': (
            _ellipses,
            lambda x: odeco.GaussianMixture(6, covariance_type="full", random_state=0).fit(x),
            1_500_000,
        ),
        "ProductMixture": (
            lambda n: draws["answers"](n, 60, 10),
            lambda x: odeco.ProductMixture(10, family="bernoulli", random_state=0).fit(x),
            800_000,
        ),
        "MultiViewMixture": (
            lambda n: _views(draws["rows"](n, 60, 10)),
            lambda x: odeco.MultiViewMixture(10, random_state=0).fit(x),
            700_000,
        ),
        "DawidSkene": (_votes, lambda x: odeco.DawidSkene(4, random_state=0).fit(x), 450_000),
        "CategoricalHMM": (
            lambda n: draws["symbols"](n, 50, 10),
            lambda x: odeco.CategoricalHMM(10, random_state=0).fit(x),
            1_500_000,
        ),
        "GaussianHMM": (
            lambda n: draws["measurements"](n, 4, 6),
            lambda x: odeco.GaussianHMM(6, random_state=0).fit(x),
            2_000_000,
        ),
        "PoissonHMM": (_events, lambda x: odeco.PoissonHMM(5, random_state=0).fit(x), 3_000_000),
        "ICA": (lambda n: draws["signals"](n, 12), lambda x: odeco.ICA(12, random_state=0).fit(x), 6_000_000),
        "exponentials, in cache": (lambda n: np.linspace(-1.0, 0.0, 2_000), _in_cache, 1),
        "a copy, in memory": (lambda n: np.zeros((2, 25_000_000)), _in_memory, 1),
    }


def _ellipses(n: int) -> Any:
    """Six components in ten columns, each with axes of its own."""
    rng, k, d = np.random.default_rng(SEED), 6, 10
    means, turns = 2 * rng.standard_normal((k, d)), np.eye(d) + rng.standard_normal((k, d, d)) / 3
    rows = rng.standard_normal((n, d))
    for some, turn, mean in zip(np.array_split(np.arange(n), k), turns, means, strict=True):
        rows[some] = rows[some] @ turn + mean
    return rng.permutation(rows)


def _views(rows: Any) -> list[Any]:
    return [rows[:, low : low + 20] for low in (0, 20, 40)]


def _votes(n: int) -> Any:
    """Labels of 20 annotators, three of ten not given."""
    rng, k, annotators = np.random.default_rng(SEED), 4, 20
    confusion = 0.6 * np.eye(k) + 0.4 * rng.dirichlet(np.ones(k), size=(annotators, k))
    levels = confusion.cumsum(axis=2)[:, rng.integers(k, size=n)]
    given = np.minimum((rng.random((annotators, n, 1)) > levels).sum(axis=2), k - 1).T
    return np.where(rng.random((n, annotators)) < 0.3, -1, given)


def _events(n: int) -> Any:
    """Counts in three columns, of five states."""
    rng, k = np.random.default_rng(SEED), 5
    transmat = 0.8 * np.eye(k) + 0.2 * rng.dirichlet(np.ones(k), size=k)
    return rng.poisson(rng.uniform(1.0, 30.0, (k, 3))[simulate.markov_chain(n, transmat, random_state=rng)])


def _in_cache(numbers: Any) -> None:
    def work(_: int) -> None:
        out = np.empty_like(numbers)
        for _ in range(20_000):
            np.exp(numbers, out=out)

    map_parts(work, 8)


def _in_memory(numbers: Any) -> None:
    def work(part: int) -> None:
        some = slice(part * numbers.shape[1] // 8, (part + 1) * numbers.shape[1] // 8)
        for _ in range(20):
            np.copyto(numbers[1, some], numbers[0, some])

    map_parts(work, 8)


def measure(name: str, quick: bool) -> dict[str, Any]:
    """Seconds of fits by the number of threads, in turns."""
    workers = {str(count): _Worker(name, quick, count) for count in (1, 2)}
    seconds: dict[str, list[float]] = {count: [] for count in workers}
    for _ in range(1 if quick else ROUNDS):
        for count, worker in workers.items():
            seconds[count].append(worker.fit())
    return {count: {"n": worker.end(), "seconds": seconds[count]} for count, worker in workers.items()}


class _Worker:
    """A process with so many threads that fits when it is told to."""

    def __init__(self, name: str, quick: bool, count: int) -> None:
        command = [sys.executable, "-m", "benchmarks.whole_fits", name, str(int(quick)), str(count)]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self._process = subprocess.Popen(command, cwd=harness.ROOT, env=os.environ, **pipes)
        self._n = self._answer()  # data are there, and one fit is made

    def fit(self) -> float:
        """Seconds of one more fit."""
        assert self._process.stdin is not None
        self._process.stdin.write("again\n")
        self._process.stdin.flush()
        return float(self._answer())

    def end(self) -> int:
        """Let it go; how many rows it has."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()
        return int(self._n)

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        return json.loads(self._process.stdout.readline())


def serve(draws: dict[str, Draw], name: str, quick: bool) -> None:
    """Draw, fit once, then once more for every line that comes in."""
    draw, fit, n = fits(draws)[name]
    n = max(n // 20, 1) if quick else n
    x = draw(n)
    warnings.simplefilter("ignore")
    fit(x)
    print(n, flush=True)
    for _ in sys.stdin:
        print(harness.once(lambda: fit(x)), flush=True)


def table(found: dict[str, dict[str, Any]]) -> str:
    """Wall seconds with one thread and with two, and the median gain of a round."""
    rows = []
    for name, measured in found.items():
        one, two = (measured[count]["seconds"] for count in ("1", "2"))
        gain = float(np.median([first / second for first, second in zip(one, two, strict=True)]))
        times = [f"{np.median(each):.2f} s" for each in (one, two)]
        n = measured["1"]["n"]
        rows.append([f"`{name}`" if n > 1 else name, f"{n:,}" if n > 1 else "", *times, f"{gain:.2f}x"])
    return harness.markdown_table(["whole fits", "n", "one thread", "two threads", "gain"], rows)


if __name__ == "__main__":
    from benchmarks.scaling import DRAWS

    use_threads(int(sys.argv[3]))
    with harness.threads(int(sys.argv[3])):
        serve(DRAWS, sys.argv[1], bool(int(sys.argv[2])))
