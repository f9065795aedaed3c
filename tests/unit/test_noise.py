"""How large noise is said to be, of word pairs and of covariances: by its definition, and by what noise does."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import null_space

from odeco import GaussianMixture
from odeco.sources import as_batch
from odeco.whitening.noise import pair_noise

D = 20


def pairs_of(counts, weights):
    """E[x1 (x) x2] by loops: averages over the pairs of each document."""
    total = np.zeros((D, D))
    for row, weight in zip(counts, weights, strict=True):
        length = row.sum()
        total += weight * (np.outer(row, row) - np.diag(row)) / (length * (length - 1))
    return total / weights.sum()


@pytest.mark.parametrize("weighted", [False, True])
def test_half_the_difference_of_two_halves(weighted):
    rng = np.random.default_rng(0)
    counts = np.array([rng.multinomial(rng.integers(5, 40), np.full(D, 1 / D)) for _ in range(200)])
    weights = rng.uniform(0.5, 2.0, 200) if weighted else np.ones(200)
    scale = rng.uniform(0.5, 2.0, D)
    directions = np.linalg.qr(rng.standard_normal((D, 2)))[0]
    half = (pairs_of(counts[::2], weights[::2]) - pairs_of(counts[1::2], weights[1::2])) / 2
    outside = null_space(directions.T)
    largest = np.linalg.eigvalsh(outside.T @ (scale[:, None] * half * scale) @ outside)[-1]
    found = pair_noise(as_batch(counts, weights), scale, directions, 800)
    # Twelve steps of Lanczos come within 2 %; a margin of a quarter, and four times the documents.
    assert found == pytest.approx(1.25 * largest * np.sqrt(200 / 800), rel=0.02)


@pytest.mark.parametrize("seed", range(3))
def test_it_is_a_little_above_what_independent_words_show(seed):
    """Words that do not depend on each other: M2 has rank one, and its other eigenvalues are noise."""
    rng = np.random.default_rng(seed)
    n, d = 3000, 200
    counts = rng.multinomial(20, np.full(d, 1 / d), size=n).astype(float)
    scale = np.full(d, np.sqrt(d))
    M2 = (counts.T @ counts - np.diag(counts.sum(axis=0))) / (n * 20 * 19) * d
    values, vectors = np.linalg.eigh(M2)
    found = pair_noise(as_batch(counts), scale, vectors[:, -1:], n)
    assert 1.0 < found / values[-2] < 1.5  # the margin is 1.25, and extremes differ by a fifth


def test_too_few_documents_and_no_room_outside():
    counts = np.random.default_rng(0).multinomial(20, np.full(D, 1 / D), size=8)
    assert pair_noise(as_batch(counts), np.ones(D), np.eye(D)[:, :2], 8) == np.inf
    assert pair_noise(as_batch(counts), np.ones(D), np.eye(D)[:, :1], 8) < np.inf
    many = np.tile(counts, (10, 1))
    assert pair_noise(as_batch(many), np.ones(D), np.eye(D)[:, :18], 80) == 0.0


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("n", "d"), [(2000, 40), (500, 100)])
def test_the_edge_of_a_covariance_is_a_little_above_its_noise(n, d, seed):
    """Two components 6 apart in one direction: all other eigenvalues are noise, and the edge covers the largest."""
    x = np.random.default_rng(seed).standard_normal((n, d))
    x[:, 0] += np.where(np.arange(n) % 2, 3.0, -3.0)
    edge = GaussianMixture(2, refine=None, random_state=0).fit(x).diagnostics_.details["noise_edge"]
    largest = np.linalg.eigvalsh(np.cov(x.T))[-2]
    assert 1.0 < edge / largest < 1.15  # seen: 1.04 to 1.12
