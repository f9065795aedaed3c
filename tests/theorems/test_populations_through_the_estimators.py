"""Whole populations through the estimators: `refine=None` gives the parameters back to rounding, whatever decomposes.

Each population is a finite set of samples with weights whose moments, up to the order that the theorem uses, are those
of the model exactly: all short documents, all patterns of answers, points about each mean that have a Gaussian's
moments up to order three.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from odeco import (
    ICA,
    CategoricalHMM,
    DawidSkene,
    GaussianHMM,
    GaussianMixture,
    LatentDirichletAllocation,
    MultiViewMixture,
    PoissonHMM,
    ProductMixture,
    SingleTopicModel,
    decompose_fourth,
    whiten,
)
from odeco.decomposition import METHODS, run_method
from odeco.metrics import amari, match_components
from odeco.models.hmm.base import stationary_distribution
from odeco.moments.cumulants import FourthMoments
from odeco.simulate import categorical_hmm, markov_chain
from odeco.sources.dense import DenseBatch
from odeco.tensors import ExplicitTensor

WEIGHTS = np.array([0.5, 0.3, 0.2])
K = WEIGHTS.size
# Rounding of sums of up to 1e5 terms, divided by the smallest eigenvalues (1e-3) of second and third moments. Sums of
# words and of many rows are products in single precision.
DOUBLE, SINGLE = 1e-7, 2e-3

each_method = pytest.mark.parametrize("method", METHODS)


def all_documents(topics, weights=WEIGHTS):
    """Documents of three words, in every order, with their probabilities under the single topic model."""
    d = topics.shape[1]
    words = np.array(list(product(range(d), repeat=3)))
    probabilities = np.einsum("k,kn->n", weights, topics[:, words].prod(axis=2))
    counts = np.zeros((len(words), d))
    for place in range(3):
        np.add.at(counts, (np.arange(len(words)), words[:, place]), 1.0)
    return counts, probabilities


def matched(found, truth):
    """The places of the found rows that match those of the truth."""
    return match_components(np.asarray(found).T, np.asarray(truth).T).permutation


TOPICS = np.array([[0.5, 0.3, 0.1, 0.05, 0.05], [0.05, 0.1, 0.6, 0.2, 0.05], [0.1, 0.05, 0.05, 0.2, 0.6]])


@each_method
def test_theorem_3_1(method):
    counts, probabilities = all_documents(TOPICS)
    model = SingleTopicModel(K, refine=None, method=method, random_state=0).fit(counts, sample_weight=probabilities)
    order = matched(model.components_, TOPICS)
    np.testing.assert_allclose(model.components_[order], TOPICS, atol=SINGLE)
    np.testing.assert_allclose(model.weights_[order], WEIGHTS, atol=SINGLE)


def test_lengths_that_go_with_topics_do_not_bias_the_weights():
    """Two topics of equal shares, documents of 20 words of one and of 200 of the other: every document counts once."""
    rng = np.random.default_rng(5)
    counts = np.array([rng.multinomial(20 if i % 2 else 200, TOPICS[i % 2]) for i in range(4000)])
    for options in ({}, {"document_weights": "equal"}):
        model = SingleTopicModel(2, refine=None, random_state=0, **options).fit(counts)
        # The error of a share from 4,000 documents whose moments are noisy: three times 0.01.
        np.testing.assert_allclose(model.weights_, 0.5, atol=0.03)
    by_length = SingleTopicModel(2, refine=None, document_weights="length", random_state=0).fit(counts)
    assert by_length.weights_.max() > 0.9  # 200 words count (2 / 3) ** 2, 20 words (1 / 6) ** 2
    refined = SingleTopicModel(2, random_state=0).fit(counts)
    np.testing.assert_allclose(refined.weights_, 0.5, atol=0.01)
    with pytest.raises(ValueError, match="document_weights must be one of 'auto', 'equal', 'length', got 'none'"):
        SingleTopicModel(2, document_weights="none").fit(counts)


@each_method
def test_theorem_3_5(method):
    """Of LDA: each document of three words by the mean of the Dirichlet's third moments."""
    alpha = 0.8 * WEIGHTS
    d, a0 = TOPICS.shape[1], alpha.sum()
    words = np.array(list(product(range(d), repeat=3)))
    rising = a0 * (a0 + 1) * (a0 + 2)
    moments = np.einsum("i,j,k->ijk", alpha, alpha, alpha)
    for i in range(K):
        for j in range(K):
            moments[i, i, j] += alpha[i] * alpha[j]
            moments[i, j, i] += alpha[i] * alpha[j]
            moments[j, i, i] += alpha[i] * alpha[j]
        moments[i, i, i] += 2 * alpha[i]
    first, second, third = (TOPICS[:, words[:, place]] for place in range(3))
    probabilities = np.einsum("ijk,in,jn,kn->n", moments / rising, first, second, third)
    assert probabilities.sum() == pytest.approx(1.0)
    counts = all_documents(TOPICS)[0]
    model = LatentDirichletAllocation(K, alpha0=a0, refine=None, method=method, random_state=0)
    model.fit(counts, sample_weight=probabilities)
    order = matched(model.components_, TOPICS)
    np.testing.assert_allclose(model.components_[order], TOPICS, atol=SINGLE)
    np.testing.assert_allclose(model.alpha_[order], alpha, atol=10 * SINGLE)


MEANS = np.array([[0.0, 0, 0, 0, 0], [4.0, 0, 1, 0, 0], [0, 3.0, 0, -1, 0]])


def points(variances):
    """Points at sqrt(d) deviations either way along each axis: moments up to order three of Gaussians (k, d)."""
    d = MEANS.shape[1]
    steps = np.concatenate([np.eye(d), -np.eye(d)]) * np.sqrt(d)
    rows = MEANS[:, None] + steps * np.sqrt(np.broadcast_to(variances, MEANS.shape))[:, None]
    return rows.reshape(-1, d), np.repeat(WEIGHTS, 2 * d) / (2 * d)


@each_method
@pytest.mark.parametrize("kind", ["spherical", "tied_spherical"])
def test_theorems_3_2_and_3_3(kind, method):
    variances = np.array([0.5, 1.0, 2.0]) if kind == "spherical" else np.full(K, 0.7)
    rows, weights = points(variances[:, None])
    model = GaussianMixture(K, kind, refine=None, method=method, random_state=0).fit(rows, sample_weight=1e4 * weights)
    order = matched(model.means_, MEANS)
    np.testing.assert_allclose(model.means_[order], MEANS, atol=DOUBLE)
    np.testing.assert_allclose(model.weights_[order], WEIGHTS, atol=DOUBLE)
    found = model.covariances_[order] if kind == "spherical" else np.full(K, model.covariances_)
    np.testing.assert_allclose(found, variances, atol=DOUBLE)


def patterns(tables):
    """Every combination of answers with its probability: `tables` are (k, categories) each."""
    values = np.array(list(product(*(range(table.shape[1]) for table in tables))))
    joint = np.ones((K, len(values)))
    for j, table in enumerate(tables):
        joint *= table[:, values[:, j]]
    return values, WEIGHTS @ joint


@each_method
def test_section_3_3_1_with_three_columns(method):
    """Three columns are three views: no product of a column with itself has to be filled."""
    rng = np.random.default_rng(0)
    tables = [rng.dirichlet(np.full(4, 0.5), K) for _ in range(3)]
    values, probabilities = patterns(tables)
    model = ProductMixture(K, family="categorical", route="views", refine=None, method=method, random_state=0)
    model.fit(values, sample_weight=1e4 * probabilities)
    order = matched(np.hstack(model.probabilities_), np.hstack(tables))
    for found, table in zip(model.probabilities_, tables, strict=True):
        np.testing.assert_allclose(found[order], table, atol=1e-5)  # kept 1e-6 away from 0 and 1
    np.testing.assert_allclose(model.weights_[order], WEIGHTS, atol=DOUBLE)


@each_method
def test_theorem_3_6(method):
    rng = np.random.default_rng(1)
    tables = [rng.dirichlet(np.full(d, 0.5), K) for d in (4, 5, 3)]
    values, probabilities = patterns(tables)
    views = [np.eye(table.shape[1])[values[:, t]] for t, table in enumerate(tables)]
    model = MultiViewMixture(K, likelihood="gaussian", refine=None, method=method, random_state=0)
    model.fit(views, sample_weight=1e8 * probabilities)
    order = matched(np.hstack(model.means_), np.hstack(tables))
    for found, table in zip(model.means_, tables, strict=True):
        np.testing.assert_allclose(found[order], table, atol=DOUBLE)
    np.testing.assert_allclose(model.weights_[order], WEIGHTS, atol=DOUBLE)


@each_method
def test_theorem_3_6_for_crowds(method):
    rng = np.random.default_rng(2)
    tables = [0.7 * np.eye(K) + 0.3 * rng.dirichlet(np.ones(K), K) for _ in range(3)]
    values, probabilities = patterns(tables)
    model = DawidSkene(K, layout="wide", n_init=1, refine=None, smoothing=1e-12, method=method, random_state=0)
    model.fit(values, sample_weight=1e4 * probabilities)
    places = np.argsort(model.classes_)
    np.testing.assert_allclose(model.confusion_[:, places], np.array(tables), atol=1e-6)
    np.testing.assert_allclose(model.weights_[places], WEIGHTS, atol=DOUBLE)


@pytest.mark.parametrize("method", [name for name, taken in METHODS.items() if 4 in taken.orders])
@pytest.mark.parametrize("noise", [0.0, 0.3])
def test_theorem_3_4(noise, method):
    """Sources of few values, mixed by an orthogonal matrix, and noise at the three points that have a Gaussian's
    moments up to order five: all combinations.
    """
    values = [np.array([-1.0, 1.0]), np.array([-3.0, 0.0, 3.0]), np.array([-1.0, 1.0])]
    shares = [np.full(2, 0.5), np.array([1, 16, 1]) / 18.0, np.full(2, 0.5)]
    values[2] = np.array([-0.5, 2.0])
    shares[2] = np.array([0.8, 0.2])
    d = len(values)
    hermite, masses = np.sqrt(3.0) * np.array([-1.0, 0, 1]), np.array([1, 4, 1]) / 6.0
    grids = values + ([noise * hermite] * d if noise else [])
    shares = shares + ([masses] * d if noise else [])
    rows = np.array(list(product(*grids)))
    weights = np.array([np.prod(part) for part in product(*shares)])
    mixing = np.linalg.qr(np.random.default_rng(3).standard_normal((d, d)))[0]
    samples = rows[:, :d] @ mixing.T + (rows[:, d:] if noise else 0.0)
    model = ICA(d, refine=None, noise="general", method=method, random_state=0).fit(
        samples, sample_weight=1e5 * weights
    )
    unit = model.mixing_ / np.linalg.norm(model.mixing_, axis=0)
    np.testing.assert_allclose(np.sort(np.abs(unit.T @ mixing).max(axis=0)), 1.0, atol=1e-9)
    assert sorted(np.abs(unit.T @ mixing).argmax(axis=0)) == list(range(d))


def test_methods_that_do_not_take_a_tensor_say_so():
    with pytest.raises(ValueError, match="'power-stopping' takes order 3, got order 4"):
        ICA(method="power-stopping", random_state=0).fit(np.random.default_rng(0).laplace(size=(500, 3)))
    for model in (GaussianMixture(2, method="moments"), ProductMixture(2, method="views"), ICA(2, method="fastica")):
        with pytest.raises(ValueError, match="method must be one of 'auto', 'power'"):
            model.fit(np.random.default_rng(0).standard_normal((50, 3)))
    for chain in (CategoricalHMM(2, method="baum-welch"), GaussianHMM(2, method="em"), PoissonHMM(2, method="k-means")):
        with pytest.raises(ValueError, match="method must be one of 'auto', 'power'"):
            chain.fit(np.tile([0, 1, 2], 20)[:, None])
    with pytest.raises(ValueError, match="method 'power' has no option 'n_restart'.*Did you mean 'n_restarts'"):
        GaussianMixture(2, method="power", method_options={"n_restart": 3}).fit(np.eye(5))


FOURTH_ORDER = [name for name, taken in METHODS.items() if 4 in taken.orders]
# Mixed signs: a sign (kurtosis -2), one that is mostly zero (6) and one that is skewed (0.25).
SOURCES = [
    (np.array([-1.0, 1.0]), np.full(2, 0.5)),
    (np.array([-3.0, 0.0, 3.0]), np.array([1, 16, 1]) / 18.0),
    (np.array([-0.5, 2.0]), np.array([0.8, 0.2])),
]
KURTOSIS = np.array([-2.0, 6.0, 0.25])


def noisy_channels(d, deviation, seed=4):
    """All combinations of the sources' values and of the noise's, mixed by a matrix that is far from orthogonal."""
    rng = np.random.default_rng(seed)
    mixing, factor = rng.standard_normal((d, K)), deviation * rng.standard_normal((d, d))
    hermite = (np.sqrt(3.0) * np.array([-1.0, 0, 1]), np.array([1, 4, 1]) / 6.0)
    values, shares = zip(*SOURCES, *[hermite] * d, strict=True)
    rows = np.array(list(product(*values)))
    weights = np.array([np.prod(part) for part in product(*shares)])
    return rows[:, :K] @ mixing.T + rows[:, K:] @ factor.T, weights, mixing


@pytest.mark.parametrize("method", FOURTH_ORDER)
@pytest.mark.parametrize(("d", "noise"), [(3, "auto"), (4, "general"), (4, "auto"), (5, "auto")])
def test_theorem_3_4_under_gaussian_noise_of_any_covariance(d, noise, method):
    rows, weights, mixing = noisy_channels(d, deviation=0.5)
    truth = mixing / np.linalg.norm(mixing, axis=0)
    assert np.abs(np.triu(truth.T @ truth, 1)).max() > 0.3  # not orthogonal
    model = ICA(K, refine=None, noise=noise, method=method, random_state=0).fit(rows, sample_weight=1e8 * weights)
    matching = match_components(model.mixing_ / np.linalg.norm(model.mixing_, axis=0), truth, up_to_sign=True)
    assert matching.largest < DOUBLE
    order = matching.permutation
    np.testing.assert_array_equal(np.sign(model.kurtosis_[order]), np.sign(KURTOSIS))
    # The scale is a convention; what the cumulant knows, kurtosis times the fourth power of the scale, is not.
    known = model.kurtosis_[order] * np.linalg.norm(model.mixing_[:, order], axis=0) ** 4
    np.testing.assert_allclose(known, KURTOSIS * np.linalg.norm(mixing, axis=0) ** 4, rtol=10 * DOUBLE)


def test_the_covariance_would_not_do():
    """Whitened by the covariance, noise included, the same population gives directions that are far off."""
    rows, weights, mixing = noisy_channels(3, deviation=0.5)
    covariance = np.cov(rows.T, aweights=weights, bias=True)
    moments = FourthMoments(np.eye(3)).update(DenseBatch(rows, weights))
    whitener = whiten(covariance, K)
    tensor = ExplicitTensor(np.ascontiguousarray(whitener.whiten_tensor(moments.cumulant())))
    found = run_method(tensor, K, "auto", np.random.default_rng(0), {})
    unit = [m / np.linalg.norm(m, axis=0) for m in (whitener.unwhiten(found.eigenvectors), mixing)]
    assert match_components(*unit, up_to_sign=True).largest > 0.05
    free = decompose_fourth(moments.cumulant(), K, random_state=0)
    assert match_components(free.vectors.T, unit[1], up_to_sign=True).largest < DOUBLE


def test_samples_in_chunks_are_the_same_estimate_of_theorem_3_4():
    rows, weights, _ = noisy_channels(3, deviation=0.5)
    whole = ICA(K, refine=None, random_state=0).fit(rows, sample_weight=1e8 * weights)
    streamed = ICA(K, refine=None, random_state=0)
    for part in np.array_split(np.arange(len(rows)), 5):
        streamed.partial_fit(rows[part], sample_weight=1e8 * weights[part])
    np.testing.assert_allclose(streamed.mixing_, whole.mixing_, atol=DOUBLE)
    np.testing.assert_allclose(streamed.kurtosis_, whole.kurtosis_, atol=10 * DOUBLE)


def test_theorem_3_4_under_noise_errs_by_the_root_of_n():
    """From 10^4 to 10^5 samples the error falls by the root of 10, 3.2; a mean over 12 draws knows that to a third."""
    errors = np.array([[_amari_under_noise(n, seed) for seed in range(12)] for n in (10_000, 100_000)])
    before, after = np.sqrt((errors**2).mean(axis=1))
    assert 2.1 < before / after < 4.8


def _amari_under_noise(n, seed):
    rng = np.random.default_rng(seed)
    mixing = np.eye(K) + 0.3 * rng.standard_normal((K, K))
    sources = [rng.laplace(size=n) / np.sqrt(2), rng.uniform(-np.sqrt(3), np.sqrt(3), n), rng.choice([-1.0, 1.0], n)]
    noise = rng.standard_normal((n, K)) @ np.diag([0.5, 0.1, 0.3])
    model = ICA(refine=None, random_state=0).fit(np.column_stack(sources) @ mixing.T + noise)
    return amari(model.components_, mixing)


# Hidden Markov models: all sequences of three observations, each with its probability. Neither chain is reversible.
TRANSMAT = np.array([[0.7, 0.2, 0.1], [0.05, 0.6, 0.35], [0.3, 0.1, 0.6]])
STATIONARY = stationary_distribution(TRANSMAT)
ELSEWHERE = np.array([0.1, 0.2, 0.7])  # a start that is not stationary
each_start = pytest.mark.parametrize("start", [STATIONARY, ELSEWHERE], ids=["stationary", "not stationary"])


def all_triples(points, masses, start):
    """Sequences (n, 3, d) of the points (m, d) that states emit with probabilities masses (k, m), and their weights."""
    places = np.array(list(product(range(len(points)), repeat=3)))
    emitted = [masses[:, places[:, step]] for step in range(3)]
    weights = np.einsum("i,in,ij,jn,jl,ln->n", start, emitted[0], TRANSMAT, emitted[1], TRANSMAT, emitted[2])
    return points[places][weights > 0], 1e4 * weights[weights > 0]


def check_chain(model, order, start):
    np.testing.assert_allclose(model.transmat_[np.ix_(order, order)], TRANSMAT, atol=DOUBLE)
    np.testing.assert_allclose(model.startprob_[order], start, atol=DOUBLE)
    assert np.abs(model.transmat_[np.ix_(order[[1, 2, 0]], order[[1, 2, 0]])] - TRANSMAT).max() > 0.1


def fit_triples(model, sequences, weights):
    n = len(sequences)
    return model.fit(sequences.reshape(3 * n, -1), [3] * n, sequence_weight=weights)


@each_method
@each_start
def test_proposition_3_4_for_symbols(start, method):
    sequences, weights = all_triples(np.arange(5)[:, None], TOPICS, start)
    model = fit_triples(CategoricalHMM(K, refine=None, method=method, random_state=0), sequences, weights)
    order = matched(model.emissionprob_, TOPICS)
    np.testing.assert_allclose(model.emissionprob_[order], TOPICS, atol=DOUBLE)
    check_chain(model, order, start)
    assert model.diagnostics_.method == "moments (Proposition 3.4)"
    assert model.diagnostics_.clipped_mass < DOUBLE


def hermite_points(means, roots):
    """Three points for each dimension of each state, with a Gaussian's moments up to order five: (m, d) and (k, m)."""
    d = means.shape[1]
    grid = np.sqrt(3.0) * np.array(list(product([-1.0, 0.0, 1.0], repeat=d)))
    masses = np.array([np.prod(part) for part in product(*[np.array([1, 4, 1]) / 6.0] * d)])
    points = np.vstack([mean + grid @ root.T for mean, root in zip(means, roots, strict=True)])
    return points, np.kron(np.eye(len(means)), masses)


CHAIN_MEANS = np.array([[0.0, 1.0], [2.0, -1.0], [-1.0, 3.0]])
CHAIN_ROOTS = {
    "spherical": np.array([0.5, 1.0, 0.8])[:, None, None] * np.eye(2),
    "diag": np.array([np.diag([0.5, 1.0]), np.diag([1.0, 0.4]), np.diag([0.8, 0.8])]),
    "full": np.array([[[0.5, 0.0], [0.3, 1.0]], [[1.0, 0.0], [-0.2, 0.4]], [[0.8, 0.0], [0.1, 0.8]]]),
    "tied": np.tile([[0.9, 0.0], [0.3, 0.6]], (3, 1, 1)),
}


def check_gaussian_chain(kind, method, start):
    roots = CHAIN_ROOTS[kind]
    sequences, weights = all_triples(*hermite_points(CHAIN_MEANS, roots), start)
    model = GaussianHMM(K, covariance_type=kind, refine=None, method=method, random_state=0)
    fit_triples(model, sequences, weights)
    order = matched(model.means_, CHAIN_MEANS)
    np.testing.assert_allclose(model.means_[order], CHAIN_MEANS, atol=DOUBLE)
    np.testing.assert_allclose(model.covariance_matrices()[order], roots @ roots.transpose(0, 2, 1), atol=DOUBLE)
    check_chain(model, order, start)


@each_method
def test_proposition_3_4_for_gaussians(method):
    check_gaussian_chain("diag", method, STATIONARY)


@pytest.mark.parametrize("kind", CHAIN_ROOTS)
def test_proposition_3_4_for_every_covariance(kind):
    check_gaussian_chain(kind, "auto", ELSEWHERE)


@each_method
@each_start
def test_proposition_3_4_for_counts(start, method):
    """Any distribution with the mean of a Poisson will do: rates are read from means."""
    counts = np.arange(12)
    rates = np.array([1.0, 4.0, 8.0])
    masses = np.array([np.exp(counts * np.log(rate) - np.cumsum(np.log(np.maximum(counts, 1)))) for rate in rates])
    masses /= masses.sum(axis=1, keepdims=True)
    sequences, weights = all_triples(counts[:, None], masses, start)
    model = fit_triples(PoissonHMM(K, refine=None, method=method, random_state=0), sequences, weights)
    means = (masses @ counts)[:, None]
    order = np.argsort(model.lambdas_[:, 0])  # the rates above ascend
    np.testing.assert_allclose(model.lambdas_[order], means, atol=1e-6)
    check_chain(model, order, start)


def test_missing_entries_do_not_bias_the_moments_of_a_chain():
    """One of two columns is missing half of the time in the middle: the other half has all moments."""
    sequences, weights = all_triples(*hermite_points(CHAIN_MEANS, CHAIN_ROOTS["full"]), STATIONARY)
    holes = sequences.copy()
    holes[:, 1, 0] = np.nan
    model = GaussianHMM(K, covariance_type="full", refine=None, random_state=0)
    fit_triples(model, np.concatenate([sequences, holes]), np.concatenate([weights, weights]))
    order = matched(model.means_, CHAIN_MEANS)
    roots = CHAIN_ROOTS["full"]
    np.testing.assert_allclose(model.means_[order], CHAIN_MEANS, atol=DOUBLE)
    np.testing.assert_allclose(model.covars_[order], roots @ roots.transpose(0, 2, 1), atol=DOUBLE)


def symbols_error(n, seed):
    x = categorical_hmm(n, TRANSMAT, TOPICS, random_state=seed).observations
    model = CategoricalHMM(K, refine=None, random_state=0).fit(x)
    return np.abs(model.emissionprob_[matched(model.emissionprob_, TOPICS)] - TOPICS).max()


def gaussians_error(n, seed):
    rng = np.random.default_rng(seed)
    states = markov_chain(n, TRANSMAT, random_state=rng)
    x = CHAIN_MEANS[states] + 0.7 * rng.standard_normal((n, 2))
    model = GaussianHMM(K, refine=None, random_state=0).fit(x)
    return np.abs(model.means_[matched(model.means_, CHAIN_MEANS)] - CHAIN_MEANS).max()


def counts_error(n, seed):
    rng = np.random.default_rng(seed)
    rates = np.array([[1.0], [6.0], [15.0]])
    model = PoissonHMM(K, refine=None, random_state=0)
    model.fit(rng.poisson(rates[markov_chain(n, TRANSMAT, random_state=rng)]))
    return np.abs(np.sort(model.lambdas_, axis=0) - rates).max()


@pytest.mark.parametrize("error", [symbols_error, gaussians_error, counts_error])
def test_the_error_of_a_chain_falls_as_the_root_of_the_steps(error):
    few, many = (np.median([error(n, seed) for seed in range(7)]) for n in (10_000, 100_000))
    assert 1.5 < few / many < 7  # the root of 10, and what medians of seven leave of it
