"""Theorem 3.4: the fourth cumulant of x = A h + z is sum_i kappa_i mu_i^(x4), whatever Gaussian z."""

from __future__ import annotations

import numpy as np
import pytest

from odeco import decompose, whiten
from odeco.decomposition import run_method
from odeco.metrics import match_components
from odeco.refinement.ica import least_squares
from odeco.tensors import ExplicitTensor, rank_one_sum

# Uniform, Laplace, sign, exponential: excess kurtosis of both signs.
KURTOSIS = np.array([-1.2, 3.0, -2.0, 6.0, 1.0])


def population(d, seed, noise):
    """Mixing, covariance and fourth cumulant of the model: cumulants of independent sums add, Gaussians have none."""
    rng = np.random.default_rng(seed)
    mixing = rng.standard_normal((d, KURTOSIS.size))
    square = noise * rng.standard_normal((d, d))
    return mixing, mixing @ mixing.T + square @ square.T, rank_one_sum(KURTOSIS, mixing, 4)


def test_cumulants_of_two_valued_sources_are_the_theorem():
    """All 2^3 equally likely values of h enumerated: population moments without sampling."""
    from odeco.moments.cumulants import fourth_cumulant

    signs = np.array(np.meshgrid(*[[-1.0, 1.0]] * 3)).reshape(3, -1).T
    mixing = np.random.default_rng(0).standard_normal((4, 3))
    np.testing.assert_allclose(fourth_cumulant(signs @ mixing.T), rank_one_sum([-2.0] * 3, mixing, 4), atol=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_whitened_population_cumulant_gives_the_mixing_to_rounding(seed):
    mixing, covariance, cumulant = population(7, seed, noise=0.0)
    whitener = whiten(covariance, KURTOSIS.size)
    found = decompose(whitener.whiten_tensor(cumulant), KURTOSIS.size, random_state=0, tol=1e-12)
    lifted = whitener.unwhiten(found.eigenvectors)
    matching = match_components(lifted, mixing, up_to_sign=True)
    assert matching.largest < 1e-9  # condition of the whitening times machine epsilon
    np.testing.assert_allclose(found.eigenvalues[matching.permutation], KURTOSIS, atol=1e-8)
    shuffled = np.roll(lifted, 1, axis=1) + lifted  # not the components: must not match
    assert match_components(shuffled, mixing, up_to_sign=True).largest > 0.1


@pytest.mark.parametrize("seed", range(5))
def test_least_squares_finds_the_mixing_under_any_gaussian_noise(seed):
    """The orthogonal decomposition is biased by unknown noise; the free one from it is exact."""
    mixing, covariance, cumulant = population(KURTOSIS.size, seed, noise=0.15)
    whitener = whiten(covariance, KURTOSIS.size)
    tensor = ExplicitTensor(np.ascontiguousarray(whitener.whiten_tensor(cumulant)))
    # run_method: what noise leaves of the orthogonal fit is no reason for a warning here.
    start = run_method(tensor, KURTOSIS.size, "auto", np.random.default_rng(0), {})
    fit = least_squares(tensor, start.eigenvalues, start.eigenvectors, n_samples=1e15, n_iter=200)
    lifted = whitener.unwhiten(fit.vectors)
    truth = mixing * np.abs(KURTOSIS) ** 0.25  # the scale that the cumulant knows
    error = match_components(lifted, truth, up_to_sign=True).largest
    biased = whitener.unwhiten(start.eigenvectors * np.abs(start.eigenvalues) ** 0.25)
    assert fit.converged
    assert error < 1e-4  # steps stop at 1e-4 and converge quadratically or, at worst, by a constant factor
    assert match_components(biased, truth, up_to_sign=True).largest > 10 * error
