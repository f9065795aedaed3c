"""Moments of consecutive real observations, through features: pairs to find a basis, triples on it.

Means alone do not see states that differ in their variances, and the moments of raw observations are noisy where tails
are heavy. So an observation becomes a vector of features (Proposition 3.4 holds for any function of x_t), whitened by
their covariance, and only the k - 1 directions that predict the next step best are kept, with the constant 1 before
them: the triples are k x k x k, whatever d is, and cost n k^3 / BLAS.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Result = TypeVar("Result")
ReadSteps = Callable[[slice], tuple[Floats, NDArray[np.bool_], Floats]]

_REACH = 6.0  # deviations: what lies farther says no more than that it is far
_BLOCK = 2048  # steps whose features are formed at a time: they stay in the second-level cache
_GROUP = 8  # blocks whose sums are kept as one, whatever the number of threads
_FEWEST_FEATURES = 60
_MOST_PRODUCTS = 120
_KNOT_STEPS = 8192  # from which quantiles are read: steps of features need not stand exactly there


@dataclass(frozen=True, eq=False)
class FeatureMap:
    """Functions of one observation: in each axis powers, bounded bumps, a logarithm of scale, steps at quantiles.

    Attributes
    ----------
    center, axes : (d,), (d, d)
        ``(x - center) @ axes`` are the standard coordinates y.
    knots : (q, d)
        Where the steps rise in each coordinate.
    products : (m, 2)
        Pairs of coordinates whose products are features: states may differ in correlations alone.
    """

    center: Floats = field(repr=False)
    axes: Floats = field(repr=False)
    knots: Floats = field(repr=False)
    products: NDArray[np.intp] = field(repr=False)

    def coordinates(self, values: Floats) -> Floats:
        """Standard coordinates (m, d), missing ones 0, far ones drawn in."""
        centred = values - self.center
        np.copyto(centred, 0.0, where=np.isnan(centred))
        y = centred @ self.axes
        return np.clip(y, -_REACH, _REACH, out=y)

    def __call__(self, values: Floats) -> Floats:
        """Features (m, f): first y and y^2, (d) each, then the products, then the rest. One lies after the other."""
        y = np.ascontiguousarray(self.coordinates(values).T)
        squares = y * y
        crossed = y[self.products[:, 0]] * y[self.products[:, 1]]
        wide = 1.0 / (1.0 + squares)
        parts = [y, squares, crossed, _step(2 * y), np.log(squares + 0.05), wide * wide, 1.0 / (1.0 + 8.0 * squares)]
        parts += [_step(2 * (y - knot[:, None])) for knot in self.knots]
        return np.concatenate(parts).T


def _step(u: Floats) -> Floats:
    """A smooth step from -1 to 1, without a transcendental function: features are half of the time of a pass."""
    return np.asarray(u / (1.0 + np.abs(u)))


def learn_map(values: Floats, *, correlated: bool = False) -> FeatureMap:
    """A map for data like these: columns standardized, or whitened where states have covariances of their own."""
    d = values.shape[1]
    center = np.nanmean(values, axis=0)
    centred = np.where(np.isnan(values), 0.0, values - center)
    if correlated:
        eigenvalues, vectors = np.linalg.eigh(centred.T @ centred / len(values))
        axes = vectors / np.sqrt(np.maximum(eigenvalues, 1e-12 * max(eigenvalues[-1], 1e-300)))
    else:
        deviations = np.sqrt(np.mean(centred**2, axis=0))
        axes = np.diag(1.0 / np.where(deviations > 0, deviations, 1.0))
    n_knots = max(0, -(-_FEWEST_FEATURES // d) - 6)
    levels = (np.arange(n_knots) + 0.5) / max(n_knots, 1)
    some = centred[:: -(-len(centred) // _KNOT_STEPS)]
    knots = np.quantile(some @ axes, levels, axis=0) if n_knots else np.empty((0, d))
    first, second = np.triu_indices(d if correlated else 0, 1)
    return FeatureMap(center, axes, knots, np.column_stack([first, second])[:_MOST_PRODUCTS])


class FeaturePairs:
    """Sums of features and of their products with themselves and with the next step's: what a basis is learned from."""

    def __init__(self, features: FeatureMap) -> None:
        self.features = features
        size = features(features.center[None]).shape[1]
        self.weight, self.pair_weight = 0.0, 0.0
        self.total, self.square, self.lagged = np.zeros(size), np.zeros((size, size)), np.zeros((size, size))

    def update(self, values: Floats, linked: NDArray[np.bool_], weights: Floats) -> Self:
        """Add steps in order; ``linked[t]`` says that t + 1 follows t. Steps of weight 0 do not count."""

        def group(blocks: Sequence[slice]) -> FeaturePairs:
            found = self if blocks[0].start == 0 else FeaturePairs(self.features)
            for block in blocks:
                found._add(values[block], linked[block], weights[block], last=block.stop == len(values))
            return found

        for found in _in_groups(group, _blocks(len(values), 1))[1:]:
            self.merge(found)
        return self

    def _add(self, values: Floats, linked: NDArray[np.bool_], w: Floats, *, last: bool) -> None:
        f = self.features(values)
        own = len(f) if last else len(f) - 1  # the last one is the first of the next block
        pair = np.where(linked[:-1], np.minimum(w[:-1], w[1:]), 0.0)
        self.total += w[:own] @ f[:own]
        self.square += _weighed(f[:own], w[:own]).T @ f[:own]
        self.lagged += _weighed(f[:-1], pair).T @ f[1:]
        self.weight += w[:own].sum()
        self.pair_weight += pair.sum()

    def merge(self, other: FeaturePairs) -> Self:
        """Add the sums of ``other``, which has the same features."""
        _same(self.features, other.features)
        for name in ("total", "square", "lagged", "weight", "pair_weight"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        return self

    def basis(
        self, n_components: int, columns: NDArray[np.bool_] | None = None, *, least_variance: float = 1e-2
    ) -> FeatureBasis:
        """The k - 1 directions of largest correlation with the next step, either way, after whitening.

        Directions of less than `least_variance` of the largest are left out: whitened, they are noise of the tails.
        """
        size = len(self.total)
        columns = np.ones(size, dtype=bool) if columns is None else columns
        mean = self.total / self.weight
        covariance = (self.square / self.weight - np.outer(mean, mean))[np.ix_(columns, columns)]
        lagged = (self.lagged / self.pair_weight - np.outer(mean, mean))[np.ix_(columns, columns)]
        values, vectors = np.linalg.eigh(covariance)
        kept = values > least_variance * max(values[-1], 1e-6)
        root = np.sqrt(values[kept])
        whitener = vectors[:, kept] / root
        white = whitener.T @ lagged @ whitener
        left, spectrum, _ = np.linalg.svd(np.hstack([white, white.T]), full_matrices=False)
        left = left[:, : n_components - 1]
        projection = np.zeros((size, left.shape[1]))
        projection[columns] = whitener @ left
        # E[f z'] is the lift of features on the columns, and a regression for those outside of them.
        lift = (self.square / self.weight - np.outer(mean, mean)) @ projection
        return FeatureBasis(self.features, mean, projection, lift, spectrum / np.sqrt(2.0))


@dataclass(frozen=True, eq=False)
class FeatureBasis:
    """A small common basis of the features: ``z = [1, projection' (f - mean)]``; ``E[f | h] = mean + lift E[z | h]``.

    ``spectrum`` are the correlations of one step with the next, largest first: k - 1 of them have to stand out.
    """

    features: FeatureMap
    mean: Floats = field(repr=False)
    projection: Floats = field(repr=False)
    lift: Floats = field(repr=False)
    spectrum: Floats = field(repr=False)

    @property
    def size(self) -> int:
        """Length of z, the constant included."""
        return 1 + int(self.projection.shape[1])

    def narrowed(self, size: int) -> FeatureBasis:
        """The basis of fewer states: directions come in the order of their correlation."""
        return replace(self, projection=self.projection[:, : size - 1], lift=self.lift[:, : size - 1])

    def __call__(self, values: Floats) -> Floats:
        """z of each step, (m, size)."""
        return self.project(self.features(values))

    def project(self, features: Floats) -> Floats:
        """z of features (m, f), (m, size)."""
        out = np.empty((self.size, len(features)))
        out[0] = 1.0
        np.matmul(self.projection.T, features.T, out=out[1:])
        out[1:] -= (self.mean @ self.projection)[:, None]
        return out.T


class FeatureTriples:
    """Sums over consecutive triples of z1 (x) z2 (x) z3, and over pairs of z1 (x) z2, on a fixed basis.

    Beside them what parameters are read from: z of the first steps of sequences, and of middle steps the observations
    themselves, about `center` and however far out, with their squares (or products, where the features have products),
    each times z1 and z3. Entries that are missing are not counted.
    """

    names: ClassVar[tuple[str, ...]] = (
        *("pairs", "triples", "pair_weight", "triple_weight", "first", "first_weight"),
        *("seen", "values", "seen_products", "products"),
    )

    def __init__(self, basis: FeatureBasis) -> None:
        k, d = basis.size, basis.features.center.size
        self.basis = basis
        self.n = 0
        self.pair_weight, self.triple_weight, self.first_weight = 0.0, 0.0, 0.0
        self.pairs, self.triples, self.first = np.zeros((k, k)), np.zeros((k, k, k)), np.zeros(k)
        self.seen, self.values = np.zeros((2 * k, d)), np.zeros((2 * k, d))
        shape = (2 * k, d, d) if len(basis.features.products) else (2 * k, d)
        self.seen_products, self.products = np.zeros(shape), np.zeros(shape)

    def update(self, values: Floats, linked: NDArray[np.bool_], weights: Floats) -> Self:
        """Add steps in order; ``linked[t]`` says that t + 1 follows t. Steps of weight 0 do not count."""
        update_triples([self], len(values), lambda block: (values[block], linked[block], weights[block]))
        return self

    def add(
        self, values: Floats, z: Floats, linked: NDArray[np.bool_], weights: Floats, *, first: bool, last: bool
    ) -> None:
        """Add a block of steps; unless it is the last, its last step and its last pair belong to the next block."""
        k = z.shape[1]
        pair = np.where(linked[:-1], np.minimum(weights[:-1], weights[1:]), 0.0)
        triple = np.minimum(pair[:-1], pair[1:])
        begins = np.where(np.append(first, ~linked[:-1]), weights, 0.0)
        if not last:
            pair[-1] = begins[-1] = 0.0
        outer = _weighed(z[:-2], triple).T[:, None] * z.T[:, 1:-1]
        self.pairs += _weighed(z[:-1], pair).T @ z[1:]
        self.triples += (outer.reshape(k * k, -1) @ z[2:]).reshape(k, k, k)
        self.first += begins @ z
        self.pair_weight += pair.sum()
        self.triple_weight += triple.sum()
        self.first_weight += begins.sum()
        self._add_middle(values[1:-1], _weighed(np.concatenate([z.T[:, :-2], z.T[:, 2:]]).T, triple))

    def _add_middle(self, values: Floats, around: Floats) -> None:
        """Observations of middle steps (m, d), times the weighted z of both neighbours (m, 2k)."""
        centred = values - self.basis.features.center
        seen = (~np.isnan(centred)).astype(np.float64)
        np.copyto(centred, 0.0, where=seen == 0)
        self.seen += around.T @ seen
        self.values += around.T @ centred
        self.seen_products += self._products(seen, around)
        self.products += self._products(centred, around)

    def _products(self, rows: Floats, around: Floats) -> Floats:
        if self.products.ndim == 2:
            return np.asarray(around.T @ (rows * rows))
        return np.array([(rows * column[:, None]).T @ rows for column in around.T])

    def merge(self, other: Self) -> Self:
        """Add the sums of ``other``, which is on the same basis."""
        _same(self.basis.features, other.basis.features)
        if not np.array_equal(self.basis.projection, other.basis.projection):
            raise ValueError("cannot merge moments of different bases: learn one basis before the data are split.")
        for name in (*self.names, "n"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        return self

    def narrowed(self, size: int) -> FeatureTriples:
        """The sums on the first directions of the basis: what a basis of fewer states would have collected."""
        fewer, k = FeatureTriples(self.basis.narrowed(size)), self.basis.size
        around = np.r_[:size, k : k + size]  # z of the step before, then of the step after
        fewer.n = self.n
        for name in ("pair_weight", "triple_weight", "first_weight"):
            setattr(fewer, name, getattr(self, name))
        fewer.pairs, fewer.first = self.pairs[:size, :size], self.first[:size]
        fewer.triples = np.ascontiguousarray(self.triples[:size, :size, :size])
        for name in ("seen", "values", "seen_products", "products"):
            setattr(fewer, name, getattr(self, name)[around])
        return fewer

    def read(self) -> tuple[Floats, Floats]:
        """E[z1 (x) z2] and E[z1 (x) z2 (x) z3]."""
        return self.pairs / self.pair_weight, self.triples / self.triple_weight


def update_triples(all_sums: Sequence[FeatureTriples], n_steps: int, read: ReadSteps) -> None:
    """Add steps to triples on several bases of the same features, which are computed once; threads over blocks.

    ``read(block)`` gives the steps of a slice as `FeatureTriples.update` takes them.
    """
    if not all_sums:
        return

    def group(blocks: Sequence[slice]) -> list[FeatureTriples]:
        found = [FeatureTriples(sums.basis) for sums in all_sums]
        for block in blocks:
            values, linked, weights = read(block)
            features, first, last = all_sums[0].basis.features(values), block.start == 0, block.stop == n_steps
            for sums in found:
                sums.add(values, sums.basis.project(features), linked, weights, first=first, last=last)
        return found

    for found in _in_groups(group, _blocks(n_steps, 2)):
        for sums, more in zip(all_sums, found, strict=True):
            sums.merge(more)
    for sums in all_sums:
        sums.n += n_steps


def _in_groups(work: Callable[[Sequence[slice]], Result], blocks: list[slice]) -> list[Result]:
    """What each group of blocks gives, on threads; the groups do not depend on their number."""
    from odeco.kernels.threads import map_parts, single_threaded_blas

    with single_threaded_blas():
        return map_parts(lambda i: work(blocks[_GROUP * i : _GROUP * (i + 1)]), -(-len(blocks) // _GROUP))


def _blocks(n: int, overlap: int) -> list[slice]:
    """Slices of fixed length that share ``overlap`` steps with the next; every run of overlap + 1 steps is in one."""
    starts = range(0, max(n - overlap, 1), _BLOCK)
    return [slice(start, min(start + _BLOCK + overlap, n)) for start in starts]


def _weighed(rows: Floats, weights: Floats) -> Floats:
    """Rows times their weights: as they are where all are 1, as nearly always."""
    return rows if (weights == 1.0).all() else rows * weights[:, None]


def _same(first: FeatureMap, second: FeatureMap) -> None:
    for name in ("center", "axes", "knots", "products"):
        if not np.array_equal(getattr(first, name), getattr(second, name)):
            raise ValueError("cannot merge moments of different features: learn one map before the data are split.")
