"""DawidSkene: recovery, both layouts, missing labels, names of classes, and what it says of bad input."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone

from odeco import DawidSkene, MomentWarning
from odeco.exceptions import MomentError
from odeco.sources.crowd import read_labels
from tests.oracles.view_moments import crowd_posterior

W, K = 12, 3


def draw(n: int, seed: int = 0, *, share: float = 1.0, skill: float = 0.6, n_workers: int = W, k: int = K):
    """Labels (n, W) with -1 where none was given, the truth, class weights and confusions."""
    rng = np.random.default_rng(seed)
    weights = rng.dirichlet(np.full(k, 10.0))
    confusion = np.empty((n_workers, k, k))
    for w in range(n_workers):
        own = skill + (1 - skill) * rng.random(k)
        for c in range(k):
            others = rng.dirichlet(np.ones(k - 1)) * (1 - own[c])
            confusion[w, c] = np.insert(others, c, own[c])
    truth = rng.choice(k, size=n, p=weights)
    labels = np.empty((n, n_workers), dtype=int)
    for w in range(n_workers):
        cumulative = confusion[w, truth].cumsum(axis=1)
        labels[:, w] = (rng.random((n, 1)) > cumulative[:, :-1]).sum(axis=1)
    lost = rng.random(labels.shape) > share
    lost[np.arange(n), rng.integers(n_workers, size=n)] = False  # no item is without any
    labels[lost] = -1
    return labels, truth, weights, confusion


def to_long(labels: np.ndarray, seed: int = 0) -> np.ndarray:
    """Rows (item, worker, label) in random order."""
    items, workers = np.nonzero(labels >= 0)
    rows = np.column_stack([items, workers, labels[items, workers]])
    return np.random.default_rng(seed).permutation(rows)


@pytest.mark.parametrize("refine", [None, "least-squares", "one-step", "auto"])
@pytest.mark.parametrize("share", [1.0, 0.4])
def test_recovers_weights_and_confusions(refine, share):
    labels, truth, weights, confusion = draw(20_000, share=share)
    model = DawidSkene(K, refine=refine, random_state=0).fit(labels)
    # Six standard errors of a share of the items of a class that a worker labelled; moments, measured, four times that.
    bound = 6 * np.sqrt(0.25 / (20_000 * share * weights.min())) * (1 if refine in ("auto", "one-step") else 4)
    assert np.abs(model.confusion_ - confusion).max() < bound
    assert np.abs(model.weights_ - weights).max() < bound
    assert np.abs(model.confusion_[:, ::-1] - confusion).max() > 3 * bound  # shuffled classes are seen
    assert np.mean(model.predict(labels) == truth) > (0.97 if share == 1 else 0.85)
    assert model.confusion_.sum(axis=2) == pytest.approx(np.ones((W, K)))
    assert model.diagnostics_.ok


def test_error_of_the_moments_falls_as_one_over_the_root_of_n():
    sizes = [1_000, 4_000, 16_000, 64_000]
    errors = []
    for n in sizes:
        runs = [draw(n, seed) for seed in range(5)]
        models = [DawidSkene(K, refine=None, n_init=1, random_state=0).fit(labels) for labels, *_ in runs]
        errors.append(np.median([np.abs(m.confusion_ - run[3]).mean() for m, run in zip(models, runs, strict=True)]))
    slope = np.polyfit(np.log(sizes), np.log(errors), 1)[0]
    assert -0.6 < slope < -0.4


def test_posterior_matches_loops():
    labels, *_ = draw(200, share=0.5, n_workers=5)
    model = DawidSkene(K, random_state=0, layout="wide").fit(labels)
    expected = crowd_posterior(labels, model.weights_, model.confusion_)
    np.testing.assert_allclose(model.predict_proba(labels), expected, atol=1e-12)


def test_em_never_falls():
    labels, *_ = draw(300, share=0.3, skill=0.3)
    model = DawidSkene(K, random_state=0, tol=0, max_iter=50).fit(labels)
    assert np.all(np.diff(model.diagnostics_.details["refinement"].values) > -1e-10)


def test_long_rows_give_what_the_wide_table_gives():
    labels, truth, *_ = draw(500, share=0.5)
    rows = to_long(labels)
    wide = DawidSkene(K, random_state=0).fit(labels)
    frame = pd.DataFrame({"worker": rows[:, 1], "label": rows[:, 2], "item": rows[:, 0]})
    for X in (rows, frame, rows.tolist()):
        long = DawidSkene(K, random_state=0).fit(X)
        assert (wide.layout_, long.layout_) == ("wide", "long")
        assert np.array_equal(long.items_, np.arange(500))
        np.testing.assert_allclose(long.confusion_, wide.confusion_, atol=1e-8)
        np.testing.assert_allclose(long.predict_proba(X), wide.predict_proba(labels), atol=1e-8)
        assert np.mean(long.predict(X) == truth) > 0.85


def test_names_of_items_workers_and_labels_are_kept():
    labels, truth, *_ = draw(300)
    names = np.array(["cat", "dog", "fox"])
    frame = pd.DataFrame(names[labels], columns=[f"ann{w}" for w in range(W)])
    frame.iloc[0, 0] = None
    model = DawidSkene(random_state=0).fit(frame)
    assert list(model.classes_) == list(names)
    assert list(model.annotators_) == [f"ann{w}" for w in range(W)]
    assert np.mean(model.predict(frame) == names[truth]) > 0.95
    with pytest.raises(ValueError, match="other annotators"):
        model.predict(frame[frame.columns[::-1]])


@pytest.mark.parametrize("nothing", [-1, np.nan])
def test_missing_labels_are_minus_one_or_nan(nothing):
    labels, *_ = draw(300, share=0.5)
    expected = DawidSkene(K, random_state=0).fit(labels).confusion_
    given = np.where(labels < 0, nothing, labels)
    np.testing.assert_array_equal(DawidSkene(K, random_state=0).fit(given).confusion_, expected)


def test_missing_at_random_stays_consistent():
    errors = []
    for n in (2_000, 32_000):
        labels, _, _, confusion = draw(n, share=0.3)
        errors.append(np.abs(DawidSkene(K, random_state=0).fit(labels).confusion_ - confusion).mean())
    assert errors[1] < 0.4 * errors[0]  # a quarter by theory


def test_items_nobody_labelled_get_the_class_probabilities():
    labels, *_ = draw(400)
    labels[[3, 7]] = -1
    with pytest.warns(MomentWarning, match="2 of 400 items have no label"):
        model = DawidSkene(K, random_state=0).fit(labels)
    np.testing.assert_allclose(model.predict_proba(labels)[[3, 7]], [model.weights_] * 2)


def test_a_worker_with_one_label_stays_near_not_knowing():
    labels, truth, *_ = draw(400)
    labels[1:, 0] = -1
    model = DawidSkene(K, random_state=0).fit(labels)
    assert np.abs(model.confusion_[0] - 1 / K).max() < 0.3  # (0.5 + 1) / (1.5 + 1) = 0.6 at most
    assert np.mean(model.predict(labels) == truth) > 0.95


def test_a_worker_without_labels():
    labels, *_ = draw(400)
    labels[:, 4] = -1
    model = DawidSkene(K, random_state=0).fit(labels)
    assert model.confusion_[4] == pytest.approx(np.full((K, K), 1 / K))


def test_spammers_and_adversaries_are_seen_through():
    """Four of ten workers answer at random, two say the opposite: majority vote errs more than twice as often."""
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=2_000)
    skills = np.array([0.5] * 4 + [0.15] * 2 + [0.85] * 4)
    labels = np.where(rng.random((2_000, 10)) < skills, truth[:, None], 1 - truth[:, None])
    model = DawidSkene(2, random_state=0).fit(labels)
    majority = labels.mean(axis=1) > 0.5
    wrong = np.mean(model.predict(labels) != truth)
    assert wrong < 0.5 * np.mean(majority != truth)
    assert np.abs(model.confusion_[:, 1, 1] - skills).max() < 0.08  # four standard errors: 4 sqrt(0.25 / 1000)


def test_names_by_diagonal_dominance_whatever_the_seed():
    labels, truth, *_ = draw(1_000)
    for seed in range(5):
        assert np.mean(DawidSkene(K, random_state=seed).fit_predict(labels) == truth) > 0.95


def test_more_labels_than_classes():
    """A third answer, "unsure", that is never true."""
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=3_000)
    labels = np.where(rng.random((3_000, 9)) < 0.75, truth[:, None], 1 - truth[:, None])
    labels[rng.random(labels.shape) < 0.2] = 2
    model = DawidSkene(2, random_state=0).fit(labels)
    assert model.confusion_.shape == (9, 2, 3)
    assert list(model.classes_) == [0, 1]
    assert list(model.given_labels_) == [0, 1, 2]
    assert model.confusion_[:, :, 2] == pytest.approx(np.full((9, 2), 0.2), abs=0.05)
    assert np.mean(model.predict(labels) == truth) > 0.9  # 0.92 with the true parameters


def test_sample_weight_is_repetition():
    labels, *_ = draw(500, share=0.6)
    times = np.random.default_rng(1).integers(1, 4, 500)
    weighted = DawidSkene(K, random_state=0, tol=1e-10).fit(labels, sample_weight=times)
    repeated = DawidSkene(K, random_state=0, tol=1e-10).fit(np.repeat(labels, times, axis=0))
    np.testing.assert_allclose(weighted.confusion_, repeated.confusion_, atol=1e-6)


def test_a_label_given_twice_counts_twice():
    labels, *_ = draw(300)
    rows = to_long(labels)
    twice = DawidSkene(K, layout="long", random_state=0).fit(np.vstack([rows, rows]))
    once = DawidSkene(K, layout="long", random_state=0, smoothing=0.25).fit(rows)
    np.testing.assert_allclose(twice.confusion_, once.confusion_, atol=0.05)


def test_chunks_do_not_matter_and_give_the_moment_estimate():
    labels, *_ = draw(3_000, share=0.5)
    whole = DawidSkene(K, refine="least-squares", random_state=0).fit(labels)
    for size in (3_000, 271):
        model = DawidSkene(K, random_state=0)
        for i in range(0, 3_000, size):
            model.partial_fit(labels[i : i + size], classes=[0, 1, 2])
        np.testing.assert_allclose(model.confusion_, whole.confusion_, atol=1e-8)
        np.testing.assert_allclose(model.weights_, whole.weights_, atol=1e-8)
    batches = [labels[i : i + 500] for i in range(0, 3_000, 500)]
    for source in (batches, lambda: iter(batches), iter(batches)):
        model = DawidSkene(K, refine="least-squares", random_state=0).fit(source)
        np.testing.assert_array_equal(model.confusion_, whole.confusion_)


def test_a_stream_of_long_rows_is_that_of_the_wide_table():
    labels, *_ = draw(3_000, share=0.5)
    whole = DawidSkene(K, random_state=0).partial_fit(labels)
    rows = to_long(labels)
    for size in (3_000, 700):
        model = DawidSkene(K, layout="long", random_state=0)
        for start in range(0, 3_000, size):
            chunk = rows[(rows[:, 0] >= start) & (rows[:, 0] < start + size)]
            model.partial_fit(chunk, classes=[0, 1, 2], annotators=range(W))
        np.testing.assert_allclose(model.confusion_, whole.confusion_, atol=1e-8)  # sums in another order
        np.testing.assert_allclose(model.weights_, whole.weights_, atol=1e-8)
        assert model.layout_ == "long"
    np.testing.assert_array_equal(model.predict(rows), whole.predict(labels))


def test_a_stream_of_long_rows_wants_whole_items_and_known_workers():
    labels, *_ = draw(300)
    rows = to_long(labels)
    first, second = rows[: len(rows) // 2], rows[len(rows) // 2 :]  # in random order: items are cut in two
    model = DawidSkene(K, layout="long", random_state=0).partial_fit(first)
    with pytest.raises(ValueError, match="labels in this chunk and in the one before"):
        model.partial_fit(second)
    late = DawidSkene(K, layout="long", random_state=0).partial_fit(rows[rows[:, 1] < W - 1])
    with pytest.raises(ValueError, match="never seen before.*name all annotators"):
        late.partial_fit(np.array([[1000, W - 1, 0]]))


def test_a_stream_wants_the_labels_that_are_to_come():
    labels, *_ = draw(300)
    model = DawidSkene(random_state=0).partial_fit(np.where(labels == 2, 0, labels))
    with pytest.raises(ValueError, match="label 2, never seen"):
        model.partial_fit(labels)


def test_same_seed_same_result_and_clone():
    labels, *_ = draw(300)
    model = DawidSkene(K, random_state=3)
    assert np.array_equal(clone(model).fit(labels).confusion_, clone(model).fit(labels).confusion_)
    assert DawidSkene().get_params()["n_classes"] is None


def test_criteria_and_draws():
    labels, *_ = draw(2_000)
    model = DawidSkene(K, random_state=0).fit(labels)
    assert model.score(labels) == pytest.approx(model.lower_bound_)
    n_parameters = K - 1 + W * K * (K - 1)
    assert model.bic(labels) - model.aic(labels) == pytest.approx(n_parameters * (np.log(2_000) - 2))
    drawn, classes = model.sample(4_000)
    assert drawn.shape == (4_000, W)
    share = np.array([np.mean(drawn[classes == c, 0] == c) for c in range(K)])
    assert share == pytest.approx(np.diag(model.confusion_[0]), abs=0.06)  # four standard errors


def test_two_annotators_fall_back_and_say_so():
    labels, truth, *_ = draw(500, n_workers=2)
    with pytest.warns(MomentWarning, match=r"2 annotators.*majority"):
        model = DawidSkene(K, random_state=0).fit(labels)
    assert np.mean(model.predict(labels) == truth) > 0.6
    with pytest.raises(MomentError, match="2 annotators"):
        DawidSkene(K, refine=None).fit(labels)


def test_one_class():
    labels = np.array([[0, 0, 1], [0, 1, 0], [0, 0, 0], [1, 0, 0]])
    model = DawidSkene(1, layout="wide", random_state=0).fit(labels)
    assert model.weights_ == pytest.approx([1.0])
    assert model.confusion_[0, 0] == pytest.approx([3.5 / 5, 1.5 / 5], abs=0.05)
    assert DawidSkene(random_state=0, layout="wide").fit(np.zeros((4, 3))).classes_.tolist() == [0]


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.full((4, 3), -1), "no labels"),
        (np.full((4, 3), np.nan), "no labels"),
        (np.zeros((0, 3)), "empty"),
        (np.zeros(3), "two-dimensional"),
        (np.array([[0.5, 1.0, 0.0]]), "label 0.5"),
        (np.array([[0, -3, 1]]), "label -3"),
        (np.array([[0, np.inf, 1]]), "label inf"),
        (sparse.eye_array(3), "sparse"),
        (np.array([[0, 1, 0], [1, 0, 1]]), "n_classes=3, but X has 2 different labels"),
    ],
)
def test_bad_labels(X, message):
    with pytest.raises(ValueError, match=message):
        DawidSkene(3, layout="wide").fit(X)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_classes": 0}, "n_classes"),
        ({"layout": "tall"}, "layout must be one of"),
        ({"refine": "vb"}, "refine must be one of"),
        ({"method": "magic"}, "method must be one of"),
        ({"n_init": 0}, "n_init"),
        ({"smoothing": 0}, "smoothing must be positive"),
        ({"tol": -1}, "tol"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ValueError, match=message):
        DawidSkene(**options).fit(draw(50)[0])


def test_bad_rows_at_predict_time():
    labels, *_ = draw(300)
    model = DawidSkene(K, random_state=0).fit(labels)
    with pytest.raises(ValueError, match="label 5, never seen"):
        model.predict(np.where(labels == 2, 5, labels))
    with pytest.raises(ValueError, match="11 annotators"):
        model.predict(labels[:, :-1])
    rows = to_long(labels)
    long = DawidSkene(K, random_state=0).fit(rows)
    with pytest.raises(ValueError, match="worker 99, never seen"):
        long.predict([[0, 99, 1]])
    nameless = rows.astype(float)
    nameless[:3, 1] = np.nan
    with pytest.raises(ValueError, match="3 rows without worker"):
        DawidSkene(K, layout="long").fit(nameless)
    with pytest.raises(ValueError, match="wrong layout"):
        DawidSkene(K, layout="wide").fit(rows)
    with pytest.raises(ValueError, match="not fitted"):
        DawidSkene(K).predict(labels)
    with pytest.raises(ValueError, match="annotators is for long rows"):
        DawidSkene(K).partial_fit(labels, annotators=np.arange(W))
    with pytest.raises(ValueError, match="300 different labels: say n_classes"):
        DawidSkene(layout="wide").fit(rows)


@pytest.mark.parametrize(
    ("X", "layout"),
    [
        (np.array([[0, 1, 0], [1, 1, 1], [1, 0, 1]]), "wide"),
        (np.array([[0, 0, 1], [0, 1, 1], [1, 0, 0], [1, 1, 0], [2, 0, 1]]), "long"),  # items are no labels
        (np.array([["a", "w", "yes"], ["a", "v", "no"], ["b", "w", "no"], ["c", "v", "no"]]), "long"),
        (pd.DataFrame({"task_id": [0, 1], "worker_id": [0, 0], "answer": [1, 0], "seconds": [3.0, 4.0]}), "long"),
        (pd.DataFrame({"ann1": [0, 1], "ann2": [0, 1], "ann3": [1, 0]}), "wide"),
        (np.array([[0, 1, np.nan], [1, 1, 1], [np.nan, 0, 1]]), "wide"),
    ],
)
def test_layouts_are_told_apart(X, layout):
    assert read_labels(X).layout == layout


def test_every_kind_of_nothing_is_missing():
    for nothing in (None, np.nan, pd.NA, ""):
        votes = read_labels(np.array([["a", nothing], ["b", "a"]], dtype=object)).votes
        assert votes.sum() == 3
    votes = read_labels(np.ma.masked_array([[0, 1], [1, 0]], [[False, True], [False, False]])).votes
    assert votes.toarray().tolist() == [[1, 0, 0, 0], [0, 1, 1, 0]]


class TestLabelsKeepTheirNames:
    def test_numbers_beside_text(self):
        wide = pd.DataFrame(
            {"a": [10_000_001, 10_000_002, None] * 4, "b": ["x", "10000001", "x"] * 4, "c": [7, 7, 8] * 4}
        )
        crowd = read_labels(wide, "wide")
        assert crowd.classes.tolist() == ["10000001", "10000002", "7", "8", "x"]

    def test_zeros_at_the_beginning(self):
        crowd = read_labels(np.array([["007", "7"], ["7", "007"]], dtype=object), "wide")
        assert crowd.classes.tolist() == ["007", "7"]

    def test_large_numbers_of_items_and_workers(self):
        ids = np.array([2**60, 2**60 + 1])
        crowd = read_labels(pd.DataFrame({"item": ids, "worker": ids, "label": ["x", "y"]}))
        assert crowd.items.tolist() == crowd.workers.tolist() == ids.tolist()

    def test_large_numbers_as_labels(self):
        with pytest.raises(ValueError, match=r"whole number 9007199254740993, beyond 2\*\*53"):
            read_labels(np.array([[2**53, 2**53 + 1]]), "wide")

    def test_masked_text(self):
        crowd = read_labels(np.ma.masked_array([["a", "b"], ["b", "a"]], [[False, True], [False, False]]), "wide")
        assert crowd.votes.toarray().tolist() == [[1, 0, 0, 0], [0, 1, 1, 0]]

    def test_names_that_are_given_are_of_one_kind(self):
        with pytest.raises(ValueError, match="mixes numbers and text"):
            DawidSkene().partial_fit(np.array([[0, 1], [1, 0]]), classes=[0, 1, "1"])

    def test_a_table_without_columns(self):
        with pytest.raises(ValueError, match="X is empty: it has no columns"):
            DawidSkene().fit(pd.DataFrame())


@pytest.mark.parametrize("n_threads", ["1", "2", "3"])
def test_numbers_are_read_as_their_names_are(n_threads: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers go through tables, on threads; names and large numbers through sorting."""
    monkeypatch.setenv("ODECO_NUM_THREADS", n_threads)
    rng = np.random.default_rng(0)
    codes = rng.integers(-1, 5, (20_000, 7))
    numbers = np.where(codes < 0, np.nan, 3 * codes + 2)  # 2, 5, ..., 14
    names = np.where(codes < 0, None, np.array(list("abcde"), dtype=object)[codes])
    found, named, large = (read_labels(X, "wide") for X in (numbers, names, numbers + 10**6))
    for other in (named, large):
        assert (found.votes != other.votes).nnz == 0
        assert found.votes.indices.dtype == other.votes.indices.dtype
    assert found.votes.has_canonical_format
    assert found.classes.tolist() == [2, 5, 8, 11, 14]
    assert found.classes.dtype == large.classes.dtype
    again = read_labels(numbers[:100], "wide", classes=found.classes)
    assert (again.votes != found.votes[:100]).nnz == 0
    with pytest.raises(ValueError, match="label 3, never seen"):
        read_labels(np.where(numbers == 2, 3, numbers), "wide", classes=found.classes)
    numbers[7, 3], numbers[5, 4] = 2.5, -3
    with pytest.raises(ValueError, match=r"the label 2\.5:"):
        read_labels(numbers, "wide")
