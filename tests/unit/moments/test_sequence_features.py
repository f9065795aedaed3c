"""Sums over consecutive features against naive loops; merging and blocks."""

from __future__ import annotations

import numpy as np
import pytest

from odeco.moments import sequence_features
from odeco.moments.sequence_features import FeatureBasis, FeaturePairs, FeatureTriples, learn_map

K = 4


def sequences(seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Steps of five sequences, one of them of a single step, one step without an observation."""
    rng = np.random.default_rng(seed)
    lengths = [40, 1, 2, 30, 27]
    x = rng.standard_normal((100, 3)) * rng.uniform(0.5, 2, (100, 1))
    linked = np.ones(100, dtype=bool)
    linked[np.cumsum(lengths) - 1] = False
    weights = np.repeat(rng.uniform(0.5, 2, 5), lengths)
    weights[60], x[60] = 0.0, np.nan
    return x, linked, weights


def basis_of(data: tuple[np.ndarray, np.ndarray, np.ndarray]) -> FeatureBasis:
    return FeaturePairs(learn_map(data[0])).update(*data).basis(K)


def naive(data: tuple[np.ndarray, np.ndarray, np.ndarray], basis: FeatureBasis) -> tuple[np.ndarray, np.ndarray]:
    """E[z1 (x) z2] and E[z1 (x) z2 (x) z3], one step at a time."""
    x, linked, weights = data
    z = basis(x)
    pairs, triples, n_pairs, n_triples = np.zeros((K, K)), np.zeros((K, K, K)), 0.0, 0.0
    for t in range(len(x) - 1):
        if linked[t]:
            weight = min(weights[t : t + 2])
            pairs += weight * np.multiply.outer(z[t], z[t + 1])
            n_pairs += weight
            if t + 2 < len(x) and linked[t + 1]:
                weight = min(weights[t : t + 3])
                triples += weight * np.multiply.outer(np.multiply.outer(z[t], z[t + 1]), z[t + 2])
                n_triples += weight
    return pairs / n_pairs, triples / n_triples


@pytest.mark.parametrize("block", [7, 4096])
def test_triples_are_those_of_a_loop(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sequence_features, "_BLOCK", block)
    data = sequences()
    basis = basis_of(data)
    for found, expected in zip(FeatureTriples(basis).update(*data).read(), naive(data, basis), strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-12)


def naive_rest(data: tuple[np.ndarray, np.ndarray, np.ndarray], basis: FeatureBasis) -> dict[str, np.ndarray]:
    """z of first steps, and what is there of middle steps times z of both neighbours, one step at a time."""
    x, linked, weights = data
    z, d, width, found = basis(x), x.shape[1], 2 * basis.size, {}
    paired = len(basis.features.products) > 0
    found["first"] = sum(weights[t] * z[t] for t in range(len(x)) if t == 0 or not linked[t - 1])
    shape = (width, d, d) if paired else (width, d)
    found |= {"seen": np.zeros((width, d)), "values": np.zeros((width, d))}
    found |= {"seen_products": np.zeros(shape), "products": np.zeros(shape)}
    for t in range(len(x) - 2):
        if not (linked[t] and linked[t + 1]):
            continue
        around = min(weights[t : t + 3]) * np.append(z[t], z[t + 2])
        row = x[t + 1] - basis.features.center
        for a in np.flatnonzero(~np.isnan(row)):
            found["seen"][:, a] += around
            found["values"][:, a] += around * row[a]
            for b in np.flatnonzero(~np.isnan(row)) if paired else [a]:
                place = (slice(None), a, b) if paired else (slice(None), a)
                found["seen_products"][place] += around
                found["products"][place] += around * row[a] * row[b]
    return found


@pytest.mark.parametrize("correlated", [False, True])
@pytest.mark.parametrize("block", [7, 4096])
def test_first_and_middle_steps_are_those_of_a_loop(
    block: int, correlated: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sequence_features, "_BLOCK", block)
    data = sequences()
    data[0][[5, 50, 70], [0, 1, 2]] = np.nan
    data[0][20] *= 100.0  # farther out than features look
    basis = FeaturePairs(learn_map(data[0], correlated=correlated)).update(*data).basis(K)
    sums = FeatureTriples(basis).update(*data)
    for name, expected in naive_rest(data, basis).items():
        np.testing.assert_allclose(getattr(sums, name), expected, rtol=1e-9, atol=1e-9, err_msg=name)
    starts = np.append(True, ~data[1][:-1])
    assert sums.first_weight == pytest.approx(data[2][starts].sum())


def test_blocks_do_not_change_the_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    data = sequences()
    features = learn_map(data[0])
    whole = FeaturePairs(features).update(*data)
    monkeypatch.setattr(sequence_features, "_BLOCK", 7)
    blocks = FeaturePairs(features).update(*data)
    for name in ("weight", "pair_weight", "total", "square", "lagged"):
        np.testing.assert_allclose(getattr(blocks, name), getattr(whole, name), rtol=1e-10, atol=1e-9)


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
    x, linked, weights = sequences()
    basis = basis_of((x, linked, weights))
    cut = linked.copy()
    cut[20] = False
    before, after = (FeatureTriples(basis).update(x, links, weights) for links in (linked, cut))
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
