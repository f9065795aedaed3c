"""For each cell of `python -m benchmarks trust`: our default fit, the peer's starts, and the one formula for both."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

import odeco
from benchmarks import trust_data as data
from benchmarks.topics_peers import fit_tomotopy
from benchmarks.trust_data import Cell
from benchmarks.trust_em import Columns, Mixture, Normals, Rates, Rows, Shares, indicators
from odeco.completion import completion
from odeco.metrics import amari

STARTS = 10
TOMOTOPY_STARTS, TOMOTOPY_ITERATIONS = 3, 200
HMM_PASSES, HMM_GAIN = 300, 1e-4  # of hmmlearn; nats in all: random starts climb slowly at first
# Estimators whose value is an error: lower is better, and ties are shares of it.
ERRORS = ("LatentDirichletAllocation", "ICA")


@dataclass(frozen=True)
class Judged:
    """The value of a fit, and its least variance in units of the columns' where it has one."""

    value: float
    least_variance: float | None = None


@dataclass(frozen=True, eq=False)
class Problem:
    """A cell: what fits, and what judges either fit."""

    ours: Callable[[int], Any]  # seed -> fitted model
    starts: Sequence[Callable[[], Any]]
    judge: Callable[[Any], Judged]


def problem(cell: Cell) -> Problem:
    """The comparison of a cell."""
    family, _, kind = cell.estimator.partition(" ")
    builders: dict[str, Callable[[], Problem]] = {
        "GaussianMixture": lambda: _gaussian(cell, kind),
        "MultiViewMixture": lambda: _views(cell),
        "ProductMixture": lambda: _product(cell),
        "DawidSkene": lambda: _crowd(cell),
        "SingleTopicModel": lambda: _single_topic(cell),
        "LatentDirichletAllocation": lambda: _topics(cell),
        "CategoricalHMM": lambda: _chain(cell, odeco.CategoricalHMM),
        "PoissonHMM": lambda: _chain(cell, odeco.PoissonHMM),
        "GaussianHMM": lambda: _chain(cell, partial(odeco.GaussianHMM, covariance_type=kind)),
        "ICA": lambda: _signals(cell),
    }
    return builders[family]()


# Gaussian mixtures and views


def _gaussian(cell: Cell, kind: str) -> Problem:
    x = data.measurements(cell.data)

    def ours(seed: int) -> Any:
        model = odeco.GaussianMixture(cell.k, covariance_type=kind, random_state=seed)
        return model.fit(x)

    return Problem(ours, _sklearn_starts(x, cell.k, kind), lambda fit: _judge_gaussian(fit, x, kind))


def _views(cell: Cell) -> Problem:
    """Gaussian views: the likelihood of a diagonal mixture of all columns."""
    views = data.views(cell.data)
    x = np.hstack(views)

    def judge(fit: Any) -> Judged:
        if not isinstance(fit, odeco.MultiViewMixture):
            return _judge_gaussian(fit, x, "diag")
        return _judge_parts(fit.weights_, np.hstack(fit.means_), np.hstack(fit.variances_), x, "diag")

    def ours(seed: int) -> Any:
        return odeco.MultiViewMixture(cell.k, likelihood="gaussian", random_state=seed).fit(views)

    return Problem(ours, _sklearn_starts(x, cell.k, "diag"), judge)


def _sklearn_starts(x: Any, k: int, kind: str) -> list[Callable[[], Any]]:
    """Half from k-means, half from k-means++ alone."""
    from sklearn.mixture import GaussianMixture

    options = {"tol": 1e-6, "max_iter": 500, "reg_covar": 1e-6 * float(x.var(axis=0).mean())}
    starts = [("kmeans" if seed < STARTS // 2 else "k-means++", seed) for seed in range(STARTS)]
    return [
        partial(
            GaussianMixture(k, covariance_type=kind, init_params=start, random_state=seed, **options).fit,
            x,
        )
        for start, seed in starts
    ]


def _judge_gaussian(fit: Any, x: Any, kind: str) -> Judged:
    return _judge_parts(fit.weights_, fit.means_, fit.covariances_, x, kind)


def _judge_parts(weights: Any, means: Any, covariances: Any, x: Any, kind: str) -> Judged:
    """scikit-learn's score of any parameters."""
    from sklearn.mixture import GaussianMixture

    scorer = GaussianMixture(len(weights), covariance_type=kind)
    scorer.weights_, scorer.means_, scorer.covariances_ = np.asarray(weights), np.asarray(means), covariances
    scorer.precisions_cholesky_ = _cholesky(np.asarray(covariances), kind)
    return Judged(float(scorer.score(x)), least_variance(covariances, kind))


def _cholesky(covariances: Any, kind: str) -> Any:
    """Factors of the inverses, as scikit-learn keeps them: upper triangular, or roots."""
    if kind not in ("full", "tied"):
        return 1 / np.sqrt(covariances)
    factors = np.linalg.inv(np.linalg.cholesky(covariances))
    return np.swapaxes(factors, -1, -2)


def least_variance(covariances: Any, kind: str) -> float:
    """In any direction of any component."""
    matrices = kind in ("full", "tied")
    return float((np.linalg.eigvalsh(covariances) if matrices else np.asarray(covariances)).min())


# Tables, crowds, documents of one topic


def _product(cell: Cell) -> Problem:
    table = data.table(cell.data)
    rows, groups = _rows(table)

    def ours(seed: int) -> Any:
        return odeco.ProductMixture(cell.k, family=list(table.families), random_state=seed).fit(table.values)

    def judge(fit: Any) -> Judged:
        mixture = fit if isinstance(fit, Mixture) else _as_mixture(fit, groups)
        spread = [parameters[1] for family, parameters in zip(groups, mixture.parameters, strict=True)
                  if family == "gaussian"]  # fmt: skip
        return Judged(rows.objective(mixture), float(spread[0].min()) if spread else None)

    return Problem(ours, _random_starts(rows, cell.k), judge)


def _rows(table: data.Table) -> tuple[Rows, dict[str, list[int]]]:
    """Different rows once, with the columns of each family together."""
    values, times = np.unique(table.values, axis=0, return_counts=True, equal_nan=False)
    groups = {
        family: [j for j, name in enumerate(table.families) if name == family]
        for family in dict.fromkeys(table.families)
    }
    make: dict[str, Callable[[Any], Columns]] = {
        "gaussian": Normals,
        "poisson": Rates,
        "bernoulli": lambda part: Shares(*indicators(part)),
        "categorical": lambda part: Shares(*indicators(part)),
    }
    return Rows([make[family](values[:, where]) for family, where in groups.items()], times.astype(float)), groups


def _as_mixture(model: Any, groups: dict[str, list[int]]) -> Mixture:
    """The learned attributes of a `ProductMixture` in the order of `_rows`."""
    means, variances = np.asarray(model.means_), np.asarray(model.variances_)
    pairs = np.stack([1 - means, means], axis=2)  # of 0/1 columns
    read: dict[str, Callable[[list[int]], Any]] = {
        "gaussian": lambda where: np.stack([means[:, where], variances[:, where]]),
        "poisson": lambda where: means[:, where],
        "bernoulli": lambda where: pairs[:, where].reshape(len(means), -1),
        "categorical": lambda where: np.hstack(model.probabilities_),
    }
    return Mixture(model.weights_, [read[family](where) for family, where in groups.items()])


def _random_starts(rows: Rows, k: int, **options: Any) -> list[Callable[[], Mixture]]:
    """EM from Dirichlet responsibilities, drawn within the time that is measured."""
    return [lambda seed=seed: rows.fit(rows.random_start(k, seed), **options) for seed in range(STARTS)]


def _crowd(cell: Cell) -> Problem:
    """Both with the default pseudo-counts of `DawidSkene`, whose log prior counts."""
    votes, smoothing = data.labels(cell.data), odeco.DawidSkene().smoothing
    features, blocks = indicators(votes)
    rows = Rows([Shares(features, blocks, smoothing)], np.ones(len(votes)), smoothing)

    def ours(seed: int) -> Any:
        return odeco.DawidSkene(cell.k, layout="wide", random_state=seed).fit(votes)

    def judge(fit: Any) -> Judged:
        if not isinstance(fit, Mixture):
            confusion = np.asarray(fit.confusion_).transpose(1, 0, 2).reshape(cell.k, -1)
            fit = Mixture(fit.weights_, [confusion])
        return Judged(rows.objective(fit))

    majority = np.stack([(votes == label).sum(axis=1) + 1e-3 for label in range(cell.k)], axis=1)
    first = lambda: rows.fit(majority / majority.sum(axis=1, keepdims=True))  # noqa: E731
    return Problem(ours, [first, *_random_starts(rows, cell.k)[1:]], judge)


def _single_topic(cell: Cell) -> Problem:
    """Both with the default pseudo-counts of `SingleTopicModel`, whose log prior counts."""
    counts, smoothing = data.counts(cell.data), odeco.SingleTopicModel().smoothing
    words = Shares(counts, np.zeros(counts.shape[1], dtype=int), smoothing)
    rows = Rows([words], np.ones(counts.shape[0]), smoothing)

    def judge(fit: Any) -> Judged:
        found = fit if isinstance(fit, Mixture) else Mixture(fit.weights_, [fit.components_])
        return Judged(rows.objective(found))

    def ours(seed: int) -> Any:
        return odeco.SingleTopicModel(cell.k, random_state=seed).fit(counts)

    return Problem(ours, _random_starts(rows, cell.k, max_iter=200, tol=1e-5), judge)


def _topics(cell: Cell) -> Problem:
    train, test = data.held_out(cell.data)

    def peer(seed: int) -> Any:
        return fit_tomotopy(train, cell.k, 1 / cell.k, TOMOTOPY_ITERATIONS, seed, workers=1).topics

    def judge(topics: Any) -> Judged:
        return Judged(completion(test, getattr(topics, "components_", topics)).perplexity)

    def ours(seed: int) -> Any:
        return odeco.LatentDirichletAllocation(cell.k, random_state=seed).fit(train)

    return Problem(ours, [partial(peer, seed) for seed in range(TOMOTOPY_STARTS)], judge)


# Chains and signals


def _chain(cell: Cell, make: Callable[..., Any]) -> Problem:
    read = data.symbols if cell.estimator == "CategoricalHMM" else data.sequences
    x, lengths = read(cell.data)

    def ours(seed: int) -> Any:
        return make(cell.k, random_state=seed).fit(x, lengths)

    def judge(fit: Any) -> Judged:
        peer = fit.to_hmmlearn() if hasattr(fit, "to_hmmlearn") else fit
        spread = float(np.linalg.eigvalsh(peer.covars_).min()) if hasattr(peer, "covars_") else None
        return Judged(float(peer.score(x, lengths)) / len(x), spread)

    return Problem(ours, [partial(_hmmlearn, cell, x, lengths, seed) for seed in range(STARTS)], judge)


def _hmmlearn(cell: Cell, x: Any, lengths: Any, seed: int) -> Any:
    """From its own random start."""
    from hmmlearn import hmm

    name, _, kind = cell.estimator.partition(" ")
    options = {"covariance_type": kind} if kind else {}
    rule = {"n_iter": HMM_PASSES, "tol": HMM_GAIN, "implementation": "scaling"}
    return getattr(hmm, name)(cell.k, random_state=seed, **rule, **options).fit(x, lengths)


def _signals(cell: Cell) -> Problem:
    """The distance of Amari from the true mixing, times 100; the peers' best is chosen knowing it."""
    from picard import Picard
    from sklearn.decomposition import FastICA

    x, mixing = data.mixed(cell)

    def fast(algorithm: str, seed: int) -> Any:
        return FastICA(cell.k, algorithm=algorithm, whiten="unit-variance", random_state=seed).fit(x)

    starts: list[Callable[[], Any]] = [
        *(partial(fast, algorithm, seed) for algorithm in ("parallel", "deflation") for seed in range(2)),
        *(lambda seed=seed: Picard(cell.k, random_state=seed).fit(x) for seed in range(2)),
    ]
    return Problem(
        lambda seed: odeco.ICA(cell.k, random_state=seed).fit(x),
        starts,
        lambda fit: Judged(100 * amari(fit.components_, mixing)),
    )
