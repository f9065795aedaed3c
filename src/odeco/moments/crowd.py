"""Moments of crowd labels: workers in three groups, whose mean votes are three views of the true class.

An item nobody of a group has labelled is given that group's average vote, whatever it is by the time the moments are
read: beside the mean vote stands whether there was one, and subtracting the average is a linear map of the two.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from odeco.moments.base import Additive
from odeco.moments.views import PAIRS, ThreeViews, ViewBasis, ViewMoments
from odeco.sources.views import ViewBatch

Floats = NDArray[np.float64]


def draw_groups(n_workers: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Three groups of workers of equal numbers at random, whatever their labels: chunks of items cannot matter."""
    return np.asarray(rng.permutation(n_workers) % 3)


class CrowdMoments(Additive):
    """Sums over items for one grouping of the workers; any chunks and merges give the same.

    Parameters
    ----------
    groups : (W,) ints 0, 1, 2
        The group of each worker.
    n_classes : int
        L, the number of different labels.
    """

    _sums: ClassVar[tuple[str, ...]] = ("_views", "_votes")

    def __init__(self, groups: NDArray[np.intp], n_classes: int) -> None:
        self.groups, self.n_classes = groups, n_classes
        width = n_classes + 1
        eye = tuple(np.eye(width) for _ in range(3))
        self._views = ViewMoments(ViewBasis(((0,), (1,), (2,)), eye, tuple(np.zeros(width) for _ in range(3))))
        self._votes = np.zeros((len(groups) * n_classes, 3 * width + 1))
        # Sums the votes of each group by label.
        labels = np.tile(np.arange(n_classes), len(groups))
        columns = np.repeat(groups, n_classes) * n_classes + labels
        self._sum = sparse.csr_array((np.ones(columns.size), (np.arange(columns.size), columns)))
        if self._sum.shape[1] < 3 * n_classes:
            self._sum.resize((columns.size, 3 * n_classes))

    @property
    def n(self) -> int:
        """The number of items."""
        return self._views.n

    @property
    def weight(self) -> float:
        """Their weights together."""
        return self._views.weight

    def update(self, votes: sparse.csr_array, weights: Floats | None = None) -> Self:
        """Add items."""
        batch = ViewBatch(tuple(self.views(votes)), weights)
        self._views.update(batch)
        rows = np.column_stack([*batch.blocks, np.ones(len(batch))])
        self._votes += votes.T @ (rows if weights is None else weights[:, None] * rows)
        return self

    def merge(self, other: Self) -> Self:
        """Add the sums of ``other``; returns self."""
        if not np.array_equal(self.groups, other.groups) or self.n_classes != other.n_classes:
            raise ValueError("cannot merge crowd moments of different groups of workers or numbers of classes.")
        return super().merge(other)

    def views(self, votes: sparse.csr_array) -> list[Floats]:
        """Mean votes of each group, and whether it voted: three arrays (n, L + 1)."""
        (n, _), n_labels = votes.shape, self.n_classes
        # The same votes in the columns of their groups: where several meet in one, the dense array has their sum.
        places = self._sum.indices[votes.indices]
        sums = sparse.csr_array((votes.data, places, votes.indptr), shape=(n, 3 * n_labels)).toarray()
        totals = sums @ np.kron(np.eye(3), np.ones((n_labels, 1)))
        blocks = np.empty((3, n, n_labels + 1))
        for g, block in enumerate(blocks):
            own = sums[:, g * n_labels : (g + 1) * n_labels]
            np.divide(own, np.maximum(totals[:, g, None], 1), out=block[:, :n_labels])
            block[:, n_labels] = totals[:, g] > 0
        return list(blocks)

    @property
    def label_counts(self) -> Floats:
        """How often each worker gave each label, (W, L)."""
        return np.asarray(self._votes[:, -1].reshape(len(self.groups), self.n_classes))

    def read(self) -> tuple[ThreeViews, list[Floats]]:
        """Moments of the mean votes less the average ones, (L,) each, and the maps (L + 1, L) that give these."""
        maps = []
        for g in range(3):
            counts = self.label_counts[self.groups == g].sum(axis=0)
            average = counts / max(counts.sum(), 1e-300)
            maps.append(np.vstack([np.eye(self.n_classes), -average]))
        views = self._views.read()
        assert views.means is not None
        p12, p13, p23 = (maps[s].T @ views.pair(s, t) @ maps[t] for s, t in PAIRS)
        triples = np.einsum("abc,ai,bj,ck->ijk", views.triples, *maps, optimize=True)
        first, second, third = (mean @ m for mean, m in zip(views.means, maps, strict=True))
        return ThreeViews((p12, p13, p23), triples, (first, second, third)), maps

    def worker_sums(self, functionals: Sequence[Sequence[Floats]], offsets: Sequence[Floats]) -> Floats:
        """Votes of each worker weighed by functions of the groups that he is not in, (W, L, k).

        Parameters
        ----------
        functionals, offsets : three by three arrays (k, L + 1), three arrays (k,)
            For the workers of each group, linear functions of the `views` of all groups (0 for their own).
        """
        votes = self._votes.reshape(len(self.groups), self.n_classes, -1)
        sums = np.empty((len(self.groups), self.n_classes, len(offsets[0])))
        for g in range(3):
            mine = self.groups == g
            slopes = np.vstack([*(part.T for part in functionals[g]), offsets[g][None]])
            sums[mine] = votes[mine] @ slopes
        return sums
