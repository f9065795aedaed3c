"""The moments of latent Dirichlet allocation from raw word moments (Theorem 3.5 of the paper)."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from odeco.tensors import SymmetricTensor

Floats = NDArray[np.floating]


@dataclass(frozen=True, eq=False)
class DirichletMoments:
    """M2 and M3 of Theorem 3.5, on whatever basis the raw moments were given."""

    second: NDArray[np.float64] = field(repr=False)
    third: NDArray[np.float64] = field(repr=False)


def dirichlet_moments(first: ArrayLike, pairs: ArrayLike, triples: ArrayLike, alpha0: float) -> DirichletMoments:
    """M2 and M3 of Theorem 3.5 from E[x1], E[x1 (x) x2], E[x1 (x) x2 (x) x3], all projected on one basis.

    The range of M2 does not depend on alpha0, for M1 lies in it: with the raw moments on a basis of that range the
    moments of every alpha0 cost no further pass over the data. ``alpha0 = 0`` is the single topic model.

    Parameters
    ----------
    first, pairs, triples : arrays of shapes (k,), (k, k), (k, k, k)
    alpha0 : float
        Sum of the Dirichlet parameters, at least 0.

    Returns
    -------
    DirichletMoments
        ``second`` (k, k) and ``third`` (k, k, k).

    Examples
    --------
    >>> import numpy as np, odeco
    >>> first, pairs = np.array([0.5, 0.5]), np.array([[0.375, 0.125], [0.125, 0.375]])  # two topics of one word each
    >>> odeco.moments.dirichlet_moments(first, pairs, np.zeros((2, 2, 2)), alpha0=1.0).second
    array([[0.25, 0.  ],
           [0.  , 0.25]])
    """
    check_alpha0(alpha0)
    m1, m2, m3 = (np.asarray(moment, dtype=np.float64) for moment in (first, pairs, triples))
    k = m1.shape[0] if m1.ndim == 1 else -1
    if m2.shape != (k, k) or m3.shape != (k, k, k):
        raise ValueError(
            f"first, pairs and triples must have shapes (k,), (k, k) and (k, k, k), got {m1.shape}, {m2.shape} "
            f"and {m3.shape}."
        )
    second = m2 - alpha0 / (alpha0 + 1) * np.outer(m1, m1)
    # The three permutations of E[x1 (x) x2 (x) M1], and a third of the cube of M1 in each: M1 is a factor of all.
    mixed = alpha0 / (alpha0 + 2) * (m2 - 2 * alpha0 / (3 * (alpha0 + 1)) * np.outer(m1, m1))
    third = m3 - mixed[:, :, None] * m1
    third -= mixed[:, None, :] * m1[:, None]
    third -= mixed * m1[:, None, None]
    return DirichletMoments(second, third)


class DirichletTensor(SymmetricTensor):
    """``M3(A, A, A)`` of Theorem 3.5 as an implicit tensor, over implicit raw triples.

    Parameters
    ----------
    triples : SymmetricTensor
        Raw third moment on a basis, e.g. `ImplicitTriples`.
    first, pairs : arrays of shapes (k,), (k, k)
        Raw first and second moments on the same basis.
    alpha0 : float
    matrix : (k, r) array
        A, the whitening map of the k-dimensional M2 at this alpha0.
    """

    def __init__(
        self, triples: SymmetricTensor, first: ArrayLike, pairs: ArrayLike, alpha0: float, matrix: ArrayLike
    ) -> None:
        check_alpha0(alpha0)
        self.order = 3
        self.alpha0 = alpha0
        self._triples = triples
        self._matrix = np.asarray(matrix, dtype=np.float64)
        self.dimension = self._matrix.shape[1]
        self._first = self._matrix.T @ np.asarray(first, dtype=np.float64)
        self._pairs = self._matrix.T @ np.asarray(pairs, dtype=np.float64) @ self._matrix

    def power_map(self, vectors: Floats) -> NDArray[np.float64]:
        """``T(I, v, v)`` for every column v."""
        alpha0, m1 = self.alpha0, self._first[:, None]
        raw = self._matrix.T @ self._triples.power_map(self._matrix @ vectors)
        inner, images = self._first @ vectors, self._pairs @ vectors
        mixed = 2 * inner * images + m1 * np.einsum("ij,ij->j", vectors, images)
        cube = m1 * inner**2
        return np.asarray(raw - alpha0 / (alpha0 + 2) * mixed + 2 * alpha0**2 / ((alpha0 + 2) * (alpha0 + 1)) * cube)


def check_alpha0(alpha0: float) -> None:
    """Raise unless ``alpha0`` is a finite number, at least 0."""
    if isinstance(alpha0, bool) or not isinstance(alpha0, (int, float, np.number)) or not 0 <= alpha0 < np.inf:
        raise ValueError(f"alpha0 must be a finite number of at least 0, got {alpha0!r}.")
