"""The same fits on Spark DataFrames, by Spark's own aggregation. All tests of Spark are here: one worker starts it."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone

from odeco import (
    ICA,
    CategoricalHMM,
    DawidSkene,
    GaussianHMM,
    GaussianMixture,
    LatentDirichletAllocation,
    MultiViewMixture,
    ProductMixture,
    SingleTopicModel,
    choose_components,
    intervals,
)
from odeco.simulate import gaussian_mixture, markov_chain
from odeco.sources import checkpointed, out_of_core
from odeco.sources.spark import from_spark
from tests.distributed.test_signatures import CHANGES, refuses

# As for Dask (test_dask_topics).
TOLERANCE = 2e-6


@pytest.fixture(scope="module")
def vectors(spark, corpus):
    """Sparse vectors in 4 partitions, one of them empty."""
    from pyspark.ml.linalg import Vectors

    rows = [
        (i, Vectors.sparse(corpus.shape[1], row.indices.tolist(), row.data.tolist())) for i, row in enumerate(corpus)
    ]
    edges = [0, 900, 900, 901, len(rows)]
    parts = [rows[low:high] for low, high in itertools.pairwise(edges)]
    rdd = spark.sparkContext.parallelize(parts, 4).flatMap(list)
    return spark.createDataFrame(rdd, ["id", "words"])


@pytest.mark.parametrize(
    "model",
    [
        LatentDirichletAllocation(5, random_state=0, max_iter=2),
        SingleTopicModel(5, random_state=0, refine="one-step"),
    ],
    ids=str,
)
def test_topics_of_sparse_vectors(model, vectors, corpus):
    streamed = type(model)(**model.get_params()).fit(lambda: iter([corpus]))
    spread = type(model)(**model.get_params()).fit(vectors)
    np.testing.assert_allclose(spread.components_, streamed.components_, atol=TOLERANCE)
    assert spread.diagnostics_.method == streamed.diagnostics_.method


def test_tokens_are_counted(spark, corpus):
    words = [f"w{j:03d}" for j in range(corpus.shape[1])]
    documents = [
        ([words[j] for j, count in zip(row.indices, row.data, strict=True) for _ in range(int(count))], float(i % 3))
        for i, row in enumerate(corpus)
    ]
    frame = spark.createDataFrame(documents, ["tokens", "weight"]).repartition(3)
    found = from_spark(frame, "tokens", weight="weight").vocabulary
    assert list(found) == [word for word, total in zip(words, corpus.sum(axis=0).A1, strict=True) if total]
    column = from_spark(frame, "tokens", vocabulary=words, weight="weight")
    weights = np.arange(len(documents)) % 3
    streamed = LatentDirichletAllocation(5, refine=None, random_state=0, word_scale=0.5).fit(
        corpus, sample_weight=weights
    )
    spread = LatentDirichletAllocation(5, refine=None, random_state=0, word_scale=0.5).fit(column)
    # The rows come in another order: nothing depends on it but the sample that measures the noise.
    np.testing.assert_allclose(spread.components_, streamed.components_, atol=TOLERANCE)


def test_transform_adds_a_column(vectors, corpus):
    model = LatentDirichletAllocation(5, refine=None, random_state=0).fit(corpus)
    frame = model.transform(vectors)
    assert frame.columns == ["id", "words", "transform"]
    rows = frame.limit(5).collect()
    np.testing.assert_allclose([row.transform for row in rows], model.transform(corpus[[row.id for row in rows]]))


def test_what_holds_the_data_must_be_clear(spark, vectors):
    with pytest.raises(ValueError, match="not clear which"):
        LatentDirichletAllocation(5).fit(spark.createDataFrame([([1.0], [2.0])], ["a", "b"]))
    with pytest.raises(ValueError, match="column must be one of 'id', 'words', got 'text'"):
        from_spark(vectors, "text")
    with pytest.raises(ValueError, match="of type struct"):
        from_spark(vectors.selectExpr("struct(id) as s"), "s")
    with pytest.raises(ValueError, match="vocabulary goes with"):
        from_spark(vectors, "words", vocabulary=["a"])
    with pytest.raises(ValueError, match="name of a column"):
        LatentDirichletAllocation(5).fit(vectors, sample_weight=np.ones(3))


def test_mixtures_and_ica_of_arrays_and_columns(spark):
    rng = np.random.default_rng(0)
    means = 3 * rng.standard_normal((3, 4))
    points = means[rng.choice(3, 2000)] + rng.standard_normal((2000, 4))
    arrays = spark.createDataFrame([(row.tolist(),) for row in points], ["x"]).repartition(3)
    columns = spark.createDataFrame(points.tolist(), ["a", "b", "c", "d"]).coalesce(2)
    here = GaussianMixture(3, random_state=0, max_iter=2).fit(out_of_core(points))
    for frame in (arrays, columns):
        spread = GaussianMixture(3, random_state=0, max_iter=2).fit(frame)
        np.testing.assert_allclose(spread.means_, here.means_, atol=1e-9)
    labels = [row.predict for row in here.predict(columns).select("predict").collect()]
    np.testing.assert_array_equal(labels, here.predict(points))
    products = ProductMixture(3, family="gaussian", random_state=0, tol=1e-2)
    np.testing.assert_allclose(products.fit(columns).means_, products.fit(out_of_core(points)).means_, atol=1e-9)
    sources = rng.laplace(size=(2000, 4)) @ rng.standard_normal((4, 4))
    frame = spark.createDataFrame(sources.tolist(), ["a", "b", "c", "d"])
    ica = ICA(4, random_state=0, refine=None)
    np.testing.assert_allclose(ica.fit(frame).mixing_, ica.fit(out_of_core(sources)).mixing_, atol=1e-9)


def test_the_number_of_components_is_chosen_where_the_rows_are(spark):
    means = np.array([[0.0, 0, 0], [7, 0, 0], [0, 7, 0]])
    points = gaussian_mixture(400, means, [0.4, 0.35, 0.25], random_state=0).rows
    frame = spark.createDataFrame(points.tolist(), ["a", "b", "c"]).coalesce(2)
    model = GaussianMixture(effort="quick", max_iter=3, random_state=0)  # a step is a job: three will do
    found, here = (choose_components(model, rows, [2, 3]) for rows in (frame, points))
    assert found.best == here.best == 3
    assert found.evidence(3).bic == pytest.approx(here.evidence(3).bic, abs=1.0)  # EM is not at its end
    assert found.evidence(3).replication > 0.95
    assert found.evidence(3).held_out == pytest.approx(here.evidence(3).held_out, abs=0.2)  # other halves


def test_labels_of_crowds_wide_and_long(spark, crowd):
    """Wide as arrays; long with names, the labels of an item in any partition."""
    model = DawidSkene(3, n_init=2, refine="one-step", random_state=0)
    here = clone(model).fit(crowd)
    given = [[None if label < 0 else int(label) for label in row] for row in crowd.tolist()]
    arrays = spark.createDataFrame([(row,) for row in given], "labels array<int>").coalesce(2)
    names = ["cat", "dog", "fox"]
    rows = [(f"a{j}", names[crowd[i, j]], int(i)) for i, j in zip(*np.nonzero(crowd >= 0), strict=True)]
    order = np.random.default_rng(0).permutation(len(rows))
    long = spark.createDataFrame([rows[i] for i in order], "worker string, label string, item long").repartition(3)
    for frame in (arrays, long):
        spread = clone(model).fit(frame)
        np.testing.assert_allclose(spread.confusion_, here.confusion_, atol=1e-9)
    answers = spread.predict(long)
    assert answers.columns == ["item", "predict"]
    found = dict(map(tuple, answers.collect()))
    assert [found[i] for i in range(len(crowd))] == [names[label] for label in here.predict(crowd)]
    labels = [row.predict for row in here.predict(arrays).select("predict").collect()]
    np.testing.assert_array_equal(labels, here.predict(crowd))
    assert here.score(arrays) == pytest.approx(here.score(crowd))


def test_a_spark_task_that_fails_is_run_again(spark, tmp_path):
    rng = np.random.default_rng(0)
    points = 3 * rng.standard_normal((3, 4))[rng.choice(3, 1500)] + rng.standard_normal((1500, 4))
    marker = str(tmp_path / "failed")

    def once(rows):
        for index, row in enumerate(rows):
            if index == 7 and not Path(marker).exists():
                Path(marker).touch()
                raise RuntimeError("a task fails")
            yield row

    rdd = spark.sparkContext.parallelize(points.tolist(), 3).mapPartitions(once)
    frame = spark.createDataFrame(rdd, "a double, b double, c double, d double")
    spread = GaussianMixture(3, random_state=0, refine=None).fit(frame)
    assert Path(marker).exists()
    here = GaussianMixture(3, random_state=0, refine=None).fit(out_of_core(points))
    np.testing.assert_allclose(spread.means_, here.means_, atol=1e-9)


def test_views_of_spark(spark, views):
    """A column for each view: arrays of numbers and sparse vectors."""
    from pyspark.ml.linalg import Vectors

    counts = views[2].tocsr()
    rows = [
        (i % 3 + 0.0, views[0][i].tolist(), views[1][i].astype(int).tolist(), _vector(Vectors, counts, i))
        for i in range(3000)
    ]
    frame = spark.createDataFrame(rows, ["w", "numbers", "answers", "counts"]).repartition(3)
    data = from_spark(frame, ["numbers", "answers", "counts"], weight="w")
    model = MultiViewMixture(3, random_state=0, refine="one-step")
    here = model.fit(views, sample_weight=np.arange(3000) % 3 + 0.0).means_
    there = model.fit(data)
    for mean, other in zip(there.means_, here, strict=True):
        np.testing.assert_allclose(mean, other, atol=1e-9)
    answers = there.predict(data).limit(20).collect()
    columns = [np.array([row[name] for row in answers], dtype=float) for name in ("numbers", "answers")]
    expected = there.predict([*columns, np.array([row["counts"].toArray() for row in answers])])
    assert [row["predict"] for row in answers] == expected.tolist()
    with pytest.raises(ValueError, match="say which columns hold the views"):
        model.fit(frame)
    with pytest.raises(ValueError, match="got 'other'"):
        from_spark(frame, ["numbers", "other", "counts"])


def _vector(vectors, counts, i):
    row = slice(counts.indptr[i], counts.indptr[i + 1])
    return vectors.sparse(counts.shape[1], counts.indices[row].tolist(), counts.data[row].tolist())


@pytest.fixture(scope="module")
def chains():
    """Numbers and symbols of 90 sequences of different lengths in two states, with a missing step in some of them."""
    rng = np.random.default_rng(0)
    transmat = np.array([[0.9, 0.1], [0.2, 0.8]])
    states = [markov_chain(int(rng.integers(20, 120)), transmat, random_state=rng) for _ in range(90)]
    numbers = [np.array([[0.0, 1], [3, -1]])[h] + rng.standard_normal((len(h), 2)) for h in states]
    symbols = [rng.binomial(3, 0.2 + 0.6 * h).astype(float) for h in states]
    for sequence in (*numbers[::5], *symbols[::5]):
        sequence[3] = np.nan
    return numbers, symbols


def frame_of(spark, sequences, weights):
    """A sequence in a row with its weight, null where a number is missing, in 4 partitions of which one is empty."""
    nulls = [np.where(np.isnan(sequence), None, sequence).tolist() for sequence in sequences]
    rows = list(zip(nulls, weights.tolist(), strict=True))
    edges = [0, 40, 40, 41, len(rows)]
    parts = [rows[low:high] for low, high in itertools.pairwise(edges)]
    kind = "array<array<double>>" if sequences[0].ndim == 2 else "array<int>"
    if sequences[0].ndim == 1:
        parts = [[([None if x is None else int(x) for x in row], weight) for row, weight in part] for part in parts]
    rdd = spark.sparkContext.parallelize(parts, 4).flatMap(list)
    return spark.createDataFrame(rdd, f"x {kind}, weight double")


# Rounding of sums in another order, through three passes of Baum-Welch.
@pytest.mark.parametrize(("kind", "refine", "tolerance"), [(CategoricalHMM, None, 1e-9), (GaussianHMM, "auto", 1e-8)])
def test_sequences_are_rows_of_arrays(spark, chains, kind, refine, tolerance):
    sequences = chains[0] if kind is GaussianHMM else chains[1]
    weights = np.arange(len(sequences)) % 3 + 0.5
    frame = frame_of(spark, sequences, weights)
    model = kind(2, refine=refine, tol=0.0, max_iter=3, random_state=0)
    here = clone(model).fit(sequences, sequence_weight=weights)
    there = clone(model).fit(frame, sequence_weight="weight")
    for name in ("startprob_", "transmat_", "means_" if kind is GaussianHMM else "emissionprob_"):
        np.testing.assert_allclose(getattr(there, name), getattr(here, name), atol=tolerance)
    assert there.diagnostics_.method.split(",")[0] == here.diagnostics_.method.split(",")[0]
    column = from_spark(frame, "x")
    assert here.score(column) == pytest.approx(here.score(sequences), rel=1e-12)
    named = from_spark(here.predict(column), "x")
    answers = here.predict_proba(named).select("predict", "predict_proba").collect()
    expected = here.predict_proba(sequences)
    np.testing.assert_allclose(np.concatenate([row.predict_proba for row in answers]), expected, atol=1e-12)
    np.testing.assert_array_equal(np.concatenate([row.predict for row in answers]), here.predict(sequences))


def test_intervals_where_the_rows_are(spark, chains, vectors, corpus):
    """The sandwich is the same to the rounding of second differences; blocks of sums are made there."""
    rng = np.random.default_rng(0)
    points = 5 * np.eye(3, 4)[rng.choice(3, 600)] + rng.standard_normal((600, 4))
    sequences, weights = chains[1], np.arange(len(chains[1])) % 3 + 0.5
    rows = spark.createDataFrame(spark.sparkContext.parallelize(points.tolist(), 3), list("abcd"))
    cases = [
        (GaussianMixture(3, random_state=0).fit(points), points, rows, {}, {}),
        (
            CategoricalHMM(2, effort="quick", random_state=0).fit(sequences, sequence_weight=weights),
            sequences,
            frame_of(spark, sequences, weights),
            {"sample_weight": weights},
            {"sample_weight": "weight"},
        ),
    ]
    for model, here, there, given, given_there in cases:
        expected = intervals(model, here, replication=False, **given)
        found = intervals(model, there, replication=False, **given_there)
        assert found.method == expected.method
        for name in expected.value:
            np.testing.assert_allclose(found.standard_error[name], expected.standard_error[name], rtol=1e-4, atol=1e-9)
    moments = SingleTopicModel(5, refine=None, random_state=0).fit(corpus)
    errors = [intervals(moments, X, n_replicates=10, replication=False, random_state=0) for X in (vectors, corpus)]
    assert errors[0].method == "block sums"
    ratio = np.median(errors[0].standard_error["components_"] / errors[1].standard_error["components_"])
    assert 0.5 < ratio < 2  # ten know a deviation to a quarter


def test_steps_have_no_order_in_a_frame(spark):
    frame = spark.createDataFrame([(0, 1.0), (1, 2.0)], ["time", "x"])
    with pytest.raises(ValueError, match="a row is a whole sequence"):
        GaussianHMM(2).fit(frame)
    nested = spark.createDataFrame([([[1.0, 2.0]],)], "x array<array<double>>")
    with pytest.raises(ValueError, match="these are sequences, for an HMM"):
        GaussianMixture(2).fit(nested)


def test_other_rows_are_refused(spark, crowd, tmp_path):
    rng = np.random.default_rng(0)
    points = 4 * rng.standard_normal((3, 6))[rng.choice(3, 2000)] + rng.standard_normal((2000, 6))

    def frame(rows):
        return spark.createDataFrame(
            spark.sparkContext.parallelize(rows.tolist(), 3), list("abcdefghi"[: rows.shape[1]])
        )

    def of_arrays(rows):
        return from_spark(spark.createDataFrame([(row.tolist(),) for row in rows], ["rows"]), "rows")

    mixture, topics = GaussianMixture(3, refine=None, random_state=0), SingleTopicModel(3, random_state=0)
    answers = DawidSkene(3, refine=None, random_state=0)
    mixture.fit(checkpointed(frame(points), tmp_path / "rows"))
    topics.fit(checkpointed(of_arrays(np.abs(points.round())), tmp_path / "topics"))
    answers.fit(checkpointed(frame(crowd), tmp_path / "crowd"))
    for change in CHANGES:
        refuses(mixture, frame(change(points)), tmp_path / "rows")
        refuses(topics, of_arrays(change(np.abs(points.round()))), tmp_path / "topics")
        refuses(answers, frame(change(crowd)), tmp_path / "crowd")
    mixture.fit(checkpointed(frame(points), tmp_path / "rows"))
