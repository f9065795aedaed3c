"""Section 6.3: the error of every estimator falls as n^(-1/2), with and without refinement."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import odeco
from examples.paper.gallery import plain_ticks, slope
from odeco import simulate
from odeco.metrics import match_components

TITLE = "Error against sample size for every model"
PLACE = "Section 6.3"
SIZES = (1_000, 4_000, 16_000, 64_000, 256_000)
SEEDS = 6
FLAT = -0.4  # a fitted slope above is named, with the reason where it is known
REASONS = {
    ("LatentDirichletAllocation", "auto"): "CVB0 approximates the posterior and keeps a bias",
    ("ICA", "None"): "with as many channels as sources the noise is whitened with them, which the refinement undoes",
}
Draw = tuple[Any, np.ndarray]  # data, and the true parameters as rows


def measure(quick: bool = False) -> dict[str, Any]:
    """The root of the mean squared relative error over seeds, by model and size."""
    sizes, seeds = (SIZES[:2], 1) if quick else (SIZES, SEEDS)
    return {
        "n": sizes,
        "seeds": seeds,
        "models": {
            name: {str(refine): [_error(name, refine, n, seeds) for n in sizes] for refine in (None, "auto")}
            for name in MODELS
        },
    }


def _error(name: str, refine: str | None, n: int, n_seeds: int) -> float:
    draw_data, model, read = MODELS[name]
    squares = []
    for seed in range(n_seeds):
        data, truth = draw_data(n, seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", odeco.MomentWarning)  # small samples may leave doubts
            found = read(model(refine=refine, random_state=seed).fit(data))
        errors = match_components(found.T, truth.T, up_to_sign=name == "ICA").errors
        squares.append(np.sum(errors**2) / np.sum(truth**2))
    return float(np.sqrt(np.mean(squares)))


def _topics(n: int, seed: int) -> Draw:
    topics = np.random.default_rng(0).dirichlet(np.full(50, 0.3), size=4)
    return simulate.single_topic_documents(
        n, topics, [0.4, 0.3, 0.2, 0.1], mean_length=15, random_state=seed
    ).counts, topics


def _mixed_topics(n: int, seed: int) -> Draw:
    topics = np.random.default_rng(0).dirichlet(np.full(50, 0.3), size=4)
    return simulate.lda_documents(n, topics, [0.3, 0.2, 0.2, 0.1], mean_length=40, random_state=seed).counts, topics


def _spheres(n: int, seed: int) -> Draw:
    means = np.random.default_rng(0).standard_normal((4, 10))
    sample = simulate.gaussian_mixture(n, means, [0.4, 0.3, 0.2, 0.1], deviations=[1, 0.9, 0.8, 0.7], random_state=seed)
    return sample.rows, means


def _answers(n: int, seed: int) -> Draw:
    tables = [np.column_stack([1 - p, p]) for p in np.random.default_rng(0).uniform(0.1, 0.9, (12, 3))]
    sample = simulate.latent_classes(n, [0.5, 0.3, 0.2], tables, random_state=seed)
    return sample.codes, np.column_stack([table[:, 1] for table in tables])


def _views(n: int, seed: int) -> Draw:
    means = list(np.random.default_rng(0).standard_normal((3, 3, 6)))
    sample = simulate.gaussian_views(n, means, [0.5, 0.3, 0.2], noise=1.0, random_state=seed)
    return sample.views, np.hstack(means)


def _crowd(n: int, seed: int) -> Draw:
    rng = np.random.default_rng(0)
    confusion = 0.5 * np.eye(3) + 0.5 * rng.dirichlet(np.ones(3), size=(9, 3))
    return simulate.crowd_labels(n, confusion, [0.5, 0.3, 0.2], random_state=seed).labels, np.hstack(list(confusion))


_CHAIN = np.array([[0.8, 0.15, 0.05], [0.1, 0.8, 0.1], [0.05, 0.25, 0.7]])


def _symbols(n: int, seed: int) -> Draw:
    emissions = np.random.default_rng(0).dirichlet(np.full(8, 0.5), size=3)
    return simulate.categorical_hmm(n, _CHAIN, emissions, random_state=seed).observations, emissions


def _measurements(n: int, seed: int) -> Draw:
    means = np.array([[0.0, 0.0], [1.5, 0.0], [0.0, 2.0]])
    states = simulate.markov_chain(n, _CHAIN, random_state=seed)
    return means[states] + np.random.default_rng(seed + 1000).standard_normal((n, 2)), means


def _events(n: int, seed: int) -> Draw:
    rates = np.array([[1.0, 3.0], [4.0, 2.0], [8.0, 8.0]])
    states = simulate.markov_chain(n, _CHAIN, random_state=seed)
    return np.random.default_rng(seed + 1000).poisson(rates[states]), rates


def _signals(n: int, seed: int) -> Draw:
    rng = np.random.default_rng(seed)
    mixing = np.random.default_rng(0).standard_normal((4, 4))
    sources = np.column_stack(
        [rng.laplace(size=n), rng.exponential(size=n) - 1, rng.uniform(-1, 1, n), rng.choice([-1.0, 1.0], n)]
    )
    noise = 0.3 * rng.standard_normal((n, 4))
    return (sources / sources.std(axis=0)) @ mixing.T + noise, (mixing / np.linalg.norm(mixing, axis=0)).T


def _topic_rows(model: Any) -> np.ndarray:
    return np.asarray(model.components_)


def _confusion_rows(model: Any) -> np.ndarray:
    return np.hstack(list(model.confusion_))


def _unit_columns(mixing: np.ndarray) -> np.ndarray:
    return (mixing / np.linalg.norm(mixing, axis=0)).T


MODELS: dict[str, tuple[Callable[[int, int], Draw], Callable[..., Any], Callable[[Any], np.ndarray]]] = {
    "SingleTopicModel": (_topics, lambda **o: odeco.SingleTopicModel(4, **o), _topic_rows),
    "LatentDirichletAllocation": (_mixed_topics, lambda **o: odeco.LatentDirichletAllocation(4, **o), _topic_rows),
    "GaussianMixture": (_spheres, lambda **o: odeco.GaussianMixture(4, **o), lambda m: m.means_),
    "ProductMixture": (_answers, lambda **o: odeco.ProductMixture(3, family="bernoulli", **o), lambda m: m.means_),
    "MultiViewMixture": (_views, lambda **o: odeco.MultiViewMixture(3, **o), lambda m: np.hstack(m.means_)),
    "DawidSkene": (_crowd, lambda **o: odeco.DawidSkene(3, layout="wide", **o), _confusion_rows),
    "CategoricalHMM": (_symbols, lambda **o: odeco.CategoricalHMM(3, n_features=8, **o), lambda m: m.emissionprob_),
    "GaussianHMM": (_measurements, lambda **o: odeco.GaussianHMM(3, **o), lambda m: m.means_),
    "PoissonHMM": (_events, lambda **o: odeco.PoissonHMM(3, **o), lambda m: m.lambdas_),
    "ICA": (_signals, lambda **o: odeco.ICA(4, **o), lambda m: _unit_columns(m.mixing_)),
}  # fmt: skip


def draw(result: dict[str, Any], figure: Any) -> None:
    figure.set_size_inches(11, 5)
    grid = figure.subplots(2, 5, sharex=True)
    n = np.array(result["n"], dtype=float)
    for axes, (name, errors) in zip(grid.flat, result["models"].items(), strict=True):
        for refine, color, marker, label in (("None", "C1", "s", "moments"), ("auto", "C0", "o", "refined")):
            axes.loglog(n, errors[refine], marker=marker, color=color, label=f"{label}: {slope(n, errors[refine]):.2f}")
        reference = errors["None"][0] * np.sqrt(n[0] / n)
        axes.loglog(n, reference, color="0.7", linewidth=1, zorder=0)
        axes.set_title(name, fontsize=9)
        axes.legend(fontsize=7, loc="upper right", handlelength=1, borderpad=0)
        axes.set_ylim(top=2.5 * max(max(values) for values in errors.values()))
        plain_ticks(axes.yaxis)
    for axes in grid[1]:
        axes.set_xlabel("samples n")
    for axes in grid[:, 0]:
        axes.set_ylabel("relative error")


def caption(result: dict[str, Any]) -> str:
    slopes = {
        refine: {name: slope(result["n"], errors[refine]) for name, errors in result["models"].items()}
        for refine in ("None", "auto")
    }
    flat = [(name, refine) for refine, rows in slopes.items() for name, value in rows.items() if value > FLAT]
    ranges = {
        refine: [value for name, value in rows.items() if (name, refine) not in flat] for refine, rows in slopes.items()
    }
    exceptions = "".join(
        f" Not so for `{name}({'refine=None' if refine == 'None' else ''})`, {slopes[refine][name]:.2f}"
        + (f": {REASONS[name, refine]}." if (name, refine) in REASONS else ".")
        for name, refine in flat
    )
    return (
        f"Relative error of the parameters against n, {result['seeds']} samples each; thin lines have slope -1/2. "
        f"Fitted slopes of the moment estimates (`refine=None`) lie between {min(ranges['None']):.2f} and "
        f"{max(ranges['None']):.2f}, of the refined ones between {min(ranges['auto']):.2f} and "
        f"{max(ranges['auto']):.2f}.{exceptions}"
    )
