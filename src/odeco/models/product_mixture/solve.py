"""From whitened triples to the parameters of a product mixture: refill, decompose, read off (Theorem 4.3).

The affine form: features are centred, their second moment has rank k - 1, and a constant 1 is put after the k - 1
whitened coordinates. The k x k x k tensor of (z, 1) is then orthogonally decomposable, the squared last coordinates of
its eigenvectors are the weights, and k - 1 independent differences of means suffice.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from odeco.decomposition import AUTO, Decomposer, run_decomposer
from odeco.decomposition.result import Decomposition
from odeco.diagnostics import Diagnostics
from odeco.families.tables import Families
from odeco.models.product_mixture.column_pairs import ColumnPairs
from odeco.models.product_mixture.policy import POLICY, Policy
from odeco.moments.products import FeatureMap, ProductTriples, repeated_terms, symmetrized
from odeco.reduction.affine import affine_tensor, upright_vectors
from odeco.refinement.product_mixture import Parameters
from odeco.sources.tables import Schema
from odeco.tensors import ExplicitTensor
from odeco.whitening.completed import CompletedPairs

Floats = NDArray[np.float64]


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
    name : str
        How it was found, in words.
    details : mapping
        For `Diagnostics.details`.
    column_pairs : ColumnPairs or None
        Where the features are those of pairs of columns.
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
    name: str = "completed moments"
    details: Mapping[str, Any] = field(default_factory=dict, repr=False)
    column_pairs: ColumnPairs | None = field(default=None, repr=False)

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
        return np.asarray(np.maximum(spread, POLICY.least_variance) * self.features.scale**2)

    @property
    def doubt(self) -> str:
        """What to say where the last direction is within the noise; pairs of columns have a noise of their own."""
        k = len(self.weights)
        if self.column_pairs is not None or k < 2 or self.spectrum.size < k - 1 or self.spectrum[k - 2] > self.noise:
            return ""
        count = int(np.sum(self.spectrum > self.noise)) + 1
        return (
            f"eigenvalue {k - 1} of the pair moments, {self.spectrum[k - 2]:.3g}, is within the noise "
            f"({self.noise:.3g}): the means tell about {count} components apart. Lower n_components, or use more rows "
            "or columns."
        )

    def families(self, schema: Schema) -> Families:
        """The columns for EM; those that are joined in pairs are discrete and have no scale."""
        if self.column_pairs is None:
            return Families.of(schema, self.features.centre, self.features.scale)
        return Families.of(schema, np.zeros(len(schema)), np.ones(len(schema)))

    def parameters(self, families: Families, floor: float) -> tuple[Parameters, float]:
        """In the parameters of EM, at least `floor` from impossible values, and the mass that was clipped."""
        if self.column_pairs is None:
            return _as_parameters(families, self, floor)
        pairs = Families.of(self.column_pairs.schema, self.features.centre, self.features.scale)
        found, clipped = _as_parameters(pairs, self, floor)
        return Parameters(found.weights, self.column_pairs.marginal(pairs, found.table, families)), clipped


def describe(
    start: ProductStart, method: str, families: Families, advice: tuple[str, ...], details: dict[str, Any]
) -> Diagnostics:
    """The report on a fit that began with the estimate."""
    return Diagnostics(
        len(start.weights),
        start.spectrum,
        start.gap,
        start.condition,
        start.residual,
        start.parameters(families, POLICY.pure_floor)[1],
        start.suggested,
        method,
        start.n_passes,
        advice,
        {"noise": start.noise, **start.details, **details},
    )


def _as_parameters(families: Families, start: ProductStart, floor: float) -> tuple[Parameters, float]:
    """Weights and means of features as the parameters of their columns; the mass that was clipped."""
    features, means, starts = start.features, start.feature_means, start.features.starts
    table = np.empty((len(start.weights), families.n_parameters))
    bernoulli, indicators, counts, numbers, squares = families.spans
    at = starts[families.bernoulli]
    p = means[:, at] * features.scale[families.bernoulli] + features.centre[families.bernoulli]
    table[:, bernoulli] = np.clip(p, floor, 1 - floor)
    clipped = float(np.abs(p - np.clip(p, 0, 1)).max(initial=0.0))
    raw = means[:, features.onehot]
    clipped = max(clipped, float(np.maximum(-raw, 0.0).max(initial=0.0)))
    table[:, indicators] = np.maximum(raw, floor)
    rate = means[:, starts[families.poisson]] * features.scale[families.poisson] + features.centre[families.poisson]
    table[:, counts] = np.maximum(rate, max(floor, 1e-12) * np.maximum(features.centre[families.poisson], 1e-3))
    at, columns = starts[families.gaussian], families.gaussian
    # Columns of a sample have a centre and a scale of their own.
    ratio = features.scale[columns] / families.scale[columns]
    shift = (features.centre[columns] - families.centre[columns]) / families.scale[columns]
    table[:, numbers] = means[:, at] * ratio + shift
    spread = start.feature_seconds[:, at] - means[:, at] ** 2
    table[:, squares] = np.maximum(spread, POLICY.least_variance) * ratio**2
    return Parameters(start.weights[None], families.project(table)), clipped


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
    def of(cls, triples: ProductTriples, summary: Summary, matrix: Floats, lift: Floats) -> WhiteTriples:
        """Read the sums, which were taken in the coordinates of `matrix`."""
        known = triples.weight * summary.shares[summary.features.owner]
        shift = (triples.mean - summary.mean) / summary.spread
        squares = triples.squares / known[:, None]
        return cls(matrix, lift, triples.distinct(), triples.second / known, triples.third / known, squares, shift)

    def turned(self, turn: Floats, lift: Floats) -> WhiteTriples:
        """The same in other coordinates, which `turn` (r', r) makes of these."""
        distinct = self.distinct
        for _ in range(3):
            distinct = np.tensordot(distinct, turn, axes=(0, 0))
        return replace(self, matrix=self.matrix @ turn, lift=lift, distinct=distinct, squares=self.squares @ turn)


@dataclass(frozen=True, eq=False)
class CompletedMoments:
    """What the passes leave: pairs, whitened, and triples; of one component, means and variances alone.

    Attributes
    ----------
    white : WhiteTriples or None
        None for one component.
    spectrum, n_passes, n_distinct, column_pairs : see `ProductStart`
    pairs : CompletedPairs or None
        Where they are at hand: those of fewer components are filled otherwise.
    """

    summary: Summary
    n_passes: int
    white: WhiteTriples | None = None
    spectrum: Floats = field(default_factory=lambda: np.zeros(0), repr=False)
    n_distinct: int | None = None
    column_pairs: ColumnPairs | None = field(default=None, repr=False)
    pairs: CompletedPairs | None = field(default=None, repr=False)

    def start(self, rng: np.random.Generator, method: Decomposer = AUTO, policy: Policy = POLICY) -> ProductStart:
        """Decompose the completed triples and read the parameters off."""
        white, summary, spectrum = self.white, self.summary, self.spectrum
        if white is None:
            return _one_component(summary, self.n_passes)
        W, k = white.matrix, white.matrix.shape[1] + 1
        middle = W.T @ white.shift
        # From third moments about the reference to central ones; pairs are white.
        central = white.distinct - symmetrized(np.eye(k - 1)[:, :, None] * middle) - _cube(middle)
        found, weights, centred = _refilled(white, summary, central, rng, method, policy)
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
            self.n_passes,
            found,
            self.n_distinct,
            "completed moments" if self.column_pairs is None else "completed moments of pairs of columns",
            {} if self.column_pairs is None else {"column_pairs": self.column_pairs.names},
            self.column_pairs,
        )


def _one_component(summary: Summary, n_passes: int) -> ProductStart:
    """Means and variances: all there is to one component."""
    mean = summary.mean[None]
    second = np.where(summary.features.onehot, summary.mean, summary.variance + summary.mean**2)[None]
    noise = sampling_noise(summary)
    return ProductStart(
        np.ones(1), summary.features, mean, second, np.zeros(0), 1.0, 1.0, noise, 0.0, n_passes, name="means"
    )


def _refilled(
    white: WhiteTriples,
    summary: Summary,
    central: Floats,
    rng: np.random.Generator,
    method: Decomposer,
    policy: Policy,
) -> tuple[Decomposition, Floats, Floats]:
    """Decompose, refill the triples that repeat a column from the model, decompose again until nothing moves.

    A round whose residual is much worse than the best so far ends it: then the best is kept, otherwise the last.
    """
    k, tol = central.shape[0] + 1, policy.refill_tol
    limit = 0.1 / np.sqrt(summary.weight) if tol is None else tol
    tensor, best = central, None
    for _ in range(policy.refills + 1):
        found = run_decomposer(method, ExplicitTensor(affine_tensor(tensor)), k, rng)
        weights, centred = _read(found, white.lift)
        if best is not None:
            if found.residual > policy.worse_residual * best[0].residual + 1e-3:
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


def _read(found: Decomposition, lift: Floats) -> tuple[Floats, Floats]:
    """Weights and centred means of f (k, D) from the eigenvectors of the affine tensor."""
    vectors = upright_vectors(found.eigenvectors)
    roots = np.maximum(vectors[-1], np.sqrt(POLICY.least_weight / vectors.shape[1]))
    weights = roots**2 / np.sum(roots**2)
    return weights, np.asarray((lift @ (vectors[:-1] / roots)).T)


def _range(summary: Summary) -> tuple[Floats, Floats]:
    """Bounds of the means of f: indicators lie between 0 and 1, numbers within some deviations of their mean."""
    low = np.where(summary.features.onehot, -summary.mean / summary.spread, -POLICY.furthest_mean)
    high = np.where(summary.features.onehot, (1.0 - summary.mean) / summary.spread, POLICY.furthest_mean)
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
