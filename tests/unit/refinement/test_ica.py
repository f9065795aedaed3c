from __future__ import annotations

import numpy as np
import pytest

from odeco.refinement import ica as least
from odeco.refinement.ica_likelihood import fitted_scores, likelihood_rotation, representative, shrink
from odeco.tensors import ExplicitTensor, rank_one_sum


def orthogonal(k, seed=0):
    return np.linalg.qr(np.random.default_rng(seed).standard_normal((k, k)))[0]


def sources(n, seed=0):
    """Exponential, Laplace, uniform: rows (3, n), unit variance."""
    rng = np.random.default_rng(seed)
    rows = [rng.exponential(size=n) - 1, rng.laplace(size=n) / np.sqrt(2), rng.uniform(-(3**0.5), 3**0.5, n)]
    return np.array(rows) - np.mean(rows, axis=1, keepdims=True)


def test_the_normal_matrix_is_that_of_the_jacobian():
    rng = np.random.default_rng(0)
    vectors, signs = rng.standard_normal((4, 3)), np.array([1.0, -1.0, 1.0])
    jacobian = []
    for j in range(3):
        for a in range(4):
            moved = []
            for step in (1e-5, -1e-5):
                shifted = vectors.copy()
                shifted[a, j] += step
                moved.append(rank_one_sum(signs, shifted, 4).ravel())
            jacobian.append((moved[0] - moved[1]) / 2e-5)
    jacobian = np.array(jacobian)
    system = least._NormalMatrix(vectors, signs, ridge=0.1)
    right = rng.standard_normal((4, 3))
    expected = np.linalg.solve(jacobian @ jacobian.T + 0.1 * np.eye(12), right.T.ravel()).reshape(3, 4).T
    np.testing.assert_allclose(system.solve(right, 0.0), expected, rtol=1e-6)  # central differences: 1e-9
    # Conjugate gradients stop at a ten thousandth of the step in the energy norm.
    np.testing.assert_allclose(system._conjugate_gradients(right, 0.0), expected, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("turned", [0, 3])
def test_a_wrong_sign_at_the_start_is_turned(turned):
    rng = np.random.default_rng(3)
    vectors = orthogonal(5) + 0.1 * rng.standard_normal((5, 5))
    values = np.array([3.0, -2.0, 1.5, 0.4, -1.0])
    tensor = ExplicitTensor(rank_one_sum(values, vectors, 4))
    start = values.copy()
    start[3] *= -1  # the weakest
    fit = least.least_squares(tensor, start, vectors / np.linalg.norm(vectors, axis=0), 1e9)
    assert fit.signs.tolist() == np.sign(values).tolist()
    error = np.linalg.norm(rank_one_sum(fit.signs, fit.vectors, 4) - tensor.array) / tensor.norm
    assert error < 1e-3


def test_known_noise_is_taken_out_of_the_likelihood():
    """With E[y y'] = I + N the corrected rotation has no bias; the uncorrected one does."""
    n = 400_000
    clean = orthogonal(3) @ sources(n)
    factor = np.array([[0.7, 0.0, 0.0], [0.6, 0.3, 0.0], [-0.5, 0.2, 0.3]])
    rows = clean + factor @ np.random.default_rng(1).standard_normal((3, n))

    def error(noise):
        found = likelihood_rotation(rows, None, orthogonal(3), noise, n_iter=50, tol=1e-6).frame
        return np.abs(np.abs(found.T @ orthogonal(3)) - np.eye(3)).max()

    # Entries have a standard deviation of about sqrt(5 / n) = 0.004 under this noise.
    assert error(factor @ factor.T) < 0.02
    assert error(None) > 0.05


def test_weights_are_repetitions():
    rows = orthogonal(3) @ sources(3000)
    weights = np.random.default_rng(2).integers(0, 3, 3000)
    repeated = np.repeat(rows, weights, axis=1)
    fits = [
        likelihood_rotation(x, w, orthogonal(3), None, n_iter=50, tol=1e-10).frame
        for x, w in ((rows, weights.astype(float)), (repeated, None))
    ]
    np.testing.assert_allclose(fits[0], fits[1], atol=1e-8)


def test_scores_are_asymmetric_for_asymmetric_sources_alone():
    scores = fitted_scores(*representative(sources(100_000), None), np.eye(3), None)
    share = np.abs(scores[:, 1]) / np.abs(scores).max(axis=1)
    assert share[0] > 0.1
    assert share[1:].max() < 0.1
    assert scores[2, 2] > 0  # light tails: a cube, as kurtosis has it


def test_without_noise_the_difference_of_the_fits_is_what_is_expected():
    """Mean squared difference over its predicted variance is 1, and all of the likelihood fit is taken."""
    statistics = []
    for seed in range(20):
        rows = sources(20_000, seed)
        values, vectors = np.linalg.eigh(rows @ rows.T / rows.shape[1])
        rows = vectors @ ((vectors / np.sqrt(values)).T @ rows)
        from odeco.moments.cumulants import fourth_cumulant

        tensor = ExplicitTensor(fourth_cumulant(rows.T))
        fit = least.least_squares(tensor, np.array([6.0, 3.0, -1.2]), np.eye(3), rows.shape[1])
        rotation = likelihood_rotation(rows, None, np.eye(3), None, n_iter=50, tol=1e-6)
        statistics.append(shrink(fit.signs, fit.vectors, rotation, rows.shape[1]).noise_statistic)
    # A mean of 20 x 6 squares: standard deviation sqrt(2 / 120) = 0.13.
    assert np.mean(statistics) == pytest.approx(1.0, abs=0.4)


@pytest.mark.parametrize("weighted", [False, True])
def test_a_representative_sample_has_the_moments_of_all(weighted):
    rng = np.random.default_rng(4)
    rows = rng.standard_t(5, (2, 60_000))
    weights = rng.integers(0, 3, 60_000).astype(float) if weighted else None
    sample, part = representative(rows, weights)
    assert sample.shape[1] < 6000
    assert part.sum() == pytest.approx(1)
    exact = np.average(rows**6, axis=1, weights=weights)
    # Nearly all of the sixth moment lies in the extreme samples, which are taken whole.
    np.testing.assert_allclose(sample**6 @ part, exact, rtol=0.02)


def test_heavy_tails_keep_the_score_bounded():
    """With three degrees of freedom squares and cubes have no variance: tanh alone is left."""
    rows = np.random.default_rng(5).standard_t(3, (2, 50_000)) / np.sqrt(3)
    scores = fitted_scores(*representative(rows, None), np.eye(2), None)
    assert np.abs(scores[:, 2] / scores[:, 0]).max() < 1e-3
    assert np.abs(scores[:, 1] / scores[:, 0]).max() < 1e-2
