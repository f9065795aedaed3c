"""Draws with the truth included: tensors now, every model as it arrives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from odeco._random import RandomState, as_generator
from odeco.tensors import operator_norm_lower_bound, rank_one_sum, symmetrize
from odeco.tensors.algebra import Floats

if TYPE_CHECKING:
    from scipy.sparse import csr_array


@dataclass(frozen=True)
class OdecoSample:
    """An orthogonally decomposable tensor plus symmetric noise, and what it was made of.

    `noise_norm` is the operator norm of `noise` as estimated from many starts (a lower bound of the true one).
    """

    tensor: Floats
    eigenvalues: Floats
    eigenvectors: Floats
    noise: Floats | None
    noise_norm: float


def odeco_tensor(
    n: int,
    rank: int | None = None,
    *,
    order: int = 3,
    eigenvalues: ArrayLike | None = None,
    noise: float = 0.0,
    random_state: RandomState = None,
) -> OdecoSample:
    """Draw T = sum_i lambda_i v_i^(x order) + E with a random orthonormal set v_i.

    Parameters
    ----------
    n : int
        Dimension.
    rank : int, optional
        Number of components, n by default (or as many as `eigenvalues`).
    order : {3, 4}
    eigenvalues : array (rank,), optional
        Ones by default. Order 4 takes both signs; at order 3 a negative one comes back positive with its vector turned.
    noise : float
        Operator norm of the symmetrised Gaussian E, scaled by a lower bound from many starts.
    """
    if order not in (3, 4):
        raise ValueError(f"order must be 3 or 4, got {order}.")
    values = np.ones(n if rank is None else rank) if eigenvalues is None else np.asarray(eigenvalues, dtype=float)
    if values.ndim != 1 or (rank is not None and values.size != rank):
        raise ValueError(f"eigenvalues must have length rank = {rank}, got shape {values.shape}.")
    if not 1 <= values.size <= n:
        raise ValueError(f"rank must be between 1 and n = {n}, got {values.size}.")
    if not np.all(np.isfinite(values)) or np.any(values == 0):
        raise ValueError(f"eigenvalues must be finite and not zero, got {values}.")
    if not 0 <= noise < np.inf:
        raise ValueError(f"noise must be 0 or positive, got {noise}.")
    rng = as_generator(random_state)
    vectors, triangular = np.linalg.qr(rng.standard_normal((n, values.size)))
    vectors = vectors * np.sign(np.diag(triangular))  # uniformly distributed frames
    if order == 3:
        vectors, values = vectors * np.where(values < 0, -1.0, 1.0), np.abs(values)
    tensor = rank_one_sum(values, vectors, order)
    if noise == 0.0:
        return OdecoSample(symmetrize(tensor), values, vectors, None, 0.0)
    error = symmetric_noise(n, order=order, operator_norm=noise, random_state=rng)
    return OdecoSample(symmetrize(tensor) + error, values, vectors, error, noise)


def symmetric_noise(n: int, *, order: int = 3, operator_norm: float = 1.0, random_state: RandomState = None) -> Floats:
    """A symmetrised Gaussian tensor scaled to the given operator norm, estimated from below by 50 starts."""
    rng = as_generator(random_state)
    error = symmetrize(rng.standard_normal((n,) * order))
    error *= operator_norm / operator_norm_lower_bound(error, random_state=rng).value
    return error


@dataclass(frozen=True, eq=False)
class TopicSample:
    """Documents drawn from a topic model, and the truth.

    Attributes
    ----------
    counts : (n, d) CSR array
        Words of each document.
    topics : (k, d)
        Word probabilities of each topic.
    proportions : (n, k)
        Topic proportions of each document; one 1 per row in the single topic model.
    prior : (k,)
        Dirichlet parameters, or the weights of the single topic model.
    """

    counts: csr_array
    topics: Floats
    proportions: Floats
    prior: Floats


def zipf_topics(k: int, d: int, *, concentration: float = 0.05, random_state: RandomState = None) -> Floats:
    """Topics drawn from a Dirichlet with parameters proportional to 1 / rank: a few common words, many rare ones."""
    rng = as_generator(random_state)
    base = 1.0 / np.arange(1, d + 1)
    return rng.dirichlet(np.maximum(concentration * d * base / base.sum(), 1e-3), size=k)


def lda_documents(
    n: int, topics: ArrayLike, alpha: ArrayLike, *, mean_length: float = 60.0, random_state: RandomState = None
) -> TopicSample:
    """Documents of latent Dirichlet allocation (section 3.2.4): lengths Poisson with the given mean, at least 5."""
    rng = as_generator(random_state)
    prior = np.asarray(alpha, dtype=float)
    proportions = rng.dirichlet(prior, size=n)
    return _draw_documents(np.asarray(topics, dtype=float), proportions, prior, mean_length, rng)


def single_topic_documents(
    n: int, topics: ArrayLike, weights: ArrayLike, *, mean_length: float = 60.0, random_state: RandomState = None
) -> TopicSample:
    """Documents of the exchangeable single topic model (section 3.1)."""
    rng = as_generator(random_state)
    prior = np.asarray(weights, dtype=float)
    chosen = rng.choice(prior.size, size=n, p=prior)
    return _draw_documents(np.asarray(topics, dtype=float), np.eye(prior.size)[chosen], prior, mean_length, rng)


def _draw_documents(
    topics: Floats, proportions: Floats, prior: Floats, mean_length: float, rng: np.random.Generator
) -> TopicSample:
    """All words of one topic at once, by inversion of its distribution function."""
    from scipy.sparse import coo_array

    n, d = proportions.shape[0], topics.shape[1]
    lengths = np.maximum(rng.poisson(mean_length, size=n), 5)
    per_topic = rng.multinomial(lengths, proportions)
    words = np.empty(lengths.sum(), dtype=np.int64)
    documents = np.empty_like(words)
    filled = 0
    for topic, numbers in zip(topics, per_topic.T, strict=True):
        size = int(numbers.sum())
        part = slice(filled, filled + size)
        cumulative = np.cumsum(topic)
        words[part] = np.searchsorted(cumulative, rng.random(size) * cumulative[-1], side="right").clip(max=d - 1)
        documents[part] = np.repeat(np.arange(n), numbers)
        filled += size
    counts = coo_array((np.ones(words.size, dtype=np.float32), (documents, words)), shape=(n, d)).tocsr()
    counts.sum_duplicates()
    return TopicSample(counts, topics, proportions, prior)


@dataclass(frozen=True, eq=False)
class LatentClassSample:
    """Answers drawn from latent classes, and the truth.

    Attributes
    ----------
    codes : (n, J) int
        Category of each item, counted from 0.
    classes : (n,)
        The class of each row.
    weights : (k,)
    tables : list of (k, C_j)
        Probabilities of the categories of each item in each class.
    """

    codes: NDArray[np.int64]
    classes: NDArray[np.int64]
    weights: Floats
    tables: list[Floats]


def latent_classes(
    n: int, weights: ArrayLike, tables: Sequence[ArrayLike], *, random_state: RandomState = None
) -> LatentClassSample:
    """Rows of a latent class model: items are independent within a class (section 3.3.1)."""
    rng = as_generator(random_state)
    shares = np.asarray(weights, dtype=float)
    given = [np.asarray(table, dtype=float) for table in tables]
    classes = rng.choice(shares.size, size=n, p=shares)
    columns = [
        (rng.random((n, 1)) > np.cumsum(table, axis=1)[classes]).sum(axis=1).clip(max=table.shape[1] - 1)
        for table in given
    ]
    return LatentClassSample(np.column_stack(columns), classes, shares, given)


@dataclass(frozen=True, eq=False)
class ViewSample:
    """Samples seen in several views, and the truth.

    Attributes
    ----------
    views : list of (n, d_t)
    labels : (n,)
        The component of each sample.
    means : list of (k, d_t)
    weights : (k,)
    """

    views: list[Floats]
    labels: NDArray[np.intp]
    means: list[Floats]
    weights: Floats


def gaussian_views(
    n: int, means: Sequence[ArrayLike], weights: ArrayLike, *, noise: float = 1.0, random_state: RandomState = None
) -> ViewSample:
    """Views x_t = mu_{t, h} + Gaussian noise of the given deviation, independent given h (section 3.3)."""
    rng = as_generator(random_state)
    shares, rows = np.asarray(weights, dtype=float), [np.asarray(mean, dtype=float) for mean in means]
    labels = rng.choice(shares.size, size=n, p=shares)
    views = [mean[labels] + noise * rng.standard_normal((n, mean.shape[1])) for mean in rows]
    return ViewSample(views, labels, rows, shares)


@dataclass(frozen=True, eq=False)
class CrowdSample:
    """Labels of annotators, and the truth.

    Attributes
    ----------
    labels : (n, W) int
        -1 where none was given.
    truth : (n,)
    confusion : (W, k, L)
        ``confusion[annotator, true, given]``.
    weights : (k,)
    """

    labels: NDArray[np.intp]
    truth: NDArray[np.intp]
    confusion: Floats
    weights: Floats


def crowd_labels(
    n: int, confusion: ArrayLike, weights: ArrayLike, *, share: float = 1.0, random_state: RandomState = None
) -> CrowdSample:
    """Labels by the model of Dawid and Skene; each is given with probability `share`, and every item gets one."""
    rng = as_generator(random_state)
    rows, shares = np.asarray(confusion, dtype=float), np.asarray(weights, dtype=float)
    truth = rng.choice(shares.size, size=n, p=shares)
    cumulative = np.cumsum(rows, axis=2)[:, truth, :-1]
    labels = (rng.random((len(rows), n, 1)) > cumulative).sum(axis=2).T
    missing = rng.random(labels.shape) > share
    missing[np.arange(n), rng.integers(len(rows), size=n)] = False
    return CrowdSample(np.where(missing, -1, labels), truth, rows, shares)


@dataclass(frozen=True, eq=False)
class GaussianSample:
    """Samples of a Gaussian mixture, and the truth.

    Attributes
    ----------
    rows : (n, d)
    labels : (n,)
        The component of each sample.
    weights : (k,)
    means : (k, d)
    deviations : (k,) or (k, d)
    """

    rows: Floats
    labels: NDArray[np.intp]
    weights: Floats
    means: Floats
    deviations: Floats


def gaussian_mixture(
    n: int,
    means: ArrayLike,
    weights: ArrayLike,
    *,
    deviations: ArrayLike = 1.0,
    random_state: RandomState = None,
) -> GaussianSample:
    """Samples mu_h + sigma_h z of a mixture of spheres (section 3.2), or of axis-aligned Gaussians (section 3.3.1).

    Parameters
    ----------
    deviations : float, (k,) or (k, d)
        Standard deviations: of all components, of each, or of each in each column.
    """
    rng = as_generator(random_state)
    shares, centres = np.asarray(weights, dtype=float), np.asarray(means, dtype=float)
    spread = np.asarray(deviations, dtype=float)
    if spread.ndim < 2:
        spread = np.broadcast_to(spread, shares.shape)
    labels = rng.choice(shares.size, size=n, p=shares)
    scale = spread[labels] if spread.ndim == 2 else spread[labels, None]
    return GaussianSample(
        centres[labels] + scale * rng.standard_normal((n, centres.shape[1])), labels, shares, centres, spread
    )


@dataclass(frozen=True, eq=False)
class HMMSample:
    """A sequence drawn from a hidden Markov model, and the truth.

    Attributes
    ----------
    observations : (n, d)
        As hmmlearn takes them: one column of symbols for a categorical model.
    states : (n,)
        The hidden chain.
    startprob, transmat : (k,), (k, k)
        Rows of `transmat` sum to 1: the transpose of the paper's T.
    emissionprob : (k, d)
        Probabilities of the symbols in each state.
    """

    observations: NDArray[np.int64]
    states: NDArray[np.int64]
    startprob: Floats
    transmat: Floats
    emissionprob: Floats


def markov_chain(
    n: int,
    transmat: ArrayLike,
    *,
    start: ArrayLike | None = None,
    first_state: int | None = None,
    random_state: RandomState = None,
) -> NDArray[np.int64]:
    """States (n,) of a Markov chain whose transition matrix has rows that sum to 1; uniform `start` by default."""
    from odeco.kernels.sequences import walk

    rng = as_generator(random_state)
    levels = np.cumsum(np.ascontiguousarray(transmat, dtype=float), axis=1)
    k = len(levels)
    uniforms = rng.random(n)
    states = np.empty(n, dtype=np.int64)
    if first_state is None:
        weights = np.full(k, 1.0 / k) if start is None else np.asarray(start, dtype=float)
        first_state = int(min(np.searchsorted(np.cumsum(weights), uniforms[0] * weights.sum(), side="right"), k - 1))
    elif not 0 <= first_state < k:
        raise ValueError(f"the first state must be between 0 and {k - 1}, got {first_state}.")
    states[0] = first_state
    walk(levels, uniforms[1:], first_state, states[1:])
    return states


def categorical_hmm(
    n: int,
    transmat: ArrayLike,
    emissionprob: ArrayLike,
    *,
    startprob: ArrayLike | None = None,
    random_state: RandomState = None,
) -> HMMSample:
    """One sequence of n symbols (section 3.3.3); starts are uniform unless given."""
    rng = as_generator(random_state)
    transitions, emissions = np.asarray(transmat, dtype=float), np.asarray(emissionprob, dtype=float)
    k = len(transitions)
    start = np.full(k, 1.0 / k) if startprob is None else np.asarray(startprob, dtype=float)
    states = markov_chain(n, transitions, start=start, random_state=rng)
    return HMMSample(draw_symbols(emissions, states, rng)[:, None], states, start, transitions, emissions)


def random_chain(
    k: int, d: int, *, stay: float = 0.4, mixing: float = 0.5, sparsity: float = 0.1, random_state: RandomState = None
) -> tuple[Floats, Floats]:
    """Random transitions ``stay I + (1 - stay) Dirichlet(mixing)`` (k, k) and emissions Dirichlet(sparsity) (k, d)."""
    rng = as_generator(random_state)
    transmat = stay * np.eye(k) + (1 - stay) * rng.dirichlet(np.full(k, mixing), size=k)
    return transmat, rng.dirichlet(np.full(d, sparsity), size=k)


def draw_symbols(probabilities: Floats, states: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
    """A symbol for each state, by inversion: rows of `probabilities` (k, d) are distributions."""
    levels = np.cumsum(probabilities, axis=1)
    uniforms = rng.random(states.size)
    symbols = np.empty(states.size, dtype=np.int64)
    for state, level in enumerate(levels):
        mine = states == state
        symbols[mine] = np.searchsorted(level, uniforms[mine] * level[-1], side="right")
    return np.asarray(np.minimum(symbols, levels.shape[1] - 1))
