"""Moments of consecutive real observations, through features: pairs to find a basis, triples on it.

Means alone do not see states that differ in their variances, and the moments of raw observations are noisy where tails
are heavy. So an observation becomes a vector of features (Proposition 3.4 holds for any function of x_t), whitened by
their covariance, and only the k - 1 directions that predict the next step best are kept, with the constant 1 before
them: the triples are k x k x k, whatever d is, and cost n k^3. Features are formed in compiled loops, a few steps at a
time, and forgotten (`odeco.kernels.step_features`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from odeco.moments.columns import Columns, covariance_about

Floats = NDArray[np.float64]
Result = TypeVar("Result")
Flags = NDArray[np.uint8]
ReadSteps = Callable[[slice], tuple[Floats, Flags, Floats]]

_RUN = 8192  # steps of a compiled call: long beside what Python does for it, and all that is made of them is in cache
_MOST_PARTS = 24  # that are summed each on its own, whatever the number of threads
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

    @property
    def size(self) -> int:
        """Number of features f: in order y and y^2, d each, the products, steps, logarithms, two bumps, steps at knots.

        With u = 2 y, and 2 (y - knot) for each row of knots, steps are u / (1 + |u|); logarithms are of y^2 + 0.05, and
        bumps 1 / (1 + y^2)^2 and 1 / (1 + 8 y^2). Missing entries are at the centre, far ones are drawn in to 6.
        """
        return (6 + len(self.knots)) * self.center.size + len(self.products)

    @property
    def arrays(self) -> tuple[Floats, Floats, Floats, NDArray[np.int64]]:
        """What the compiled loops read."""
        floats = (np.ascontiguousarray(a, dtype=np.float64) for a in (self.center, self.axes, self.knots))
        return *floats, np.ascontiguousarray(self.products, dtype=np.int64)  # type: ignore[return-value]


def learn_map(values: Floats, *, correlated: bool = False) -> FeatureMap:
    """A map for data like these: columns standardized, or whitened where states have covariances of their own."""
    d, columns = values.shape[1], Columns.of(values)
    center = columns.mean
    if correlated:
        eigenvalues, vectors = np.linalg.eigh(covariance_about(values, center))
        axes = vectors / np.sqrt(np.maximum(eigenvalues, 1e-12 * max(eigenvalues[-1], 1e-300)))
    else:
        deviations = columns.deviation * np.sqrt(columns.seen / columns.n)  # missing entries are at the centre
        axes = np.diag(1.0 / np.where(deviations > 0, deviations, 1.0))
    n_knots = max(0, -(-_FEWEST_FEATURES // d) - 6)
    levels = (np.arange(n_knots) + 0.5) / max(n_knots, 1)
    some = values[:: -(-len(values) // _KNOT_STEPS)] - center
    knots = np.quantile(np.nan_to_num(some) @ axes, levels, axis=0) if n_knots else np.empty((0, d))
    first, second = np.triu_indices(d if correlated else 0, 1)
    return FeatureMap(center, axes, knots, np.column_stack([first, second])[:_MOST_PRODUCTS])


class FeaturePairs:
    """Sums of features and of their products with themselves and with the next step's: what a basis is learned from."""

    def __init__(self, features: FeatureMap) -> None:
        self.features = features
        size = features.size
        self.weight, self.pair_weight = 0.0, 0.0
        self.total, self.square, self.lagged = np.zeros(size), np.zeros((size, size)), np.zeros((size, size))

    def update(self, values: Floats, first: Flags, weights: Floats) -> Self:
        """Add steps in order; ``first[t]`` says that a sequence begins with t. Steps of weight 0 do not count."""

        def part(runs: Sequence[slice]) -> FeaturePairs:
            found = FeaturePairs(self.features)
            for run in runs:
                here = slice(run.start, run.stop + 1)  # with the neighbour of its last step
                found._add(values[here], first[here], weights[here], run.stop - run.start)
            return found

        for found in _in_parts(part, len(values)):
            self._plus(found)
        return self

    def _add(self, values: Floats, first: Flags, weights: Floats, n_own: int) -> None:
        from odeco.kernels.step_features import add_step_pairs

        added = np.zeros(2)
        arrays = self.features.arrays
        add_step_pairs(values, first, weights, n_own, *arrays, self.total, self.square, self.lagged, added)
        self.weight += float(added[0])
        self.pair_weight += float(added[1])

    def _plus(self, other: FeaturePairs) -> None:
        for name in ("total", "square", "lagged", "weight", "pair_weight"):
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def merge(self, other: FeaturePairs) -> Self:
        """Add the sums of ``other``, which has the same features."""
        _same(self.features, other.features)
        self._plus(other)
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

    @property
    def coefficients(self) -> tuple[Floats, Floats]:
        """Rows (size, f) and offsets (size,): z of features f is ``offsets + rows @ f``."""
        rows = np.zeros((self.size, len(self.mean)))
        rows[1:] = self.projection.T
        return rows, np.append(1.0, -(self.mean @ self.projection))

    def __call__(self, values: Floats) -> Floats:
        """z of each step, (m, size)."""
        from odeco.kernels.step_features import project_steps

        z = np.empty((self.size, len(values)))
        project_steps(values, *self.features.arrays, *self.coefficients, z)
        return z.T


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

    def update(self, values: Floats, first: Flags, weights: Floats) -> Self:
        """Add steps in order; ``first[t]`` says that a sequence begins with t. Steps of weight 0 do not count."""
        update_triples([self], len(values), lambda here: (values[here], first[here], weights[here]))
        return self

    def add(self, values: Floats, first: Flags, weights: Floats, n_own: int, z: Floats) -> None:
        """Add ``n_own`` steps with their z (k, m); the neighbours of the last of them follow, if there are any."""
        from odeco.kernels.step_features import add_step_triples

        added = np.zeros(3)
        seen, products = (a.reshape(*a.shape[:2], -1) for a in (self.seen_products, self.products))
        add_step_triples(
            values, first, weights, n_own, z, np.ascontiguousarray(self.basis.features.center), self.pairs,
            self.triples, self.first, self.seen, self.values, seen, products, added,
        )  # fmt: skip
        self.pair_weight += float(added[0])
        self.triple_weight += float(added[1])
        self.first_weight += float(added[2])

    def merge(self, other: Self) -> Self:
        """Add the sums of ``other``, which is on the same basis."""
        _same(self.basis.features, other.basis.features)
        if not np.array_equal(self.basis.projection, other.basis.projection):
            raise ValueError("cannot merge moments of different bases: learn one basis before the data are split.")
        self.plus(other)
        return self

    def plus(self, other: FeatureTriples) -> None:
        """Add sums that are known to be on the same basis."""
        for name in (*self.names, "n"):
            setattr(self, name, getattr(self, name) + getattr(other, name))

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
    """Add steps to triples on several bases of the same features, which are computed once; threads over parts.

    ``read(slice)`` gives the steps of a slice as `FeatureTriples.update` takes them.
    """
    from odeco.kernels.step_features import project_steps

    if not all_sums:
        return
    rows, offsets = (np.concatenate(parts) for parts in zip(*(s.basis.coefficients for s in all_sums), strict=True))
    ends = np.cumsum([sums.basis.size for sums in all_sums])

    def part(runs: Sequence[slice]) -> list[FeatureTriples]:
        found = [FeatureTriples(sums.basis) for sums in all_sums]
        for run in runs:
            values, first, weights = read(slice(run.start, min(run.stop + 2, n_steps)))
            z = np.empty((len(rows), len(values)))
            project_steps(values, *all_sums[0].basis.features.arrays, rows, offsets, z)
            for sums, end in zip(found, ends, strict=True):
                sums.add(values, first, weights, run.stop - run.start, z[end - sums.basis.size : end])
        return found

    for found in _in_parts(part, n_steps):
        for sums, more in zip(all_sums, found, strict=True):
            sums.plus(more)
    for sums in all_sums:
        sums.n += n_steps


def _in_parts(work: Callable[[Sequence[slice]], Result], n: int) -> list[Result]:
    """What the runs of each part of n steps give, on threads; parts and runs do not depend on their number."""
    from odeco.kernels.threads import map_parts

    n_parts = min(-(-n // _RUN), _MOST_PARTS)
    bounds = np.linspace(0, n, n_parts + 1).astype(int).tolist()

    def part(p: int) -> Result:
        low, high = bounds[p], bounds[p + 1]
        return work([slice(start, min(start + _RUN, high)) for start in range(low, high, _RUN)])

    return map_parts(part, n_parts)


def _same(first: FeatureMap, second: FeatureMap) -> None:
    for name in ("center", "axes", "knots", "products"):
        if not np.array_equal(getattr(first, name), getattr(second, name)):
            raise ValueError("cannot merge moments of different features: learn one map before the data are split.")
