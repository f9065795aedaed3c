"""Errors of the moment estimates alone (`refine=None`) against n: every estimator on data drawn from its own model.

Parameters are fixed, samples are drawn anew for each seed. The error is the root of the mean square over all entries of
the parameters named, after matching of components.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

import odeco
from benchmarks import harness
from odeco import simulate
from odeco.metrics import amari, match_components

Generator = np.random.Generator
WEIGHTS = np.array([0.5, 0.3, 0.2])
K = WEIGHTS.size
_FIXED = np.random.default_rng(11)
TOPICS = _FIXED.dirichlet(np.full(20, 0.4), K)
CENTERS = 1.5 * _FIXED.standard_normal((K, 8))
ANSWERS = _FIXED.uniform(0.1, 0.9, (K, 12))
CATEGORIES = [_FIXED.dirichlet(np.ones(3), K) for _ in range(8)]
RATES = _FIXED.uniform(1, 8, (K, 8))
VIEWS = [1.5 * _FIXED.standard_normal((K, d)) for d in (5, 6, 4)]
CONFUSION = 0.5 * np.eye(K) + 0.5 * _FIXED.dirichlet(np.ones(K), (6, K))
TRANSITIONS = np.array([[0.8, 0.15, 0.05], [0.1, 0.7, 0.2], [0.15, 0.15, 0.7]])
# A source whose column is weak is buried in the noise at any n that is measured here, and reported so.
MIXING = np.eye(5) + 0.3 * _FIXED.standard_normal((5, 5))


@dataclass(frozen=True)
class Case:
    """How to draw n samples, the estimator of them, and its error."""

    draw: Callable[[int, Generator], Any]
    make: Callable[[], Any]
    error: Callable[[Any], float]
    least: int = 1_000  # samples below which the estimate may not exist: variances come out negative


def error_of(case: Case, n: int, seed: int) -> float:
    """The error of one fit, on one thread: products of so few columns are slower on several, far slower if busy."""
    with harness.one_thread(), warnings.catch_warnings():
        warnings.simplefilter("ignore", odeco.MomentWarning)  # few samples are what is measured
        return case.error(case.make().fit(case.draw(n, np.random.default_rng(seed))))


def _rows(read: Callable[[Any], Any], truth: Any) -> Callable[[Any], float]:
    """Of parameters that are rows, one for each component."""

    def error(model: Any) -> float:
        matched = match_components(np.asarray(read(model)).T, truth.T)
        return float(np.sqrt(np.mean(matched.errors**2) / truth.shape[1]))

    return error


def _hidden(n: int, rng: Generator) -> Any:
    return rng.choice(K, n, p=WEIGHTS)


def _chosen(tables: list[Any], hidden: Any, rng: Generator) -> Any:
    """Categories drawn from the rows of tables (k, categories), (n, number of tables)."""
    return np.column_stack([(rng.random((hidden.size, 1)) > np.cumsum(t, axis=1)[hidden]).sum(axis=1) for t in tables])


def _topics(n: int, rng: Generator) -> Any:
    return simulate.single_topic_documents(n, TOPICS, WEIGHTS, mean_length=20, random_state=rng).counts


def _admixtures(n: int, rng: Generator) -> Any:
    return simulate.lda_documents(n, TOPICS, WEIGHTS, mean_length=40, random_state=rng).counts


def _gaussians(n: int, rng: Generator, *, spread: Any) -> Any:
    hidden = _hidden(n, rng)
    return CENTERS[hidden] + np.sqrt(spread[hidden]) * rng.standard_normal((n, CENTERS.shape[1]))


def _mixed(n: int, rng: Generator) -> Any:
    hidden = _hidden(n, rng)
    numbers = CENTERS[hidden, :4] + rng.standard_normal((n, 4))
    return np.hstack([numbers, rng.random((n, 4)) < ANSWERS[hidden, :4], rng.poisson(RATES[hidden, :4])])


def _views(n: int, rng: Generator) -> Any:
    hidden = _hidden(n, rng)
    return [mean[hidden] + rng.standard_normal((n, mean.shape[1])) for mean in VIEWS]


def _labels(n: int, rng: Generator) -> Any:
    return _chosen(list(CONFUSION), _hidden(n, rng), rng)


def _states(n: int, rng: Generator) -> Any:
    return simulate.markov_chain(n, TRANSITIONS, random_state=rng)


def _signals(n: int, rng: Generator, *, noise: float) -> Any:
    sources = np.column_stack([rng.uniform(-1, 1, (n, 3)) * np.sqrt(3), rng.laplace(size=(n, 2)) / np.sqrt(2)])
    scale = noise * np.arange(1, 6) / 3
    return sources @ MIXING.T + scale * rng.standard_normal((n, 5))


def _products(family: Any) -> Callable[[], Any]:
    return partial(odeco.ProductMixture, K, family=family, refine=None, random_state=0)


def _of(estimator: Any, *arguments: Any, **options: Any) -> Callable[[], Any]:
    return partial(estimator, K, *arguments, refine=None, random_state=0, **options)


_SPHERES = np.array([[0.7], [1.0], [1.5]])
_AXES = np.random.default_rng(12).uniform(0.5, 1.5, CENTERS.shape)
_MIXED = ["gaussian"] * 4 + ["bernoulli"] * 4 + ["poisson"] * 4
_means = _rows(lambda m: m.means_, CENTERS)

CASES: dict[str, Case] = {
    "SingleTopicModel": Case(_topics, _of(odeco.SingleTopicModel), _rows(lambda m: m.components_, TOPICS)),
    "LatentDirichletAllocation": Case(
        _admixtures, _of(odeco.LatentDirichletAllocation, alpha0=1.0), _rows(lambda m: m.components_, TOPICS)
    ),
    "GaussianMixture, spherical": Case(
        partial(_gaussians, spread=_SPHERES), _of(odeco.GaussianMixture, "spherical"), _means
    ),
    "GaussianMixture, tied_spherical": Case(
        partial(_gaussians, spread=np.ones((K, 1))), _of(odeco.GaussianMixture, "tied_spherical"), _means
    ),
    "GaussianMixture, diag": Case(partial(_gaussians, spread=_AXES), _of(odeco.GaussianMixture, "diag"), _means),
    "ProductMixture, bernoulli": Case(
        lambda n, rng: (rng.random((n, 12)) < ANSWERS[_hidden(n, rng)]).astype(float),
        _products("bernoulli"),
        _rows(lambda m: m.means_, ANSWERS),
    ),
    "ProductMixture, categorical": Case(
        lambda n, rng: _chosen(CATEGORIES, _hidden(n, rng), rng),
        _products("categorical"),
        _rows(lambda m: np.hstack(m.probabilities_), np.hstack(CATEGORIES)),
    ),
    "ProductMixture, poisson": Case(
        lambda n, rng: rng.poisson(RATES[_hidden(n, rng)]), _products("poisson"), _rows(lambda m: m.means_, RATES)
    ),
    "ProductMixture, gaussian": Case(partial(_gaussians, spread=_AXES), _products("gaussian"), _means),
    "ProductMixture, mixed": Case(
        _mixed,
        _products(_MIXED),
        _rows(lambda m: m.means_, np.hstack([CENTERS[:, :4], ANSWERS[:, :4], RATES[:, :4]])),
    ),
    "MultiViewMixture": Case(
        _views, _of(odeco.MultiViewMixture), _rows(lambda m: np.hstack(m.means_), np.hstack(VIEWS))
    ),
    "DawidSkene": Case(
        _labels,
        _of(odeco.DawidSkene, layout="wide"),
        lambda m: float(np.sqrt(np.mean((m.confusion_[:, np.argsort(m.classes_)] - CONFUSION) ** 2))),
    ),
    "CategoricalHMM": Case(
        lambda n, rng: _chosen([TOPICS], _states(n, rng), rng),
        _of(odeco.CategoricalHMM),
        _rows(lambda m: m.emissionprob_, TOPICS),
    ),
    "GaussianHMM": Case(
        lambda n, rng: CENTERS[_states(n, rng), :3] + rng.standard_normal((n, 3)),
        _of(odeco.GaussianHMM),
        _rows(lambda m: m.means_, CENTERS[:, :3]),
        least=4_000,
    ),
    "PoissonHMM": Case(
        lambda n, rng: rng.poisson(RATES[_states(n, rng), :3]),
        _of(odeco.PoissonHMM),
        _rows(lambda m: m.lambdas_, RATES[:, :3]),
        least=4_000,
    ),
    "ICA, no noise": Case(
        partial(_signals, noise=0.0),
        partial(odeco.ICA, 5, refine=None, random_state=0),
        lambda m: amari(m.components_, MIXING),
    ),
    "ICA, Gaussian noise": Case(
        partial(_signals, noise=0.5),
        partial(odeco.ICA, 5, refine=None, random_state=0),
        lambda m: amari(m.components_, MIXING),
    ),
}


# Measured, drawn, tabled

Curves = dict[str, list[dict[str, Any]]]
STEPS = (1, 3, 10, 30, 100)  # sizes, as multiples of the least: two decades


def measure(quick: bool) -> Curves:
    """The errors of every estimator at every size, all seeds."""
    steps, seeds = (STEPS[:3:2], 2) if quick else (STEPS, 9)
    return {
        name: [
            {"n": step * case.least, "errors": [error_of(case, step * case.least, 600 + seed) for seed in range(seeds)]}
            for step in steps
        ]
        for name, case in CASES.items()
    }


def medians(points: list[dict[str, Any]]) -> tuple[list[int], list[float], float]:
    """Sizes, median errors and their slope."""
    sizes, errors = [point["n"] for point in points], [float(np.median(point["errors"])) for point in points]
    return sizes, errors, harness.slope(sizes, errors)


def table(curves: Curves) -> str:
    """A row for each estimator: medians at the least, the middle and the largest size, and the slope over all."""
    rows = []
    for name, points in curves.items():
        sizes, errors, slope = medians(points)
        shown = sorted({0, len(sizes) // 2, len(sizes) - 1})
        rows.append([name, *(f"{errors[i]:.3g} (n = {sizes[i]:,})" for i in shown), f"{slope:.2f}"])
    names = ["few samples", "more", "many"] if len(rows[0]) == 5 else ["few samples", "many"]
    return harness.markdown_table(["", *names, "slope"], rows)


def draw(curves: Curves, figure: Any) -> None:
    """A small panel for each estimator: every fit, the medians, and a line of slope -1/2 through the first."""
    figure.set_size_inches(12, 7)
    panels = figure.subplots(3, 6)
    for axes, (name, points) in zip(panels.flat, curves.items(), strict=False):
        sizes, errors, slope = medians(points)
        for point in points:
            axes.plot([point["n"]] * len(point["errors"]), point["errors"], ".", color="C0", alpha=0.3, markersize=3)
        axes.plot(sizes, errors, "o-", color="C0", markersize=3)
        axes.plot(sizes, errors[0] * (np.array(sizes) / sizes[0]) ** -0.5, "--", color="0.5", linewidth=0.8)
        axes.set(xscale="log", yscale="log")
        axes.set_title(f"{name.replace(', ', chr(10))}\nslope {slope:.2f}", fontsize=7.5)
        axes.tick_params(labelsize=6)
    for axes in panels.flat[len(curves) :]:
        axes.set_visible(False)


if __name__ == "__main__":
    print(json.dumps({"curves": measure(bool(int(sys.argv[1])))}))
