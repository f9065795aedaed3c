"""Hidden Markov models of sequences elsewhere: the fit in memory, to rounding, and only sums and samples travel."""

from __future__ import annotations

import itertools
from dataclasses import replace

import dask
import dask.array as da
import dask.bag as db
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

from odeco import CategoricalHMM, GaussianHMM, PoissonHMM
from odeco.exceptions import MomentWarning
from odeco.models.hmm import feature_estimator, search, starts, symbol_starts
from odeco.simulate import markov_chain
from odeco.sources import chains, checkpointed, out_of_core
from odeco.sources.kinds import SparkColumn

# Sums in double precision in another order, and what the theorem reads from them: 3e-15 was measured.
ROUNDING = 1e-9
# Baum-Welch ends where passes gain less than TOL nats per step, and which pass that is depends on the last bit of the
# objective. Where the log-likelihood per step has curvature c, both fits are within sqrt(2 TOL / c) of its maximum. The
# flattest direction here is the start: one step of 80 tells of it, through overlapping emissions, c > 0.01.
TOL = 1e-12
TOLERANCE = float(np.sqrt(2 * TOL / 0.01))
# One start: what a search for others sees of the steps is the same wherever they are in tests of its own.
QUICK = {"effort": "quick", "tol": TOL, "random_state": 0}
# Of 60 sequences of 1 to 150 steps: none in a partition, one short one, and most of them.
EDGES = (0, 20, 20, 21, 40, 60, 60)


@pytest.fixture(scope="module")
def states():
    rng = np.random.default_rng(0)
    transmat = np.array([[0.9, 0.06, 0.04], [0.1, 0.85, 0.05], [0.05, 0.15, 0.8]])
    lengths = rng.integers(1, 151, 60)
    lengths[20] = 2  # a partition of its own
    return [markov_chain(int(n), transmat, random_state=rng) for n in lengths]


@pytest.fixture(scope="module")
def cases(states):
    """An estimator and its sequences, by name."""
    rng = np.random.default_rng(1)
    emissions = rng.dirichlet(np.full(8, 0.3), 3).cumsum(axis=1)
    symbols = [(rng.random((len(h), 1)) > emissions[h]).sum(axis=1).clip(0, 7) for h in states]
    symbols[3][:2] = -1  # missing
    means = np.array([[0.0, 0], [3, 0], [0, 3]])
    points = [means[h] + rng.standard_normal((len(h), 2)) for h in states]
    holes = [np.where(rng.random(x.shape) < 0.02, np.nan, x) for x in points]
    counts = [rng.poisson(np.array([[1.0, 4], [5, 1], [12, 8]])[h]) for h in states]
    return {
        "symbols": (CategoricalHMM(3, **QUICK), symbols),
        "gaussian": (GaussianHMM(3, **QUICK), points),
        "gaussian full, missing": (GaussianHMM(3, covariance_type="full", **QUICK), holes),
        "gaussian tied": (GaussianHMM(3, covariance_type="tied", **QUICK), points),
        "one gaussian": (GaussianHMM(1, **QUICK), points),
        "poisson": (PoissonHMM(3, **QUICK), counts),
        "poisson, one column": (PoissonHMM(3, **QUICK), [x[:, 0] for x in counts]),
    }


NAMES = [
    "symbols", "gaussian", "gaussian full, missing", "gaussian tied", "one gaussian", "poisson", "poisson, one column",
]  # fmt: skip


def cut(sequences):
    return [sequences[low:high] for low, high in itertools.pairwise(EDGES)]


def bag_of(sequences):
    return db.from_delayed([dask.delayed(part, traverse=False) for part in cut(sequences)])


def streamed(sequences):
    return out_of_core(lambda: iter([sequences[:30], [], sequences[30:31], sequences[31:]]))


def learned(model):
    emission = next(getattr(model, name) for name in ("emissionprob_", "lambdas_", "means_") if hasattr(model, name))
    return np.concatenate([model.startprob_, model.transmat_.ravel(), emission.ravel()])


@pytest.mark.parametrize(
    ("name", "refine", "effort"),
    [
        *itertools.product(NAMES, [None, "auto"], ["quick"]),
        *itertools.product(["symbols", "gaussian", "poisson, one column"], ["auto"], ["auto"]),
    ],
)
def test_a_fit_elsewhere_is_the_fit_in_memory(cases, name, refine, effort):
    model, sequences = cases[name]
    model = type(model)(**{**model.get_params(), "refine": refine, "effort": effort})
    here = model.fit(sequences)
    expected, method, best = learned(here), here.diagnostics_.method.split(",")[0], here.monitor_.history[-1:]
    stacked, lengths = np.concatenate(sequences), [len(x) for x in sequences]
    for data, given in [
        (bag_of(sequences), None),
        (da.from_array(stacked, chunks=1000 if stacked.ndim == 1 else (1000, 1)), lengths),
        (streamed(sequences), None),
    ]:
        model.fit(data, given)
        np.testing.assert_allclose(learned(model), expected, atol=ROUNDING if refine is None else TOLERANCE)
        assert model.diagnostics_.method.split(",")[0] == method
        np.testing.assert_allclose(model.monitor_.history[-1:], best, rtol=ROUNDING)  # the maximum is flat


@pytest.mark.usefixtures("short_search")
@pytest.mark.parametrize("name", ["gaussian full, missing", "gaussian tied", "poisson"])
def test_a_search_elsewhere_is_the_search_in_memory(cases, name):
    test_a_fit_elsewhere_is_the_fit_in_memory(cases, name, "auto", "auto")


@pytest.mark.parametrize("name", ["symbols", "gaussian", "poisson"])
def test_samples_are_the_same_wherever_the_steps_are(cases, name, monkeypatch):
    """With samples of 500 and 4,000 of 4,700 steps, and beginning with a quarter of them, where they are."""
    few = replace(search.POLICY, sample_steps=500, symbol_steps=500, long=1000)
    for module in (feature_estimator, search, starts, symbol_starts):
        monkeypatch.setattr(module, "POLICY", few)
    model, sequences = cases[name]
    model = type(model)(**{**model.get_params(), "effort": "auto"})
    spread, here = learned(model.fit(bag_of(sequences))), learned(model.fit(streamed(sequences)))
    np.testing.assert_allclose(spread, here, atol=TOLERANCE)
    np.testing.assert_allclose(spread, learned(model.fit(sequences)), atol=TOLERANCE)


def test_weights(cases):
    weights = np.random.default_rng(2).integers(0, 3, 60).astype(float)
    weights[list(range(21, 40))] = 0.0  # all of a partition
    for name in ("symbols", "gaussian"):
        model, sequences = cases[name]
        model = type(model)(**{**model.get_params(), "effort": "auto" if name == "symbols" else "quick"})
        here = learned(model.fit(sequences, sequence_weight=weights))
        for given in (weights, bag_of(weights)):
            model.fit(bag_of(sequences), sequence_weight=given)
            np.testing.assert_allclose(learned(model), here, atol=TOLERANCE)
        model.fit(streamed(sequences), sequence_weight=weights)
        np.testing.assert_allclose(learned(model), here, atol=TOLERANCE)
    array = da.from_array(np.concatenate(sequences), chunks=(900, -1))
    model.fit(array, [len(x) for x in sequences], sequence_weight=weights)
    np.testing.assert_allclose(learned(model), here, atol=TOLERANCE)
    with pytest.raises(ValueError, match="one number for each of the 60 sequences"):
        model.fit(bag_of(sequences), sequence_weight=weights[1:])
    with pytest.raises(ValueError, match="sequence_weight has"):
        model.fit(streamed(sequences), sequence_weight=weights[1:])
    with pytest.raises(ValueError, match="positive for at least one"):
        model.fit(bag_of(sequences), sequence_weight=0 * weights)


def test_partitions_may_differ_in_dtype_and_kind(cases):
    model, sequences = cases["symbols"]
    kinds = ["i1", "i8", "f8", "i4", "f4", "i2"]
    mixed = [[x.astype(kind) for x in part] for part, kind in zip(cut(sequences), kinds, strict=True)]
    expected = learned(model.fit(sequences))
    model.fit([dask.delayed(part, traverse=False) for part in mixed])  # a list of partitions will do
    np.testing.assert_allclose(learned(model), expected, atol=TOLERANCE)
    model.fit(dask.delayed(sequences, traverse=False))  # and one alone
    np.testing.assert_allclose(learned(model), expected, atol=TOLERANCE)
    model.fit([da.from_array(x, chunks=50) for x in sequences])  # each a sequence
    np.testing.assert_allclose(learned(model), expected, atol=TOLERANCE)
    lists = db.from_sequence([x.tolist() for x in sequences], npartitions=4)
    np.testing.assert_allclose(learned(model.fit(lists)), expected, atol=TOLERANCE)


@pytest.mark.filterwarnings("ignore:Baum-Welch has not converged:odeco.MomentWarning")
def test_fewer_symbols_than_states():
    """Windows of symbols are counted where the symbols are."""
    rng = np.random.default_rng(3)
    sequences = [(rng.random(200) < np.repeat([0.1, 0.5, 0.9], 100)[i : i + 200]).astype(int) for i in range(100)]
    model = CategoricalHMM(3, max_iter=2, random_state=0)
    with pytest.warns(MomentWarning, match="2 different symbols cannot tell 3 states apart"):
        here = learned(model.fit(sequences))
    with pytest.warns(MomentWarning, match="2 different symbols cannot tell 3 states apart"):
        model.fit(db.from_sequence(sequences, npartitions=3))
    np.testing.assert_allclose(learned(model), here, atol=1e-6)  # guesses and segments compete on a sample


def test_many_symbols(states, tmp_path):
    """Beyond 1,024 symbols pairs are sparse, and so they travel and are stored."""
    rng = np.random.default_rng(4)
    sequences = [(20 * h + rng.integers(20, size=len(h))).astype(np.int32) for h in states]
    model = CategoricalHMM(3, n_features=1200, refine=None, random_state=0)
    here = learned(model.fit(sequences))
    np.testing.assert_allclose(learned(model.fit(bag_of(sequences))), here, atol=ROUNDING)
    for _ in range(2):  # the second reads what the first wrote
        model.fit(checkpointed(bag_of(sequences), tmp_path))
        np.testing.assert_allclose(learned(model), here, atol=ROUNDING)
    assert any(tmp_path.iterdir())


class KilledError(Exception):
    """What ends a fit here, where no process is killed."""


@pytest.mark.parametrize("name", ["symbols", "gaussian", "poisson"])
def test_a_fit_that_is_interrupted_ends_as_if_it_had_not_been(cases, name, tmp_path, monkeypatch):
    monkeypatch.setattr(chains, "BATCH_STEPS", 500)
    model, sequences = cases[name]
    left = 0

    def dying():
        nonlocal left
        for low in range(0, 60, 6):
            left -= 1
            if left < 0:
                raise KilledError
            yield sequences[low : low + 6]

    whole = learned(model.fit(out_of_core(lambda: iter(cut(sequences)))))
    for attempt in range(30):
        left = 75  # enough for what is read again, samples among it, and two or three passes more
        try:
            with checkpointed(dying, tmp_path / "run", seconds=0) as data:
                model.fit(data)
            break
        except KilledError:
            assert any((tmp_path / "run").iterdir())
    assert attempt > 0
    np.testing.assert_allclose(learned(model), whole, atol=TOLERANCE)
    assert not (tmp_path / "run").exists()
    model.fit(checkpointed(bag_of(sequences), tmp_path / "dask"))
    n_files = len(list((tmp_path / "dask").iterdir()))
    first = learned(model)
    np.testing.assert_array_equal(learned(model.fit(checkpointed(bag_of(sequences), tmp_path / "dask"))), first)
    np.testing.assert_allclose(first, whole, atol=TOLERANCE)
    assert len(list((tmp_path / "dask").iterdir())) == n_files


@pytest.mark.parametrize("name", ["symbols", "gaussian", "poisson, one column"])
def test_decoding_is_lazy(cases, name):
    model, sequences = cases[name]
    model.fit(sequences)
    stacked, lengths = np.concatenate(sequences), [len(x) for x in sequences]
    bag, array = bag_of(sequences), da.from_array(stacked, chunks=1000 if stacked.ndim == 1 else (1000, -1))
    with dask.config.set(scheduler="threads"):
        for method in ("predict", "predict_proba", "filter_proba", "predict_next"):
            here = getattr(model, method)(stacked, lengths)
            spread = getattr(model, method)(bag)
            assert isinstance(spread, db.Bag)
            found = spread.compute()
            assert [len(x) for x in found] == lengths
            np.testing.assert_allclose(np.concatenate(found), here, atol=1e-12)
            rows = getattr(model, method)(array, lengths)
            assert isinstance(rows, da.Array)
            assert rows.shape == here.shape
            assert rows.dtype == here.dtype
            np.testing.assert_allclose(rows.compute(), here, atol=1e-12)
        for method, options in (("score_samples", {}), ("decode", {}), ("decode", {"algorithm": "map"})):
            value, rows = getattr(model, method)(stacked, lengths, **options)
            total, spread = getattr(model, method)(bag, **options)
            assert total.compute() == pytest.approx(value, rel=1e-12)
            np.testing.assert_allclose(np.concatenate(spread.compute()), rows, atol=1e-12)
    for data, given in ((bag, None), (array, lengths), (streamed(sequences), None)):
        assert model.score(data, given) == pytest.approx(model.score(stacked, lengths), rel=1e-12)
        assert model.bic(data, given) == pytest.approx(model.bic(stacked, lengths), rel=1e-12)


def test_empty_sequences_keep_their_place(cases):
    model, sequences = cases["symbols"]
    model.fit(sequences)
    gaps = [sequences[0], np.empty(0, dtype=int), sequences[1], np.empty(0, dtype=int)]
    with dask.config.set(scheduler="threads"):
        found = model.predict(db.from_sequence([*gaps, np.empty(0, dtype=int)], npartitions=5)).compute()
    assert [len(x) for x in found] == [len(x) for x in gaps] + [0]
    array = da.from_array(np.concatenate(sequences), chunks=2000)
    lengths = [0, *np.repeat([len(x) for x in sequences], 2) * np.tile([1, 0], 60), 0]
    again = model.predict(array, lengths)
    np.testing.assert_array_equal(again.compute(), model.predict(sequences))


def test_frames(cases):
    model, sequences = cases["gaussian"]
    lengths = [len(x) for x in sequences]
    frame = dd.from_pandas(pd.DataFrame(np.concatenate(sequences), columns=["a", "b"]), npartitions=4)
    expected = learned(model.fit(sequences))
    np.testing.assert_allclose(learned(model.fit(frame, lengths)), expected, atol=TOLERANCE)
    assert isinstance(model.predict(frame, lengths), da.Array)
    model, sequences = cases["symbols"]
    series = dd.from_pandas(pd.Series(np.concatenate(sequences)), npartitions=4)
    expected = learned(model.fit(sequences))
    np.testing.assert_allclose(learned(model.fit(series, lengths)), expected, atol=TOLERANCE)


def test_a_sequence_is_never_cut(cases):
    model, sequences = cases["symbols"]
    one = np.concatenate(sequences)
    array = da.from_array(one, chunks=-(-one.size // 4))
    with pytest.raises(ValueError, match=rf"one sequence of {one.size:,} steps in 4 chunks.*lengths="):
        model.fit(array)
    with pytest.raises(ValueError, match="one sequence"):
        model.predict(array)
    expected = learned(model.fit(one))
    np.testing.assert_allclose(learned(model.fit(array, [one.size])), expected, atol=TOLERANCE)
    np.testing.assert_allclose(learned(model.fit(array.rechunk(-1))), expected, atol=TOLERANCE)
    with pytest.raises(ValueError, match="lengths add up to"):
        model.fit(array, [5, 6])
    with pytest.raises(ValueError, match="unknown sizes.*compute_chunk_sizes"):
        model.fit(array[array >= 0], [5])


def test_what_is_refused(cases):
    model, sequences = cases["symbols"]
    small = CategoricalHMM(3, n_features=4)
    with pytest.raises(ValueError, match="holds the symbol 7, but the model knows 4"):
        small.fit(bag_of(sequences))
    model.fit(sequences)
    with pytest.raises(ValueError, match="holds the symbol 9"):
        model.score(db.from_sequence([np.array([0, 9])]))
    with pytest.raises(ValueError, match="every partition, batch or sequence is empty"):
        model.fit(db.from_sequence([np.empty(0, dtype=int)] * 2))
    with pytest.raises(ValueError, match="list of sequences, and this one holds 1"):
        model.fit(db.from_sequence([1, 1]))
    with pytest.raises(ValueError, match="list of sequences, and this one holds 'c'"):
        model.fit(db.from_sequence(["c", "c"]))
    with pytest.raises(ValueError, match="got ndarray of shape"):
        model.fit([dask.delayed(np.zeros((4, 2)))])
    with pytest.raises(ValueError, match="every observation is missing"):
        model.fit(db.from_sequence([np.full(3, -1)]))
    with pytest.raises(ValueError, match="lengths goes with an array"):
        model.fit(bag_of(sequences), [5])
    with pytest.raises(ValueError, match="lengths goes with one array"):
        model.fit([dask.delayed(sequences)], [5])
    with pytest.raises(ValueError, match="must hold integer symbols"):
        model.fit(db.from_sequence([np.array([0.5])]))
    with pytest.raises(ValueError, match="partial_fit takes sequences in memory"):
        model.partial_fit(bag_of(sequences))
    with pytest.raises(ValueError, match="predict takes sequences in memory"):
        model.predict(streamed(sequences))
    with pytest.raises(ValueError, match="read only once"):
        model.fit(out_of_core(iter(sequences)))
    batches = iter([[sequences], [sequences[1:]], [sequences[1:]]])
    with pytest.raises(ValueError, match="new iterator over the same sequences"):
        model.fit(lambda: iter(next(batches)))
    with pytest.raises(ValueError, match="'x' holds tokens: a row is a whole sequence"):
        model.fit(SparkColumn(None, ("x",), "tokens"))
    with pytest.raises(ValueError, match="lengths does not go with a Spark DataFrame"):
        model.fit(SparkColumn(None, ("x",), "arrays"), [5])
    with pytest.raises(ValueError, match="sequence_weight goes into from_spark"):
        model.fit(SparkColumn(None, ("x",), "arrays"), sequence_weight="w")
    with pytest.raises(ValueError, match="the name of a column, got list"):
        model.fit(SparkColumn(None, ("x",), "arrays"), sequence_weight=[1.0])
    gaussian = GaussianHMM(2)
    with pytest.raises(ValueError, match="differ in their number of columns: 2, then 3"):
        gaussian.fit(db.from_sequence([np.zeros((5, 2)), np.zeros((5, 3))], npartitions=2))
    with pytest.raises(ValueError, match=r"columns \[1\] of X have no observation"):
        gaussian.fit(db.from_sequence([np.array([[0.0, np.nan]] * 5)]))
    with pytest.raises(ValueError, match="X has 1"):
        gaussian.fit(db.from_sequence([np.zeros((1, 2))]))
    with pytest.raises(ValueError, match="counts are not negative"):
        PoissonHMM(2).fit(db.from_sequence([np.array([1, -1])]))


def test_short_sequences_alone():
    """No three steps follow each other: the moments are empty, and the fit says what it does instead."""
    rng = np.random.default_rng(5)
    pairs = [np.array([[a], [a]]) + rng.standard_normal((2, 1)) for a in 8.0 * (rng.random(200) < 0.4)]
    with pytest.warns(MomentWarning, match="no three steps follow each other"):
        here = learned(GaussianHMM(2, **QUICK).fit(pairs))
    with pytest.warns(MomentWarning, match="no three steps follow each other"):
        spread = learned(GaussianHMM(2, **QUICK).fit(db.from_sequence(pairs, npartitions=3)))
    np.testing.assert_allclose(spread, here, atol=TOLERANCE)
    symbols = [x[:, 0].astype(int).clip(0, 9) for x in pairs]
    with pytest.warns(MomentWarning, match="no three consecutive symbols"):
        here = learned(CategoricalHMM(2, **QUICK).fit(symbols))
    with pytest.warns(MomentWarning, match="no three consecutive symbols"):
        spread = learned(CategoricalHMM(2, **QUICK).fit(db.from_sequence(symbols, npartitions=3)))
    np.testing.assert_allclose(spread, here, atol=TOLERANCE)


@pytest.mark.filterwarnings("ignore:Baum-Welch has not converged:odeco.MomentWarning")
def test_steps_do_not_travel(cases, sent):
    """What tasks of a pass return does not grow with the data; beside it travel samples."""

    def measure(times):
        sent.clear()
        for name in ("symbols", "gaussian"):
            model, sequences = cases[name]
            type(model)(**{**model.get_params(), "effort": "auto", "max_iter": 2}).fit(bag_of(sequences * times))
        return dict(sent)

    once = measure(1)
    assert once == measure(3)
    assert set(once) == {"SymbolPairs", "SymbolTriples", "StreamedFeatures", "ExpectationSums"}
    k, d = 3, 8
    assert once["SymbolPairs"] <= 8 * (d * d + 2 * d + 2)
    n_columns = 2
    assert once["StreamedFeatures"] <= 2 * 8 * (k**3 + k**2 + k + 4 + 4 * 2 * k * n_columns)
    assert once["ExpectationSums"] <= 8 * (k * k + k + 2 + k * d)
