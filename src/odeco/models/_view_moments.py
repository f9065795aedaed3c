"""From views to components: the passes over the data, Theorem 3.6 read backwards, and means of all columns.

Columns, then the directions that the views have in common, then moments on k - 1 of them: three passes where every
group of views has at most 512 columns, five where the directions are found by random products (section 6.1.2).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from odeco.exceptions import MomentError
from odeco.moments.views import ColumnSums, ViewBasis, ViewMoments, ViewPairs
from odeco.sources.views import ViewSource, as_view_source
from odeco.symmetrization import ThreeViews, ViewComponents, recover_views, three_groups

Floats = NDArray[np.float64]

_EXACT = 512  # columns of a group up to which its pairs are formed whole
_OVERSAMPLES, _PRODUCTS = 10, 3
# Share of the mean variance of a view's columns that is added to each where it holds counts: rare words get no voice.
_VARIANCE_FLOOR = 0.1
# Least share of a column's variance that is left within components.
_WITHIN_FLOOR = 1e-3


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
    n_passes : int
    """

    weights: Floats
    means: list[Floats] = field(repr=False)
    variances: list[Floats] = field(repr=False)
    components: ViewComponents = field(repr=False)
    columns: ColumnSums = field(repr=False)
    moments: ViewMoments = field(repr=False)
    n_passes: int


def solve_views(
    X: Any,
    n_components: int,
    rng: np.random.Generator,
    *,
    method: str = "auto",
    sample_weight: ArrayLike | None = None,
    counts: Sequence[bool] | None = None,
) -> ViewSolution:
    """Weights and conditional means of every view (Theorem 3.6).

    Parameters
    ----------
    X : list of three or more blocks (dense or sparse) of the same rows, or a source of such batches
    n_components : int
    counts : one bool per view, optional
        Views of counts, whose rare columns are scaled up less.

    Raises
    ------
    MomentError
        Where the views do not determine k components.
    """
    source = as_view_source(X, sample_weight)
    columns = ColumnSums(source.widths)
    for batch in source:
        columns.update(batch)
    basis, n_passes = find_basis(source, columns, n_components, rng, counts)
    moments = ViewMoments(basis).update_all(source)
    return read_solution(columns, moments, n_components, rng, method, n_passes + 2)


def read_solution(
    columns: ColumnSums, moments: ViewMoments, n_components: int, rng: np.random.Generator, method: str, n_passes: int
) -> ViewSolution:
    """The theorem on moments that are there; costs no pass."""
    views = ThreeViews(moments.pairs, moments.triples, moments.group_means)
    components = recover_views(views, n_components, rng, method=method)
    means = [lifted_means(columns, moments, components, t) for t in range(len(columns.widths))]
    variances = []
    for mean, center, variance in zip(means, columns.means, columns.variances, strict=True):
        between = components.weights @ (mean - center) ** 2
        variances.append(np.maximum(variance - between, _WITHIN_FLOOR * variance))
    return ViewSolution(components.weights, means, variances, components, columns, moments, n_passes)


def lifted_means(columns: ColumnSums, moments: ViewPairs, components: ViewComponents, view: int) -> Floats:
    """``E[x_t | h = i] = E[x_t g_si]`` in all columns of a view, averaged over the two groups s that it is not in."""
    group = moments.basis.group_of(view)
    parts = [components.functionals[s] @ moments.cross(view, s).T for s in range(3) if s != group]
    return np.asarray(columns.means[view] + np.mean(parts, axis=0))


def find_basis(
    source: ViewSource,
    columns: ColumnSums,
    n_components: int,
    rng: np.random.Generator,
    counts: Sequence[bool] | None = None,
    rank: int | None = None,
) -> tuple[ViewBasis, int]:
    """Directions that each group of views has in common with the others, k - 1 unless told; and the passes it took.

    Left singular vectors of the pairs, columns scaled to unit variance: whole where groups are small, else by block
    iterations from random directions.
    """
    widths = columns.widths
    rank = n_components - 1 if rank is None else rank
    groups = tuple(tuple(group) for group in three_groups(list(widths), max(n_components - 1, 1)))
    scales = [column_scale(v, c) for v, c in zip(columns.variances, counts or [False] * len(widths), strict=True)]
    _check_columns(scales, groups, n_components)
    shifts = tuple(columns.means)
    totals = [sum(widths[t] for t in group) for group in groups]
    exact = max(totals) <= _EXACT
    width = min(n_components + _OVERSAMPLES, *totals)
    directions = [np.eye(total) if exact else rng.standard_normal((total, width)) for total in totals]
    n_products = 1 if exact else _PRODUCTS
    for product in range(n_products):
        basis = ViewBasis(groups, split_groups(directions, groups, scales), shifts)
        pairs = ViewPairs(basis).update_all(source)
        kept = rank if product == n_products - 1 else width
        directions = [_leading(pairs, groups[g], scales, g, kept) for g in range(3)]
    return ViewBasis(groups, split_groups(directions, groups, scales), shifts), n_products


def column_scale(variance: Floats, counts: bool) -> Floats:
    """One over the standard deviation, 0 for constant columns."""
    floor = _VARIANCE_FLOOR * float(variance.mean()) if counts else 0.0
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
        block = np.vstack([scales[t][:, None] * pairs.cross(t, other) for t in group])
        norm = float(np.linalg.norm(block))
        blocks.append(block / norm if norm > 0 else block)
    joined = np.hstack(blocks)
    if joined.shape[0] <= joined.shape[1]:  # the Gram matrix is small, and half of the digits are enough for a range
        return np.asarray(np.linalg.eigh(joined @ joined.T)[1][:, ::-1][:, :n_directions])
    return np.asarray(np.linalg.svd(joined, full_matrices=False)[0][:, :n_directions])


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
