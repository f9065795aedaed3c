"""Data drawn from every model, for the choice of a number of components: k of 2 to 6, parts that can be told apart.

How far apart is said here and was set before the figures were taken: closest means five (spheres), seven (any shape)
and three (views, chains) standard deviations from each other; topics of 500 words, 60 words to a document.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import odeco
from odeco import simulate


@dataclass(frozen=True)
class Drawn:
    """A model, the sizes that are drawn, and how: ``draw(rng, k, n)`` gives what `fit` takes."""

    estimator: str
    sizes: tuple[int, ...]
    draw: Callable[[np.random.Generator, int, int], Any]
    options: dict[str, Any] = field(default_factory=dict)
    count: str = "n_components"

    def make(self, number: Any) -> Any:
        return getattr(odeco, self.estimator)(**{self.count: number}, random_state=0, **self.options)


def _weights(rng: np.random.Generator, k: int) -> Any:
    return rng.dirichlet(np.full(k, 10.0))


def _means(rng: np.random.Generator, k: int, d: int, apart: float) -> Any:
    """Means whose closest two are this far apart."""
    means = rng.standard_normal((k, d))
    distances = np.linalg.norm(means[:, None] - means[None], axis=2)[np.triu_indices(k, 1)]
    return means * apart / distances.min()


def _topics(rng: np.random.Generator, k: int) -> Any:
    return simulate.zipf_topics(k, 500, random_state=rng)


def _documents(rng: np.random.Generator, k: int, n: int) -> Any:
    return simulate.lda_documents(n, _topics(rng, k), np.full(k, 0.1), random_state=rng).counts


def _one_topic_each(rng: np.random.Generator, k: int, n: int) -> Any:
    return simulate.single_topic_documents(n, _topics(rng, k), _weights(rng, k), random_state=rng).counts


def _spheres(rng: np.random.Generator, k: int, n: int) -> Any:
    return simulate.gaussian_mixture(n, _means(rng, k, 8, 5.0), _weights(rng, k), random_state=rng).rows


def _ellipsoids(rng: np.random.Generator, k: int, n: int) -> Any:
    drawn = simulate.gaussian_mixture(n, _means(rng, k, 4, 7.0), _weights(rng, k), random_state=rng)
    shapes = np.eye(4) + 0.4 * rng.standard_normal((k, 4, 4))
    centre = drawn.means[drawn.labels]
    return centre + np.einsum("nij,nj->ni", shapes[drawn.labels], drawn.rows - centre)


def _answers(rng: np.random.Generator, k: int, n: int) -> Any:
    tables = [rng.dirichlet(np.full(3, 0.7), size=k) for _ in range(12)]
    return simulate.latent_classes(n, _weights(rng, k), tables, random_state=rng).codes


def _views(rng: np.random.Generator, k: int, n: int) -> Any:
    means = [_means(rng, k, 8, 3.0) for _ in range(3)]
    return simulate.gaussian_views(n, means, _weights(rng, k), random_state=rng).views


def _votes(rng: np.random.Generator, k: int, n: int) -> Any:
    """Twelve annotators who name one of six labels, of which the classes are the first k."""
    confusion = [[rng.dirichlet(np.where(np.arange(6) == j, 8.0, 0.5)) for j in range(k)] for _ in range(12)]
    return simulate.crowd_labels(n, np.array(confusion), _weights(rng, k), random_state=rng).labels


def _transitions(rng: np.random.Generator, k: int) -> Any:
    return 0.8 * np.eye(k) + 0.2 * rng.dirichlet(np.ones(k), size=k)


def _symbols(rng: np.random.Generator, k: int, n: int) -> Any:
    emission = rng.dirichlet(np.full(20, 0.1), size=k)
    return simulate.categorical_hmm(n, _transitions(rng, k), emission, random_state=rng).observations


def _measurements(rng: np.random.Generator, k: int, n: int) -> Any:
    states = simulate.markov_chain(n, _transitions(rng, k), random_state=rng)
    return _means(rng, k, 3, 3.0)[states] + rng.standard_normal((n, 3))


def _counts(rng: np.random.Generator, k: int, n: int) -> Any:
    states = simulate.markov_chain(n, _transitions(rng, k), random_state=rng)
    return rng.poisson(rng.gamma(1.0, 5.0, size=(k, 4))[states])


def _signals(rng: np.random.Generator, k: int, n: int) -> Any:
    """Sources of heavy and of light tails in ten channels, with noise of a fifth of their deviation."""
    sources = [rng.laplace(size=n) if i % 2 else rng.uniform(-1.7, 1.7, n) for i in range(k)]
    return np.column_stack(sources) @ rng.standard_normal((k, 10)) + 0.2 * rng.standard_normal((n, 10))


DRAWN = {
    "LatentDirichletAllocation": Drawn("LatentDirichletAllocation", (500, 2_000, 8_000), _documents),
    "SingleTopicModel": Drawn("SingleTopicModel", (300, 1_000, 4_000), _one_topic_each),
    "GaussianMixture": Drawn("GaussianMixture", (300, 1_000, 4_000), _spheres),
    "GaussianMixture full": Drawn("GaussianMixture", (300, 1_000, 4_000), _ellipsoids, {"covariance_type": "full"}),
    "ProductMixture": Drawn("ProductMixture", (500, 1_500, 5_000), _answers, {"family": "categorical"}),
    "MultiViewMixture": Drawn("MultiViewMixture", (300, 1_000, 4_000), _views),
    "DawidSkene": Drawn("DawidSkene", (200, 600, 2_000), _votes, count="n_classes"),
    "CategoricalHMM": Drawn("CategoricalHMM", (2_000, 5_000, 20_000), _symbols),
    "GaussianHMM": Drawn("GaussianHMM", (500, 2_000, 8_000), _measurements),
    "PoissonHMM": Drawn("PoissonHMM", (500, 2_000, 8_000), _counts),
    "ICA": Drawn("ICA", (500, 2_000, 8_000), _signals),
}
