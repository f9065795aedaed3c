"""From whitened triples to the parameters of a product mixture: refill, decompose, read off (Theorem 4.3).

The affine form: features are centred, their second moment has rank k - 1, and a constant 1 is put before the k - 1
whitened coordinates. The k x k x k tensor of (1, z) is then orthogonally decomposable, the squared first coordinates of
its eigenvectors are the weights, and k - 1 independent differences of means suffice.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from odeco.decomposition import AUTO, Decomposer, run_decomposer
from odeco.decomposition.result import Decomposition
from odeco.moments.products import FeatureMap, ProductTriples, repeated_terms, symmetrized
from odeco.tensors import ExplicitTensor

Floats = NDArray[np.float64]

# Rounds of refilling the triples that repeat a column.
REFILLS = 60
# A residual this many times the best one ends the refilling.
_WORSE = 1.5
# Weights are not taken to be smaller than this share of 1/k: means are divided by their roots.
_LEAST_WEIGHT = 1e-3


@dataclass(frozen=True, eq=False)
class ProductStart:
    """The moment estimate of a product mixture, components in no particular order.

    Attributes
    ----------
    weights : (k,)
    features : FeatureMap
    feature_means, feature_seconds : (k, D)
        E[e_a | i] and E[e_a^2 | i] of the features; the latter for numbers only (others: the means).
    spectrum : eigenvalues of the completed second moment of unit-variance features, largest first
    noise : float
        How large an eigenvalue pure sampling noise has.
    n_distinct : int or None
        Components that the pairs of columns tell apart, whatever k is; None where that was not counted.
    """

    weights: Floats
    features: FeatureMap = field(repr=False)
    feature_means: Floats = field(repr=False)
    feature_seconds: Floats = field(repr=False)
    spectrum: Floats = field(repr=False)
    gap: float
    condition: float
    noise: float
    residual: float
    n_passes: int
    decomposition: Decomposition | None = field(default=None, repr=False)
    n_distinct: int | None = None

    @property
    def suggested(self) -> int | None:
        """`n_distinct`; where that was not counted, what k directions show if that is fewer than k."""
        count = int(np.sum(self.spectrum > self.noise)) + 1
        return count if self.n_distinct is None and count < len(self.weights) else self.n_distinct

    @property
    def means(self) -> Floats:
        """(k, d) for tables of numbers."""
        return np.asarray(self.feature_means * self.features.scale + self.features.centre)

    @property
    def variances(self) -> Floats:
        """(k, d) for tables of numbers: not below a hundredth of the column's."""
        spread = self.feature_seconds - self.feature_means**2
        return np.asarray(np.maximum(spread, 1e-2) * self.features.scale**2)


@dataclass(frozen=True, eq=False)
class Summary:
    """Features about their means, scaled to unit variance: f_a = (e_a - mean_a) / spread_a where observed.

    Indicators are divided by the root of their probability instead (the scale of chi-square distances).
    """

    features: FeatureMap
    mean: Floats = field(repr=False)
    spread: Floats = field(repr=False)
    variance: Floats = field(repr=False)
    shares: Floats = field(repr=False)
    weight: float

    def table(self, W: Floats) -> Floats:
        """Rows u_a with sum_a e_a u_a = W' f, divided by the shares that are observed: (D, r)."""
        scaled = W / self.spread[:, None]
        offset = self.features.column_sums(self.mean[:, None] * scaled)[self.features.owner]
        return np.asarray((scaled - self.features.onehot[:, None] * offset) / self.shares[self.features.owner][:, None])

    def within(self) -> tuple[NDArray[np.intp], NDArray[np.intp], Floats]:
        """Covariances of f inside columns: places and values."""
        rows, columns = self.features.within()
        mean, spread = self.mean, self.spread
        values = np.where(rows == columns, self.variance[rows], -mean[rows] * mean[columns])
        return rows, columns, values / (spread[rows] * spread[columns])


@dataclass(frozen=True, eq=False)
class WhiteTriples:
    """Triples of distinct columns in k - 1 white coordinates z = W' f, f about a reference point.

    Attributes
    ----------
    matrix, lift : (D, r)
        W, and M2 W of the centred second moment.
    distinct : (r, r, r)
        Mean over triples of distinct columns.
    second, third : (D,)
        Means of e_a^2 and e_a^3 where observed.
    squares : (D, r)
        Mean of e_a^2 z where a is observed.
    shift : (D,)
        Mean of f: 0 where the reference is the mean itself.
    """

    matrix: Floats = field(repr=False)
    lift: Floats = field(repr=False)
    distinct: Floats = field(repr=False)
    second: Floats = field(repr=False)
    third: Floats = field(repr=False)
    squares: Floats = field(repr=False)
    shift: Floats = field(repr=False)

    @classmethod
    def of(
        cls, triples: ProductTriples, summary: Summary, matrix: Floats, lift: Floats, turn: Floats | None = None
    ) -> WhiteTriples:
        """Read the sums; `turn` (r', r) maps the coordinates they were taken in to the white ones."""
        known = triples.weight * summary.shares[summary.features.owner]
        distinct, squares = triples.distinct(), triples.squares / known[:, None]
        if turn is not None:
            squares = squares @ turn
            for _ in range(3):
                distinct = np.tensordot(distinct, turn, axes=(0, 0))
        shift = (triples.mean - summary.mean) / summary.spread
        return cls(matrix, lift, distinct, triples.second / known, triples.third / known, squares, shift)


def solve_triples(
    white: WhiteTriples,
    summary: Summary,
    rng: np.random.Generator,
    spectrum: Floats,
    n_passes: int,
    n_refills: int = REFILLS,
    tol: float | None = None,
    method: Decomposer = AUTO,
) -> ProductStart:
    """Decompose the completed triples and read the parameters off.

    `tol` is the change of the means, in deviations of the columns, at which refilling ends: by default a tenth of
    their sampling error.
    """
    W, k = white.matrix, white.matrix.shape[1] + 1
    middle = W.T @ white.shift
    # From third moments about the reference to central ones; pairs are white.
    central = white.distinct - symmetrized(np.eye(k - 1)[:, :, None] * middle) - _cube(middle)
    found, weights, centred = _refilled(white, summary, central, rng, n_refills, tol, method)
    means = np.clip(centred + white.shift, *_range(summary))
    return ProductStart(
        weights,
        summary.features,
        means * summary.spread + summary.mean,
        _seconds(white, summary, weights, means),
        spectrum,
        float(1 - np.abs(spectrum[k - 1 :]).max(initial=0.0) / spectrum[k - 2]),
        float(spectrum[0] / spectrum[k - 2]),
        sampling_noise(summary),
        found.residual,
        n_passes,
        found,
    )


def _refilled(
    white: WhiteTriples,
    summary: Summary,
    central: Floats,
    rng: np.random.Generator,
    n_refills: int,
    tol: float | None,
    method: Decomposer,
) -> tuple[Decomposition, Floats, Floats]:
    """Decompose, refill the triples that repeat a column from the model, decompose again until nothing moves.

    A round whose residual is much worse than the best so far ends it: then the best is kept, otherwise the last.
    """
    k, limit = central.shape[0] + 1, 0.1 / np.sqrt(summary.weight) if tol is None else tol
    tensor, best = central, None
    for _ in range(n_refills + 1):
        found = run_decomposer(method, ExplicitTensor(_affine(tensor)), k, rng)
        weights, centred = _read(found, white.lift)
        if best is not None:
            if found.residual > _WORSE * best[0].residual + 1e-3:
                break
            if _distance(best[2], centred, weights) <= limit:
                return found, weights, centred
        best = found, weights, centred
        tensor = central + repeated_terms(summary.features, white.matrix, weights, centred + white.shift)
    assert best is not None
    return best


def _distance(first: Floats, second: Floats, weights: Floats) -> float:
    """How far means have moved, whichever order they come in: root mean square over components and features."""
    squares = np.sum(first**2, axis=1)[:, None] - 2 * first @ second.T + np.sum(second**2, axis=1)
    return float(np.sqrt(max(weights @ squares.min(axis=0), 0.0) / first.shape[1]))


def _cube(vector: Floats) -> Floats:
    return np.asarray(vector[:, None, None] * vector[:, None] * vector)


def sampling_noise(summary: Summary) -> float:
    """How large an eigenvalue the completed pairs of independent columns have.

    Their sample covariance exceeds the variances by about 2 sqrt(D/n) + D/n; the fill adds up to half of that.
    """
    ratio = np.sqrt(summary.features.n_features / max(summary.weight, 1.0))
    return float(1.5 * (2 * ratio + ratio**2))


def _affine(cubes: Floats) -> Floats:
    """The third moment of (1, z), z white and centred, from that of z."""
    r = len(cubes)
    tensor = np.zeros((r + 1,) * 3)
    tensor[1:, 1:, 1:] = cubes
    tensor[0, 0, 0] = 1.0
    where = np.arange(1, r + 1)
    tensor[0, where, where] = tensor[where, 0, where] = tensor[where, where, 0] = 1.0
    return tensor


def _read(found: Decomposition, lift: Floats) -> tuple[Floats, Floats]:
    """Weights and centred means of f (k, D) from the eigenvectors of the affine tensor."""
    vectors = found.eigenvectors * np.where(found.eigenvectors[0] < 0, -1.0, 1.0)
    k = vectors.shape[1]
    roots = np.maximum(vectors[0], np.sqrt(_LEAST_WEIGHT / k))
    weights = roots**2 / np.sum(roots**2)
    return weights, np.asarray((lift @ (vectors[1:] / roots)).T)


def _range(summary: Summary) -> tuple[Floats, Floats]:
    """Bounds of the means of f: indicators lie between 0 and 1, numbers within some deviations of their mean."""
    low = np.where(summary.features.onehot, -summary.mean / summary.spread, -10.0)
    high = np.where(summary.features.onehot, (1.0 - summary.mean) / summary.spread, 10.0)
    return low, high


def _seconds(white: WhiteTriples, summary: Summary, weights: Floats, means: Floats) -> Floats:
    """E[e_a^2 | i] of numbers from E[e_a^2 z]: with m_i the mean of z under i and column a taken out of it,

    sum_i w_i s_ia (1, m_i - W_a mu_ia) = (E e_a^2, E[e_a^2 z] - E[e_a^3] W_a):  k equations for k unknowns, a rank-one
    change of the same matrix for every a (Sherman and Morrison).
    """
    onehot, owner = summary.features.onehot, summary.features.owner
    plain_means = means * summary.spread + summary.mean
    if onehot.all():
        return np.asarray(plain_means)
    W = white.matrix
    crossed = white.squares - (white.third / summary.shares[owner])[:, None] * W
    projected = means @ W  # m_i, (k, r)
    base = np.linalg.pinv(np.vstack([weights, (projected * weights[:, None]).T]), rcond=1e-3)
    plain = base @ np.vstack([white.second, crossed.T])  # (k, D)
    turned = base @ np.vstack([np.zeros(len(W)), W.T])
    change = weights[:, None] * means
    below = 1.0 - np.sum(change * turned, axis=0)
    solved = plain + turned * (np.sum(change * plain, axis=0) / np.where(np.abs(below) > 0.1, below, 1.0))
    return np.asarray(np.where(onehot, plain_means, solved))
