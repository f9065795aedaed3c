"""From views to components: the passes over the data, Theorem 3.6 read backwards, and means of all columns.

Columns, then the directions that the views have in common, then moments on k - 1 of them: three passes where every
group of views has at most 256 columns, five where the directions are found by random products (section 6.1.2).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from odeco.decomposition import AUTO, Decomposer
from odeco.exceptions import MomentError
from odeco.fitting.options import check_enough
from odeco.kernels.threads import single_threaded_blas
from odeco.models.multiview.likelihoods import ViewLook
from odeco.models.multiview.policy import POLICY
from odeco.moments.passes import Passes, fill, run_passes
from odeco.moments.views import PAIRS, ColumnSums, ViewBasis, ViewMoments, ViewPairs
from odeco.reduction.groups import three_groups
from odeco.reduction.views import ViewComponents, recover_views
from odeco.sources.views import as_view_source

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class BasisSearch:
    """A basis, what was seen on the way to it, and the passes it took.

    Attributes
    ----------
    basis : ViewBasis
    singular_values : (m,)
        Of the pairs of groups, columns of unit variance, each over the largest that noise alone would show beside the
        directions before it; for each place the smallest of the three pairs.
    """

    basis: ViewBasis
    singular_values: Floats
    n_passes: int


@dataclass(frozen=True, eq=False)
class ViewSolution:
    """The moment estimate.

    Attributes
    ----------
    weights : (k,)
        Largest first.
    means : list of (k, d_t)
        Conditional means of every view, as the moments give them (nothing is clipped).
    variances : list of (d_t,)
        Variance of each column within components, pooled.
    components : ViewComponents
        On the directions; residual and spectra are here.
    columns : ColumnSums
    moments : ViewMoments
    search : BasisSearch
    """

    weights: Floats
    means: list[Floats] = field(repr=False)
    variances: list[Floats] = field(repr=False)
    components: ViewComponents = field(repr=False)
    columns: ColumnSums = field(repr=False)
    moments: ViewMoments = field(repr=False)
    search: BasisSearch = field(repr=False)

    @property
    def n_passes(self) -> int:
        """How often the data were read."""
        return self.search.n_passes + 2

    @property
    def noise(self) -> float:
        """Level of noise in the singular values of the search: the share of a column's variance within components."""
        pairs = zip(self.variances, self.columns.variances, strict=True)
        shares = [float(np.mean(within[total > 0] / total[total > 0])) for within, total in pairs if total.any()]
        return float(np.mean(shares)) if shares else 1.0

    @property
    def suggested_components(self) -> int:
        """One more than there are directions above the noise, counted until the first that is not."""
        below = self.search.singular_values <= self.noise
        return 1 + int(np.argmax(below) if below.any() else below.size)


@dataclass(frozen=True, eq=False)
class ViewSums:
    """What the passes leave: columns and kinds of the views, and moments on a basis, or why there is none."""

    look: ViewLook
    search: BasisSearch | None = None
    moments: ViewMoments | None = None
    error: ValueError | None = None

    def narrowed(self, n_components: int) -> ViewSums | None:
        """Those of fewer components, on the first directions; None where there are none, or views are joined anew."""
        if self.search is None or self.moments is None:
            return None
        basis = self.search.basis
        if _groups(basis.widths, n_components) != basis.groups:
            return None
        moments = self.moments.narrowed(n_components - 1)
        return ViewSums(self.look, replace(self.search, basis=moments.basis), moments)


def view_passes(look: ViewLook, n_components: int, rng: np.random.Generator) -> Passes[ViewSums]:
    """The basis of k - 1 directions for each group of views, and the moments on it, once the columns are known."""
    try:
        check_enough(look.columns.n, n_components)
        search = yield from basis_passes(look.columns, n_components, rng, look.kinds.whole.tolist())
    except ValueError as error:  # MomentError is one
        return ViewSums(look, error=error)
    moments = yield ViewMoments(search.basis)
    return ViewSums(look, search, moments)


def solve_views(
    X: Any, n_components: int, rng: np.random.Generator, *, method: Decomposer = AUTO, polish: bool = True
) -> ViewSolution:
    """Weights and conditional means of every view (Theorem 3.6).

    Parameters
    ----------
    X : list of three or more blocks (dense or sparse) of the same rows, or a source of such batches
    n_components : int
    polish : bool
        Fit the cross moments by least squares from there; False is the theorem alone.

    Raises
    ------
    MomentError
        Where the views do not determine k components.
    """
    source = as_view_source(X)
    columns = fill(ViewLook(source.widths), source).columns
    search = run_passes(basis_passes(columns, n_components, rng), source)
    moments = fill(ViewMoments(search.basis), source)
    return read_solution(columns, moments, search, n_components, rng, method, polish=polish)


def read_views(
    sums: ViewSums, n_components: int, rng: np.random.Generator, method: Decomposer = AUTO, *, polish: bool = True
) -> ViewSolution:
    """The theorem on what the passes left."""
    if sums.search is None or sums.moments is None:
        raise MomentError(str(sums.error))
    return read_solution(sums.look.columns, sums.moments, sums.search, n_components, rng, method, polish=polish)


def read_solution(
    columns: ColumnSums,
    moments: ViewMoments,
    search: BasisSearch,
    n_components: int,
    rng: np.random.Generator,
    method: Decomposer = AUTO,
    *,
    polish: bool = True,
) -> ViewSolution:
    """The theorem on moments that are there; costs no pass."""
    components = recover_views(moments.read(), n_components, rng, method=method, polish=polish)
    means = [lifted_means(columns, moments, components, t) for t in range(len(columns.widths))]
    variances = []
    for mean, center, variance in zip(means, columns.means, columns.variances, strict=True):
        between = components.weights @ (mean - center) ** 2
        variances.append(np.maximum(variance - between, POLICY.within_floor * variance))
    return ViewSolution(components.weights, means, variances, components, columns, moments, search)


def lifted_means(columns: ColumnSums, moments: ViewPairs, components: ViewComponents, view: int) -> Floats:
    """``E[x_t | h = i] = E[x_t g_i]`` in all columns of a view, g_i a function of the two groups that it is not in."""
    group = moments.basis.group_of(view)
    others = [s for s in range(3) if s != group]
    parts = [components.functionals[group][s] @ moments.cross(view, s).T for s in others]
    return np.asarray(columns.means[view] + parts[0] + parts[1])


def basis_passes(
    columns: ColumnSums,
    n_components: int,
    rng: np.random.Generator,
    counts: Sequence[bool] | None = None,
    rank: int | None = None,
) -> Passes[BasisSearch]:
    """Directions that each group of views has in common with the others: k - 1 of them unless told.

    Left singular vectors of the pairs, columns scaled to unit variance: whole where groups are small, else by block
    iterations from random directions. `counts` names views of counts, whose rare columns are scaled up less.
    """
    widths = columns.widths
    rank = n_components - 1 if rank is None else rank
    groups = _groups(widths, n_components)
    scales = [column_scale(v, c) for v, c in zip(columns.variances, counts or [False] * len(widths), strict=True)]
    _check_columns(scales, groups, n_components)
    shifts = tuple(columns.means)
    totals = [sum(widths[t] for t in group) for group in groups]
    exact = max(totals) <= POLICY.exact
    width = min(n_components + POLICY.oversamples, *totals)
    directions = [np.eye(total) if exact else rng.standard_normal((total, width)) for total in totals]
    n_products = 1 if exact else POLICY.products
    for product in range(n_products):
        basis = ViewBasis(groups, split_groups(directions, groups, scales), shifts)
        pairs = yield ViewPairs(basis)
        kept = rank if product == n_products - 1 else width
        with single_threaded_blas():  # small: BLAS threads would wait for one another longer than they work
            directions = [_leading(pairs, groups[g], scales, g, kept) for g in range(3)]
    basis = ViewBasis(groups, split_groups(directions, groups, scales), shifts)
    return BasisSearch(basis, _above_noise(pairs, groups, scales, columns.weight), n_products)


def _groups(widths: Sequence[int], n_components: int) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(group) for group in three_groups(list(widths), max(n_components - 1, 1)))


def column_scale(variance: Floats, counts: bool) -> Floats:
    """One over the standard deviation, 0 for constant columns."""
    floor = POLICY.variance_floor * float(variance.mean()) if counts else 0.0
    return np.where(variance > 0, 1 / np.sqrt(np.where(variance > 0, variance, 1.0) + floor), 0.0)


def split_groups(
    directions: Sequence[Floats], groups: tuple[tuple[int, ...], ...], scales: Sequence[Floats]
) -> tuple[Floats, ...]:
    """Directions of the groups (scaled columns of their views, joined) as directions of each view's own columns."""
    parts: dict[int, Floats] = {}
    for block, group in zip(directions, groups, strict=True):
        start = 0
        for t in group:
            stop = start + scales[t].size
            parts[t] = scales[t][:, None] * block[start:stop]
            start = stop
    return tuple(parts[t] for t in range(len(scales)))


def _leading(
    pairs: ViewPairs, group: tuple[int, ...], scales: Sequence[Floats], index: int, n_directions: int
) -> Floats:
    """Leading left singular vectors of the pairs of a group with the other two, each pair of norm 1."""
    blocks = []
    for other in (g for g in range(3) if g != index):
        block = _scaled_pair(pairs, group, other, scales)
        norm = float(np.linalg.norm(block))
        blocks.append(block / norm if norm > 0 else block)
    joined = np.hstack(blocks)
    if joined.shape[0] <= joined.shape[1]:  # the Gram matrix is small, and half of the digits are enough for a range
        return np.asarray(np.linalg.eigh(joined @ joined.T)[1][:, ::-1][:, :n_directions])
    basis, triangle = np.linalg.qr(joined)
    return np.asarray(basis @ np.linalg.svd(triangle)[0][:, :n_directions])


def _scaled_pair(pairs: ViewPairs, group: tuple[int, ...], other: int, scales: Sequence[Floats]) -> Floats:
    return np.vstack([scales[t][:, None] * pairs.cross(t, other) for t in group])


def _above_noise(
    pairs: ViewPairs, groups: tuple[tuple[int, ...], ...], scales: Sequence[Floats], weight: float
) -> Floats:
    """`BasisSearch.singular_values`.

    Noise of variance 1 / n on d x e entries has singular values up to (sqrt(d) + sqrt(e)) / sqrt(n); directions of
    signal take one from d and e each.
    """
    alive = [sum(int(np.count_nonzero(scales[t])) for t in group) for group in groups]
    ratios = []
    for first, second in PAIRS:
        values = _singular_values(_scaled_pair(pairs, groups[first], second, scales))
        place = np.arange(values.size)
        edge = sum(np.sqrt(np.maximum(alive[g] - place, 1)) for g in (first, second)) / np.sqrt(weight)
        ratios.append(values / edge)
    shortest = min(map(len, ratios))
    return np.asarray(np.min([ratio[:shortest] for ratio in ratios], axis=0))


def _singular_values(block: Floats) -> Floats:
    """Largest first, from the smaller Gram matrix: half of the digits, to compare with noise."""
    gram = block.T @ block if block.shape[0] > block.shape[1] else block @ block.T
    return np.asarray(np.sqrt(np.maximum(np.linalg.eigvalsh(gram)[::-1], 0.0)))


def _check_columns(scales: Sequence[Floats], groups: tuple[tuple[int, ...], ...], n_components: int) -> None:
    for group in groups:
        alive = sum(int(np.count_nonzero(scales[t])) for t in group)
        if alive < n_components - 1:
            names = " and ".join(f"view {t}" for t in group)
            kind = "only constant columns" if alive == 0 else f"{alive} columns that vary"
            raise MomentError(
                f"{names} {'has' if len(group) == 1 else 'have'} {kind}, and n_components={n_components} need at least "
                f"{n_components - 1} in each of three views (Theorem 3.6). Lower n_components or add views."
            )
