"""Efficient separation from products of scores, pair by pair, with Gaussian noise of known or unknown covariance.

Outputs y = U x of a nearly right unmixing are y = (I + D) s + e: crosstalk D, noise e of covariance N. With phi_i the
score of y_i, the covariances of (y_i, phi_i) with (y_j, phi_j) are, by Stein's lemma and to first order in D,

    cov(f(y_i), g(y_j)) = E[f'] E[y_j g] D_ij + E[y_i f] E[g'] D_ji + sum_m N_ij^m E[f^(m)] E[g^(m)] / m!

Four statistics, three unknowns D_ij, D_ji, N_ij: weighted least squares for each pair, all pairs at once. Their span
holds the likelihood's scores of all three unknowns, so the fit is efficient, and Gaussian noise does not bias it (where
f or g is linear the series in N_ij ends after one term, exactly). What else is known is added as a prior: the noise,
the cumulants' fit with its sampling variance, and what the N_ij of all pairs together say of each (empirical Bayes).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from odeco.kernels.cumulants import second_products
from odeco.kernels.products import by_parts
from odeco.refinement.scores import Counts, Samples, Scores, fit_scores, split_in_halves

Floats = NDArray[np.float64]
Rows = NDArray[np.floating]
Pairs = tuple[NDArray[np.intp], ...]

# Samples of the first steps: their error is a few times that of all samples, and the last steps square it.
_FIRST_SAMPLES = 10_000
_FIRST_TOLERANCE = 0.05
# Where an anchor holds what does not settle, more of them swing to and fro within their sampling error.
_FIRST_STEPS = 10
_LAST_STEPS = 3
# Crosstalk expected of any start, and the most that one step removes: beyond, the linearization means nothing.
_CROSSTALK = 0.3
# Relative variance that every score is given: two-valued sources would have infinite information.
_LEAST_VARIANCE = 1e-4
_EXACT = 1e-12


@dataclass(frozen=True, eq=False)
class Separation:
    """Columns of a mixing matrix in the coordinates of the rows, each for an output of unit variance.

    Attributes
    ----------
    noise_statistic : float
        Mean squared covariance of outputs that noise must explain, in units of its sampling variance: about 1 without
        noise. NaN where the noise was known.
    shares : (k,)
        How much of the certainty of "no noise" was used for each source: 1 where noise is negligible, to 0.
    """

    vectors: Floats = field(repr=False)
    shares: Floats
    noise_statistic: float
    n_iter: int
    converged: bool

    @property
    def negligible(self) -> bool:
        """Whether the data show no noise."""
        return bool(np.all(self.shares == 1))


@dataclass(frozen=True, eq=False)
class Anchor:
    """An estimate of the mixing (r, k) with the sampling variance of its columns, (k,), or of the crosstalk, (k, k)."""

    vectors: Floats = field(repr=False)
    variances: Floats


def separate(
    rows: Rows,
    weights: Floats | None,
    start: Floats,
    n_samples: float,
    *,
    noise: Floats | None,
    shape: Floats,
    anchor: Anchor | None = None,
    n_iter: int,
    tol: float,
) -> Separation:
    """Steps on some of the samples until the start is near, then a few on all of them.

    Parameters
    ----------
    rows : (r, n) array
        Centred samples in columns, of covariance I + noise.
    start : (r, k) array
        Mixing of the sources.
    n_samples : float
        How many independent samples they are worth.
    noise : (r, r) array or None
        Its covariance in the rows; None where it is not known.
    shape : (r, r) array
        What isotropic noise of unit variance in the channels would be in the rows: a guess that is tested.
    """
    n = rows.shape[1]
    step = max(n // _FIRST_SAMPLES, 1)
    halves = split_in_halves(rows, weights)
    problem = _ScoreProblem(noise, shape, anchor, Samples.of(rows, weights, halves), n_samples)
    vectors, iteration = start, 0
    part = None if weights is None else weights[::step]
    present = halves[::step] if part is None else halves[::step][part > 0]
    if step > 1 and np.unique(present).size == 2:
        some = Samples.of(rows[:, ::step], part, halves[::step])
        early = _ScoreProblem(noise, shape, anchor, some, n_samples * some.halves.size / n)
        for iteration in range(1, (n_iter if anchor is None else min(n_iter, _FIRST_STEPS)) + 1):
            found = early.step(vectors)
            vectors = found.vectors
            if found.change <= _FIRST_TOLERANCE:
                break
    most = iteration + (_LAST_STEPS if step > 1 else n_iter)
    while iteration < most:
        iteration += 1
        found = problem.step(vectors)
        vectors = found.vectors
        if found.change <= tol:
            break
    return Separation(vectors, found.shares, found.noise_statistic, iteration, found.change <= _FIRST_TOLERANCE)


@dataclass(frozen=True, eq=False)
class Step:
    """Vectors after a step, and the sampling variances (k, k) of the crosstalk that it removed."""

    vectors: Floats
    variances: Floats
    change: float  # largest entry of D that is beyond its standard deviation
    shares: Floats
    noise_statistic: float


@dataclass(frozen=True, eq=False)
class PairProblem(ABC):
    """Crosstalk and noise of all pairs of outputs: their statistics, and all else that is known of them.

    `noise`, `shape` and `anchor` are those of `separate`.
    """

    noise: Floats | None
    shape: Floats
    anchor: Anchor | None

    @abstractmethod
    def equations(self, unmixing: Floats, noise: Floats, own: Floats, pairs: Pairs) -> tuple[Floats, Floats]:
        """Normal equations (p, 3, 3) and (p, 3) for D_ij, D_ji and N_ij beyond `noise` (k, k), from the statistics.

        `own` (k,) is the noise's share of the outputs' variances where D is crosstalk of the sources alone.
        """

    def step(self, vectors: Floats) -> Step:
        """Crosstalk of the outputs under `vectors`, and vectors without it."""
        k = vectors.shape[1]
        unmixing = np.linalg.pinv(vectors)
        covariance = unmixing @ unmixing.T
        if self.noise is not None:
            covariance = covariance + unmixing @ self.noise @ unmixing.T
        deviations = np.sqrt(np.diag(covariance))
        unmixing, vectors = unmixing / deviations[:, None], vectors * deviations
        correlation = covariance / np.outer(deviations, deviations)
        noise = correlation if self.noise is None else unmixing @ self.noise @ unmixing.T
        own = np.zeros(k) if self.noise is None else np.diag(noise)
        pairs = np.triu_indices(k, 1)
        normal, right = self.equations(unmixing, noise, own, pairs)
        normal[:, [0, 1], [0, 1]] += 1 / _CROSSTALK**2
        if self.anchor is not None:
            self._add_anchor(self.anchor, normal, right, unmixing, pairs)
        shares, statistic = np.ones(k), float("nan")
        if self.noise is not None:
            normal[:, 2, 2] += 1 / _EXACT
        elif k > 1:
            shares, statistic = self._add_noise_prior(normal, right, noise[pairs], unmixing, pairs)
        solution = np.linalg.solve(normal, right[:, :, None])[:, :, 0]
        crosstalk, variances = np.zeros((k, k)), np.ones((k, k))
        inverse = np.linalg.inv(normal)
        for column, entries in ((0, pairs), (1, pairs[::-1])):
            crosstalk[entries], variances[entries] = solution[:, column], inverse[:, column, column]
        certain = np.abs(crosstalk) > np.sqrt(variances)
        crosstalk = np.clip(crosstalk, -_CROSSTALK, _CROSSTALK)
        change = float((np.abs(crosstalk) * certain).max(initial=0.0))
        return Step(vectors + vectors @ crosstalk, variances, change, shares, statistic)

    def _add_anchor(self, anchor: Anchor, normal: Floats, right: Floats, unmixing: Floats, pairs: Pairs) -> None:
        """Prior of the crosstalk: the mixing of the anchor, within its sampling error."""
        relative = unmixing @ anchor.vectors
        relative = relative / np.diag(relative)
        variances = np.broadcast_to(anchor.variances, relative.shape)
        for column, entries in ((0, pairs), (1, pairs[::-1])):
            normal[:, column, column] += 1 / variances[entries]
            right[:, column] += relative[entries] / variances[entries]

    def _add_noise_prior(
        self, normal: Floats, right: Floats, given: Floats, unmixing: Floats, pairs: Pairs
    ) -> tuple[Floats, float]:
        """Prior of N_ij: none at all, or isotropic up to a variance, as far as all pairs support it."""
        i, j = pairs
        found = given + np.linalg.solve(normal, right[:, :, None])[:, 2, 0]
        variances = np.asarray(np.linalg.inv(normal)[:, 2, 2], dtype=np.float64)
        statistic = float((found**2 / variances).mean())
        shares = np.ones(unmixing.shape[0])
        mean, spread = np.zeros(i.size), np.full(i.size, _EXACT)
        if statistic > 1 + 2 * np.sqrt(2 / i.size):  # beyond two standard deviations of chance
            shape = unmixing @ self.shape @ unmixing.T
            mean, spread = _noise_prior(found, variances, shape[pairs], np.diag(shape)[i] * np.diag(shape)[j])
            share = np.zeros((shares.size, shares.size))
            share[pairs] = variances / (variances + spread + mean**2)
            shares = (share + share.T).sum(axis=1) / (shares.size - 1)
        normal[:, 2, 2] += 1 / spread
        right[:, 2] += (mean - given) / spread
        return shares, statistic


@dataclass(frozen=True, eq=False)
class _ScoreProblem(PairProblem):
    """The statistics are products of outputs and their scores."""

    samples: Samples
    n_samples: float

    def equations(self, unmixing: Floats, noise: Floats, own: Floats, pairs: Pairs) -> tuple[Floats, Floats]:
        off = noise - np.diag(np.diag(noise))
        gram, scores = self._moments(unmixing, (off**2).sum(axis=1) / max(own.size - 1, 1))
        return _normal_equations(gram, scores, noise[pairs], own, pairs, self.n_samples)

    def _moments(self, unmixing: Floats, correlation: Floats) -> tuple[Floats, Scores]:
        """Covariances (k, k, 2, 2) of output or score of i with output or score of j, and the scores."""
        k, n = unmixing.shape[0], self.samples.rows.shape[1]
        turn = np.ascontiguousarray(unmixing, dtype=self.samples.rows.dtype)
        counts, *others = by_parts(lambda part: Counts(k).add(self.samples, part, turn), n)
        for other in others:
            counts.merge(other)
        scores = fit_scores(counts, correlation, self.n_samples)
        gram = np.zeros((2 * k + 1, 2 * k + 1))  # outputs, scores, ones
        gram[k:] = sum(by_parts(lambda part: scores.products(self.samples, part, turn), n))
        gram[:k, :k] = unmixing @ self._second @ unmixing.T
        gram[:k, k:] = gram[k:, :k].T
        means = gram[:-1, -1] / gram[-1, -1]
        covariance = gram[:-1, :-1] / gram[-1, -1] - np.outer(means, means)
        return np.ascontiguousarray(covariance.reshape(2, k, 2, k).transpose(1, 3, 0, 2)), scores

    @cached_property
    def _second(self) -> Floats:
        """Sums (r, r) of squares of the rows: those of outputs follow, at every step."""
        rows, weights = self.samples.rows, self.samples.weights
        return np.asarray(sum(by_parts(lambda part: second_products(rows, part, weights), rows.shape[1])))


def _noise_prior(found: Floats, variances: Floats, shape: Floats, scale: Floats) -> tuple[Floats, Floats]:
    """Mean sigma^2 shape_ij and variance omega^2 shape_ii shape_jj of N_ij, both hyperparameters by moments."""
    sigma2 = omega2 = 0.0
    fitted = found.size / max(found.size - 1, 1)  # of the squares left after one parameter was fitted
    for _ in range(5):
        weights = 1 / (variances + omega2 * scale)
        sigma2 = max(float(np.sum(weights * shape * found) / np.sum(weights * shape**2)), 0.0)
        beyond = fitted * (found - sigma2 * shape) ** 2 - variances
        omega2 = max(float(np.sum(weights * beyond) / np.sum(weights * scale)), 0.0)
    return sigma2 * shape, omega2 * scale + _EXACT


def _normal_equations(
    gram: Floats,
    scores: Scores,
    noise: Floats,
    own: Floats,
    pairs: Pairs,
    n: float,
) -> tuple[Floats, Floats]:
    """Weighted least squares of every pair: (p, 3, 3) and (p, 3) for D_ij, D_ji and N_ij beyond `noise`.

    `own` is the noise's share of the outputs' variances where D is crosstalk of the sources alone; with zeros D is
    crosstalk of sources and noise, and the difference lies in the direction of N_ij.
    """
    i, j = pairs
    k = own.size
    slopes = np.zeros((2, 3, k))  # of the functions y and phi, by order
    slopes[0, 0], slopes[1] = 1.0, scores.slopes
    same = gram[np.arange(k), np.arange(k)].transpose(1, 2, 0)  # (2, 2, k)
    inner = same[0] - own * slopes[:, 0]
    spread = same.copy()
    spread[1, 1] += _LEAST_VARIANCE * slopes[1, 0] ** 2
    powers = np.stack([noise, noise**2 / 2, noise**3 / 6])
    terms = np.einsum("mp,amp,bmp->mpab", powers, slopes[:, :, i], slopes[:, :, j])
    residual = gram[i, j] - terms.sum(axis=0)
    jacobian = np.stack(
        [
            np.einsum("ap,bp->pab", slopes[:, 0, i], inner[:, j]),
            np.einsum("ap,bp->pab", inner[:, i], slopes[:, 0, j]),
            np.einsum("amp,bmp,mp->pab", slopes[:, :2, i], slopes[:, :2, j], np.stack([np.ones_like(noise), noise])),
        ],
        axis=-1,
    ).reshape(-1, 4, 3)
    covariance = np.einsum("acp,bdp->pabcd", spread[:, :, i], spread[:, :, j]).reshape(-1, 4, 4)
    rough_i, rough_j = noise**2 * scores.roughness[i], noise**2 * scores.roughness[j]  # E[phi'] is estimated
    covariance[:, 1, 1] += rough_j
    covariance[:, 2, 2] += rough_i
    covariance[:, 3, 3] += slopes[1, 0, i] ** 2 * rough_j + slopes[1, 0, j] ** 2 * rough_i
    # The series in N ends at order three: its last terms tell what may be missing, and as such they do not average out.
    covariance[:, 3, 3] += n * (terms[1:, :, 1, 1] ** 2).sum(axis=0)
    weighted = n * np.linalg.solve(covariance, jacobian).transpose(0, 2, 1)
    return weighted @ jacobian, (weighted @ residual.reshape(-1, 4, 1))[:, :, 0]
