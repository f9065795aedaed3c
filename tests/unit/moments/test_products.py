"""Completed moments of product distributions against naive loops, and the laws of sums."""

from __future__ import annotations

import numpy as np
import pytest

from odeco.models.product_mixture.moments import explicit_pairs, first_look, implicit_pairs, summarize
from odeco.moments.passes import run_passes
from odeco.moments.products import FeatureMap, ProductMarginals, ProductPairs, ProductTriples, repeated_terms
from odeco.sources.dense import DenseBatch
from odeco.sources.tables import open_table
from tests.oracles.product_moments import distinct_triples, encode, pair_covariances

FAMILY = ["gaussian", "categorical", "bernoulli", "poisson", "categorical"]
# Sums of some dozens of products of order one: a few units of the last digit.
ROUNDING = 1e-12


def table(n=13, seed=0, missing=0.2):
    rng = np.random.default_rng(seed)
    columns = [
        rng.normal(3, 2, n),
        rng.integers(3, size=n),
        rng.integers(2, size=n),
        rng.poisson(4, n),
        rng.integers(2, size=n),
    ]
    values = np.column_stack(columns).astype(float)
    values[:3, 1], values[:2, 4], values[:2, 2] = [0, 1, 2], [0, 1], [0, 1]
    gone = rng.random(values.shape) < missing
    gone[:3] = False
    values[gone] = np.nan
    return values, rng.uniform(0.5, 2.0, n)


def features_of(schema, values):
    return FeatureMap.of(schema, np.nanmean(values, axis=0), np.nanstd(values, axis=0))


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_features_are_those_of_the_loop(missing):
    values, _ = table(missing=missing)
    source = open_table(values, FAMILY)
    features = features_of(source.schema, values)
    expected, owner = encode(values, source.schema, features.centre, features.scale)
    np.testing.assert_allclose(features.encode(values), expected, atol=ROUNDING)
    assert features.owner.tolist() == owner


def test_distinct_triples_match_the_loop():
    values, weights = table()
    schema = open_table(values, FAMILY).schema
    features = features_of(schema, values)
    basis = np.random.default_rng(1).standard_normal((features.n_features, 3))
    triples = ProductTriples(features, basis).update(DenseBatch(values, weights))
    encoded, owner = encode(values, schema, features.centre, features.scale)
    np.testing.assert_allclose(triples.distinct(), distinct_triples(encoded, owner, basis, weights), atol=ROUNDING)


def test_pairs_over_available_rows_match_the_loop():
    values, weights = table()
    schema = open_table(values, FAMILY).schema
    features = features_of(schema, values)
    pairs = ProductPairs(features).update(DenseBatch(values, weights))
    encoded, owner = encode(values, schema, features.centre, features.scale)
    np.testing.assert_allclose(pairs.covariance(), pair_covariances(encoded, owner, values, weights), atol=ROUNDING)


@pytest.mark.parametrize("kind", [ProductMarginals, ProductPairs, "triples"])
def test_any_split_and_merge_gives_the_same_sums(kind):
    values, weights = table(40)
    features = features_of(open_table(values, FAMILY).schema, values)
    basis = np.random.default_rng(1).standard_normal((features.n_features, 3))

    def make():
        return ProductTriples(features, basis) if kind == "triples" else kind(features)

    whole = make().update(DenseBatch(values, weights))
    parts = [make().update(DenseBatch(values[i:j], weights[i:j])) for i, j in ((0, 7), (7, 30), (30, 40))]
    merged = parts[2].merge(parts[0]).merge(parts[1])
    assert merged.n == whole.n
    for name, sums in vars(whole).items():
        if isinstance(sums, np.ndarray):
            np.testing.assert_allclose(getattr(merged, name), sums, rtol=1e-10, atol=ROUNDING)


def test_moments_of_different_features_do_not_merge():
    values, _ = table()
    schema = open_table(values, FAMILY).schema
    one = ProductMarginals(FeatureMap.of(schema, np.zeros(5), np.ones(5)))
    other = ProductMarginals(FeatureMap.of(schema, np.ones(5), np.ones(5)))
    with pytest.raises(ValueError, match="different features"):
        one.merge(other)
    with pytest.raises(ValueError, match="columns"):
        one.update(DenseBatch(values[:, :3]))


def test_weights_are_repetitions():
    values, _ = table()
    features = features_of(open_table(values, FAMILY).schema, values)
    counts = np.random.default_rng(2).integers(0, 4, len(values))
    weighted = ProductPairs(features).update(DenseBatch(values, counts.astype(float)))
    repeated = ProductPairs(features).update(DenseBatch(np.repeat(values, counts, axis=0)))
    np.testing.assert_allclose(weighted.covariance(), repeated.covariance(), atol=ROUNDING)


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_implicit_pairs_are_the_explicit_ones(missing):
    """Without missing values they are the same matrix; with them shares replace the counts of pairs."""
    values, weights = table(4000, missing=missing)
    source = open_table(values, FAMILY, weights)
    pairs = ProductPairs(first_look(source, source.schema)).update_all(source)
    summary = summarize(pairs, np.diag(pairs.covariance()))
    probe = np.random.default_rng(3).standard_normal((summary.features.n_features, 4))
    explicit = run_passes(explicit_pairs(pairs, summary).product(probe), ())
    implicit = run_passes(implicit_pairs(summary).product(probe), source)
    # 4,000 rows: shares and counts of pairs differ by their sampling error.
    np.testing.assert_allclose(implicit, explicit, atol=ROUNDING if missing == 0 else 0.1)


def test_repeated_terms_are_what_distinct_triples_leave_out():
    """sum_i w_i m_i^(x3) over all triples of columns, less those of three different ones."""
    values, _ = table()
    features = features_of(open_table(values, FAMILY).schema, values)
    rng = np.random.default_rng(4)
    basis, means = rng.standard_normal((features.n_features, 2)), rng.standard_normal((3, features.n_features))
    weights = np.array([0.5, 0.3, 0.2])
    projected = means @ basis
    everything = np.einsum("i,ia,ib,ic->abc", weights, projected, projected, projected)
    # One row per component, weighted: its "features" are the means.
    distinct = distinct_triples(means, features.owner.tolist(), basis, weights)
    found = repeated_terms(features, basis, weights, means)
    np.testing.assert_allclose(found, everything - distinct, atol=ROUNDING)
