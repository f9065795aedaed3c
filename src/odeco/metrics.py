"""How far an estimate is from the truth when components come in any order."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from odeco.tensors.algebra import Floats


@dataclass(frozen=True)
class Matching:
    """Estimated components matched one to one with true ones.

    Attributes
    ----------
    permutation : (m,) int
        ``estimate[:, permutation[i]]`` belongs to the i-th matched true component.
    matched : (m,) int
        The true components that have a partner: all of them, unless there are fewer estimates.
    signs : (m,)
        -1 where an estimate has to be turned (always +1 unless asked for).
    errors : (m,)
        Euclidean distances after matching.
    """

    permutation: NDArray[np.intp]
    matched: NDArray[np.intp]
    signs: Floats
    errors: Floats

    @property
    def largest(self) -> float:
        """The largest of the errors."""
        return float(self.errors.max(initial=0.0))


def match_components(estimate: ArrayLike, truth: ArrayLike, *, up_to_sign: bool = False) -> Matching:
    """Match the columns of `estimate` (n, r) with those of `truth` (n, k), with the least sum of squared distances.

    Parameters
    ----------
    up_to_sign : bool
        Count v and -v as the same, as for eigenvectors of order 4 tensors.
    """
    from scipy.optimize import linear_sum_assignment  # slow to import

    found, true = np.asarray(estimate, dtype=float), np.asarray(truth, dtype=float)
    if found.ndim != 2 or true.ndim != 2 or found.shape[0] != true.shape[0]:
        raise ValueError(
            f"estimate and truth must hold components in columns of the same length, got shapes {found.shape} and "
            f"{true.shape}."
        )
    inner = true.T @ found
    signs = np.where(inner < 0, -1.0, 1.0) if up_to_sign else np.ones_like(inner)
    squares = np.sum(true**2, axis=0)[:, None] + np.sum(found**2, axis=0) - 2 * signs * inner
    rows, columns = linear_sum_assignment(squares)
    chosen = signs[rows, columns]
    # From the differences themselves: the expanded squares lose half the digits.
    errors = np.linalg.norm(true[:, rows] - found[:, columns] * chosen, axis=0)
    return Matching(columns, rows, chosen, errors)


def amari(components: ArrayLike, mixing: ArrayLike) -> float:
    """The distance of ``components @ mixing`` from a scaled permutation, 0 for one and at most 1 (Amari et al. 1996).

    Parameters
    ----------
    components : (k, d)
        Estimated unmixing matrix.
    mixing : (d, k)
        True mixing matrix.
    """
    rows, columns = np.asarray(components, dtype=float), np.asarray(mixing, dtype=float)
    if rows.ndim != 2 or columns.ndim != 2 or rows.shape != columns.shape[::-1] or rows.size == 0:
        raise ValueError(
            f"components (k, d) and mixing (d, k) must fit each other, got shapes {rows.shape} and {columns.shape}."
        )
    gain = np.abs(rows @ columns)
    k = len(gain)
    if not (np.isfinite(gain).all() and gain.max(axis=0).all() and gain.max(axis=1).all()):
        raise ValueError("components @ mixing has a zero row or column, NaN or infinity: the distance is not defined.")
    if k == 1:
        return 0.0
    excess = (gain / gain.max(axis=1, keepdims=True)).sum() + (gain / gain.max(axis=0)).sum() - 2 * k
    return float(excess / (2 * k * (k - 1)))
