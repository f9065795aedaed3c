"""Whitening by a fourth-order tensor alone (sections 3.2.3 and 4.3 of the paper).

Every slice of T = sum_i kappa_i mu_i^(x4) has the same vectors: T(I, I, C) = sum_i kappa_i (mu_i' C mu_i) mu_i mu_i'
for symmetric C. It can whiten T, and where T is a cumulant no Gaussian noise is in it. With kappa_i of both signs the
paper's T(I, I, u, u) is indefinite: its whitened vectors are orthogonal in an indefinite inner product only, which no
orthogonal decomposition takes. But mu_i mu_i' are linearly independent where the mu_i are, so that the mu_i' C mu_i
may be any numbers; those that have the signs of the kappa_i make the slice positive definite, and the reduction exact.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from odeco.exceptions import MomentError
from odeco.tensors import SymmetricTensor, as_symmetric_tensor
from odeco.whitening.whitener import Whitener, check_n_components, whiten

Floats = NDArray[np.float64]

# A combination of this condition is good enough: whitening by it costs two of sixteen digits.
_CONDITION = 100.0
# Components and directions at random took up to 8 steps to a definite one; the others look for a better condition.
_N_STEPS = 200


def whiten_fourth(tensor: ArrayLike | SymmetricTensor, n_components: int, directions: ArrayLike) -> Whitener:
    """A whitener of T = sum_i kappa_i mu_i^(x4) from T alone, the kappa_i of any signs (section 4.3).

    ``T(W, W, W, W)`` has orthonormal components sqrt(w_i) W'mu_i with the eigenvalues kappa_i / w_i^2, for some
    w_i > 0. It is exact for linearly independent mu_i and almost all directions v_j: the matrix of all (mu_i'v_j)^2
    must have full rank. Where T is known up to sampling the best directions are near to the components. For orthonormal
    mu_i all w_i are 1, and W is a rotation.

    Parameters
    ----------
    tensor : array (d, d, d, d) or SymmetricTensor
    n_components : int
        k, the rank of T.
    directions : (d, m) array, m >= k
        Slices T(I, I, v, v) are taken for every column v.
    """
    fourth = as_symmetric_tensor(tensor)
    if fourth.order != 4:
        raise ValueError(f"tensor must be of order 4, got order {fourth.order}.")
    check_n_components(n_components, fourth.dimension)
    columns = np.asarray(directions, dtype=np.float64)
    if columns.ndim != 2 or len(columns) != fourth.dimension or not np.isfinite(columns).all():
        raise ValueError(f"directions must be finite of shape ({fourth.dimension}, m), got shape {columns.shape}.")
    slices = np.stack([fourth.matrix(column) for column in columns.T])
    space = _common_range(slices, n_components)
    M2 = definite_combination(space.T @ slices @ space)
    return Whitener(space, space, np.empty(0)).compose(whiten(M2, n_components))


def definite_combination(matrices: ArrayLike) -> Floats:
    """A positive definite linear combination of symmetric matrices, near to the identity where that is one.

    The first is the orthogonal projection of the identity on the span of the matrices. Where a combination M fails on a
    vector x, x'Mx <= 0, the perceptron's step adds orthonormal E_j of the span in proportion to x'E_j x: it ends if
    there is a definite combination at all. Ill-conditioned ones are mended in the same way, and the best is given.

    Parameters
    ----------
    matrices : (m, n, n) array
    """
    stack = np.asarray(matrices, dtype=np.float64)
    if stack.ndim != 3 or stack.shape[1] != stack.shape[2] or stack.size == 0:
        raise ValueError(f"matrices must have shape (m, n, n), got {stack.shape}.")
    span = _orthonormal(stack)
    coefficients = np.trace(span, axis1=1, axis2=2)
    best, least = np.zeros(stack.shape[1:]), float(len(stack) * np.finfo(float).eps)
    for _ in range(_N_STEPS):
        combination = np.tensordot(coefficients, span, axes=1)
        values, vectors = np.linalg.eigh(combination)
        ratio = float(values[0] / (np.abs(values).max() or 1.0))
        if ratio > least:
            best, least = combination, ratio
        if ratio > 1 / _CONDITION:
            break
        step = span @ vectors[:, 0] @ vectors[:, 0]
        coefficients = coefficients + step / (np.linalg.norm(step) or 1.0)
    if not best.any():
        raise MomentError(
            f"no combination of the {len(stack)} matrices of side {len(best)} is positive definite: fewer components "
            "than that stand above the noise. Lower their number, or use more samples."
        )
    return best


def _orthonormal(matrices: Floats) -> Floats:
    """An orthonormal basis of the span, in the inner product tr(A B), stacked as the matrices are."""
    sizes, rows = np.linalg.svd(matrices.reshape(len(matrices), -1), full_matrices=False)[1:]
    return np.asarray(rows[sizes > matrices.shape[1] * np.finfo(float).eps * sizes[0]].reshape(-1, *matrices.shape[1:]))


def _common_range(slices: Floats, rank: int) -> Floats:
    """Orthonormal basis (n, rank) of the space of all slices: the leading eigenvectors of the sum of their squares."""
    n = slices.shape[1]
    if rank == n:
        return np.eye(n)
    flat = slices.transpose(1, 0, 2).reshape(n, -1)
    return np.ascontiguousarray(np.linalg.eigh(flat @ flat.T)[1][:, ::-1][:, :rank])
