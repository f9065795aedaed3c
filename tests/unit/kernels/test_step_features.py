"""The compiled loops over features of steps against naive ones, and what they refuse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from odeco.kernels.step_features import add_step_pairs, add_step_triples, project_steps
from odeco.moments.sequence_features import FeatureMap, FeaturePairs, FeatureTriples, learn_map
from tests.oracles.step_features import Steps, basis_of_steps, pair_sums, triple_sums

N = 1100  # two blocks of sums, and part of a third


def steps(d: int, *, missing: bool, weighed: bool) -> Steps:
    rng = np.random.default_rng(d)
    values = rng.standard_normal((N, d)) * rng.uniform(0.5, 2, (N, 1)) + 5.0
    if missing:
        values[rng.random(values.shape) < 0.1] = np.nan
    weights = rng.integers(0, 3, N) / 2 if weighed else np.ones(N)
    return values, (rng.random(N) < 0.02).astype(np.uint8), weights


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("weighed", [False, True])
@pytest.mark.parametrize(("d", "correlated", "k"), [(1, False, 2), (3, False, 5), (4, True, 7), (12, True, 3)])
def test_loops_are_those_of_the_formulas(d: int, correlated: bool, k: int, weighed: bool, missing: bool) -> None:
    values, first, weights = data = steps(d, missing=missing, weighed=weighed)
    pairs = FeaturePairs(learn_map(values, correlated=correlated))
    pairs._add(values, first, weights if weighed else np.empty(0), N)
    # Sums of a thousand products in another order: a few hundred times machine epsilon, of the largest entry.
    for name, expected in pair_sums(pairs.features, data).items():
        np.testing.assert_allclose(getattr(pairs, name), expected, rtol=0, atol=1e-12 * np.abs(expected).max())
    basis = pairs.basis(k)
    z = basis(values)
    np.testing.assert_allclose(z, basis_of_steps(basis, values), rtol=0, atol=1e-11 * np.abs(z).max())
    sums = FeatureTriples(basis)
    sums.add(values, first, weights if weighed else np.empty(0), N, np.ascontiguousarray(z.T))
    for name, expected in triple_sums(basis, data).items():
        atol = 1e-11 * np.abs(expected).max()
        np.testing.assert_allclose(getattr(sums, name), expected, rtol=0, atol=atol, err_msg=name)


@pytest.mark.parametrize("n_own", [0, 1, 63, 64, 511, 512, 513, N - 1])
def test_neighbours_make_pairs_and_triples_and_do_not_count_themselves(n_own: int) -> None:
    values, first, weights = data = steps(2, missing=True, weighed=True)
    features = learn_map(values)
    basis = FeaturePairs(features).update(*data).basis(3)
    z = np.ascontiguousarray(basis(values).T)
    parts, whole = [FeaturePairs(features), FeatureTriples(basis)], [FeaturePairs(features), FeatureTriples(basis)]
    for low, high in ((0, n_own), (n_own, N)):
        for sums, neighbours in zip(parts, (1, 2), strict=True):
            here = slice(low, min(high + neighbours, N))
            more = (np.ascontiguousarray(z[:, here]),) if neighbours == 2 else ()
            add = sums.add if isinstance(sums, FeatureTriples) else sums._add
            add(values[here], first[here], weights[here], high - low, *more)
    whole[0]._add(values, first, weights, N)
    whole[1].add(values, first, weights, N, z)
    for found, expected, names in zip(
        parts, whole, (("total", "square", "lagged", "weight", "pair_weight"), FeatureTriples.names), strict=True
    ):
        for name in names:
            np.testing.assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-9, atol=1e-9)


def arguments(kernel: str) -> list[Any]:
    """Right ones, of 5 steps of 2 columns, one of them a neighbour."""
    features = FeatureMap(np.zeros(2), np.eye(2), np.zeros((1, 2)), np.array([[0, 1]]))
    f, k, values = features.size, 3, np.zeros((5, 2))
    flags, weights = np.zeros(5, dtype=np.uint8), np.ones(5)
    if kernel == "project_steps":
        return [values, *features.arrays, np.zeros((k, f)), np.zeros(k), np.zeros((k, 5))]
    if kernel == "add_step_pairs":
        return [values, flags, weights, 4, *features.arrays, np.zeros(f), *np.zeros((2, f, f)), np.zeros(2)]
    sums = [np.zeros((k, k)), np.zeros((k, k, k)), np.zeros(k), *np.zeros((2, 2 * k, 2)), *np.zeros((2, 2 * k, 2, 2))]
    return [values, flags, weights, 4, np.ones((k, 5)), np.zeros(2), *sums, np.zeros(3)]


KERNELS = {"project_steps": project_steps, "add_step_pairs": add_step_pairs, "add_step_triples": add_step_triples}


@pytest.mark.parametrize("kernel", KERNELS)
def test_arrays_of_other_shapes_are_errors(kernel: str) -> None:
    given = arguments(kernel)
    KERNELS[kernel](*given)
    for place, argument in enumerate(given):
        for axis in range(argument.ndim) if isinstance(argument, np.ndarray) else ():
            for change in (-1, 1):
                shape = list(argument.shape)
                shape[axis] += change
                wrong = np.zeros(shape, dtype=argument.dtype)
                with pytest.raises((ValueError, IndexError)):
                    KERNELS[kernel](*given[:place], wrong, *given[place + 1 :])


@pytest.mark.parametrize("kernel", ["project_steps", "add_step_pairs"])
@pytest.mark.parametrize("column", [-1, 2, 2**40])
def test_products_of_columns_that_there_are_not_are_errors(kernel: str, column: int) -> None:
    given = arguments(kernel)
    place = 4 if kernel == "project_steps" else 7
    with pytest.raises(IndexError, match="products"):
        KERNELS[kernel](*given[:place], np.array([[0, column]]), *given[place + 1 :])


@pytest.mark.parametrize("kernel", ["add_step_pairs", "add_step_triples"])
@pytest.mark.parametrize("n_own", [-1, 6])
def test_more_steps_than_there_are_are_errors(kernel: str, n_own: int) -> None:
    given = arguments(kernel)
    with pytest.raises(IndexError):
        KERNELS[kernel](*given[:3], n_own, *given[4:])
