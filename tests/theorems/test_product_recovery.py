"""Product mixtures from population moments: every pattern of a small table, weighted by its probability."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from odeco.metrics import match_components
from odeco.models.product_mixture.moments import first_look, product_start
from odeco.models.product_mixture.policy import Policy
from odeco.models.product_mixture.views import parted_passes
from odeco.moments.passes import run_passes
from odeco.sources.tables import open_table


def population(k, n_columns, n_categories, seed=0):
    """All rows, their probabilities, and the truth."""
    rng = np.random.default_rng(seed)
    tables = rng.dirichlet(np.ones(n_categories), (k, n_columns))
    weights = rng.dirichlet(np.full(k, 5.0))
    rows = np.array(list(product(range(n_categories), repeat=n_columns)))
    likelihood = np.prod(tables[:, np.arange(n_columns), rows], axis=2)
    return rows, weights @ likelihood, weights, tables.reshape(k, -1)


# Refilling is a fixed point that converges linearly and compares means by differences of squares: half the digits.
HALF_THE_DIGITS = 1e-6


@pytest.mark.parametrize(("k", "n_columns", "n_categories"), [(2, 8, 2), (3, 9, 2), (3, 6, 3), (4, 8, 3)])
def test_completed_moments_recover_the_population(k, n_columns, n_categories):
    rows, chances, weights, means = population(k, n_columns, n_categories)
    source = open_table(rows, "categorical", chances)
    exact = Policy(refills=500, fills=2000, fill_tol=1e-14, refill_tol=1e-9)
    found = product_start(source, source.schema, k, np.random.default_rng(0), policy=exact)
    matching = match_components(found.feature_means.T, means.T)
    assert matching.largest < HALF_THE_DIGITS
    np.testing.assert_allclose(found.weights[matching.permutation], weights, atol=HALF_THE_DIGITS)
    assert found.residual < HALF_THE_DIGITS
    # Shuffled components are not a recovery.
    assert np.abs(np.roll(found.feature_means[matching.permutation], 1, axis=0) - means).max() > 0.01


@pytest.mark.parametrize(("k", "n_columns", "n_categories"), [(2, 8, 2), (3, 6, 3)])
def test_three_views_recover_the_population(k, n_columns, n_categories):
    """Section 3.3.1: Proposition 3.1 gives the cross moments of three groups of columns, Theorem 3.6 the rest."""
    rows, chances, weights, means = population(k, n_columns, n_categories)
    source = open_table(rows, "categorical", chances)
    rng = np.random.default_rng(1)
    found = run_passes(parted_passes(first_look(source, source.schema), k, rng), source).start(rng)
    details = found.details
    matching = match_components(found.feature_means.T, means.T)
    assert matching.largest < 1e-8  # condition numbers of small views take half of the digits
    np.testing.assert_allclose(found.weights[matching.permutation], weights, atol=1e-8)
    assert set(np.unique(details["views"])) == {0, 1, 2}
    assert 0 < details["coherence"] <= 1
    assert details["coherence_condition"] == (details["coherence"] <= details["incoherence_limit"])
