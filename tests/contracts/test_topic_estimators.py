"""The estimators on word counts keep scikit-learn's contract and this library's own."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

import odeco
from odeco.metrics import match_components
from odeco.models.lda.estimator import LatentDirichletAllocation
from odeco.models.single_topic.estimator import SingleTopicModel
from odeco.refinement.multinomial_mixture import refine_multinomial_mixture
from odeco.simulate import lda_documents, single_topic_documents, zipf_topics

K, D, N = 4, 200, 3000


@pytest.fixture(scope="module")
def sample():
    rng = np.random.default_rng(0)
    return lda_documents(N, zipf_topics(K, D, random_state=rng), np.full(K, 0.1), mean_length=50, random_state=rng)


# scikit-learn's check compares weights with repetitions to 1e-7. tests/unit/refinement/test_lda.py compares sweeps.
_WEIGHTS = "alpha is estimated from documents drawn by weight, and sweeps in single precision agree to 1e-5"
EXPECTED_FAILURES = {
    "LatentDirichletAllocation": {
        "check_sample_weight_equivalence_on_dense_data": _WEIGHTS,
        "check_sample_weight_equivalence_on_sparse_data": _WEIGHTS,
    },
    # The check takes whatever has predict_proba for a classifier and asks for its tags; sparse input is tested below.
    "SingleTopicModel": {
        "check_estimator_sparse_array": "predict_proba of a mixture is taken for a classifier's",
        "check_estimator_sparse_matrix": "predict_proba of a mixture is taken for a classifier's",
    },
}


@pytest.mark.usefixtures("short_search")
@parametrize_with_checks(
    [LatentDirichletAllocation(2, random_state=0), SingleTopicModel(2, random_state=0)],
    expected_failed_checks=lambda estimator: EXPECTED_FAILURES[type(estimator).__name__],
)
def test_scikit_learn_checks(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", odeco.MomentWarning)  # their data are no documents, and are told so
        check(estimator)


def error_of(components, truth):
    matching = match_components(components.T, truth.T)
    return np.abs(components[matching.permutation] - truth).sum(axis=1).mean()


@pytest.mark.parametrize("refine", [None, "cvb0", "vb", "map"])
def test_topics_are_recovered(sample, refine):
    model = LatentDirichletAllocation(K, refine=refine, random_state=0).fit(sample.counts)
    # Sampling error at this size: 0.06 by moments alone, less after refinement; a uniform guess errs by more than 1.
    assert error_of(model.components_, sample.topics) < 0.12
    assert error_of(np.roll(model.components_, 1, axis=1), sample.topics) > 0.5
    assert np.allclose(model.components_.sum(axis=1), 1)
    assert np.all(model.components_ >= 0)
    assert np.all(np.diff(model.alpha_) <= 0)
    assert model.alpha0_ == pytest.approx(model.alpha_.sum())
    assert 0.2 < model.alpha0_ < 0.8  # the truth is 0.4
    assert model.diagnostics_.suggested_components == K
    assert model.diagnostics_.ok, model.diagnostics_


def test_alpha0_may_be_known(sample):
    model = LatentDirichletAllocation(K, alpha0=0.4, refine=None, random_state=0).fit(sample.counts)
    assert model.alpha0_ == 0.4
    assert "alpha0_curve" not in model.diagnostics_.details
    for bad in (0.0, -1.0, np.inf, "large"):
        with pytest.raises(ValueError, match="alpha0"):
            LatentDirichletAllocation(K, alpha0=bad, refine=None).fit(sample.counts)


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "dense", "int64", "uint8", "bool", "batches", "callable"])
def test_every_form_of_the_counts_gives_the_same(sample, form):
    counts = sample.counts.minimum(1) if form == "bool" else sample.counts
    forms = {
        "csr": lambda: counts,
        "csc": lambda: counts.tocsc(),
        "coo": lambda: counts.tocoo(),
        "dense": lambda: counts.toarray(),
        "int64": lambda: counts.astype(np.int64),
        "uint8": lambda: counts.astype(np.uint8),
        "bool": lambda: counts.astype(bool),
        "batches": lambda: [counts[:1000], counts[1000:]],
        "callable": lambda: lambda: iter([counts[:700], counts[700:]]),
    }
    model = LatentDirichletAllocation(K, alpha0=0.4, refine=None, random_state=0)
    expected = clone(model).fit(counts.astype(np.float32)).components_
    # Work in single precision on at most 3,000 documents, in other blocks.
    assert np.allclose(model.fit(forms[form]()).components_, expected, atol=2e-5)


def test_the_callers_arrays_are_not_changed(sample):
    given = sample.counts.copy()
    LatentDirichletAllocation(K, random_state=0).fit(given)
    assert np.array_equal(given.data, sample.counts.data)
    assert np.array_equal(given.indices, sample.counts.indices)


def test_non_canonical_counts(sample):
    small = sample.counts[:1500].tocoo()
    doubled = sparse.csr_array(
        sparse.coo_array(
            (
                np.concatenate([small.data / 2, small.data / 2]),
                (np.concatenate([small.coords[0]] * 2), np.concatenate([small.coords[1]] * 2)),
            ),
            shape=small.shape,
        )
    )
    model = LatentDirichletAllocation(K, alpha0=0.4, refine=None, random_state=0)
    expected = clone(model).fit(small.tocsr()).components_
    assert np.allclose(model.fit(doubled).components_, expected, atol=2e-5)


def test_transform_is_per_document_and_on_the_simplex(sample):
    model = LatentDirichletAllocation(K, random_state=0).fit(sample.counts)
    proportions = model.transform(sample.counts[:50])
    assert proportions.shape == (50, K)
    assert np.allclose(proportions.sum(axis=1), 1)
    alone = np.vstack([model.transform(sample.counts[[i]]) for i in range(50)])
    assert np.array_equal(proportions, alone)
    empty = model.transform(sparse.csr_array((1, D)))
    assert np.allclose(empty[0], model.alpha_ / model.alpha_.sum(), atol=1e-6)
    matching = match_components(model.components_.T, sample.topics.T)
    found = proportions[:, matching.permutation]
    assert np.corrcoef(found.ravel(), sample.proportions[:50].ravel())[0, 1] > 0.95


def test_scores(sample):
    model = LatentDirichletAllocation(K, random_state=0).fit(sample.counts[:2500])
    held_out = sample.counts[2500:]
    perplexity = model.perplexity(held_out)
    assert model.score(held_out) == pytest.approx(-np.log(perplexity))
    assert model.perplexity(held_out) == perplexity  # the coin has a fixed seed
    frequencies = np.asarray(sample.counts[:2500].sum(axis=0)).ravel() + 0.1
    unigram = odeco.completion.completion(held_out, frequencies[None] / frequencies.sum()).perplexity
    truth = odeco.completion.completion(held_out, sample.topics, sample.prior).perplexity
    assert truth * 0.99 < perplexity < 1.05 * truth
    assert perplexity < 0.8 * unigram


def test_sample_draws_from_the_model(sample):
    model = LatentDirichletAllocation(K, random_state=0).fit(sample.counts)
    counts, proportions = model.sample(500, mean_length=30)
    assert counts.shape == (500, D)
    assert proportions.shape == (500, K)
    frequencies = np.asarray(counts.sum(axis=0)).ravel() / counts.sum()
    expected = (model.alpha_ / model.alpha0_) @ model.components_
    assert np.abs(frequencies - expected).sum() < 0.15


def test_partial_fit_does_not_depend_on_chunks_and_goes_on(sample):
    whole = LatentDirichletAllocation(K, alpha0=0.4, basis_size=1000, random_state=0).partial_fit(sample.counts)
    parts = LatentDirichletAllocation(K, alpha0=0.4, basis_size=1000, random_state=0)
    for start in range(0, N, 450):
        parts.partial_fit(sample.counts[start : start + 450])
        assert parts.components_.shape == (K, D)  # readable at any time
    assert np.allclose(parts.components_, whole.components_, atol=1e-4)
    assert error_of(whole.components_, sample.topics) < 0.12
    assert "one pass" in whole.diagnostics_.method
    with pytest.raises(ValueError, match="is expecting"):
        parts.partial_fit(sample.counts[:, :10])
    assert parts.fit(sample.counts).diagnostics_.method.startswith("moments, then")


def test_same_seed_same_bits(sample):
    first, second = (LatentDirichletAllocation(K, random_state=3).fit(sample.counts) for _ in range(2))
    assert np.array_equal(first.components_, second.components_)
    assert np.array_equal(first.alpha_, second.alpha_)


def test_too_many_topics_are_told_not_changed(sample):
    with pytest.warns(odeco.MomentWarning, match="support about 4 topics"):
        model = LatentDirichletAllocation(9, random_state=0).fit(sample.counts)
    assert model.components_.shape == (9, D)


def test_moments_that_fail_are_told_and_replaced():
    same = sparse.csr_array(np.tile([[5.0, 3.0, 2.0, 0.0]], (50, 1)))  # one document, fifty times
    with pytest.warns(odeco.MomentWarning, match="could not be used"):
        model = LatentDirichletAllocation(2, random_state=0).fit(same)
    assert np.all(np.isfinite(model.components_))
    assert "documents as topics" in model.diagnostics_.method
    with pytest.raises(ValueError, match="rank"):
        LatentDirichletAllocation(2, refine=None).fit(same)


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        (np.array([[1.0, -1.0]]), "negative"),
        (np.array([[1.0, np.nan]]), "NaN"),
        (np.array([[1.0, np.inf]]), "infinite"),
        (np.empty((0, 3)), "empty|0 sample"),
        (np.ones((5, 1)), "n_features=1"),
        (np.ones((5, 2)) / 4, "no document has"),
    ],
)
def test_bad_counts_are_refused(counts, message):
    with pytest.raises(ValueError, match=message):
        LatentDirichletAllocation(2, refine=None).fit(counts)


def test_bad_options_are_refused(sample):
    for options, message in (
        ({"n_components": 0}, "n_components"),
        ({"n_components": 1000}, "n_components"),
        ({"refine": "gibbs"}, "refine"),
        ({"word_scale": "rare"}, "word_scale"),
        ({"word_scale": 2.0}, "word_scale"),
    ):
        with pytest.raises(ValueError, match=message):
            LatentDirichletAllocation(**{"n_components": K, **options}).fit(sample.counts)


def test_one_topic_is_the_word_frequencies(sample):
    model = LatentDirichletAllocation(1, alpha0=1.0, refine=None).fit(sample.counts)
    frequencies = np.asarray((sample.counts / sample.counts.sum(axis=1)[:, None]).mean(axis=0)).ravel()
    assert np.abs(model.components_[0] - frequencies).sum() < 0.1


def test_words_that_never_occur_and_a_giant_document(sample):
    padded = sparse.hstack([sample.counts, sparse.csr_array((N, 5))], format="csr")
    giant = np.append(np.random.default_rng(0).multinomial(100_000, sample.topics.mean(axis=0)), np.zeros(5))
    model = LatentDirichletAllocation(K, random_state=0).fit(sparse.vstack([padded, giant[None]], format="csr"))
    assert error_of(model.components_[:, :D], sample.topics) < 0.15
    assert np.all(model.components_[:, D:] < 1e-3)


def test_a_stream_that_is_too_short_says_so(sample):
    model = LatentDirichletAllocation(K, random_state=0)
    with pytest.warns(odeco.MomentWarning, match="Add more documents"):
        model.partial_fit(sample.counts[:2])
    model.partial_fit(sample.counts[2:])
    assert error_of(model.components_, sample.topics) < 0.12


@pytest.fixture(scope="module")
def single():
    rng = np.random.default_rng(1)
    weights = np.array([0.4, 0.3, 0.2, 0.1])
    return single_topic_documents(N, zipf_topics(K, D, random_state=rng), weights, mean_length=15, random_state=rng)


@pytest.mark.parametrize("refine", [None, "em", "one-step"])
def test_single_topics_are_recovered(single, refine):
    model = SingleTopicModel(K, refine=refine, random_state=0).fit(single.counts)
    # Seen: 0.12 by moments alone, 0.08 after EM; components in the wrong order err by more than 1.
    assert error_of(model.components_, single.topics) < 0.2
    assert np.abs(model.weights_ - single.prior).max() < 0.05  # largest first, as in the truth
    assert model.weights_.sum() == pytest.approx(1)
    found, true = model.predict(single.counts), np.argmax(single.proportions, axis=1)
    matching = match_components(model.components_.T, single.topics.T)
    assert np.mean(matching.permutation[true] == found) > 0.95
    posterior = model.predict_proba(single.counts)
    assert np.allclose(posterior.sum(axis=1), 1)
    assert np.array_equal(np.argmax(posterior, axis=1), found)


def test_single_topic_scores(single):
    models = {k: SingleTopicModel(k, random_state=0) for k in (2, K)}
    for model in models.values():
        model.fit(single.counts)
    scores = models[K].score_samples(single.counts)
    assert models[K].score(single.counts) == pytest.approx(scores.mean())
    parameters = (K - 1) + K * (D - 1)
    assert models[K].aic(single.counts) == pytest.approx(-2 * scores.sum() + 2 * parameters)
    assert models[K].bic(single.counts) == pytest.approx(-2 * scores.sum() + np.log(N) * parameters)
    assert models[K].bic(single.counts) < models[2].bic(single.counts)
    naive = np.log(models[K].weights_) + single.counts[:5].toarray() @ np.log(models[K]._smoothed()).T
    assert np.allclose(scores[:5], np.log(np.exp(naive).sum(axis=1)))


def test_em_never_loses(single):
    rng = np.random.default_rng(0)
    start = np.full(K, 1 / K), rng.dirichlet(np.ones(D), size=K)
    values = refine_multinomial_mixture(single.counts, *start, max_iter=15, tol=1e-12).trace.values
    assert np.all(np.diff(values) >= -1e-9)  # sums of 3,000 log-likelihoods of size 100, per document
    assert values[-1] > values[0] + 1


def test_weights_are_repetitions_for_single_topics(single):
    rng = np.random.default_rng(2)
    weights = rng.integers(0, 3, size=600)
    counts = single.counts[:600]
    repeated = counts[np.repeat(np.arange(600), weights)]
    model = SingleTopicModel(K, word_scale=0.5, random_state=0)
    first = clone(model).fit(counts, sample_weight=weights)
    second = clone(model).fit(repeated)
    assert np.allclose(first.components_, second.components_, atol=1e-3)  # single precision, then 100 EM steps
    assert np.allclose(first.weights_, second.weights_, atol=1e-3)


def test_single_topic_stream_and_sample(single):
    model = SingleTopicModel(K, basis_size=1000, random_state=0)
    for start in range(0, N, 700):
        model.partial_fit(single.counts[start : start + 700])
    assert error_of(model.components_, single.topics) < 0.25
    counts, labels = model.sample(200)
    assert counts.shape == (200, D)
    assert labels.shape == (200,)
    assert np.mean(model.predict(counts) == labels) > 0.95
    with pytest.raises(ValueError, match="refine"):
        SingleTopicModel(K, refine="gibbs").fit(single.counts)


def test_the_error_falls_as_one_over_the_square_root_of_n():
    """Slope -1/2 of the error in the number of documents, moments alone, over four sizes and three seeds."""
    sizes, errors = (1000, 4000, 16000, 64000), []
    topics = zipf_topics(3, 60, concentration=0.2, random_state=0)
    for n in sizes:
        found = []
        for seed in range(3):
            drawn = lda_documents(n, topics, np.full(3, 0.2), mean_length=30, random_state=seed)
            model = LatentDirichletAllocation(3, alpha0=0.6, refine=None, word_scale=0.5, random_state=0).fit(
                drawn.counts
            )
            found.append(error_of(model.components_, topics))
        errors.append(np.mean(found))
    slope = np.polyfit(np.log(sizes), np.log(errors), 1)[0]
    assert -0.6 < slope < -0.4  # the standard error of the slope is 0.04


@pytest.mark.parametrize("model", [LatentDirichletAllocation, SingleTopicModel])
@pytest.mark.parametrize(
    "options", [{"refine": "x"}, {"method": "x"}, {"max_iter": 0}, {"tol": -1.0}, {"tol": np.nan}, {"basis_size": 2.5}]
)
def test_options_that_cannot_be_used_are_refused_before_anything_is_computed(sample, model, options):
    name = next(iter(options))
    with pytest.raises(ValueError, match=f"{name} must be"):
        model(K, **options).fit(sample.counts)
    with pytest.raises(ValueError, match=f"{name} must be"):
        model(K, **options).partial_fit(sample.counts)


@pytest.mark.parametrize("model", [LatentDirichletAllocation, SingleTopicModel])
def test_one_pass_over_too_few_documents_says_so(sample, model):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", odeco.MomentWarning)
        few = model(K, random_state=0).partial_fit(sample.counts[: 2 * K])
    assert any("too few documents" in text for text in few.diagnostics_.advice)
    assert not any("too few" in text for text in few.partial_fit(sample.counts).diagnostics_.advice)


def test_perplexity_without_words_is_refused():
    model = LatentDirichletAllocation(2, random_state=0).fit(np.random.default_rng(0).poisson(2.0, (60, 4)))
    with pytest.raises(ValueError, match="no words to score"):
        model.score(np.zeros((3, 4)))
