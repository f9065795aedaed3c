"""Yes or no, counts and categories: densities against scipy, priors as observations more, draws."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse, stats
from scipy.special import gammaln

from odeco.families.counts import BERNOULLI, CATEGORICAL, POISSON
from odeco.families.simplex import log_dirichlet, proportions

K, D = 2, 3
MEANS = {
    "bernoulli": (BERNOULLI, np.array([[0.2, 0.7, 0.5], [0.9, 0.1, 0.4]])),
    "poisson": (POISSON, np.array([[0.3, 4.0, 12.0], [7.0, 0.1, 2.0]])),
    "categorical": (CATEGORICAL, np.array([[0.2, 0.7, 0.1], [0.1, 0.3, 0.6]])),
}
VALUES = np.array([[1.0, 0.0, 1.0], [0.0, 0.0, 1.0]])


def log_density(name, means, values):
    if name == "bernoulli":
        return stats.bernoulli(means).logpmf(values).sum()
    if name == "poisson":
        return stats.poisson(means).logpmf(values).sum()
    return (values * np.log(means)).sum()  # words in their order


@pytest.mark.parametrize("name", MEANS)
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_log_densities_are_scipys(name, form):
    family, means = MEANS[name]
    slopes, constants = family.natural(means)
    values = form(3 * VALUES if name == "poisson" else VALUES)
    found = np.asarray(values @ slopes.T) + constants.sum(axis=1) + np.reshape(family.base(values), (-1, 1))
    plain = values.toarray() if sparse.issparse(values) else values
    expected = [[log_density(name, m, v) for m in means] for v in plain]
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("name", MEANS)
def test_the_mode_of_a_prior_is_what_its_observations_average(name):
    """Any other mean has a lower log density of the prior, ``added . slopes + more . constants``."""
    family, means = MEANS[name]
    center = means.mean(axis=0)
    added, more = family.pseudo(0.3, center, 1e-8)
    mode = np.broadcast_to(added / np.asarray(more), (K, D))

    def value(at):
        slopes, constants = family.natural(at)
        return (added * slopes).sum(axis=1) + (more * constants).sum(axis=1)

    assert (value(mode) > value(means)).all()
    if name == "poisson":
        np.testing.assert_allclose(mode, np.tile(center, (K, 1)))


@pytest.mark.parametrize(("name", "free"), [("bernoulli", 3), ("poisson", 3), ("categorical", 2)])
def test_free_parameters(name, free):
    assert MEANS[name][0].n_free(D) == free


@pytest.mark.parametrize("name", MEANS)
def test_means_inside_have_a_density_everywhere(name):
    family = MEANS[name][0]
    slopes, constants = family.natural(family.inside(np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 0.0]]), 1e-8))
    assert np.isfinite(slopes).all()
    assert np.isfinite(constants).all()


@pytest.mark.parametrize("name", MEANS)
def test_drawn_rows_have_the_means(name):
    family, means = MEANS[name]
    drawn = family.draw(means, np.full(20_000, 1), np.random.default_rng(0))
    drawn = np.eye(D)[drawn] if name == "categorical" else drawn
    # Deviations are at most sqrt(7): a standard error of 0.019; four of them.
    np.testing.assert_allclose(drawn.mean(axis=0), means[1], atol=0.08)


def test_proportions_have_pseudo_counts_and_rows_without_any_stay():
    counts, before = np.array([[1.0, 3.0], [0.0, 0.0]]), np.array([[0.5, 0.5], [0.9, 0.1]])
    np.testing.assert_allclose(proportions(counts, 0.0, before), [[0.25, 0.75], [0.9, 0.1]])
    np.testing.assert_allclose(proportions(counts, 1.0, before), [[1 / 3, 2 / 3], [0.5, 0.5]])
    assert log_dirichlet(np.array([[0.25, 0.75]]), 2.0) == pytest.approx(2 * np.log(0.25 * 0.75))


@pytest.mark.parametrize("largest", [5, 1023, 1024, 5000])
def test_factorials_are_those_of_the_gamma_function_looked_up_or_not(largest):
    counts = np.random.default_rng(0).integers(0, largest, (700, 2), endpoint=True).astype(float)
    counts[0, 0] = largest
    np.testing.assert_allclose(POISSON.base(counts), -gammaln(counts + 1).sum(axis=1), rtol=1e-14)
    np.testing.assert_allclose(POISSON.base(counts + 0.5), -gammaln(counts + 1.5).sum(axis=1), rtol=1e-14)
