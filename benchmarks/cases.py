"""One case for each model: data, who fits it, and how good a fit is. Everybody gets the same rows and threads.

Peers run at the settings that their documentation suggests for such data; where more starts or passes are usual, they
are contenders of their own.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.metrics.cluster import contingency_matrix

import odeco
from benchmarks import topics_peers as topics
from benchmarks.topics_peers import ETA
from odeco import simulate
from odeco.completion import completion
from odeco.metrics import amari, match_components


@dataclass(frozen=True)
class Data:
    """What is fitted, what is held out (or None), the truth, and the number of components."""

    train: Any
    test: Any
    truth: Any
    k: int


@dataclass(frozen=True)
class Case:
    """A model beside its peers.

    Attributes
    ----------
    sizes, quick_sizes : tuple
        What `draw` takes before the seed.
    fits : dict
        By name of the contender, data and seed to a fitted model; "odeco" is ours.
    quality : callable
        Of a fitted model and the data; higher is better unless `lower`.
    tolerance : float
        How near to the best of all contenders counts as having found the best optimum.
    """

    title: str
    measure: str
    draw: Callable[..., Data]
    sizes: tuple[Any, ...]
    quick_sizes: tuple[Any, ...]
    fits: dict[str, Callable[[Data, int], Any]]
    quality: Callable[[Any, Data], float]
    tolerance: float
    lower: bool = False
    threads: int = 1
    peers: tuple[str, ...] = ()  # modules that are imported before any clock runs


# Tensors


def _draw_tensor(k: int, seed: int) -> Data:
    sample = simulate.odeco_tensor(k, noise=0.1 / np.sqrt(k), random_state=seed)
    return Data(sample.tensor, None, sample, k)


def _tensorly(data: Data, seed: int) -> Any:
    from tensorly.decomposition import symmetric_parafac_power_iteration

    np.random.seed(seed)  # noqa: NPY002 (it draws its starts from there)
    return symmetric_parafac_power_iteration(data.train, data.k)[1]


def _pyttb(init: str) -> Callable[[Data, int], Any]:
    def fit(data: Data, seed: int) -> Any:
        from benchmarks.decomposition import pyttb_vectors

        return pyttb_vectors(data.train, data.k, init, seed)

    return fit


def _vector_error(vectors: Any, data: Data) -> float:
    """The largest error of an eigenvector in units of eps / lambda; general methods may turn a vector."""
    unit = vectors / np.linalg.norm(vectors, axis=0)
    return match_components(unit, data.truth.eigenvectors, up_to_sign=True).largest / data.truth.noise_norm


# Topics


def _draw_documents(n: int, d: int, k: int, seed: int) -> Data:
    rng = np.random.default_rng(seed)
    words, alpha = simulate.zipf_topics(k, d, random_state=rng), rng.dirichlet(np.full(k, 5.0)) / 2
    sample = simulate.lda_documents(n + n // 10, words, alpha, random_state=rng)
    return Data(sample.counts[:n], sample.counts[n:], words, k)


def _perplexity(fit: topics.Fit, data: Data) -> float:
    return completion(data.test, fit.topics).perplexity


def _draw_one_topic_each(n: int, d: int, k: int, seed: int) -> Data:
    """Documents of 20 words: long ones are told apart by anybody."""
    rng = np.random.default_rng(seed)
    words, weights = simulate.zipf_topics(k, d, random_state=rng), rng.dirichlet(np.full(k, 5.0))
    sample = simulate.single_topic_documents(n + n // 10, words, weights, mean_length=20, random_state=rng)
    return Data(sample.counts[:n], sample.counts[n:], sample.proportions[n:].argmax(axis=1), k)


def _k_means_of_documents(n_init: int) -> Callable[[Data, int], Any]:
    """What scikit-learn's example "Clustering text documents using k-means" does: TF-IDF, LSA, k-means."""

    def fit(data: Data, seed: int) -> Any:
        from sklearn.cluster import KMeans
        from sklearn.decomposition import TruncatedSVD
        from sklearn.feature_extraction.text import TfidfTransformer
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import Normalizer

        directions = TruncatedSVD(min(100, data.train.shape[1] - 1), random_state=seed)
        groups = KMeans(data.k, max_iter=100, n_init=n_init, random_state=seed)
        return make_pipeline(TfidfTransformer(), directions, Normalizer(copy=False), groups).fit(data.train)

    return fit


def _misplaced(model: Any, data: Data) -> float:
    """Held-out documents that are not in the group of their topic, groups named as is best, in per cent."""
    together = contingency_matrix(data.truth, model.predict(data.test))
    return 100 * (1 - together[linear_sum_assignment(-together)].sum() / len(data.truth))


# Mixtures


def _draw_spheres(n: int, d: int, k: int, seed: int) -> Data:
    from benchmarks.gaussian_mixture import draw

    rows, truth = draw(n + n // 5, d, k, 3.5, True, seed)
    return Data(rows[:n], rows[n:], truth, k)


def _sklearn_mixture(n_init: int) -> Callable[[Data, int], Any]:
    def fit(data: Data, seed: int) -> Any:
        from sklearn.mixture import GaussianMixture

        return GaussianMixture(data.k, covariance_type="spherical", n_init=n_init, random_state=seed).fit(data.train)

    return fit


def _draw_answers(n: int, d: int, k: int, seed: int) -> Data:
    from benchmarks.product_mixture import draw_bernoulli

    rows, *truth = draw_bernoulli(n + n // 4, d, k, seed)
    return Data(rows[:n], rows[n:], truth, k)


def _stepmix(n_init: int) -> Callable[[Data, int], Any]:
    def fit(data: Data, seed: int) -> Any:
        from benchmarks.product_mixture import stepmix

        return stepmix(data.k, "bernoulli", n_init, seed).fit(data.train)

    return fit


def _score(model: Any, data: Data) -> float:
    return float(model.score(data.test))


# Views


def _draw_views(n: int, d: int, k: int, seed: int) -> Data:
    rng = np.random.default_rng(seed)
    means = [0.5 * rng.standard_normal((k, d)) for _ in range(3)]
    views = simulate.gaussian_views(n + n // 4, means, rng.dirichlet(np.full(k, 5.0)), random_state=rng).views
    return Data([view[:n] for view in views], [view[n:] for view in views], means, k)


def _joined_views(n_init: int) -> Callable[[Data, int], Any]:
    def fit(data: Data, seed: int) -> Any:
        from sklearn.mixture import GaussianMixture

        model = GaussianMixture(data.k, covariance_type="diag", n_init=n_init, random_state=seed)
        return model.fit(np.hstack(data.train))

    return fit


def _score_of_views(model: Any, data: Data) -> float:
    return float(model.score(data.test if isinstance(model, odeco.MultiViewMixture) else np.hstack(data.test)))


def _draw_crowd(n: int, workers: int, k: int, seed: int) -> Data:
    """Every worker labels a tenth of the items; half of them give labels that say little."""
    import pandas as pd

    from benchmarks.multiview import draw_confusion

    rng = np.random.default_rng(seed)
    confusion = draw_confusion(rng, workers, k, 0.5, 0.0, 0.7)
    drawn = simulate.crowd_labels(n, confusion, rng.dirichlet(np.full(k, 5.0)), share=0.1, random_state=rng)
    item, worker = np.nonzero(drawn.labels >= 0)
    table = pd.DataFrame({"item": item, "worker": worker, "label": drawn.labels[item, worker]})
    return Data(table, None, drawn.truth, k)


def _crowd_kit(name: str) -> Callable[[Data, int], Any]:
    def fit(data: Data, seed: int) -> Any:
        from crowdkit import aggregation

        return getattr(aggregation, name)().fit_predict(data.train.rename(columns={"item": "task"})).sort_index()

    return fit


def _mislabelled(labels: Any, data: Data) -> float:
    """Of the items, in their order; in per cent."""
    return 100 * float(np.mean(np.asarray(labels) != data.truth))


# Sequences


def _draw_symbols(n: int, d: int, k: int, seed: int) -> Data:
    transmat, emissions = simulate.random_chain(k, d, random_state=seed)
    x = simulate.categorical_hmm(n + n // 4, transmat, emissions, random_state=seed).observations
    return Data(x[:n], x[n:], (transmat, emissions), k)


def scorable(peer: Any) -> Any:
    """hmmlearn's model with no symbol quite impossible: its own scorer fails where a state has not seen one."""
    model = odeco.CategoricalHMM.from_hmmlearn(peer)
    model.emissionprob_ = (1 - 1e-9) * model.emissionprob_ + 1e-9 / model.n_symbols_
    return model


def _hmmlearn_symbols(data: Data, seed: int) -> Any:
    from hmmlearn.hmm import CategoricalHMM

    d = data.truth[1].shape[1]
    peer = CategoricalHMM(data.k, n_iter=100, tol=0, implementation="scaling", random_state=seed, n_features=d)
    return scorable(peer.fit(data.train))


def _symbols(data: Data, seed: int) -> Any:
    return odeco.CategoricalHMM(data.k, n_features=data.truth[1].shape[1], random_state=seed).fit(data.train)


def _draw_chain_of_rows(n: int, d: int, k: int, seed: int) -> Data:
    rng = np.random.default_rng(seed)
    transmat = 0.7 * np.eye(k) + 0.3 * rng.dirichlet(np.full(k, 0.5), size=k)
    means = 2.0 * rng.standard_normal((k, d)) / np.sqrt(2)
    states = simulate.markov_chain(n + n // 4, transmat, random_state=rng)
    x = means[states] + rng.standard_normal((len(states), d))
    return Data(x[:n], x[n:], (transmat, means), k)


def _hmmlearn_rows(data: Data, seed: int) -> Any:
    from hmmlearn.hmm import GaussianHMM

    peer = GaussianHMM(data.k, covariance_type="diag", n_iter=100, tol=0, implementation="scaling", random_state=seed)
    return peer.fit(data.train)


def _draw_chain_of_counts(n: int, d: int, k: int, seed: int) -> Data:
    rng = np.random.default_rng(seed)
    transmat = 0.7 * np.eye(k) + 0.3 * rng.dirichlet(np.full(k, 0.5), size=k)
    rates = rng.gamma(2.0, 2.0, size=(k, d))
    x = rng.poisson(rates[simulate.markov_chain(n + n // 4, transmat, random_state=rng)])
    return Data(x[:n], x[n:], (transmat, rates), k)


def _hmmlearn_counts(data: Data, seed: int) -> Any:
    from hmmlearn.hmm import PoissonHMM

    peer = PoissonHMM(data.k, n_iter=100, tol=0, implementation="scaling", random_state=seed)
    return peer.fit(data.train)


def _score_per_step(model: Any, data: Data) -> float:
    return float(model.score(data.test)) / len(data.test)


# Signals


def _draw_signals(n: int, k: int, noise: float, seed: int) -> Data:
    from benchmarks.ica import draw

    x, mixing = draw(n, k, k, noise, False, seed)
    return Data(x, None, mixing, k)


def _ica(method: str) -> Callable[[Data, int], Any]:
    def fit(data: Data, seed: int) -> Any:
        from benchmarks import ica

        return ica.fit(method, data.train, data.k, seed)

    return fit


def _amari(model: Any, data: Data) -> float:
    return 100 * amari(model.components_, data.truth)


def _fits(model: Callable[..., Any]) -> Callable[[Data, int], Any]:
    return lambda data, seed: model(data.k, random_state=seed).fit(data.train)


CASES: dict[str, Case] = {
    "tensor": Case(
        "Symmetric tensor, k x k x k, noisy",
        "largest vector error, in ε/λ",
        _draw_tensor,
        (50,),
        (20,),
        {
            "odeco": lambda data, seed: odeco.decompose(data.train, data.k, random_state=seed).eigenvectors,
            "tensorly": _tensorly,
            "pyttb CP-ALS": _pyttb("random"),
            'pyttb CP-ALS, init="nvecs"': _pyttb("nvecs"),
        },
        _vector_error,
        0.5,
        lower=True,
        peers=("tensorly.decomposition", "pyttb"),
    ),
    "topics": Case(
        "LDA: documents, words, topics",
        "held-out perplexity",
        _draw_documents,
        (10_000, 5_000, 20),
        (1_000, 600, 5),
        {
            "odeco": lambda data, seed: topics.fit_odeco(data.train, data.k, seed),
            "tomotopy, 200 iterations": lambda d, seed: topics.fit_tomotopy(d.train, d.k, 0.5 / d.k, 200, seed),
            "scikit-learn, 10 epochs": lambda d, seed: topics.fit_sklearn(d.train, d.k, 0.5 / d.k, ETA, 10, seed),
            "gensim, 10 passes": lambda d, seed: topics.fit_gensim(d.train, d.k, 0.5 / d.k, ETA, 10, seed),
        },
        _perplexity,
        1.0,
        lower=True,
        threads=topics.THREADS,
        peers=("tomotopy", "sklearn.decomposition", "gensim.models"),
    ),
    "one topic each": Case(
        "Single topic model: documents, words, topics",
        "misplaced held-out documents, %",
        _draw_one_topic_each,
        (20_000, 5_000, 20),
        (1_000, 600, 5),
        {
            "odeco": _fits(odeco.SingleTopicModel),
            "scikit-learn k-means of LSA, n_init=1": _k_means_of_documents(1),
            "scikit-learn k-means of LSA, n_init=10": _k_means_of_documents(10),
        },
        _misplaced,
        0.2,
        lower=True,
        peers=("sklearn.cluster", "sklearn.feature_extraction.text", "sklearn.pipeline", "sklearn.decomposition"),
    ),
    "spheres": Case(
        "Gaussian mixture: rows, columns, components",
        "held-out log-likelihood",
        _draw_spheres,
        (50_000, 100, 20),
        (5_000, 20, 6),
        {
            "odeco": _fits(odeco.GaussianMixture),
            "scikit-learn, n_init=1": _sklearn_mixture(1),
            "scikit-learn, n_init=10": _sklearn_mixture(10),
        },
        _score,
        0.002,
        peers=("sklearn.mixture",),
    ),
    "latent classes": Case(
        "Latent classes: rows, questions, classes",
        "held-out log-likelihood",
        _draw_answers,
        (20_000, 100, 10),
        (2_000, 30, 4),
        {
            "odeco": lambda d, seed: odeco.ProductMixture(d.k, family="bernoulli", random_state=seed).fit(d.train),
            "StepMix, n_init=1": _stepmix(1),
            "StepMix, n_init=5": _stepmix(5),
        },
        _score,
        0.002,
        peers=("stepmix",),
    ),
    "views": Case(
        "Three views: rows, columns of each, components",
        "held-out log-likelihood",
        _draw_views,
        (10_000, 20, 10),
        (2_000, 10, 4),
        {
            "odeco": _fits(odeco.MultiViewMixture),
            "scikit-learn diagonal, n_init=1": _joined_views(1),
            "scikit-learn diagonal, n_init=10": _joined_views(10),
        },
        _score_of_views,
        0.002,
        peers=("sklearn.mixture",),
    ),
    "crowd": Case(
        "Crowd labels: items, workers, classes",
        "wrong labels, %",
        _draw_crowd,
        (20_000, 100, 4),
        (1_000, 60, 3),
        {
            "odeco": lambda d, seed: odeco.DawidSkene(d.k, random_state=seed).fit_predict(d.train),
            "crowd-kit Dawid-Skene": _crowd_kit("DawidSkene"),
            "crowd-kit majority vote": _crowd_kit("MajorityVote"),
        },
        _mislabelled,
        0.1,
        lower=True,
        peers=("crowdkit.aggregation",),
    ),
    "symbols": Case(
        "Categorical HMM: steps, symbols, states",
        "held-out log-likelihood per step",
        _draw_symbols,
        (100_000, 100, 10),
        (10_000, 20, 4),
        {"odeco": _symbols, "hmmlearn, 100 passes": _hmmlearn_symbols},
        _score_per_step,
        0.001,
        peers=("hmmlearn.hmm",),
    ),
    "measurements": Case(
        "Gaussian HMM: steps, columns, states",
        "held-out log-likelihood per step",
        _draw_chain_of_rows,
        (50_000, 5, 8),
        (5_000, 3, 4),
        {"odeco": _fits(odeco.GaussianHMM), "hmmlearn, 100 passes": _hmmlearn_rows},
        _score_per_step,
        0.001,
        peers=("hmmlearn.hmm",),
    ),
    "counts": Case(
        "Poisson HMM: steps, columns, states",
        "held-out log-likelihood per step",
        _draw_chain_of_counts,
        (50_000, 3, 6),
        (5_000, 2, 3),
        {"odeco": _fits(odeco.PoissonHMM), "hmmlearn, 100 passes": _hmmlearn_counts},
        _score_per_step,
        0.001,
        peers=("hmmlearn.hmm",),
    ),
    "signals": Case(
        "ICA: samples, sources, noise",
        "Amari distance x 100",
        _draw_signals,
        (100_000, 10, 0.3),
        (20_000, 5, 0.3),
        {"odeco": _ica("odeco"), "FastICA": _ica("FastICA"), "picard": _ica("picard")},
        _amari,
        0.1,
        lower=True,
        peers=("sklearn.decomposition", "picard"),
    ),
}


def use_threads(count: int) -> None:
    """For this process, before anything is computed: BLAS, OpenMP and our own loops."""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "ODECO_NUM_THREADS"):
        os.environ[name] = str(count)
