"""``"auto"``: all components at once by orthogonal iteration with a polar retraction.

No restarts and no deflation. Every column takes its power step, W_j = T(I, v_j, .., v_j), and the frame is made
orthonormal again by the polar factor of W diag(lambda): the nearest orthonormal frame when errors are weighted by the
eigenvalues, so that strong components are not bent by weak ones. The factor k^(1+delta) that section 6.2 of the paper
pays for restarts disappears (measured, not proved: see docs/decomposition.md).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from odeco.decomposition.finish import CONVERGED, Found
from odeco.decomposition.options import check_count, check_positive, check_shift, check_starts
from odeco.decomposition.power import power_updates
from odeco.decomposition.result import Status, StatusCode
from odeco.tensors import ExplicitTensor, SymmetricTensor, multilinear
from odeco.tensors.algebra import Floats

# Single precision carries the iteration to here; its own rounding is 1e-7 times the condition of the polar factor.
_SINGLE_TOLERANCE = 1e-3
# Below this dimension single precision saves nothing: calls cost more than flops.
_SINGLE_DIMENSION = 32


def orthogonal_iteration(
    tensor: SymmetricTensor,
    rank: int,
    rng: np.random.Generator,
    *,
    n_iter: int = 100,
    tol: float = 1e-6,
    starts: ArrayLike | None = None,
    shift: float = 0.0,
    decouple: bool = False,
) -> Found:
    """Decompose a tensor of order 3 or 4, explicit or implicit.

    Parameters
    ----------
    n_iter : int
        Cap on iterations.
    tol : float
        Largest change of a column at which the iteration stops.
    starts : (n, rank), optional
        Start frame instead of the eigenvectors of a random slice.
    shift : float
        Adds shift * v_j, with the sign of the value, to every step (S-HOPM), in units of the tensor: damps
        oscillations on tensors far from odeco.
    decouple : bool
        One power step without the orthonormality constraint at the end: better where the factors are not exactly
        orthonormal, slightly worse on sampled moments.
    """
    check_count("n_iter", n_iter)
    check_positive("tol", tol)
    check_shift(shift)
    spent = 0
    if starts is not None:
        frame = polar(check_starts(starts, tensor.dimension, rank))
    elif rank < tensor.dimension and isinstance(tensor, ExplicitTensor):
        frame, spent = _start_compressed(tensor, rank, rng, n_iter, shift)
    else:
        frame = slice_frame(tensor.random_slice(rng), rank)
    frame, used, change = _iterate(tensor, frame, n_iter, tol, shift)
    if decouple:
        frame = power_updates(tensor, frame, 1)
    status = CONVERGED
    if change > tol:
        status = Status(
            StatusCode.NOT_CONVERGED,
            f"columns still move by {change:.2g} after {used} iterations.",
            "The tensor may be far from orthogonally decomposable: check the residual, lower the rank, or set shift.",
        )
    return Found(frame, spent + used, status)


def slice_frame(matrix: Floats, rank: int) -> Floats:
    """Orthonormal eigenvectors of a symmetric slice, the `rank` largest eigenvalues in magnitude."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    return np.ascontiguousarray(vectors[:, np.argsort(-np.abs(values), kind="stable")[:rank]])


def leading_subspace(tensor: ExplicitTensor, rank: int) -> Floats:
    """Leading left singular vectors of the flattening: where all components live when the rank is below n."""
    return np.ascontiguousarray(np.linalg.eigh(tensor.gram)[1][:, ::-1][:, :rank])


def compress(tensor: ExplicitTensor, basis: Floats) -> ExplicitTensor:
    """The small tensor T(U, .., U)."""
    return ExplicitTensor(np.ascontiguousarray(multilinear(tensor.array, *([basis] * tensor.order))))


def _start_compressed(
    tensor: ExplicitTensor, rank: int, rng: np.random.Generator, n_iter: int, shift: float
) -> tuple[Floats, int]:
    """Iterate inside the leading subspace first: there random starts see no noise from outside it."""
    basis = leading_subspace(tensor, rank)
    core = compress(tensor, basis)
    frame, used, _ = _iterate(core, slice_frame(core.random_slice(rng), rank), n_iter, _SINGLE_TOLERANCE, shift)
    return basis @ frame, used


def _iterate(
    tensor: SymmetricTensor, frame: Floats, n_iter: int, tol: float, shift: float
) -> tuple[Floats, int, float]:
    """Single precision until the frame settles, then double; small or implicit tensors in double throughout."""
    used = 0
    if isinstance(tensor, ExplicitTensor) and tensor.dimension >= _SINGLE_DIMENSION:
        single = tensor.packed(np.float32).power_map
        frame, used, change = _run(single, frame, n_iter, max(tol, _SINGLE_TOLERANCE), shift / tensor.scale)
        if change <= tol and tol >= _SINGLE_TOLERANCE:
            return frame, used, change
    frame, more, change = _run(tensor.power_map, frame, max(n_iter - used, 1), tol, shift)
    return frame, used + more, change


def _run(
    power_map: Callable[[NDArray[Any]], NDArray[Any]], frame: Floats, n_iter: int, tol: float, shift: float
) -> tuple[Floats, int, float]:
    change = np.inf
    negligible = 1e-5 if tol >= _SINGLE_TOLERANCE else 1e-12
    for iteration in range(1, n_iter + 1):
        step = power_map(frame).astype(float, copy=False)
        values = np.einsum("ij,ij->j", frame, step)
        if shift:  # away from zero: on the side of the value's sign
            towards = np.where(values < 0, -shift, shift)
            step, values = step + towards * frame, values + towards
        moved = polar(step * (values / (np.abs(step).max() * np.abs(values).max() or 1.0)))
        # Columns whose value is rounding (the rank is lower than asked for) have no direction to settle in.
        settled = np.abs(values) <= negligible * np.abs(values).max()
        change = float(np.where(settled, 0.0, np.linalg.norm(moved - frame, axis=0)).max())
        frame = moved
        if change <= tol:
            break
    return frame, iteration, change


def polar(matrix: Floats) -> Floats:
    """The orthonormal polar factor U V' of an (n, r) matrix U S V', r <= n.

    From the eigenvectors of the r x r Gram matrix, with one Newton-Schulz step against its rounding; by SVD where the
    Gram matrix is close to singular.
    """
    gram = matrix.T @ matrix
    values, vectors = np.linalg.eigh(gram)
    if values[0] <= 1e-10 * values[-1] or not values[-1] > 0:
        left, _, right = np.linalg.svd(matrix, full_matrices=False)
        return np.asarray(left @ right)
    factor = matrix @ ((vectors / np.sqrt(values)) @ vectors.T)
    return np.asarray(factor @ (1.5 * np.eye(gram.shape[0]) - 0.5 * (factor.T @ factor)))
