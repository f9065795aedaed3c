"""Sums over consecutive features against naive loops; merging and parts."""

from __future__ import annotations

import numpy as np
import pytest

from odeco.moments import sequence_features
from odeco.moments.sequence_features import FeatureBasis, FeaturePairs, FeatureTriples, learn_map
from tests.oracles.step_features import Steps, pair_sums, triple_sums

K = 4


def sequences(seed: int = 0) -> Steps:
    """Steps of five sequences, one of them of a single step, one step without an observation."""
    rng = np.random.default_rng(seed)
    lengths = [40, 1, 2, 30, 27]
    x = rng.standard_normal((100, 3)) * rng.uniform(0.5, 2, (100, 1))
    first = np.zeros(100, dtype=np.uint8)
    first[np.cumsum([0, *lengths[:-1]])] = 1
    weights = np.repeat(rng.uniform(0.5, 2, 5), lengths)
    weights[60], x[60] = 0.0, np.nan
    return x, first, weights


def basis_of(data: Steps) -> FeatureBasis:
    return FeaturePairs(learn_map(data[0])).update(*data).basis(K)


@pytest.mark.parametrize("correlated", [False, True])
@pytest.mark.parametrize("run", [7, 4096])
def test_sums_are_those_of_a_loop(run: int, correlated: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sequence_features, "_RUN", run)
    data = sequences()
    data[0][[5, 50, 70], [0, 1, 2]] = np.nan
    data[0][20] *= 100.0  # farther out than features look
    pairs = FeaturePairs(learn_map(data[0], correlated=correlated)).update(*data)
    for name, expected in pair_sums(pairs.features, data).items():
        np.testing.assert_allclose(getattr(pairs, name), expected, rtol=1e-10, atol=1e-9, err_msg=name)
    sums = FeatureTriples(pairs.basis(K)).update(*data)
    for name, expected in triple_sums(sums.basis, data).items():
        np.testing.assert_allclose(getattr(sums, name), expected, rtol=1e-9, atol=1e-9, err_msg=name)


def test_the_number_of_threads_changes_no_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sequence_features, "_RUN", 7)
    data = sequences()
    found = []
    for n_threads in ("1", "3"):
        monkeypatch.setenv("ODECO_NUM_THREADS", n_threads)
        found.append(FeatureTriples(basis_of(data)).update(*data))
    for name in FeatureTriples.names:
        np.testing.assert_array_equal(*(getattr(sums, name) for sums in found))


def test_the_moments_of_two_parts_merge_into_those_of_the_whole() -> None:
    data = sequences()
    basis = basis_of(data)
    whole = FeatureTriples(basis).update(*data).read()
    cut = 43  # between two sequences
    parts = [tuple(a[:cut] for a in data), tuple(a[cut:] for a in data)]
    first, second = (FeatureTriples(basis).update(*part) for part in parts)
    for found, expected in zip(second.merge(first).read(), whole, strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-12)
    pairs = [FeaturePairs(basis.features).update(*part) for part in parts]
    merged, direct = pairs[0].merge(pairs[1]), FeaturePairs(basis.features).update(*data)
    np.testing.assert_allclose(merged.lagged, direct.lagged, atol=1e-9)


def test_other_features_or_another_basis_do_not_merge() -> None:
    first, second = sequences(0), sequences(1)
    with pytest.raises(ValueError, match="different features"):
        FeaturePairs(learn_map(first[0])).merge(FeaturePairs(learn_map(second[0])))
    pairs = FeaturePairs(learn_map(first[0])).update(*first)
    other = FeaturePairs(pairs.features).update(*second)
    with pytest.raises(ValueError, match="different bases"):
        FeatureTriples(pairs.basis(K)).merge(FeatureTriples(other.basis(K)))


def test_cutting_a_sequence_takes_out_the_triples_that_cross_and_no_others() -> None:
    x, first, weights = sequences()
    basis = basis_of((x, first, weights))
    cut = first.copy()
    cut[21] = 1
    before, after = (FeatureTriples(basis).update(x, begins, weights) for begins in (first, cut))
    z = basis(x)
    crossing = sum(weights[t] * np.multiply.outer(np.multiply.outer(z[t], z[t + 1]), z[t + 2]) for t in (19, 20))
    np.testing.assert_allclose(before.triples - after.triples, crossing, atol=1e-11)


def test_the_basis_is_white() -> None:
    data = sequences()
    basis = basis_of(data)
    z, weights = basis(data[0])[:, 1:], data[2] / data[2].sum()
    np.testing.assert_allclose(weights @ z, 0, atol=1e-10)
    np.testing.assert_allclose((z * weights[:, None]).T @ z, np.eye(K - 1), atol=1e-6)  # eigenvalues from 1e-8 up
    assert np.all(np.diff(basis.spectrum) <= 0)
