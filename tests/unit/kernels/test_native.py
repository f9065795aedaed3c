"""The compiled module believes nobody, and computes the same to rounding on every instruction set."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from itertools import combinations_with_replacement

import numpy as np
import pytest

from odeco.kernels import _native as native
from odeco.kernels.mixtures import normalize

N, WORDS, TOPICS = 3, 5, 2
LEVELS = ["baseline", "x86-64-v3", "x86-64-v4"]


def documents(dtype=np.float64):
    """A CSR matrix (3, 5), and topics of its words."""
    indptr, columns = np.array([0, 2, 2, 5]), np.array([0, 4, 1, 2, 3], dtype=np.int32)
    return [indptr, columns, np.ones(5, dtype), np.full((WORDS, TOPICS), 0.2, dtype)]


def project(indptr, columns, values, block, start=0, stop=N, out=None):
    out = np.zeros((N, TOPICS), values.dtype) if out is None else out
    native.project_rows(indptr, columns, values, block, start, stop, out)
    return out


@pytest.mark.parametrize("column", [-1, WORDS, 2**31 - 1, -(2**31)])
@pytest.mark.parametrize("place", range(5))
def test_a_column_outside_of_the_block_is_an_error(column, place):
    indptr, columns, values, block = documents()
    columns[place] = column
    with pytest.raises(IndexError, match="columns must lie between 0 and 4"):
        project(indptr, columns, values, block)


@pytest.mark.parametrize("wrong", [[0, 3, 2, 5], [0, 2, 2, 6], [-1, 2, 2, 5], [0, 2**40, 2, 5]])
def test_row_pointers_that_do_not_rise_are_an_error(wrong):
    _, *rest = documents()
    with pytest.raises(IndexError, match="indptr"):
        project(np.array(wrong), *rest)


@pytest.mark.parametrize(("start", "stop"), [(-1, 2), (0, 4), (2, 1), (4, 4)])
def test_rows_that_there_are_not_are_an_error(start, stop):
    with pytest.raises(IndexError, match="rows"):
        project(*documents(), start, stop)


def test_rows_that_are_not_asked_for_are_not_looked_at():
    indptr, columns, values, block = documents()
    columns[-1] = 99
    project(indptr, columns, values, block, 0, 2)


@pytest.mark.parametrize(
    "out", [np.zeros((N, TOPICS), np.float32), np.zeros((TOPICS, N)).T, np.zeros(N), np.zeros((N, TOPICS)).tolist()]
)
def test_an_output_of_another_kind_is_refused_rather_than_copied(out):
    with pytest.raises(TypeError, match="incompatible"):
        project(*documents(), out=out)


def test_an_output_that_is_read_only_is_refused():
    out = np.zeros((N, TOPICS))
    out.flags.writeable = False
    with pytest.raises(TypeError, match="incompatible"):
        project(*documents(), out=out)


def test_an_output_that_is_too_small_is_an_error():
    with pytest.raises(ValueError, match="out must have size 3 at least, has 2"):
        project(*documents(), out=np.zeros((N - 1, TOPICS)))


def test_an_assignment_to_no_topic_is_an_error():
    arguments = [*documents(), np.ones(TOPICS), np.zeros(5)]
    with pytest.raises(IndexError, match="assignment"):
        native.gibbs_rows(*arguments, np.full(5, TOPICS), np.zeros((N, TOPICS)))


@pytest.mark.parametrize("code", [-1, 4])
def test_a_step_without_a_row_of_likelihoods_is_an_error(code):
    index, first = np.array([0, 1, code], dtype=np.int32), np.array([1, 0, 0], dtype=np.uint8)
    with pytest.raises(IndexError, match="index"):
        native.advance(np.ones((4, 2)), index, first, np.full((2, 2), 0.5), np.full(2, 0.5), np.full(2, 0.5))


def test_a_path_through_a_state_that_does_not_exist_is_an_error():
    origins = np.array([[0, 0], [7, 0]], dtype=np.uint8)
    with pytest.raises(IndexError, match="state"):
        native.trace_back(origins, 0, np.zeros(2, dtype=np.int64))


def test_a_table_that_names_no_entry_is_an_error():
    lexicon = (np.full(8, 5, dtype=np.int32), np.zeros((4, 4), dtype=np.int64), np.zeros(4, dtype=np.uint64))
    arguments = (np.zeros(1, dtype=np.int64), np.full(1, 2), np.zeros(1, dtype=np.uint64))
    with pytest.raises(IndexError, match="no entry"):
        native.number_words(
            *arguments, lexicon, np.zeros(2, np.int64), True, np.zeros(1, np.int64), np.zeros(2, np.int64)
        )


def test_a_code_point_without_a_letter_is_an_error():
    text, ends = np.array([1, 2, 9], dtype=np.uint32), np.array([3])
    room = [np.zeros(2, dtype=np.int64), np.zeros(2, dtype=np.int64), np.zeros(2, dtype=np.uint64)]
    with pytest.raises(IndexError, match="letter"):
        native.spell_tokens(text, ends, np.ones(4, dtype=np.uint32), *room, np.zeros(1, dtype=np.int64))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("m", [1, 3, 16, 67, 300])
def test_responsibilities_match_their_definition(dtype, m):
    rng = np.random.default_rng(m)
    joint = (rng.normal(size=(7, m)) * 30 - 1000).astype(dtype)
    joint[3] = -np.inf  # a component without weight
    exact = joint.astype(np.longdouble)
    highest, totals = np.empty((2, m), dtype=dtype)
    normalize(joint, highest, totals)
    shares = np.exp(exact - exact.max(axis=0))
    np.testing.assert_array_equal(highest, exact.max(axis=0).astype(dtype))
    # A few roundings: the series of the exponential, the sum, the division.
    np.testing.assert_allclose(totals, shares.sum(axis=0).astype(float), rtol=8 * np.finfo(dtype).eps)
    tiny = np.finfo(dtype).tiny * 4  # results that small are 0
    expected = (shares / shares.sum(axis=0)).astype(float)
    np.testing.assert_allclose(joint, expected, rtol=16 * np.finfo(dtype).eps, atol=tiny)
    assert not joint[3].any()


ALL = """
import json
import numpy as np
from odeco.kernels import _native as native
import odeco
chances = [[0.7, 0.2, 0.1], [0.1, 0.3, 0.6]]
sample = odeco.simulate.categorical_hmm(3000, [[0.8, 0.2], [0.3, 0.7]], chances, random_state=0)
chain = odeco.CategoricalHMM(2, random_state=0).fit(sample.observations.reshape(-1, 1))
topics = odeco.simulate.zipf_topics(3, 60, random_state=0)
counts = odeco.simulate.lda_documents(400, topics, alpha=[0.2] * 3, random_state=1).counts
lda = odeco.LatentDirichletAllocation(3, random_state=0).fit(counts)
rows = odeco.simulate.gaussian_mixture(500, [[0, 0, 0], [3, 0, 1]], [0.5, 0.5], random_state=0).rows
mixture = odeco.GaussianMixture(2, covariance_type="diag", random_state=0).fit(rows)
found = [model.ravel().tolist() for model in (chain.transmat_, lda.components_, mixture.means_)]
print(json.dumps([native.instruction_set, found]))
"""


def fitted(instruction_set):
    environment = dict(os.environ, ODECO_INSTRUCTION_SET=instruction_set, ODECO_NUM_THREADS="1")
    done = subprocess.run([sys.executable, "-c", ALL], env=environment, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def test_instruction_sets_agree_to_rounding():
    best, reference = fitted("")
    for name in LEVELS[:2]:
        used, found = fitted(name)
        assert used == LEVELS[min(LEVELS.index(name), LEVELS.index(best))]
        # Chains in double precision; topics in single, over some dozens of sweeps.
        np.testing.assert_allclose(found[0], reference[0], rtol=1e-6)
        np.testing.assert_allclose(found[1], reference[1], atol=1e-4)
        np.testing.assert_allclose(found[2], reference[2], atol=1e-6)  # EM may end a step earlier or later


def test_the_same_seed_gives_the_same_bits():
    assert fitted("") == fitted("")


SUMS = {
    "features": (2, 9), "start": 0, "stop": 9, "weights": (0,), "coefficients": (4, 2), "offsets": (4,),
    "sums": (4, 2), "totals": (4,), "highest": (2, 9), "norms": (2, 9),
}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"stop": 10}, "rows 0 to 10 of 9"),
        ({"start": -1}, "rows -1 to 9 of 9"),
        ({"weights": (8,)}, "weights must have size 9"),
        ({"coefficients": (4, 3)}, "coefficients must have size 2"),
        ({"offsets": (3,)}, "offsets must have size 4"),
        ({"sums": (4, 1)}, "sums must have size 2"),
        ({"totals": (5,)}, "totals must have size 4"),
        ({"highest": (3, 9)}, "every mixture must have as many components"),
        ({"highest": (0, 9)}, "every mixture must have as many components"),
        ({"norms": (2, 8)}, "norms must have size 9"),
        ({"stop": 5}, "highest must have size 5"),
    ],
)
def test_sums_of_wrong_shapes_are_an_error(change, error):
    given = {name: np.zeros(size) if isinstance(size, tuple) else size for name, size in (SUMS | change).items()}
    with pytest.raises((ValueError, IndexError), match=error):
        native.posterior_sums(*given.values())


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"blocks": [(9, 2), (8, 1)]}, "blocks must have size 9"),
        ({"blocks": []}, "every block needs an origin"),
        ({"origins": [(2,)]}, "every block needs an origin"),
        ({"squares": [True]}, "every block needs an origin"),
        ({"origins": [(3,), (0,)]}, "origins must have size 2"),
        ({"weights": (8,)}, "weights must have size 9"),
        ({"coefficients": (4, 3)}, "coefficients must have size 5"),
        ({"sums": (4, 3)}, "sums must have size 5"),
        ({"highest": (2, 8)}, "highest must have size 9"),
    ],
)
def test_sums_of_rows_of_wrong_shapes_are_an_error(change, error):
    sizes = {"blocks": [(9, 2), (9, 1)], "origins": [(2,), (0,)], "squares": [True, False]} | SUMS | {"sums": (4, 5)}
    sizes = {name: size for name, size in sizes.items() if name not in ("features", "start", "stop")}
    sizes = sizes | {"coefficients": (4, 5)} | change
    given = [np.zeros(size) if isinstance(size, tuple) else size for size in sizes.values()]
    given[:2] = [[np.zeros(size) for size in each] for each in given[:2]]
    with pytest.raises((ValueError, IndexError), match=error):
        native.posterior_sums_of_rows(*given)


QUADRATIC = {"triangles": (3, 2, 2), "shifts": (3, 2), "constants": (3,)}


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"features": (1, 9), "sums": (3, 1)}, "features must have size 2 at least"),
        ({"triangles": (3, 2, 1)}, "triangles must have size 2"),
        ({"triangles": (2, 2, 2)}, "triangles must have size 3"),
        ({"constants": (2,)}, "constants must have size 3"),
        ({"weights": (8,)}, "weights must have size 9"),
        ({"sums": (3, 2)}, "sums must have size 4"),
        ({"totals": (2,)}, "totals must have size 3"),
        ({"second": (3, 2, 3)}, "second must have size 2"),
        ({"highest": (3, 9)}, "highest must have size 1"),
        ({"norms": (1, 8)}, "norms must have size 9"),
    ],
)
def test_sums_of_quadratics_of_wrong_shapes_are_an_error(change, error):
    sizes = {"features": (4, 9), "weights": (0,)} | QUADRATIC
    sizes |= {"sums": (3, 4), "totals": (3,), "second": (3, 2, 2), "highest": (1, 9), "norms": (1, 9)}
    with pytest.raises(ValueError, match=error):
        native.quadratic_sums(*map(np.zeros, (sizes | change).values()))


@pytest.mark.parametrize(
    ("change", "error"), [({"out": (3, 8)}, "out must have size 9"), ({"features": (1, 9)}, "at least")]
)
def test_densities_of_quadratics_of_wrong_shapes_are_an_error(change, error):
    sizes = {"features": (4, 9)} | QUADRATIC | {"out": (3, 9)} | change
    with pytest.raises(ValueError, match=error):
        native.quadratic_densities(*map(np.zeros, sizes.values()))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("r", "n"), [(1, 3), (2, 17), (5, 515), (9, 1100)])
def test_products_of_coordinates_are_summed_once_for_every_multiset(dtype, r, n):
    rng = np.random.default_rng(n)
    samples, weights = rng.standard_normal((r, n + 3)).astype(dtype), rng.uniform(size=n + 3)
    pairs = np.array(list(combinations_with_replacement(range(r), 2)))
    second, fourth = np.zeros((r, r)), np.zeros((len(pairs), len(pairs)))
    native.add_fourth(samples, 2, n + 2, weights, second, fourth)
    y, w = samples[:, 2 : n + 2].astype(float), weights[2 : n + 2]
    products = y[pairs[:, 0]] * y[pairs[:, 1]]
    ascending = pairs[:, None, 1] <= pairs[:, 0]
    # Sums of n products of size 1, up to 512 of them in the precision of the samples.
    tolerance = 8 * n * np.finfo(dtype).eps
    np.testing.assert_allclose(second, np.triu((y * w) @ y.T), atol=tolerance)
    np.testing.assert_allclose(fourth, np.where(ascending, (products * w) @ products.T, 0.0), atol=tolerance)


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"stop": 10}, "rows 0 to 10 of 9"),
        ({"weights": (8,)}, "weights must have size 9"),
        ({"second": (2, 3)}, "second must have size 2"),
        ({"fourth": (3, 2)}, "fourth must have size 3"),
    ],
)
def test_sums_of_products_of_wrong_shapes_are_an_error(change, error):
    sizes = {"samples": (2, 9), "start": 0, "stop": 9, "weights": (0,), "second": (2, 2), "fourth": (3, 3)} | change
    given = {name: np.zeros(size) if isinstance(size, tuple) else size for name, size in sizes.items()}
    with pytest.raises((ValueError, IndexError), match=error):
        native.add_fourth(*given.values())


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("r", "n"), [(1, 3), (2, 17), (5, 515), (9, 1100)])
def test_products_of_two_coordinates_are_summed_over_samples_in_columns(dtype, r, n):
    rng = np.random.default_rng(n)
    samples, weights = rng.standard_normal((r, n + 3)).astype(dtype), rng.uniform(size=n + 3)
    y, w = samples[:, 2 : n + 2].astype(float), weights[2 : n + 2]
    for given, factor in ((weights, w), (np.empty(0), np.ones(n))):
        second = np.ones((r, r))
        native.add_second(samples, 2, n + 2, given, second)
        # Sums of n products of size 1, up to 512 of them in the precision of the samples.
        np.testing.assert_allclose(second, 1 + (y * factor) @ y.T, atol=8 * n * np.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("n", "d"), [(0, 2), (1, 1), (17, 3), (2050, 5), (700, 12), (300, 33)])
def test_products_of_columns_are_summed_over_rows_about_an_origin(dtype, n, d):
    rng = np.random.default_rng(n)
    rows, origin, weights = (1000 + rng.standard_normal((n, d))).astype(dtype), np.full(d, 1000.0), rng.uniform(size=n)
    with_ones = np.column_stack([np.ones(n), rows - origin])
    for given, factor in ((weights, weights), (np.empty(0), np.ones(n))):
        out = np.ones((d + 1, d + 1))
        native.add_row_products(rows, origin, given, out)
        # Sums of n products of size 1, in double precision whatever that of the rows.
        expected = 1 + (with_ones * factor[:, None]).T @ with_ones
        np.testing.assert_allclose(out, expected, atol=8 * max(n, 1) * np.finfo(float).eps)


@pytest.mark.parametrize("given", [np.float32, np.float64])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("n", "d", "r"), [(1, 1, 1), (17, 3, 2), (2050, 5, 5), (700, 12, 7), (300, 33, 40)])
def test_rows_are_centred_and_turned_into_columns_and_nothing_beside_them_is_written(given, dtype, n, d, r):
    rng = np.random.default_rng(n)
    rows, origin = (10 + rng.standard_normal((n, d))).astype(given), np.full(d, 10, dtype=given)
    turn, out = rng.standard_normal((r, d)).astype(dtype), np.full((r, n + 5), 7, dtype=dtype)
    native.whiten_rows(rows, origin, turn, 3, out)
    # Sums of d products of size 1 in the precision of the result.
    expected = turn.astype(float) @ (rows - origin).T
    np.testing.assert_allclose(out[:, 3 : n + 3], expected, atol=16 * d * np.finfo(dtype).eps)
    assert (out[:, :3] == 7).all()
    assert (out[:, n + 3 :] == 7).all()


SECOND = {"samples": (2, 9), "start": 0, "stop": 9, "weights": (0,), "second": (2, 2)}
PRODUCTS = {"rows": (9, 2), "origin": (2,), "weights": (0,), "out": (3, 3)}
WHITEN = {"rows": (9, 2), "origin": (2,), "turn": (3, 2), "start": 0, "out": (3, 9)}


@pytest.mark.parametrize(
    ("function", "sizes", "change", "error"),
    [
        ("add_second", SECOND, {"stop": 10}, "rows 0 to 10 of 9"),
        ("add_second", SECOND, {"weights": (8,)}, "weights must have size 9"),
        ("add_second", SECOND, {"second": (2, 3)}, "second must have size 2"),
        ("add_row_products", PRODUCTS, {"origin": (3,)}, "origin must have size 2"),
        ("add_row_products", PRODUCTS, {"weights": (8,)}, "weights must have size 9"),
        ("add_row_products", PRODUCTS, {"out": (2, 2)}, "out must have size 3"),
        ("whiten_rows", WHITEN, {"origin": (3,)}, "origin must have size 2"),
        ("whiten_rows", WHITEN, {"turn": (3, 3)}, "turn must have size 2"),
        ("whiten_rows", WHITEN, {"turn": (0, 2)}, "turn must have size 1 at least"),
        ("whiten_rows", WHITEN, {"out": (2, 9)}, "out must have size 3"),
        ("whiten_rows", WHITEN, {"start": 1}, "rows 1 to 10 of 9"),
        ("whiten_rows", WHITEN, {"start": -1}, "rows -1 to -1 of 9"),
    ],
)
def test_passes_over_arrays_of_wrong_shapes_are_an_error(function, sizes, change, error):
    given = {name: np.zeros(size) if isinstance(size, tuple) else size for name, size in (sizes | change).items()}
    with pytest.raises((ValueError, IndexError), match=error):
        getattr(native, function)(*given.values())


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("n", "width"), [(1, 1), (64, 8), (65, 16), (301, 21)])
def test_rows_of_topics_are_mixed_added_up_and_smoothed(dtype, n, width):
    rng = np.random.default_rng(n)
    fresh, old = rng.uniform(size=(2, n, width)).astype(dtype)
    out, totals, inverse = np.empty_like(fresh), np.ones(width), rng.uniform(size=width).astype(dtype)
    native.mix_rows(fresh, old, 0.25, out, totals)
    expected = fresh.astype(float) + 0.25 * old
    # Numbers of size 1 rounded once, and 64 of them added up before they are in double precision.
    np.testing.assert_allclose(out, expected, atol=2 * np.finfo(dtype).eps)
    np.testing.assert_allclose(totals, 1 + expected.sum(axis=0), rtol=64 * np.finfo(dtype).eps)
    native.smooth_rows(out, 0.5, inverse, out)
    np.testing.assert_allclose(out, (expected + 0.5) * inverse, atol=8 * np.finfo(dtype).eps)


MIX = {"fresh": (9, 2), "old": (9, 2), "share": 0.5, "out": (9, 2), "totals": (2,)}
SMOOTH = {"word_counts": (9, 2), "eta": 0.5, "inverse": (2,), "out": (9, 2)}


@pytest.mark.parametrize(
    ("function", "sizes", "change", "error"),
    [
        ("mix_rows", MIX, {"old": (8, 2)}, "old must have size 9"),
        ("mix_rows", MIX, {"out": (9, 3)}, "out must have size 2"),
        ("mix_rows", MIX, {"totals": (3,)}, "totals must have size 2"),
        ("smooth_rows", SMOOTH, {"inverse": (3,)}, "inverse must have size 2"),
        ("smooth_rows", SMOOTH, {"out": (8, 2)}, "out must have size 9"),
    ],
)
def test_rows_of_topics_of_wrong_shapes_are_an_error(function, sizes, change, error):
    given = {name: np.zeros(size) if isinstance(size, tuple) else size for name, size in (sizes | change).items()}
    with pytest.raises(ValueError, match=error):
        getattr(native, function)(*given.values())
