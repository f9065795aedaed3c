from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from odeco.kernels import topics as kernels
from odeco.metrics import match_components
from odeco.refinement.documents import Documents, Workspace, pad_prior, pad_topics, padded_width
from odeco.refinement.held_out import WatchedWords
from odeco.refinement.lda import refine_lda
from odeco.refinement.objectives import map_terms, map_topics, variational_terms, variational_topics
from odeco.refinement.priors import estimate_alpha
from odeco.sources import Batch, as_batch
from tests.oracles import lda_inference as oracle

K, D = 4, 60
WORKSPACE = Workspace()


def corpus(n=1500, mean_length=40, seed=0, alpha=None):
    """LDA documents, their topics and prior."""
    rng = np.random.default_rng(seed)
    topics = rng.dirichlet(np.full(D, 0.1), size=K)
    alpha = np.array([0.4, 0.3, 0.2, 0.1]) if alpha is None else alpha
    lengths = rng.poisson(mean_length, n)
    words = rng.dirichlet(alpha, size=n) @ topics
    counts = np.array([rng.multinomial(length, row) for length, row in zip(lengths, words, strict=True)])
    return sparse.csr_array(counts.astype(np.float64)), topics, alpha


@pytest.fixture(scope="module")
def documents():
    return corpus()


def noisy(topics, share=0.4, seed=1):
    other = np.random.default_rng(seed).dirichlet(np.full(topics.shape[1], 0.5), size=len(topics))
    return (1 - share) * topics + share * other


def l1_error(estimate, truth):
    """Mean L1 distance of rows, in the order given."""
    return np.abs(estimate - truth).sum(axis=1).mean()


def test_cvb0_step_matches_the_loops(documents):
    counts, topics, alpha = documents
    counts, rng = counts[:30], np.random.default_rng(0)
    own = rng.uniform(0.001, 0.02, K)
    work = Documents(counts, K, np.float64, WORKSPACE)
    work.strengths[:] = rng.uniform(0, 10, work.strengths.shape)
    work.spreads[:] = work.strengths * rng.uniform(0, 1, work.strengths.shape)
    expected = oracle.cvb0_step(
        counts.toarray(),
        topics,
        own,
        alpha,
        work.strengths.copy(),
        work.spreads.copy(),
        kernels.CVB0_FLOOR,
        kernels.CVB0_LEAST_REST,
    )
    words = work.cvb0(np.ascontiguousarray(topics.T), own, alpha, 1, echo=True)
    # Rounding; single precision reciprocals are not used for doubles.
    np.testing.assert_allclose(work.strengths, expected[0], rtol=1e-9)
    np.testing.assert_allclose(work.spreads, expected[1], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(words.T, expected[2], rtol=1e-9, atol=1e-12)


def test_a_long_document(documents):
    rng = np.random.default_rng(0)
    row = rng.integers(1, 3, (1, 775)).astype(float)
    topics = rng.dirichlet(np.ones(row.shape[1]), size=K)
    work = Documents(sparse.csr_array(row), K, np.float64, WORKSPACE)
    start = work.strengths.copy()
    expected = oracle.cvb0_step(
        row, topics, np.zeros(K), np.ones(K), start, np.zeros((1, K)), kernels.CVB0_FLOOR, kernels.CVB0_LEAST_REST
    )
    words = work.cvb0(np.ascontiguousarray(topics.T), np.zeros(K), np.ones(K), 1, echo=True)
    np.testing.assert_allclose(work.strengths, expected[0], rtol=1e-9)  # rounding
    np.testing.assert_allclose(words.T, expected[2], rtol=1e-9)


def test_cvb0_leaves_a_lone_word_to_the_prior():
    """A document of one word says nothing but its word: r is proportional to alpha * topics, at m = 1 exactly."""
    topics, alpha = np.array([[0.7, 0.3], [0.2, 0.8]]), np.array([0.5, 1.5])
    work = Documents(sparse.csr_array([[1.0, 0.0]]), 2, np.float64, WORKSPACE)
    for _ in range(500):
        work.cvb0(np.ascontiguousarray(topics.T), np.zeros(2), alpha, 1, echo=False)
    exact = alpha * topics[:, 0] / (alpha @ topics[:, 0])
    # The first-order density is off by some per cent; plain EM gives the pure topic 1 here.
    np.testing.assert_allclose(work.strengths[0], exact, atol=0.05)


def test_leaving_the_echo_out_is_closer_to_the_exact_posterior():
    """Expected counts of small documents after the steps a pass takes, against a sum over all assignments."""
    rng = np.random.default_rng(3)
    errors = {"echo": [], "plain": [], "em": []}
    for _ in range(20):
        topics, alpha = rng.dirichlet(np.full(30, 0.3), size=3), np.full(3, 0.1)
        row = rng.multinomial(7, rng.dirichlet(alpha) @ topics).astype(float)
        exact, words = exact_strengths(row, topics, alpha), np.ascontiguousarray(topics.T)
        for name, found in errors.items():
            work = Documents(sparse.csr_array(row[None]), 3, np.float64, WORKSPACE)
            work.infer(words, alpha, 6 if name == "em" else 3)
            if name != "em":
                work.cvb0(words, np.zeros(3), alpha, 3, echo=name == "echo")
            found.append(np.abs(work.strengths[0] - exact).sum())
    assert np.mean(errors["echo"]) < 0.9 * np.mean(errors["plain"])
    assert np.mean(errors["plain"]) < 0.9 * np.mean(errors["em"])


def exact_strengths(row, topics, alpha):
    """E[n_k | document] by enumeration: d log evidence / d log of a common factor of topic k's words."""
    base, step = oracle.evidence(row, topics, alpha), 1e-5
    factors = 1 + step * np.eye(len(alpha))
    return np.array([oracle.evidence(row, topics * factor[:, None], alpha) / base - 1 for factor in factors]) / step


@pytest.mark.parametrize(("method", "terms", "as_topics"), [("vb", variational_terms, variational_topics),
                                                            ("map", map_terms, map_topics)])  # fmt: skip
def test_objectives_match_the_oracle_and_never_fall(documents, method, terms, as_topics):
    counts, topics, alpha = documents
    counts, eta = counts[:40], 0.05
    dense, lengths = counts.toarray(), np.asarray(counts.sum(axis=1)).ravel()
    work = Documents(counts, K, np.float64, WORKSPACE)
    word_counts = noisy(topics).T * 100
    values = []
    for _ in range(15):
        before, words_before = work.strengths.copy(), word_counts
        rest = terms(work.strengths, alpha, lengths, work.weights, word_counts, eta)
        word_counts, likelihood = work.em(as_topics(word_counts, eta), alpha, 1, variational=method == "vb")
        values.append(likelihood + rest)
        if method == "vb":
            expected = oracle.elbo(dense, before + alpha, words_before.T + eta, alpha, eta)
        else:
            theta = (before + alpha) / (before + alpha).sum(axis=1, keepdims=True)
            expected = oracle.log_map(dense, theta, map_topics(words_before, eta).T, alpha, eta)
        assert values[-1] == pytest.approx(expected, rel=1e-9)  # rounding, and the series for digamma
    assert np.diff(values).min() > -1e-9 * abs(values[0])  # rounding
    assert values[-1] > values[0]


@pytest.mark.parametrize("method", ["vb", "map"])
def test_traces_of_the_climbing_methods_rise(documents, method):
    counts, topics, alpha = documents
    refined = refine_lda(counts, noisy(topics), alpha, method=method, max_iter=15, tol=0.0, random_state=0)
    assert refined.n_iter == 15
    assert np.diff(refined.trace.values).min() > -1e-12  # rounding of a mean over words
    assert l1_error(refined.topics, topics) < 0.6 * l1_error(noisy(topics), topics)


def test_cvb0_recovers_topics_in_their_order(documents):
    counts, topics, alpha = documents
    start = noisy(topics)
    refined = refine_lda(counts, start, alpha, eta=0.02, random_state=0)
    # Sampling error: 15,000 words per topic of 60 words, an L1 error of some sqrt(60 / 15,000) = 0.06 each.
    assert l1_error(refined.topics, topics) < 0.1
    assert l1_error(start, topics) > 0.3
    assert l1_error(refined.topics[::-1], topics) > 1.0  # the test sees a wrong order
    np.testing.assert_array_equal(match_components(refined.topics.T, topics.T).permutation, np.arange(K))
    np.testing.assert_allclose(refined.topics.sum(axis=1), 1.0, rtol=1e-12)
    assert refined.topics.min() > 0


def test_dense_topics_end_without_the_echo(documents):
    """Where topics share a small vocabulary, leaving the echo out biases them: held-out words must notice."""
    counts, topics, alpha = documents
    start, stages = noisy(topics), []
    for max_iter in (1, 15):
        refined = refine_lda(counts, start, alpha, max_iter=max_iter, random_state=0)
        stages.append(l1_error(refined.topics, topics))
        assert refined.n_iter <= max_iter
    assert stages[1] < 0.5 * stages[0]  # measured 0.06 of 0.3


def test_cvb0_is_watched_by_held_out_words(documents):
    counts, topics, alpha = documents
    refined = refine_lda(counts, noisy(topics), alpha, max_iter=30, tol=1e-3, random_state=0)
    assert refined.trace.converged
    assert refined.n_iter < 30
    assert refined.trace.values.max() > refined.trace.values[0]
    entropy = np.log(D)
    assert -entropy < refined.trace.values[-1] < 0  # a log probability, better than that of the uniform


def test_alpha_is_estimated_and_not_inflated(documents):
    counts, topics, alpha = documents
    refined = refine_lda(counts, noisy(topics), alpha, random_state=0)
    # Topics that are a little blurred make documents look purer: measured 25 % too small at most. Minka's fixed point
    # on expected counts gives twice the truth and more.
    np.testing.assert_allclose(refined.alpha, alpha, rtol=0.35)
    kept = refine_lda(counts, noisy(topics), alpha, optimize_prior=False, eta=0.03, random_state=0)
    np.testing.assert_array_equal(kept.alpha, alpha)
    assert kept.eta == 0.03


def test_alpha_given_the_true_topics():
    alpha = np.array([0.8, 0.4, 0.2, 0.1])
    counts, topics, _ = corpus(n=800, alpha=alpha, seed=5)
    found = estimate_alpha(counts, topics, np.ones(K), np.random.default_rng(0))
    np.testing.assert_allclose(found, alpha, rtol=0.3)  # four standard errors of 800 documents
    doubled = estimate_alpha(counts * 0.5, topics, np.ones(K), np.random.default_rng(0))
    assert np.all(np.isfinite(doubled))  # fractional counts


def test_same_seed_same_result_whatever_the_threads(documents, monkeypatch):
    counts, topics, _ = documents
    results = []
    for threads in ("1", "2", "3"):
        monkeypatch.setenv("ODECO_NUM_THREADS", threads)
        results.append(refine_lda(counts, noisy(topics), max_iter=3, random_state=7))
    for other in results[1:]:
        np.testing.assert_array_equal(other.topics, results[0].topics)
        np.testing.assert_array_equal(other.alpha, results[0].alpha)
    seed_matters = refine_lda(counts, noisy(topics), max_iter=3, random_state=8)
    assert not np.array_equal(seed_matters.topics, results[0].topics)


@pytest.mark.parametrize("method", ["cvb0", "vb", "map"])
def test_batches_give_topics_as_good_as_a_matrix(documents, method):
    counts, topics, alpha = documents
    batches = [as_batch(part) for part in (counts[:600], counts[600:1000], counts[1000:])]
    refined = refine_lda(batches, noisy(topics), alpha, method=method, random_state=0)
    whole = refine_lda(counts, noisy(topics), alpha, method=method, random_state=0)
    assert l1_error(refined.topics, topics) < 1.3 * l1_error(whole.topics, topics)
    assert refined.trace.values.size == refined.n_iter


def test_a_small_memory_budget_changes_little(documents):
    counts, topics, alpha = documents
    tight = refine_lda(counts, noisy(topics), alpha, memory_budget=4000, random_state=0)
    assert l1_error(tight.topics, topics) < 0.5 * l1_error(noisy(topics), topics)


def test_padding_is_never_seen():
    assert padded_width(50) == 56
    assert padded_width(20) == 24
    assert padded_width(70) == 96
    assert padded_width(8) == 8
    assert padded_width(30) == 32
    counts, topics, _ = corpus(n=60)
    wide = np.vstack([topics] * 7)[:27]  # 27 topics are padded to 32
    prior = np.full(27, 0.1)
    plain, padded = Documents(counts, 27, np.float32, WORKSPACE), Documents(counts, 32, np.float32, WORKSPACE)
    own = np.full(32, 1e-3, np.float32)
    for work in (plain, padded):
        work.strengths[:] = 1.0
    expected = plain.cvb0(
        np.ascontiguousarray(wide.T, dtype=np.float32), own[:27], prior.astype(np.float32), 2, echo=True
    )
    found = padded.cvb0(pad_topics(wide, np.float32), own, pad_prior(prior, np.float32), 2, echo=True)
    np.testing.assert_allclose(found[:, :27], expected, rtol=1e-4, atol=1e-6)  # single precision
    assert not found[:, 27:].any()


def test_eta_follows_held_out_words():
    counts, topics, alpha = corpus(n=300)
    prior = pad_prior(alpha, np.float32)
    monitor = WatchedWords(counts, prior, np.random.default_rng(0), WORKSPACE)
    few = pad_topics(np.random.default_rng(0).multinomial(30, topics).astype(float), np.float32)
    assert monitor.look(few, 0.05, choose_eta=True).eta == 0.1  # few counts want more smoothing
    assert monitor.look(few, 0.05, choose_eta=False).eta == 0.05
    exact = pad_topics(topics * 1e3, np.float32)
    assert monitor.look(exact, 1.0, choose_eta=True).eta == 0.5  # exact topics want less


@pytest.mark.parametrize("method", ["cvb0", "vb", "map"])
def test_hard_documents(method):
    """Empty documents, words that never occur, fractional counts, float32, one giant document, fewer than 200 rows."""
    rng = np.random.default_rng(0)
    dense = rng.poisson(0.5, (50, 20)) * 0.5
    dense[3] = 0
    dense[:, 7] = 0
    dense[9] *= 10_000
    counts = sparse.csr_array(dense.astype(np.float32))
    before = counts.data.copy()
    topics = rng.dirichlet(np.ones(20), size=3)
    topics[0, :5] = 0
    topics[0] /= topics[0].sum()
    refined = refine_lda(counts, topics, method=method, max_iter=5, random_state=0)
    assert np.isfinite(refined.topics).all()
    assert np.isfinite(refined.alpha).all()
    np.testing.assert_allclose(refined.topics.sum(axis=1), 1.0, rtol=1e-9)
    np.testing.assert_array_equal(counts.data, before)
    if method == "cvb0":
        assert refined.trace.values.size == 0  # too few documents to hold any out


def test_one_topic():
    counts, _, _ = corpus(n=300)
    refined = refine_lda(counts, np.full((1, D), 1 / D), eta=0.01, random_state=0, optimize_prior=False)
    frequencies = np.asarray(counts.sum(axis=0)).ravel()
    expected = (frequencies + 0.01) / (frequencies + 0.01).sum()
    np.testing.assert_allclose(refined.topics[0], expected, rtol=1e-5)  # single precision


def test_errors_name_the_argument(documents):
    counts, topics, _ = documents
    with pytest.raises(ValueError, match="method"):
        refine_lda(counts, topics, method="gibbs")
    with pytest.raises(ValueError, match="eta"):
        refine_lda(counts, topics, eta=0.0)
    with pytest.raises(ValueError, match="alpha"):
        refine_lda(counts, topics, alpha=[1.0, -1.0, 1.0, 1.0])
    with pytest.raises(ValueError, match="no batches"):
        refine_lda([], topics)


def repeated(counts, weights):
    return counts[np.repeat(np.arange(counts.shape[0]), weights)]


@pytest.mark.parametrize("method", ["vb", "map"])
def test_weights_are_repetitions_of_documents(documents, method):
    counts, topics, alpha = documents
    counts = counts[:150]
    weights = np.random.default_rng(0).integers(0, 4, 150)
    options = {"method": method, "max_iter": 5, "tol": 0.0, "optimize_prior": False}
    weighted = refine_lda(as_batch(counts, weights.astype(float)), noisy(topics), alpha, **options)
    repeats = refine_lda(repeated(counts, weights), noisy(topics), alpha, **options)
    # Double precision, sums in another order.
    np.testing.assert_allclose(weighted.topics, repeats.topics, atol=1e-9)
    np.testing.assert_allclose(weighted.trace.values, repeats.trace.values, rtol=1e-9)
    unweighted = refine_lda(counts, noisy(topics), alpha, **options)
    assert np.abs(unweighted.topics - weighted.topics).max() > 1e-3


@pytest.mark.parametrize("n_iter", [1, 3])
def test_a_weighted_document_leaves_out_only_what_is_its_own(documents, n_iter):
    """Of three equal documents each leaves out its own counts, one of weight 3 those of all three."""
    counts, topics, alpha = documents
    words = np.ascontiguousarray(topics.T)
    own = np.full(K, 0.01)

    def sweep(rows, weights, own_word):
        work = Documents(rows, K, np.float64, WORKSPACE, weights)
        return work.cvb0(words, own_word, alpha, n_iter, echo=True)

    weighted = sweep(counts[:1], np.array([3.0]), own)
    alone = sweep(counts[:1], None, 3 * own)
    np.testing.assert_allclose(weighted, 3 * alone, rtol=1e-12)


def test_weights_of_batches_pull_the_topics():
    counts, topics, alpha = corpus(n=2000, seed=3)
    other = corpus(n=2000, seed=4)[0]  # documents of other topics, which weigh nothing
    rows = sparse.csr_array(sparse.vstack([counts, other]))
    weights = np.repeat([1.0, 0.0], 2000)
    batch = Batch(rows, np.asarray(rows.sum(axis=1)).ravel(), weights)
    found = refine_lda(batch, noisy(topics), alpha, random_state=0).topics
    blind = refine_lda(rows, noisy(topics), alpha, random_state=0).topics
    assert l1_error(found, topics) < 0.5 * l1_error(blind, topics)
