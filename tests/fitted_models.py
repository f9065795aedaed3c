"""One small fitted model of every estimator, with what its report can be given; each is fitted once."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

import odeco
from odeco import simulate
from odeco.models.cards import known_card
from odeco.uncertainty import Intervals
from odeco.uncertainty.bounds import together
from odeco.uncertainty.parameters import learned_arrays

_SEED = 3


def _topics() -> tuple[Any, list[str]]:
    """300 documents of three topics over twenty words that are easy to tell apart."""
    words = [f"{kind}{i}" for kind in ("sea", "corn", "gold") for i in range(6)] + ["and", "the"]
    topics = np.full((3, 20), 0.005)
    for i in range(3):
        topics[i, 6 * i : 6 * i + 6] = np.linspace(2.0, 0.5, 6)
        topics[i, 18:] = 1.0
    topics /= topics.sum(axis=1, keepdims=True)
    drawn = simulate.lda_documents(300, topics, np.array([0.5, 0.3, 0.2]), mean_length=40, random_state=_SEED)
    return drawn.counts, words


def lda() -> tuple[Any, dict[str, Any]]:
    counts, words = _topics()
    texts = [" ".join(words[w] for w in np.repeat(row.indices, row.data.astype(int))) for row in _rows(counts)]
    model = odeco.LatentDirichletAllocation(3, random_state=0).fit(counts)
    return model, {"data": counts, "vocabulary": words, "documents": texts}


def single_topic() -> tuple[Any, dict[str, Any]]:
    counts, words = _topics()
    return odeco.SingleTopicModel(3, random_state=0).fit(counts), {"data": counts, "vocabulary": words}


def gaussian_mixture() -> tuple[Any, dict[str, Any]]:
    rng = np.random.default_rng(_SEED)
    centres = np.array([[0.0, 0, 0, 0], [5, 0, 0, 0], [0, 5, 0, 0]])
    rows = centres[rng.choice(3, 400, p=[0.5, 0.3, 0.2])] + rng.standard_normal((400, 4))
    model = odeco.GaussianMixture(3, random_state=0).fit(rows)
    return model, {"data": rows, "feature_names": ["length", "width", "height", "weight"]}


def product_mixture() -> tuple[Any, dict[str, Any]]:
    rng = np.random.default_rng(_SEED)
    hidden = rng.integers(2, size=400)
    table = np.column_stack(
        [
            (rng.random((400, 3)) < np.where(hidden, 0.9, 0.2)[:, None]).astype(float),
            rng.poisson(np.where(hidden, 12.0, 3.0)),
            rng.normal(np.where(hidden, 2.0, -1.0), 1.0),
            np.where(rng.random(400) < np.where(hidden, 0.7, 0.2), 2, rng.integers(0, 2, 400)),
        ]
    )
    families = ["bernoulli"] * 3 + ["poisson", "gaussian", "categorical"]
    model = odeco.ProductMixture(2, family=families, random_state=0).fit(table)
    return model, {"data": table, "feature_names": ["a", "b", "c", "visits", "score", "colour"]}


def multiview() -> tuple[Any, dict[str, Any]]:
    rng = np.random.default_rng(_SEED)
    hidden = rng.integers(2, size=600)
    views = [rng.standard_normal((600, 3)) + 3 * hidden[:, None] * np.eye(3)[t] for t in range(3)]
    model = odeco.MultiViewMixture(2, effort="quick", random_state=0).fit(views)
    return model, {"data": views, "feature_names": [[f"view{t}-{j}" for j in range(3)] for t in range(3)]}


def dawid_skene() -> tuple[Any, dict[str, Any]]:
    rng = np.random.default_rng(_SEED)
    truth = rng.integers(3, size=200)
    right = np.linspace(0.95, 0.5, 7)
    labels = np.where(rng.random((200, 7)) < right, truth[:, None], rng.integers(3, size=(200, 7)))
    return odeco.DawidSkene(random_state=0, layout="wide").fit(labels), {"data": labels}


def categorical_hmm() -> tuple[Any, dict[str, Any]]:
    emission = np.array([[0.7, 0.2, 0.1, 0.0], [0.0, 0.1, 0.3, 0.6]])
    symbols = _chain(lambda rng, state: rng.choice(4, p=emission[state]))
    model = odeco.CategoricalHMM(2, effort="quick", random_state=0).fit(symbols)
    return model, {"data": symbols, "vocabulary": list("acgt")}


def gaussian_hmm() -> tuple[Any, dict[str, Any]]:
    values = _chain(lambda rng, state: rng.normal([3.0 * state, -state], 1.0))
    model = odeco.GaussianHMM(2, effort="quick", random_state=0).fit(values, [400, 400])
    return model, {"data": (values, [400, 400]), "feature_names": ["heart", "breath"]}


def poisson_hmm() -> tuple[Any, dict[str, Any]]:
    counts = _chain(lambda rng, state: rng.poisson([3.0 + 9 * state]))
    return odeco.PoissonHMM(2, random_state=0).fit(counts), {"data": counts, "feature_names": ["calls"]}


def ica() -> tuple[Any, dict[str, Any]]:
    rng = np.random.default_rng(_SEED)
    sources = np.column_stack([rng.uniform(-1, 1, 3000), rng.laplace(size=3000)])
    rows = sources @ np.array([[1.0, 0.5, 0.2], [0.2, 1.0, -0.4]]) + 0.1 * rng.standard_normal((3000, 3))
    return odeco.ICA(2, random_state=0).fit(rows), {"data": rows, "feature_names": ["left", "middle", "right"]}


def _chain(emit: Any) -> Any:
    rng = np.random.default_rng(_SEED)
    states = np.zeros(800, dtype=int)
    for t in range(1, 800):
        states[t] = states[t - 1] if rng.random() < 0.93 else 1 - states[t - 1]
    return np.array([emit(rng, state) for state in states])


def _rows(counts: Any) -> list[Any]:
    return [counts[[i]] for i in range(counts.shape[0])]


FITTED = {
    maker.__name__: maker
    for maker in (
        lda,
        single_topic,
        gaussian_mixture,
        product_mixture,
        multiview,
        dawid_skene,
        categorical_hmm,
        gaussian_hmm,
        poisson_hmm,
        ica,
    )
}


@cache
def fitted_model(name: str) -> tuple[Any, dict[str, Any]]:
    """A fitted model and the arguments of its report."""
    return FITTED[name]()


def made_up_intervals(model: Any) -> Intervals:
    """Intervals as wide as a tenth of each number, the last part lost."""
    card = known_card(model)
    arrays = learned_arrays(model, card)
    values = [(each, each.of(model)) for each in arrays]
    sides = [together([(each, value + by * np.abs(value)) for each, value in values]) for by in (0, -0.05, 0.05)]
    k = max(each.of(model).shape[each.axes[0]] for each in arrays if each.axes)
    axes = {each.name: each.axes for each in arrays}
    replication = np.append(np.ones(k - 1), 0.2)
    return Intervals(*sides, sides[0], replication, 0.95, "sandwich", component=card.part, axes=axes)
