"""Cross moments of views (section 3.3): pairs and triples of different views, never of a view with itself.

The views are put into three groups: views that are independent given h stay so when they are joined. Each group is
seen through a basis of a few directions, ``y_g = sum_t (x_t - shift_t) B_t`` over its views. What is summed is
``x_t (x) y_g`` for the groups g that view t is not in, of size d_t x r, and ``y_1 (x) y_2 (x) y_3``: nothing of size
d x d, unless the basis is the identity.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from odeco.kernels.columns import centred_columns, whole_rows
from odeco.kernels.cubes import add_cubes as add_triples
from odeco.moments.base import Additive
from odeco.moments.cubes import as_weights
from odeco.sources.views import Block, ViewBatch, as_view_batch

Floats = NDArray[np.float64]
PAIRS = ((0, 1), (0, 2), (1, 2))


@dataclass(frozen=True, eq=False)
class ThreeViews:
    """Cross moments of three views on r_t directions each.

    Attributes
    ----------
    pairs : three arrays (r_s, r_t)
        ``E[y_1 (x) y_2]``, ``E[y_1 (x) y_3]``, ``E[y_2 (x) y_3]``.
    triples : (r_1, r_2, r_3)
        ``E[y_1 (x) y_2 (x) y_3]``.
    means : three arrays (r_t,), or None
        None: the moments are raw, and the conditional means must be linearly independent (Theorem 3.6 as it stands).
        Given: pairs and triples are about these means, and the affine form is used.
    """

    pairs: tuple[Floats, Floats, Floats] = field(repr=False)
    triples: Floats = field(repr=False)
    means: tuple[Floats, Floats, Floats] | None = field(default=None, repr=False)

    def pair(self, first: int, second: int) -> Floats:
        """``E[y_first (x) y_second]`` for two different views."""
        if first < second:
            return self.pairs[PAIRS.index((first, second))]
        return self.pairs[PAIRS.index((second, first))].T


@dataclass(frozen=True, eq=False)
class ViewBasis:
    """Where the views are looked at from.

    Attributes
    ----------
    groups : three lists of views
    directions : one array (d_t, r) per view
        Those of a group have the same r.
    shifts : one array (d_t,) per view
        About the means: moments are exact for any, and lose no digits near them.
    """

    groups: tuple[tuple[int, ...], ...]
    directions: tuple[Floats, ...] = field(repr=False)
    shifts: tuple[Floats, ...] = field(repr=False)

    @property
    def widths(self) -> tuple[int, ...]:
        """The numbers of columns d_t."""
        return tuple(len(block) for block in self.directions)

    def ranks(self) -> tuple[int, ...]:
        """The numbers of directions of the groups."""
        return tuple(int(self.directions[group[0]].shape[1]) for group in self.groups)

    def group_of(self, view: int) -> int:
        """The group that a view is in."""
        return next(g for g, group in enumerate(self.groups) if view in group)

    def centred(self, blocks: Sequence[Block]) -> list[Block]:
        """The blocks about their shifts, by columns; sparse ones as they are."""
        return [b if sparse.issparse(b) else _about(b, shift) for b, shift in zip(blocks, self.shifts, strict=True)]

    def project(self, centred: Sequence[Block]) -> list[Floats]:
        """``y_g`` for each group, (n, r), from blocks as `centred` gives them."""
        projected = []
        for group in self.groups:
            parts = [self._project_view(centred[t], t) for t in group]
            projected.append(np.asarray(sum(parts[1:], start=parts[0])))
        return projected

    def _project_view(self, block: Block, view: int) -> Floats:
        product = np.asarray(block @ self.directions[view])
        return product - self.shifts[view] @ self.directions[view] if sparse.issparse(block) else product

    def narrowed(self, rank: int) -> ViewBasis:
        """The first directions of every view."""
        return replace(self, directions=tuple(np.ascontiguousarray(each[:, :rank]) for each in self.directions))

    def same(self, other: ViewBasis) -> bool:
        """Whether moments on the two may be merged."""
        return self is other or (
            self.groups == other.groups
            and all(map(np.array_equal, self.directions, other.directions))
            and all(map(np.array_equal, self.shifts, other.shifts))
        )


class ColumnSums:
    """First and second moments of every column, about given shifts, or the first row (zeros for sparse views)."""

    def __init__(self, widths: Sequence[int], first: ViewBatch | None = None) -> None:
        self.widths = tuple(widths)
        self.n, self.weight = 0, 0.0
        self._shifts: list[Floats] | None = None if first is None else _shifts_of(first)
        self._sums = [np.zeros(d) for d in widths]
        self._squares = [np.zeros(d) for d in widths]

    def update(self, batch: ViewBatch) -> Self:
        """Add the samples of a batch; the first one chooses the shifts, unless they were given."""
        if self._shifts is None:
            self._shifts = _shifts_of(batch)
        weights, total = batch.row_weights(), float(batch.row_weights().sum())
        for t, (block, shift) in enumerate(zip(batch.blocks, self._shifts, strict=True)):
            if sparse.issparse(block):
                sums = block.T @ weights
                self._sums[t] += sums - shift * total
                self._squares[t] += (block * block).T @ weights - shift * (2 * sums - shift * total)
            else:
                rows = _about(block, shift)
                self._sums[t] += weights @ rows
                self._squares[t] += weights @ np.square(rows, out=rows)
        self.n += int(np.count_nonzero(weights))  # samples of weight 0 are not there
        self.weight += total
        return self

    def merge(self, other: Self) -> Self:
        """Add the sums of ``other``, whatever its shifts."""
        if other.widths != self.widths:
            raise ValueError(f"cannot merge columns of views of widths {other.widths} into {self.widths}.")
        if other._shifts is None:
            return self
        if self._shifts is None:
            self._shifts = other._shifts
        for t in range(len(self.widths)):
            move = other._shifts[t] - self._shifts[t]
            self._squares[t] = self._squares[t] + other._squares[t] + 2 * move * other._sums[t] + other.weight * move**2
            self._sums[t] = self._sums[t] + other._sums[t] + other.weight * move
        self.n += other.n
        self.weight += other.weight
        return self

    @property
    def totals(self) -> list[Any]:
        """All that adds up, for sums about the same shifts."""
        return [self.n, self.weight, self._sums, self._squares]

    @totals.setter
    def totals(self, values: list[Any]) -> None:
        self.n, self.weight, self._sums, self._squares = values

    @property
    def means(self) -> list[Floats]:
        """E[x_t]."""
        assert self._shifts is not None
        return [shift + sums / self.weight for shift, sums in zip(self._shifts, self._sums, strict=True)]

    @property
    def variances(self) -> list[Floats]:
        """Variance of every column; exactly 0 where it is rounding."""
        assert self._shifts is not None
        found = []
        for shift, sums, squares in zip(self._shifts, self._sums, self._squares, strict=True):
            second, mean = squares / self.weight, sums / self.weight
            variance = second - mean**2
            noise = 1e-14 * second + 1e-30 * shift**2  # rounding of the squares, and of the column itself
            found.append(np.where(variance > noise, variance, 0.0))
        return found


def _shifts_of(batch: ViewBatch) -> list[Floats]:
    return [np.zeros(b.shape[1]) if sparse.issparse(b) else b[0].astype(float) for b in batch.blocks]


def _about(block: NDArray[np.floating], shift: Floats) -> Floats:
    """A dense block (n, d) about a shift, a column after the other: rows of few numbers are many short loops."""
    columns = np.empty(block.shape[::-1])
    centred_columns(block, columns, shift)
    return columns.T


def _add_flat(arrays: Sequence[Floats], numbers: Floats) -> None:
    """Add numbers to the entries of arrays, one array after the other."""
    start = 0
    for each in arrays:
        each += numbers[start : start + each.size].reshape(each.shape)
        start += each.size


def _weighed(rows: Floats, weights: Floats | None) -> Floats:
    return rows if weights is None else weights[:, None] * rows


class ViewPairs(Additive):
    """Products of the pairs with a basis: ``E[x_t (x) y_g]`` about the means, for views t outside group g."""

    _sums: ClassVar[tuple[str, ...]] = ("n", "weight", "_first", "_projected", "_cross")
    _on: ClassVar[tuple[str, ...]] = ("basis",)
    _by_threads: ClassVar[bool] = True

    def __init__(self, basis: ViewBasis) -> None:
        self.basis = basis
        ranks = basis.ranks()
        self.n, self.weight = 0, 0.0
        self._first = [np.zeros(d) for d in basis.widths]
        self._projected = [np.zeros(r) for r in ranks]
        self._cross = {
            (t, g): np.zeros((d, ranks[g]))
            for t, d in enumerate(basis.widths)
            for g in range(3)
            if t not in basis.groups[g]
        }

    def update(self, batch: ViewBatch) -> Self:
        """Add the samples of a batch; returns self."""
        if batch.widths != self.basis.widths:
            raise ValueError(f"the batch has views of {batch.widths} columns, the moments {self.basis.widths}.")
        if any(map(sparse.issparse, batch.blocks)):
            for piece in batch.pieces():
                centred = self.basis.centred(piece.blocks)
                self._add(centred, piece.weights, self.basis.project(centred))
        else:
            self._add_dense(batch)
        self.n += len(batch)
        self.weight += float(batch.row_weights().sum())
        return self

    def merge(self, other: Self) -> Self:
        """Add the sums of ``other``, which is left as it is; returns self."""
        if type(other) is not type(self) or not self.basis.same(other.basis):
            raise ValueError(
                "cannot merge moments of different bases: create both from the same basis, learned once, before the "
                "data are split."
            )
        return super().merge(other)

    def _add(self, centred: list[Block], weights: Floats | None, projected: list[Floats]) -> None:
        weighted = [_weighed(y, weights) for y in projected]
        ones = np.ones(len(projected[0]))
        for g, y in enumerate(weighted):
            self._projected[g] += ones @ y
        for t, block in enumerate(centred):
            self._first[t] += block.sum(axis=0) if weights is None else block.T @ weights
            for g in range(3):
                if (t, g) in self._cross:
                    self._cross[t, g] += block.T @ weighted[g]

    def _add_dense(self, batch: ViewBatch) -> None:
        """The same for views that are all dense, in one compiled loop."""
        from odeco.kernels.views import add_views

        basis, dtype = self.basis, np.result_type(*(block.dtype for block in batch.blocks))
        rows = [whole_rows(block.astype(dtype, copy=False)) for block in batch.blocks]
        groups = np.array([basis.group_of(t) for t in range(len(rows))], dtype=np.int32)
        directions = np.concatenate([each.ravel() for each in basis.directions])
        cross = [self._cross[key] for key in sorted(self._cross)]
        sums: list[list[Floats]] = [self._first, self._projected, cross, *self._dense_sums()]
        flat = [np.zeros(sum(each.size for each in some)) for some in sums]
        shifts, ranks = list(basis.shifts), np.array(basis.ranks(), dtype=np.int64)
        add_views(rows, shifts, groups, directions, ranks, as_weights(batch.weights), *flat)
        for some, found in zip(sums, flat, strict=True):
            _add_flat(some, found)

    def _dense_sums(self) -> tuple[list[Floats], list[Floats]]:
        """Pairs and triples on the basis, where they are asked for."""
        return [], []

    def cross(self, view: int, group: int) -> Floats:
        """``E[(x_t - E x_t) (x) (y_g - E y_g)]`` of shape (d_t, r)."""
        mean_x, mean_y = self._first[view] / self.weight, self._projected[group] / self.weight
        return np.asarray(self._cross[view, group] / self.weight - np.outer(mean_x, mean_y))

    @property
    def group_means(self) -> tuple[Floats, Floats, Floats]:
        """``E[y_g]``."""
        first, second, third = (sums / self.weight for sums in self._projected)
        return first, second, third


class ViewMoments(ViewPairs):
    """The pairs, and the triples ``E[y_1 (x) y_2 (x) y_3]`` on the basis."""

    _sums: ClassVar[tuple[str, ...]] = (*ViewPairs._sums, "_triples", "_pairs")

    def __init__(self, basis: ViewBasis) -> None:
        super().__init__(basis)
        first, second, third = basis.ranks()
        self._triples = np.zeros((first * second, third))
        self._pairs = [np.zeros((first, second)), np.zeros((first, third)), np.zeros((second, third))]

    def narrowed(self, rank: int) -> ViewMoments:
        """The sums on the first directions of the basis."""
        fewer = ViewMoments(self.basis.narrowed(rank))
        fewer.n, fewer.weight, fewer._first = self.n, self.weight, self._first
        fewer._projected = [each[:rank] for each in self._projected]
        fewer._cross = {key: each[:, :rank] for key, each in self._cross.items()}
        cube = self._triples.reshape(self.basis.ranks())[:rank, :rank, :rank]
        fewer._triples = cube.reshape(rank * rank, rank)
        fewer._pairs = [each[:rank, :rank] for each in self._pairs]
        return fewer

    def _add(self, centred: list[Block], weights: Floats | None, projected: list[Floats]) -> None:
        super()._add(centred, weights, projected)
        y1, y2, y3 = projected
        weighted = _weighed(y1, weights)
        self._pairs[0] += weighted.T @ y2
        self._pairs[1] += weighted.T @ y3
        self._pairs[2] += _weighed(y2, weights).T @ y3
        add_triples(y1, y2, y3, as_weights(weights), self._triples.reshape(self.basis.ranks()))

    def _dense_sums(self) -> tuple[list[Floats], list[Floats]]:
        return self._pairs, [self._triples]

    def read(self) -> ThreeViews:
        """All moments, about the means."""
        return ThreeViews(self.pairs, self.triples, self.group_means)

    @property
    def pairs(self) -> tuple[Floats, Floats, Floats]:
        """Covariances of (y_1, y_2), (y_1, y_3), (y_2, y_3)."""
        m1, m2, m3 = self.group_means
        p12, p13, p23 = (pair / self.weight for pair in self._pairs)
        return p12 - np.outer(m1, m2), p13 - np.outer(m1, m3), p23 - np.outer(m2, m3)

    @property
    def triples(self) -> Floats:
        """``E[y_1 (x) y_2 (x) y_3]`` about the means."""
        (m1, m2, m3), (c12, c13, c23) = self.group_means, self.pairs
        raw = self._triples.reshape(m1.size, m2.size, m3.size) / self.weight
        return np.asarray(
            raw
            - m1[:, None, None] * c23
            - m2[:, None] * c13[:, None, :]
            - c12[:, :, None] * m3
            - m1[:, None, None] * m2[:, None] * m3
        )


def view_moments(views: Sequence[ArrayLike]) -> ThreeViews:
    """The cross moments of three views about their means, in all of their columns (section 3.3).

    Parameters
    ----------
    views : three arrays (n, d_t)
        The same n samples, dense or sparse. Pairs and triples of size d_1 d_2 d_3 are formed.

    Returns
    -------
    ThreeViews
        As :func:`odeco.reduction.decompose_views` takes them, with means.

    Examples
    --------
    >>> import numpy as np, odeco
    >>> x = np.array([[1.0], [2.0], [6.0]])
    >>> odeco.moments.view_moments([x, 2 * x, x + 1]).means
    (array([3.]), array([6.]), array([4.]))
    """
    if len(views) != 3:
        raise ValueError(f"views must be three arrays, got {len(views)}: join the columns of more into three.")
    batch = as_view_batch(list(views))
    shifts = [np.asarray(block.mean(axis=0), dtype=float).ravel() for block in batch.blocks]
    directions = tuple(np.eye(width) for width in batch.widths)
    moments = ViewMoments(ViewBasis(((0,), (1,), (2,)), directions, tuple(shifts))).update(batch).read()
    assert moments.means is not None
    first, second, third = (mean + shift for mean, shift in zip(moments.means, shifts, strict=True))
    return ThreeViews(moments.pairs, moments.triples, (first, second, third))
