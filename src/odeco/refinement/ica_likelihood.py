"""Likelihood polish of orthogonal components, with the effect of Gaussian noise taken out: the choice for signals.

Few functions, exactly uncorrelated sources: less efficient than `odeco.refinement.ica_pairs`, and hardly to be misled
by samples that depend on their neighbours and sources that share their pauses.

With scores psi_i the maximum-likelihood rotation of white sources makes E[psi_i(s_i) s_j] symmetric. Gaussian noise of
covariance N in s biases it, and by Stein's lemma by exactly N_ij E[psi_i'(s_i)]: known noise (isotropic, d > k) is
subtracted. Where the noise is not known, the fit to the cumulants, which no Gaussian noise biases, is shrunk towards
the likelihood fit by as much as their difference is explained by sampling error (James and Stein's rule).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from odeco.kernels.products import by_parts

Floats = NDArray[np.float64]
Rows = NDArray[np.floating]

# Sources at a time: a few blocks of this many rows stay in cache.
_ROWS = 2048
# Samples of the first iterations: their error is then a few times that of all samples, and two full steps square it.
_FIRST_SAMPLES = 20_000
# Samples from which scores and sampling errors are estimated: any scores are consistent, a few per cent are enough.
_SCORE_SAMPLES = 5_000
_EXTREME_SAMPLES = 500
# What of a score's variance is taken as unexplained at least: two-valued sources would have infinite information.
_LEAST_VARIANCE = 1e-4
_LEAST_SHARE = 0.2
# Sum of the curvatures of tanh (0.1 to 0.4 for the sources of docs/ica.md) from which a pair counts in full.
_SHAPED = 0.2
# Two sources without a shape give no direction.
_LEAST_CURVATURE = 1e-3
# A Newton step of this size leaves an error of its square, below sampling error.
_SQUARED = 0.02


@dataclass(frozen=True, eq=False)
class Rotation:
    """An orthogonal fit: ``frame`` (k, k) with columns v_j, sources v_j'y, and the scores of the last step.

    Row i of `scores` (k, 3) holds the coefficients of tanh(s), s^2 and s^3 in psi_i; `sample` is the
    `representative` part of the data they were fitted to.
    """

    frame: Floats = field(repr=False)
    scores: Floats = field(repr=False)
    sample: tuple[Floats, Floats] = field(repr=False)
    n_iter: int
    converged: bool


def likelihood_rotation(
    rows: Rows,
    weights: Floats | None,
    frame: Floats,
    noise: Floats | None,
    *,
    n_iter: int,
    tol: float,
) -> Rotation:
    """Newton steps on rotations: with the score tanh until they settle, then two with scores fitted to the sources.

    tanh with its sign chosen source by source is what FastICA and picard-o use: robust and cheap. It misses sharp
    edges and asymmetry; one step with better scores from a root-n estimate has their efficiency. So the iterations
    take some of the samples, evenly spaced, and the last two steps all of them.

    Parameters
    ----------
    rows : (k, n) array
        Whitened samples in columns: E[y y'] = I + noise.
    frame : (k, k) orthogonal array
        Start.
    noise : (k, k) array or None
        Covariance of Gaussian noise in y.
    tol : float
        Largest rotation, in radians, at which the iteration stops.
    """
    change = np.inf
    iteration = 0
    step = max(rows.shape[1] // _FIRST_SAMPLES, 1)
    some, some_weights = np.ascontiguousarray(rows[:, ::step]), None if weights is None else weights[::step]
    if some_weights is not None and not some_weights.any():
        some, some_weights = rows, weights
    for iteration in range(1, n_iter + 1):
        frame, change = _newton_step(some, some_weights, frame, noise, None)
        if change <= tol:
            break
    converged = change <= tol
    sample = representative(rows, weights)
    scores = fitted_scores(*sample, frame, noise)
    for _ in range(2):
        frame, change = _newton_step(rows, weights, frame, noise, scores)
        iteration += 1
        if change <= max(tol, _SQUARED):
            break
    return Rotation(frame, scores, sample, iteration, converged)


def _newton_step(
    rows: Rows, weights: Floats | None, frame: Floats, noise: Floats | None, scores: Floats | None
) -> tuple[Floats, float]:
    from scipy.linalg import expm

    slopes, products = _expectations(rows, weights, frame, scores)
    if noise is not None:
        products -= slopes[:, None] * (frame.T @ noise @ frame)
    curvature = slopes - np.diag(products)  # E psi' - E psi s: for tanh positive with heavy tails, negative with light
    signed = products * np.sign(curvature)[:, None]
    strength = np.abs(curvature)
    pair = np.maximum(strength[:, None] + strength, _LEAST_CURVATURE)
    angles = np.clip((signed - signed.T) / pair, -0.5, 0.5)
    # Pairs with little shape move slowly, and within a sampling error that is as large: they count for less.
    change = float((np.abs(angles) * np.minimum(pair / _SHAPED, 1.0)).max(initial=0.0))
    return frame @ expm(angles), change


def _expectations(rows: Rows, weights: Floats | None, frame: Floats, scores: Floats | None) -> tuple[Floats, Floats]:
    """E[psi_i'(s_i)] and E[psi_i(s_i) s_j]; psi is tanh where no scores are given."""
    k, n = rows.shape
    slopes, products = np.zeros(k), np.zeros((k, k))
    turn = frame.T.astype(rows.dtype)
    total = float(n if weights is None else weights.sum())
    a, b, c = (np.ones(k), np.zeros(k), np.zeros(k)) if scores is None else scores.T
    tanh_factor, square_factor, cube_factor = (factor[:, None].astype(rows.dtype) for factor in (a, b, c))
    for low in range(0, n, _ROWS):
        sources = turn @ rows[:, low : low + _ROWS]
        psi = np.tanh(sources)
        weighted_psi, weighted = psi, sources
        if weights is not None:
            part = weights[low : low + _ROWS].astype(rows.dtype)
            weighted_psi, weighted = psi * part, sources * part
        slopes -= a * np.einsum("ij,ij->i", psi, weighted_psi)
        if scores is not None:
            slopes += 3 * c * np.einsum("ij,ij->i", sources, weighted) + 2 * b * weighted.sum(axis=1)
            outer = cube_factor * sources
            outer += square_factor
            outer *= sources
            outer *= sources
            psi *= tanh_factor
            psi += outer
        products += psi @ weighted.T
    return a + slopes / total, products / total


def representative(rows: Rows, weights: Floats | None) -> tuple[Floats, Floats]:
    """A few thousand samples (k, m) and weights that sum to one, for moments of high order.

    Samples of the largest norms are all in it, with their own weights, and evenly spaced ones stand for the rest: heavy
    tails, which decide whether a cube can be trusted, are not missed.
    """
    n = rows.shape[1]
    if n <= 2 * _SCORE_SAMPLES:
        given = np.ones(n) if weights is None else weights
        return rows.astype(np.float64), given / given.sum()
    radii = squared_norms(rows)
    if weights is not None:
        radii[weights == 0] = 0.0
    extreme = _largest(radii, _EXTREME_SAMPLES)
    spaced = np.arange(0, n, n // _SCORE_SAMPLES)
    rest = spaced[radii[spaced] < radii[extreme].min()]
    total = float(n if weights is None else weights.sum())
    top, others = (np.ones(at.size) if weights is None else weights[at] for at in (extreme, rest))
    top = top / total
    part = np.concatenate([top, others * ((1 - top.sum()) / (others.sum() or 1.0))])
    return rows[:, np.concatenate([extreme, rest])].astype(np.float64), part


def squared_norms(rows: Rows) -> Rows:
    """Of samples in columns (k, n)."""
    return np.concatenate(by_parts(lambda part: np.einsum("ij,ij->j", rows[:, part], rows[:, part]), rows.shape[1]))


def _largest(values: Rows, count: int) -> NDArray[np.intp]:
    """Where the `count` largest are: all of them reach what as many of a part of the values reach."""
    part = values[: max(values.size // 10, count)]
    candidates = np.flatnonzero(values >= np.partition(part, part.size - count)[part.size - count])
    last = candidates.size - count
    return np.asarray(candidates[np.argpartition(values[candidates], last)[last:]])


def fitted_scores(sample: Floats, part: Floats, frame: Floats, noise: Floats | None) -> Floats:
    """The combinations of tanh, square and cube with the least asymptotic variance (Pham and Garat 1997).

    With a = E phi' - E phi s (the noise in s corrected for) and V the covariance of what s does not explain of phi,
    they are V^-1 a; scaled so, the sources enter every pair in proportion to their information.
    """
    s = frame.T @ sample
    tanh, square = np.tanh(s), s * s
    functions = np.stack([tanh, square, square * s])
    slopes = np.stack([1 - (tanh * tanh) @ part, 2 * (s @ part), 3 * (square @ part)])
    functions -= (functions @ part)[:, :, None]
    inner = (functions * s) @ part
    variance = square @ part
    extra = np.zeros(len(s)) if noise is None else np.einsum("ij,ij->j", frame, noise @ frame)
    curvature = slopes * (1 + extra) - inner
    second = np.matmul((functions * part).transpose(1, 0, 2), functions.transpose(1, 2, 0))
    left = second - np.einsum("ai,bi->iab", inner, inner / variance)
    axes = np.arange(3)
    left[:, axes, axes] += _LEAST_VARIANCE * second[:, axes, axes] + np.finfo(float).tiny
    return np.asarray(np.linalg.solve(left, curvature.T[:, :, None])[:, :, 0])


def crosstalk_variances(sample: Floats, part: Floats, vectors: Floats, noise: Floats | None) -> Floats:
    """n times the sampling variance of the crosstalk (k, k) that a likelihood fit with fitted scores would leave.

    Sample by sample it is (psi_i s_j - psi_j s_i + c_j s_i s_j) / (c_i + c_j), with c = E psi' - E psi s and psi what s
    does not explain of it.
    """
    unmixing = np.linalg.pinv(vectors)
    frame = (unmixing / np.sqrt(np.einsum("ij,ij->i", unmixing, unmixing))[:, None]).T
    scores = fitted_scores(sample, part, frame, noise)
    s = frame.T @ sample
    psi, p = _evaluated(s, part, scores)
    q, variance = (psi * s) @ part, (s * s) @ part
    left, curvature = (psi * psi) @ part - q**2 / variance, p * variance - q
    total = np.maximum(curvature[:, None] + curvature, _LEAST_CURVATURE)
    return np.asarray((left[:, None] + left + curvature**2) / total**2)


@dataclass(frozen=True, eq=False)
class Shrunk:
    """Components between the cumulants' and the likelihood's.

    Attributes
    ----------
    vectors : (k, k)
        Columns, each output of unit variance.
    weights : (k,)
        Share of the likelihood fit in every component: 1 where noise is negligible, to 0 where it is not.
    noise_statistic : float
        Mean squared difference of the two in units of its sampling variance: about 1 without noise.
    """

    vectors: Floats = field(repr=False)
    weights: Floats
    noise_statistic: float


def shrink(signs: Floats, vectors: Floats, rotation: Rotation, n: float) -> Shrunk:
    """Shrink the cumulant fit towards the likelihood fit, component by component.

    With mixing A_c = A (I + alpha) of the one and A_m = A (I + beta) of the other, column j of beta - alpha is
    R_j - e_j for R = A_c^-1 A_m scaled to a unit diagonal. It has known sampling variances without noise; what exceeds
    them is the bias of the likelihood fit by noise. The share min(1, expected / found) of it is taken. Where all
    differences together are within two standard deviations of chance the noise is called negligible, the share is 1.
    """
    k = signs.size
    inverse = np.asarray(np.linalg.inv(vectors), dtype=np.float64)
    order = _matching(inverse, rotation.frame)
    frame, scores = rotation.frame[:, order], rotation.scores[order]
    deviations = np.linalg.norm(inverse, axis=1)  # of the outputs: y has unit covariance
    relative = (inverse @ frame) / deviations[:, None]
    relative = relative / np.diag(relative)
    variance = _difference_variance(*rotation.sample, frame, scores, signs / deviations**4) / n
    off = ~np.eye(k, dtype=bool)
    squares, expected = np.where(off, relative**2, 0.0), np.where(off, variance, 0.0)
    statistic = float((squares[off] / expected[off]).mean()) if k > 1 else 1.0
    if statistic <= 1 + 2 * np.sqrt(2 / max(k * (k - 1), 1)):
        return Shrunk(frame, np.ones(k), statistic)
    share = np.minimum(1.0, expected.sum(axis=0) / squares.sum(axis=0))
    blended = (vectors * deviations) @ np.where(off, share * relative, 1.0)
    return Shrunk(blended * np.linalg.norm(np.linalg.inv(blended), axis=1), share, statistic)


def _matching(inverse: Floats, frame: Floats) -> NDArray[np.intp]:
    """The columns of frame in the order of the components they resemble."""
    from scipy.optimize import linear_sum_assignment

    likeness = np.abs(inverse @ frame) / np.linalg.norm(inverse, axis=1)[:, None]
    return np.asarray(linear_sum_assignment(-likeness)[1])


def _difference_variance(sample: Floats, part: Floats, frame: Floats, scores: Floats, kurtosis: Floats) -> Floats:
    """n times the variance of alpha_ij - beta_ij without noise, from moments of the sources.

    Sample by sample alpha_ij is (s_j^3 - 3 s_j) s_i / kappa_j, and beta_ij, with p = E psi' and q = E psi s, is
    (psi_i s_j - psi_j s_i + (p_j - q_i) s_i s_j) / (p_i - q_i + p_j - q_j).
    """
    s = frame.T @ sample
    square = s * s
    cube = square * s
    psi, p = _evaluated(s, part, scores)
    cube -= (cube @ part)[:, None]
    m4, m6 = (square * square) @ part, (cube * cube) @ part
    psi2, q, mixed = (psi * psi) @ part, (psi * s) @ part, (psi * cube) @ part
    total = np.maximum((p - q)[:, None] + (p - q), _LEAST_CURVATURE)
    linear = 3 / kurtosis + (p - q[:, None]) / total  # f_j = s^3 / kappa_j - linear s + psi / total
    squared = (
        m6 / kurtosis**2
        + linear**2
        + psi2 / total**2
        - 2 * linear * m4 / kurtosis
        + 2 * mixed / (total * kurtosis)
        - 2 * linear * q / total
    )
    inner = m4 / kurtosis - linear + q / total
    difference = squared + psi2[:, None] / total**2 - 2 * q[:, None] / total * inner
    # Where both fits rest on nearly the same score their difference is known badly: a share of alpha's own variance.
    return np.asarray(np.maximum(difference, _LEAST_SHARE * (m6 - 6 * m4 + 9) / kurtosis**2))


def _evaluated(s: Floats, part: Floats, scores: Floats) -> tuple[Floats, Floats]:
    """psi_i(s_i) of samples, of mean 0 (constants meet sources whose mean is exactly 0), and E psi_i'."""
    tanh, square = np.tanh(s), s * s
    a, b, c = scores.T
    psi = a[:, None] * tanh + b[:, None] * square + c[:, None] * square * s
    psi -= (psi @ part)[:, None]
    return psi, a * (1 - (tanh * tanh) @ part) + 2 * b * (s @ part) + 3 * c * (square @ part)
