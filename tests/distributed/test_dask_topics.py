"""Topic models on Dask collections: the same fit, and only sums travel."""

from __future__ import annotations

import dask
import dask.array as da
import dask.bag as db
import dask.dataframe as dd
import distributed
import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from odeco import LatentDirichletAllocation, SingleTopicModel
from odeco.moments import WordPairs, WordTriples
from odeco.simulate import lda_documents, zipf_topics
from odeco.sources import as_source, partitions
from odeco.sources.dask import open_dask
from tests.distributed.conftest import local_cluster

# Products are in single precision: sums of 2,000 documents in another order differ by some 1e-7 of the largest entry,
# and what is read from them by the condition of the problem times that; 1e-8 was measured.
TOLERANCE = 2e-6

MODELS = [
    LatentDirichletAllocation(5, refine=None, random_state=0),
    LatentDirichletAllocation(5, random_state=0),
    LatentDirichletAllocation(5, refine="vb", random_state=0),
    SingleTopicModel(5, refine=None, random_state=0),
    SingleTopicModel(5, random_state=0),
]


def array_of(blocks):
    parts = [da.from_delayed(dask.delayed(b), shape=b.shape, dtype=np.float64, meta=b[:0]) for b in blocks]
    return da.concatenate(parts, axis=0)


def fitted(model, X, **options):
    return type(model)(**model.get_params()).fit(X, **options)


def assert_equal(first, second):
    np.testing.assert_allclose(first.components_, second.components_, atol=TOLERANCE)
    name = "alpha_" if hasattr(first, "alpha_") else "weights_"
    np.testing.assert_allclose(getattr(first, name), getattr(second, name), rtol=1e-3, atol=1e-5)
    assert first.diagnostics_.method == second.diagnostics_.method


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_arrays_with_sparse_blocks_give_what_a_stream_gives(model, corpus, corpus_blocks):
    streamed = fitted(model, lambda: iter([corpus[:900], corpus[900:]]))
    assert_equal(fitted(model, array_of(corpus_blocks)), streamed)


def test_bags_and_frames_give_what_a_stream_gives(corpus, corpus_blocks):
    model = LatentDirichletAllocation(5, random_state=0)
    streamed = fitted(model, lambda: iter([corpus]))
    assert_equal(fitted(model, db.from_sequence(corpus_blocks, npartitions=len(corpus_blocks))), streamed)
    rows = db.from_sequence(list(corpus.toarray()), npartitions=3)
    assert_equal(fitted(model, rows), streamed)
    frame = dd.from_pandas(pd.DataFrame(corpus.toarray()), npartitions=4)
    assert_equal(fitted(model, frame), streamed)


@pytest.mark.parametrize("model", MODELS[:2], ids=str)
def test_weights_travel_with_their_rows(model, corpus, corpus_blocks):
    weights = np.random.default_rng(1).integers(0, 3, corpus.shape[0]).astype(float)
    streamed = fitted(model, lambda: iter([corpus]), sample_weight=weights)
    X = array_of(corpus_blocks)
    assert_equal(fitted(model, X, sample_weight=weights), streamed)
    assert_equal(fitted(model, X, sample_weight=da.from_array(weights, chunks=(X.chunks[0],))), streamed)
    with pytest.raises(ValueError, match="shape"):
        fitted(model, X, sample_weight=weights[1:])


def test_alpha0_of_many_topics_is_found_where_the_rows_are():
    """From 32 topics on the search works in single precision: rounding may not decide where it ends."""
    topics = zipf_topics(33, 800, random_state=3)
    counts = lda_documents(16_000, topics, np.full(33, 0.5 / 33), mean_length=100, random_state=4).counts.tocsr()
    blocks = [counts[start : start + 4_000] for start in range(0, 16_000, 4_000)]
    model = LatentDirichletAllocation(33, refine=None, random_state=0)
    streamed, elsewhere = fitted(model, lambda: iter(blocks)), fitted(model, array_of(blocks))
    assert streamed.alpha0_ == pytest.approx(0.5, rel=0.05)
    assert elsewhere.alpha0_ == pytest.approx(streamed.alpha0_, rel=1e-4)
    assert_equal(elsewhere, streamed)


def test_an_uneven_cut_moves_no_batch_of_the_refinement(corpus, corpus_blocks, monkeypatch):
    """Batches of the sweeps are rows 0-699, 700-1399, ... wherever partitions begin and end."""
    monkeypatch.setattr("odeco.sources.DEFAULT_BATCH_SIZE", 700)
    model = LatentDirichletAllocation(5, random_state=0)
    streamed = fitted(model, as_source(lambda: iter([corpus]), 700))
    assert_equal(fitted(model, as_source(array_of(corpus_blocks), 700)), streamed)


def test_what_travels_does_not_grow_with_the_documents(corpus, corpus_blocks, sent):
    """O(d k) in the pair pass, O(k^3) in the triple pass (numbers of 8 bytes), whatever the number of documents."""
    d, k = corpus.shape[1], 5
    LatentDirichletAllocation(k, refine=None, random_state=0).fit(array_of(corpus_blocks))
    assert set(sent) == {"FrequenciesAndPairs", "WordTriples"}
    width = d  # the vocabulary is small: the whole matrix is formed, as in memory
    assert sent["FrequenciesAndPairs"] <= 8 * (d * width + 2 * d + 20)
    assert sent["WordTriples"] <= 8 * (k**3 + k**2 + k + 10)
    first = dict(sent)
    sent.clear()
    LatentDirichletAllocation(k, refine=None, random_state=0).fit(array_of([*corpus_blocks] * 3))
    assert sent == first


@pytest.mark.parametrize(("threads", "tasks"), [(1, 2), (2, 2), (5, 5), (50, 10)])
def test_one_task_adds_up_several_partitions(corpus, corpus_blocks, monkeypatch, threads, tasks):
    """Four partitions or more in each of three tasks at most for each thread, at least one; the fit is the same."""
    model = LatentDirichletAllocation(5, refine=None, random_state=0)
    X = array_of([*corpus_blocks] * 2)
    apart = fitted(model, X)
    n_read = []
    run = partitions.SumRows.over

    def counted(self, parts):
        found = list(parts)
        n_read.append(len(found))
        return run(self, found)

    monkeypatch.setattr("odeco.kernels.threads.thread_count", lambda: threads)
    monkeypatch.setattr(partitions.SumRows, "over", counted)
    together = fitted(model, X)
    assert_equal(together, apart)
    n_passes = together.diagnostics_.n_passes
    assert len(n_read) == tasks * n_passes
    assert sum(n_read) == X.numblocks[0] * n_passes


@pytest.mark.parametrize(("given", "expected"), [({}, 1), ({"priority": 5}, 6), ({"priority": len}, len)])
def test_what_is_waited_for_goes_before_a_pass(corpus_blocks, monkeypatch, given, expected):
    """Samples are asked for while a pass begins; Dask takes both for one generation of tasks."""
    asked = []

    def compute(tasks):
        asked.extend(tasks)
        return [0] * len(tasks)

    monkeypatch.setattr("odeco.sources.dask.compute", compute)
    opened = open_dask(array_of(corpus_blocks))[0]
    with dask.annotate(**given):
        opened.fetch(partitions._count_rows, [partitions.Piece(0, partitions.ALL)])
    layers = [layer.annotations for task in asked for layer in task.dask.layers.values() if layer.annotations]
    assert layers
    assert all(annotations["priority"] == expected for annotations in layers)


@pytest.mark.filterwarnings("ignore::odeco.exceptions.MomentWarning")
def test_where_moments_fail_the_fit_without_them_is_the_same(corpus):
    """Documents of two words have no triples: what was chosen beside the passes must not touch the seed any more."""
    rng = np.random.default_rng(0)
    words = rng.choice(corpus.shape[1], (600, 2), p=np.asarray(corpus.sum(axis=0)).ravel() / corpus.sum())
    short = sparse.csr_matrix((np.ones(1200), (np.repeat(np.arange(600), 2), words.ravel())), (600, corpus.shape[1]))
    model = LatentDirichletAllocation(3, max_iter=3, random_state=0)
    there = fitted(model, array_of([short[:250], short[250:]]))
    assert "documents as topics" in there.diagnostics_.method
    assert_equal(there, fitted(model, lambda: iter([short])))


SEEN = []  # partitions, and the workers that read them


def noted(block, index):
    SEEN.append((index, distributed.get_worker().address))
    return block


def test_every_worker_has_its_share_of_a_pass(corpus):
    """Sums are large and lie on one worker first: left alone, Dask runs all tasks there."""
    blocks = [corpus[250 * i : 250 * (i + 1)] for i in range(8)]
    bag = db.from_delayed([dask.delayed(noted)(block, i) for i, block in enumerate(blocks)])
    with local_cluster(processes=False) as cluster, distributed.Client(cluster):
        source = as_source(bag)
        SEEN.clear()
        basis = np.random.default_rng(0).standard_normal((corpus.shape[1], 4)).astype(np.float32)
        there = WordPairs(basis).update_all(source)
        shares = {worker: [index for index, at in SEEN if at == worker] for _, worker in SEEN}
        assert sorted(map(sorted, shares.values())) == [[0, 1, 2, 3], [4, 5, 6, 7]]
        SEEN.clear()
        chosen = next(iter(shares))
        with dask.annotate(workers=[chosen]):
            WordPairs(basis).update_all(source)
        assert {worker for _, worker in SEEN} == {chosen}
    here = WordPairs(basis).update_all(as_source(corpus))
    np.testing.assert_allclose(there.product, here.product, atol=3e-7 * np.abs(here.product).max())


def test_packed_sums_are_the_sums(corpus):
    """Packing subtracts what repeats a word where the documents are: equal to the rounding of single precision."""
    batch = next(iter(as_source(corpus)))
    basis = np.random.default_rng(0).standard_normal((corpus.shape[1], 4)).astype(np.float32)
    for kind in (WordPairs, WordTriples):
        there = kind(basis).update(batch)
        here = kind(basis).unpack(there.pack()).unpack(kind(basis).update(batch).pack())
        twice = kind(basis).update(batch).update(batch)
        name = "product" if kind is WordPairs else "triples"
        scale = np.abs(getattr(twice, name)).max()
        np.testing.assert_allclose(getattr(here, name), getattr(twice, name), atol=3e-7 * scale)
        assert here.n == twice.n == 2 * len(batch)


def test_transform_and_predict_are_lazy(corpus, corpus_blocks):
    X = array_of(corpus_blocks)
    lda = LatentDirichletAllocation(5, refine=None, random_state=0).fit(corpus)
    shares = lda.transform(X)
    assert isinstance(shares, da.Array)
    assert shares.shape == (2000, 5)
    np.testing.assert_allclose(shares.compute(), lda.transform(corpus), atol=1e-6)
    single = SingleTopicModel(5, random_state=0).fit(corpus)
    labels = single.predict(X)
    assert isinstance(labels, da.Array)
    assert labels.dtype == np.intp
    np.testing.assert_array_equal(labels.compute(), single.predict(corpus))
    bag = db.from_sequence(corpus_blocks, npartitions=3)
    np.testing.assert_allclose(single.predict_proba(bag).compute(), single.predict_proba(corpus), atol=1e-6)
    assert single.score(X) == pytest.approx(single.score(corpus), rel=1e-9)


def test_bad_collections_are_refused_by_name(corpus):
    model = LatentDirichletAllocation(5)
    with pytest.raises(ValueError, match="no partition has any rows"):
        model.fit(db.from_sequence([corpus[:0]], npartitions=1))
    with pytest.raises(ValueError, match="count words first"):
        model.fit(db.from_sequence(["a b", "b c"], npartitions=1))
    with pytest.raises(ValueError, match="two-dimensional"):
        model.fit(da.ones(5))
    negative = sparse.csr_matrix(-corpus)
    with pytest.raises(ValueError, match="Negative"):
        model.fit(db.from_sequence([corpus, negative], npartitions=2))
    narrow = db.from_sequence([corpus, corpus[:, :50]], npartitions=2)
    with pytest.raises(ValueError, match="differ in their number of columns: 120 in the first, then 50"):
        model.fit(narrow)
