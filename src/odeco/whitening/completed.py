"""Whitening where blocks of the second moment are unknown: a low-rank fill that the rest implies (HeteroPCA).

In a mixture of product distributions products of features of one column have the wrong expectation (section 3.3.1 of
the paper asks for three views to avoid them). They are few. Leaving them out and filling them from the rank that all
others have, again and again, keeps every other product (Zhang, Cai and Wu, Annals of Statistics 50, 2022).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from odeco.exceptions import MomentError
from odeco.moments.passes import Passes, run_passes
from odeco.whitening.whitener import Whitener

Floats = NDArray[np.float64]

# Directions beyond the rank that the iteration carries along: they let it pass small gaps, and show what was discarded.
_SLACK = 10


@dataclass(frozen=True, eq=False)
class CompletedPairs:
    """A second moment without its entries inside blocks.

    Attributes
    ----------
    product : callable
        The known entries times a (D, p) matrix: passes over the data, or none where the entries are at hand.
    rows, columns : (q,)
        The unknown entries, rows in ascending order.
    start : (q,)
        Values to begin with (those of the sample covariance: positive semidefinite, too large).
    """

    n_features: int
    product: Callable[[Floats], Passes[Floats]] = field(repr=False)
    rows: NDArray[np.intp] = field(repr=False)
    columns: NDArray[np.intp] = field(repr=False)
    start: Floats = field(repr=False)

    @classmethod
    def at_hand(cls, known: Floats, rows: NDArray[np.intp], columns: NDArray[np.intp], start: Floats) -> CompletedPairs:
        """From a matrix (D, D) of the known entries, 0 at the others."""

        def product(V: Floats) -> Passes[Floats]:
            yield from ()  # no pass
            return known @ V

        return cls(len(known), product, rows, columns, start)

    def filled(self, values: Floats) -> sparse.csr_array:
        """The unknown entries as a sparse matrix."""
        return sparse_blocks(self.n_features, self.rows, self.columns, values)


def sparse_blocks(
    n_features: int, rows: NDArray[np.intp], columns: NDArray[np.intp], values: Floats
) -> sparse.csr_array:
    """Entries inside blocks, rows in ascending order, as a sparse (D, D) matrix."""
    edges = np.searchsorted(rows, np.arange(n_features + 1))
    return sparse.csr_array((values, columns, edges), shape=(n_features, n_features))


def whiten_completed(
    pairs: CompletedPairs, rank: int, rng: np.random.Generator, *, max_iter: int = 100, tol: float = 1e-5
) -> Passes[Whitener]:
    """W with W' M2 W = I for the completed M2 of the given rank.

    Raises `MomentError` where the rank is not there.
    """
    values, vectors = yield from completed_range(pairs, rank, _SLACK, rng, max_iter=max_iter, tol=tol)
    check_completed(values, rank)
    roots = np.sqrt(values[:rank])
    return Whitener(vectors[:, :rank] / roots, vectors[:, :rank] * roots, values)


def completed_range(
    pairs: CompletedPairs, rank: int, slack: int, rng: np.random.Generator, *, max_iter: int = 100, tol: float = 1e-5
) -> Passes[tuple[Floats, Floats]]:
    """Leading eigenvalues and eigenvectors of the completed M2: subspace iteration, the fill renewed at every step.

    Stops when no filled entry moves by more than `tol` of the largest. `slack` directions beyond the rank come along.
    """
    width = min(rank + slack, pairs.n_features)
    vectors = np.linalg.qr(rng.standard_normal((pairs.n_features, width)))[0]
    values, fill = np.zeros(width), pairs.start
    largest = float(np.abs(fill).max(initial=0.0))
    for iteration in range(max_iter):
        mapped = (yield from pairs.product(vectors)) + pairs.filled(fill) @ vectors
        values, turn = np.linalg.eigh(vectors.T @ mapped)
        values, vectors = values[::-1], vectors @ turn[:, ::-1]
        if iteration > 1:  # the subspace has to come near before it may fill anything
            kept, top = np.maximum(values[:rank], 0.0), vectors[:, :rank]
            renewed = np.einsum("ar,ar->a", top[pairs.rows] * kept, top[pairs.columns])
            moved = float(np.abs(renewed - fill).max(initial=0.0))
            fill = renewed
            if iteration > 3 and moved <= tol * largest:
                break
        vectors = np.linalg.qr(mapped @ turn[:, ::-1])[0]
    return values, vectors


def rank_above(pairs: CompletedPairs, noise: float) -> int:
    """How many eigenvalues of the completed M2, at hand, exceed `noise`, with a fill of just as many directions.

    A fill of many directions takes part of the noise for signal, one of few leaves signal out. So this is counted up
    from one direction: the first rank that leaves nothing above the noise, whatever rank the fit is to have.
    """
    most = pairs.n_features - 1
    rank, count = 0, 1
    while rank < count <= most:
        rank = count
        search = completed_range(pairs, rank, _SLACK, np.random.default_rng(0), max_iter=50, tol=1e-3)
        values, _ = run_passes(search, None)
        count = min(int(np.sum(values > noise)), most)
    return min(rank, count)


def check_completed(values: Floats, rank: int) -> None:
    """Raise unless there are so many eigenvalues (descending), all of them positive."""
    if values.size < rank or not values[rank - 1] > 1e-10 * values[0]:
        positive = int(np.sum(values > 1e-10 * max(values[0], 0.0)))
        raise MomentError(
            f"the pair moments have rank {positive}, below the {rank} that {rank + 1} components need (components are "
            "told apart by their means here). Lower n_components, or use more columns."
        )
