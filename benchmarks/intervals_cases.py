"""Data drawn from every model, with the truth: what the study of intervals needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import odeco
from odeco import simulate
from odeco.fitting.card import ByOption
from odeco.metrics import match_components
from odeco.models.cards import known_card


@dataclass(frozen=True, eq=False)
class Case:
    """One model with parameters.

    Attributes
    ----------
    draw : function
        From a generator and a size to data and further arguments of `fit`.
    make : function
        From a seed, and arguments of the estimator, to an estimator.
    truth : mapping
        Attributes and what they should be.
    sizes : the two sizes of the study
    key : str
        The attribute that components are told apart by.
    options : mapping
        Arguments of `odeco.intervals`.
    n_sets : int or None
        Data sets, where they are fewer than of the others.
    replicates : bool
        Whether it is in the study of replication.
    """

    name: str
    draw: Callable[[np.random.Generator, int], tuple[Any, dict[str, Any]]]
    make: Callable[..., Any]
    truth: Mapping[str, Any]
    sizes: tuple[int, int]
    key: str
    options: Mapping[str, Any] = field(default_factory=dict)
    n_sets: int | None = None
    replicates: bool = True

    def order(self, model: Any) -> Any:
        """The true component of each fitted one."""
        found, true = (
            _columns(self.axes(model, self.key)[0], value) for value in (getattr(model, self.key), self.truth[self.key])
        )
        return match_components(true, found, up_to_sign=bool(model._signed)).permutation

    def partners(self, model: Any) -> Any:
        """The fitted component of each true one, where more are fitted."""
        axis = self.axes(model, self.key)[0]
        found, true = (_columns(axis, value) for value in (getattr(model, self.key), self.truth[self.key]))
        return match_components(found, true, up_to_sign=bool(model._signed)).permutation

    def axes(self, model: Any, name: str) -> tuple[int, ...]:
        """Where components stand in an attribute."""
        words = known_card(model).learned[name]
        words = words.shapes[getattr(model, words.name)] if isinstance(words, ByOption) else words
        sizes = words.split(" of ")[-1].replace("?", "").split()[1:]
        return tuple(axis for axis, size in enumerate(sizes) if size == "k")

    def permute(self, name: str, value: Any, order: Any) -> Any:
        """True values in the order of the fitted components."""
        for axis in self.axes(self.make(0), name):
            value = np.take(value, order, axis=axis)
        return value


def _columns(axis: int, value: Any) -> Any:
    parts = value if isinstance(value, list) else [value]
    return np.hstack([np.moveaxis(np.asarray(part), axis, 0).reshape(np.shape(part)[axis], -1) for part in parts]).T


Drawn = tuple[Any, dict[str, Any]]
_WEIGHTS = np.array([0.5, 0.3, 0.2])
_K = 3


def _hidden(rng: np.random.Generator, n: int) -> Any:
    return rng.choice(_K, n, p=_WEIGHTS)


def _chain(rng: np.random.Generator, n: int) -> tuple[Any, list[int]]:
    """States of sequences of 40 steps each."""
    starts = rng.choice(_K, n // 40, p=_START)
    levels = _TRANSITIONS.cumsum(axis=1)
    states = np.empty((len(starts), 40), dtype=int)
    states[:, 0] = starts
    for t in range(1, 40):
        states[:, t] = np.minimum((rng.random((len(starts), 1)) > levels[states[:, t - 1]]).sum(axis=1), _K - 1)
    return states.ravel(), [40] * len(starts)


_START = np.array([0.5, 0.3, 0.2])
_TRANSITIONS = np.array([[0.8, 0.12, 0.08], [0.15, 0.7, 0.15], [0.1, 0.2, 0.7]])
_MEANS = np.array([[0.0, 0, 0, 0, 0], [3, 0, 1, 0, 1], [0, 3, 1, 1, 0]])
_VARIANCES = np.array([1.0, 0.6, 1.5])
_DIAGONAL = np.array([[1.0, 0.7, 1.2, 0.5, 1.0], [0.6, 1.0, 0.8, 1.0, 1.5], [1.2, 0.9, 1.0, 0.7, 0.8]])
_FULL = np.array([np.diag(row) + 0.2 * (1 - np.eye(5)) for row in _DIAGONAL])
_SHARES = np.array(
    [
        [0.9, 0.8, 0.85, 0.7, 0.9, 0.2, 0.3, 0.8],
        [0.2, 0.15, 0.3, 0.2, 0.7, 0.8, 0.85, 0.3],
        [0.15, 0.7, 0.2, 0.8, 0.1, 0.2, 0.8, 0.9],
    ]
)
_CATEGORIES = [
    np.array([[0.7, 0.2, 0.1], [0.15, 0.7, 0.15], [0.1, 0.2, 0.7]]),
    np.array([[0.2, 0.8], [0.7, 0.3], [0.5, 0.5]]),
]
_RATES = np.array([[2.0, 5.0], [6.0, 2.0], [3.0, 9.0]])
_CONFUSION = np.array(
    [[[a, (1 - a) / 2, (1 - a) / 2], [0.12, 0.76, 0.12], [0.08, 0.2, 0.72]] for a in (0.9, 0.8, 0.7, 0.85, 0.75, 0.8)]
)
_WORDS = np.random.default_rng(5).dirichlet(np.full(20, 0.5), _K) * 0.8 + 0.01
_WORDS /= _WORDS.sum(axis=1, keepdims=True)
_EMISSION = np.array([[0.5, 0.25, 0.1, 0.1, 0.05], [0.05, 0.15, 0.5, 0.2, 0.1], [0.1, 0.05, 0.1, 0.25, 0.5]])
_VIEW_MEANS = [np.array([[0.0, 0, 0], [2.5, 0, 1], [0, 2.5, 1]]) + t for t in range(3)]
_MIXING = np.array([[1.0, 0.5, -0.3], [0.2, 1.0, 0.4], [-0.4, 0.3, 1.0], [0.6, -0.5, 0.5], [0.3, 0.3, -0.6]])


def _spheres(rng: np.random.Generator, n: int) -> Drawn:
    z = _hidden(rng, n)
    return _MEANS[z] + np.sqrt(_VARIANCES)[z, None] * rng.standard_normal((n, 5)), {}


def _axes(rng: np.random.Generator, n: int) -> Drawn:
    z = _hidden(rng, n)
    return _MEANS[z] + np.sqrt(_DIAGONAL)[z] * rng.standard_normal((n, 5)), {}


def _ellipses(rng: np.random.Generator, n: int) -> Drawn:
    z, roots = _hidden(rng, n), np.linalg.cholesky(_FULL)
    return _MEANS[z] + np.einsum("nab,nb->na", roots[z], rng.standard_normal((n, 5))), {}


def _alike(rng: np.random.Generator, n: int) -> Drawn:
    root = np.linalg.cholesky(_FULL[0])
    return _MEANS[_hidden(rng, n)] + rng.standard_normal((n, 5)) @ root.T, {}


def _answers(rng: np.random.Generator, n: int) -> Drawn:
    return (rng.random((n, 8)) < _SHARES[_hidden(rng, n)]).astype(float), {}


def _mixed(rng: np.random.Generator, n: int) -> Drawn:
    z = _hidden(rng, n)
    codes = [np.minimum((rng.random((n, 1)) > p.cumsum(axis=1)[z]).sum(axis=1), p.shape[1] - 1) for p in _CATEGORIES]
    numbers = _MEANS[z, :2] + np.sqrt(_DIAGONAL)[z, :2] * rng.standard_normal((n, 2))
    return np.column_stack([rng.random((n, 4)) < _SHARES[z, :4], *codes, rng.poisson(_RATES[z]), numbers]).astype(
        float
    ), {}


_MIXED = ["bernoulli"] * 4 + ["categorical"] * 2 + ["poisson"] * 2 + ["gaussian"] * 2
_MIXED_MEANS = np.column_stack(
    [_SHARES[:, :4], _CATEGORIES[0] @ [0, 1, 2], _CATEGORIES[1] @ [0, 1], _RATES, _MEANS[:, :2]]
)
_MIXED_VARIANCES = np.column_stack(
    [
        _SHARES[:, :4] * (1 - _SHARES[:, :4]),
        *(p @ np.arange(p.shape[1]) ** 2 - (p @ np.arange(p.shape[1])) ** 2 for p in _CATEGORIES),
        _RATES,
        _DIAGONAL[:, :2],
    ]
)


def _views(rng: np.random.Generator, n: int) -> Drawn:
    z = _hidden(rng, n)
    return [means[z] + rng.standard_normal((n, 3)) for means in _VIEW_MEANS], {}


def _votes(rng: np.random.Generator, n: int) -> Drawn:
    z = _hidden(rng, n)
    labels = [np.minimum((rng.random((n, 1)) > c.cumsum(axis=1)[z]).sum(axis=1), 2) for c in _CONFUSION]
    return np.column_stack(labels), {}


def _symbols(rng: np.random.Generator, n: int) -> Drawn:
    states, lengths = _chain(rng, n)
    symbols = np.minimum((rng.random((len(states), 1)) > _EMISSION.cumsum(axis=1)[states]).sum(axis=1), 4)
    return symbols[:, None], {"lengths": lengths}


def _measurements(rng: np.random.Generator, n: int) -> Drawn:
    states, lengths = _chain(rng, n)
    return _MEANS[states, :2] + np.sqrt(_DIAGONAL)[states, :2] * rng.standard_normal((len(states), 2)), {
        "lengths": lengths
    }


def _events(rng: np.random.Generator, n: int) -> Drawn:
    states, lengths = _chain(rng, n)
    return rng.poisson(_RATES[states]), {"lengths": lengths}


def _signals(rng: np.random.Generator, n: int) -> Drawn:
    sources = np.column_stack(
        [rng.laplace(size=n) / np.sqrt(2), np.sqrt(3) * rng.uniform(-1, 1, n), rng.choice([-1.0, 1.0], n)]
    )
    return sources @ _MIXING.T + 0.5 * rng.standard_normal((n, 5)), {}


def _one_topic(rng: np.random.Generator, n: int) -> Drawn:
    return simulate.single_topic_documents(n, _WORDS, _WEIGHTS, mean_length=15, random_state=rng).counts, {}


def _topics(rng: np.random.Generator, n: int) -> Drawn:
    return simulate.lda_documents(n, _WORDS, _ALPHA, mean_length=60, random_state=rng).counts, {}


_ALPHA = np.array([0.4, 0.3, 0.2])
_CHAIN_TRUTH = {"startprob_": _START, "transmat_": _TRANSITIONS}


def _gaussian(kind: str) -> Callable[..., Any]:
    return lambda seed, **more: odeco.GaussianMixture(_K, kind, random_state=seed, **more)


def _estimator(name: str, *arguments: Any, **fixed: Any) -> Callable[..., Any]:
    return lambda seed, **more: getattr(odeco, name)(*arguments, random_state=seed, **{**fixed, **more})


CASES = {
    case.name: case
    for case in (
        Case("GaussianMixture spherical", _spheres, _gaussian("spherical"),
             {"weights_": _WEIGHTS, "means_": _MEANS, "covariances_": _VARIANCES}, (500, 2000), "means_"),
        Case("GaussianMixture diag", _axes, _gaussian("diag"),
             {"weights_": _WEIGHTS, "means_": _MEANS, "covariances_": _DIAGONAL}, (500, 2000), "means_"),
        Case("GaussianMixture full", _ellipses, _gaussian("full"),
             {"weights_": _WEIGHTS, "means_": _MEANS, "covariances_": _FULL}, (1000, 4000), "means_", replicates=False),
        Case("GaussianMixture tied", _alike, _gaussian("tied"),
             {"weights_": _WEIGHTS, "means_": _MEANS, "covariances_": _FULL[0]}, (500, 2000), "means_",
             replicates=False),
        Case("ProductMixture bernoulli", _answers, _estimator("ProductMixture", _K, family="bernoulli", effort="quick"),
             {"weights_": _WEIGHTS, "means_": _SHARES}, (1000, 4000), "means_"),
        Case("ProductMixture mixed", _mixed, _estimator("ProductMixture", _K, family=_MIXED, effort="quick"),
             {"weights_": _WEIGHTS, "means_": _MIXED_MEANS, "variances_": _MIXED_VARIANCES,
              "probabilities_": _CATEGORIES}, (1000, 4000), "means_"),
        Case("MultiViewMixture", _views, _estimator("MultiViewMixture", _K),
             {"weights_": _WEIGHTS, "means_": _VIEW_MEANS, "variances_": [np.ones((3, 3))] * 3}, (500, 2000), "means_"),
        Case("DawidSkene", _votes, _estimator("DawidSkene", _K),
             {"weights_": _WEIGHTS, "confusion_": _CONFUSION}, (1000, 4000), "confusion_"),
        Case("CategoricalHMM", _symbols, _estimator("CategoricalHMM", _K, n_features=5),
             {**_CHAIN_TRUTH, "emissionprob_": _EMISSION}, (8000, 16000), "emissionprob_"),
        Case("GaussianHMM", _measurements, _estimator("GaussianHMM", _K, effort="quick"),
             {**_CHAIN_TRUTH, "means_": _MEANS[:, :2], "covars_": _DIAGONAL[:, :2]},
             (2000, 8000), "means_"),
        Case("PoissonHMM", _events, _estimator("PoissonHMM", _K, effort="quick"),
             {**_CHAIN_TRUTH, "lambdas_": _RATES}, (2000, 8000), "lambdas_"),
        Case("SingleTopicModel", _one_topic, _estimator("SingleTopicModel", _K),
             {"weights_": _WEIGHTS, "components_": _WORDS}, (1000, 4000), "components_"),
        Case("LatentDirichletAllocation", _topics, _estimator("LatentDirichletAllocation", _K),
             {"components_": _WORDS, "alpha_": _ALPHA, "alpha0_": _ALPHA.sum()}, (500, 1000), "components_"),
        Case("LatentDirichletAllocation refine=None", _topics, _estimator("LatentDirichletAllocation", _K, refine=None),
             {"components_": _WORDS, "alpha_": _ALPHA, "alpha0_": _ALPHA.sum()}, (2000, 4000), "components_",
             {"n_replicates": 50}, n_sets=50, replicates=False),
        Case("GaussianMixture spherical refine=None", _spheres,
             lambda seed, **more: odeco.GaussianMixture(_K, refine=None, random_state=seed, **more),
             {"weights_": _WEIGHTS, "means_": _MEANS, "covariances_": _VARIANCES}, (2000, 8000), "means_",
             {"n_replicates": 50}, replicates=False),
        Case("GaussianMixture spherical replicates", _spheres, _gaussian("spherical"),
             {"weights_": _WEIGHTS, "means_": _MEANS, "covariances_": _VARIANCES}, (500, 2000), "means_",
             {"method": "replicates", "n_replicates": 50}, replicates=False),
        Case("ICA", _signals, _estimator("ICA", _K),
             {"mixing_": _MIXING, "components_": np.linalg.pinv(_MIXING), "mean_": np.zeros(5),
              "kurtosis_": np.array([3.0, -1.2, -2.0]), "noise_covariance_": 0.25 * np.eye(5)},
             (4000, 16000), "mixing_", {"n_replicates": 50}),
    )
}  # fmt: skip
