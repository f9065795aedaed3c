"""Multilinear algebra on explicit symmetric arrays (section 2 of the paper).

Everything here works on plain arrays of any order; the classes next door add what is fast.
"""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


def multilinear(tensor: ArrayLike, *factors: ArrayLike | None) -> Any:
    """The multilinear map T(V1, ..., Vp) of section 2.

    Parameters
    ----------
    tensor : array of order p
        Need not be symmetric.
    factors : p factors
        A matrix (n_i, m_i) maps its axis to m_i, a vector contracts the axis away, and ``None`` stands for the
        identity and leaves the axis as it is: ``multilinear(T, None, u, u)`` is T(I, u, u).

    Returns
    -------
    array with one axis per matrix or ``None``; a float where all factors are vectors.
    """
    result = np.asarray(tensor)
    if len(factors) != result.ndim:
        raise ValueError(f"A tensor of order {result.ndim} takes {result.ndim} factors, got {len(factors)}.")
    # From the last axis to the first, so that contracted axes do not move those still to come.
    for axis in range(result.ndim - 1, -1, -1):
        factor = factors[axis]
        if factor is None:
            continue
        matrix = np.asarray(factor)
        if matrix.ndim not in (1, 2) or matrix.shape[0] != result.shape[axis]:
            raise ValueError(
                f"Factor {axis} has shape {matrix.shape}; axis {axis} of the tensor needs a vector or matrix "
                f"with {result.shape[axis]} rows (or None for the identity)."
            )
        result = np.tensordot(result, matrix, axes=(axis, 0))
        if matrix.ndim == 2:
            result = np.moveaxis(result, -1, axis)
    return float(result) if result.ndim == 0 else result


def rank_one_sum(weights: ArrayLike, vectors: ArrayLike, order: int = 3) -> Floats:
    """The explicit tensor sum_j weights[j] * vectors[:, j]^(x order)."""
    weight = np.asarray(weights, dtype=float)
    columns = np.asarray(vectors, dtype=float)
    if columns.ndim != 2 or weight.shape != columns.shape[1:] or order < 2:
        raise ValueError(
            f"vectors must be (n, m) with one weight for each of m columns and order at least 2, got shapes "
            f"{columns.shape} and {weight.shape}, order {order}."
        )
    n, r = columns.shape
    left = columns * weight
    for power in range(2, order):
        left = (left[:, None, :] * columns).reshape(n**power, r)
    return np.asarray(left @ columns.T).reshape((n,) * order)


def symmetrize(tensor: ArrayLike) -> Floats:
    """The average of a cubic array over all permutations of its axes."""
    array = np.asarray(tensor, dtype=float)
    if len(set(array.shape)) > 1:
        raise ValueError(f"tensor must be cubic (all sides equal), got shape {array.shape}.")
    orders = list(permutations(range(array.ndim)))
    total = np.zeros_like(array)
    for axes in orders:
        total += array.transpose(axes)
    total /= len(orders)
    return total


def frobenius_norm(tensor: ArrayLike) -> float:
    """The Euclidean norm of all entries, safe against overflow of their squares."""
    array = np.asarray(tensor, dtype=float)
    scale = float(np.abs(array).max(initial=0.0))
    if scale == 0.0 or not np.isfinite(scale):
        return scale
    return scale * float(np.linalg.norm((array / scale).ravel()))


def asymmetry(tensor: ArrayLike) -> float:
    """The largest |T[..i, j..] - T[..j, i..]| over swaps of neighbouring axes; 0 for a symmetric tensor.

    Swaps of neighbours generate all permutations. Slice by slice from the leading axis, so that rows are read in order
    and no second tensor is formed.
    """
    array = np.asarray(tensor, dtype=float)
    if array.ndim == 2:
        difference = array - array.T
        return float(difference.max(initial=0.0))  # antisymmetric: its largest entry is its largest magnitude
    worst = 0.0
    for i in range(array.shape[0]):
        difference = array[i, i + 1 :] - array[i + 1 :, i]
        worst = max(worst, difference.max(initial=0.0), -difference.min(initial=0.0), asymmetry(array[i]))
    return float(worst)
