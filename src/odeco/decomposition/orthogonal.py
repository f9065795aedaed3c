"""``"auto"``: all components at once by orthogonal iteration with a polar retraction.

No restarts and no deflation. Every column takes its power step, W_j = T(I, v_j, .., v_j), and the frame is made
orthonormal again by the polar factor of W diag(lambda): the nearest orthonormal frame when errors are weighted by the
eigenvalues, so that strong components are not bent by weak ones. The factor k^(1+delta) that section 6.2 of the paper
pays for restarts disappears (measured, not proved: see docs/decomposition.md).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from odeco.decomposition.finish import CONVERGED, Found
from odeco.decomposition.options import check_count, check_positive, check_shift, check_starts
from odeco.decomposition.power import power_updates
from odeco.decomposition.result import Status, StatusCode
from odeco.tensors import ExplicitTensor, SymmetricTensor
from odeco.tensors.algebra import Floats

# Single precision carries the iteration to here, a little above its own rounding.
_SINGLE_TOLERANCE = 1e-5
# What is good enough for a start: the iteration goes on from it.
_START_TOLERANCE = 1e-3
# Frobenius norm of a turn that counts as small: its square is what the second order leaves to be mended.
_NEARBY = 0.3
# Below this dimension single precision saves nothing: calls cost more than flops.
_SINGLE_DIMENSION = 32
# Up to here all of it is one compiled loop.
_COMPILED_DIMENSION = 12


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
    end = _iterate(tensor, frame, n_iter, tol, shift)
    if decouple:
        return Found(power_updates(tensor, end.frame, 1), spent + end.n_iter, CONVERGED)
    if end.change > tol:
        status = Status(
            StatusCode.NOT_CONVERGED,
            f"columns still move by {end.change:.2g} after {end.n_iter} iterations.",
            "The tensor may be far from orthogonally decomposable: check the residual, lower the rank, or set shift.",
        )
        return Found(end.frame, spent + end.n_iter, status)
    if tensor.dimension < _SINGLE_DIMENSION:
        return Found(end.frame, spent + end.n_iter, CONVERGED)
    # A contraction saved: values and map are one step behind the frame. Eigenvalues differ by the square of the last
    # change (below tol), the map by the noise times it.
    return Found(end.frame, spent + end.n_iter, CONVERGED, end.values, end.mapped)


def slice_frame(matrix: Floats, rank: int) -> Floats:
    """Orthonormal eigenvectors of a symmetric slice, the `rank` largest eigenvalues in magnitude."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    return np.ascontiguousarray(vectors[:, np.argsort(-np.abs(values), kind="stable")[:rank]])


def leading_subspace(tensor: ExplicitTensor, rank: int) -> Floats:
    """Leading left singular vectors of the flattening: where all components live when the rank is below n."""
    return np.ascontiguousarray(np.linalg.eigh(tensor.gram)[1][:, ::-1][:, :rank])


def _start_compressed(
    tensor: ExplicitTensor, rank: int, rng: np.random.Generator, n_iter: int, shift: float
) -> tuple[Floats, int]:
    """Iterate inside the leading subspace first: there random starts see no noise from outside it."""
    basis = leading_subspace(tensor, rank)
    core = tensor.through(basis)
    end = _iterate(core, slice_frame(core.random_slice(rng), rank), n_iter, _START_TOLERANCE, shift)
    return basis @ end.frame, end.n_iter


@dataclass(frozen=True, eq=False)
class _End:
    """Where a run ended: the frame, and values and map of the frame one step before it."""

    frame: Floats
    n_iter: int
    change: float
    values: Floats
    mapped: Floats


def _iterate(tensor: SymmetricTensor, frame: Floats, n_iter: int, tol: float, shift: float) -> _End:
    """Single precision as far as it goes, then double; small or implicit tensors in double throughout."""
    used = 0
    if isinstance(tensor, ExplicitTensor) and tensor.dimension >= _SINGLE_DIMENSION:
        single = tensor.packed(np.float32).power_map
        rough = _run(single, frame, n_iter, max(tol, _SINGLE_TOLERANCE), shift / tensor.scale, single=True)
        if rough.change <= tol and tol >= _START_TOLERANCE:  # in the tensor's own units again
            return replace(rough, values=tensor.scale * rough.values, mapped=tensor.scale * rough.mapped)
        frame, used = rough.frame, rough.n_iter
    left = max(n_iter - used, 1)
    end = _run_compiled(tensor, frame, left, tol, shift)
    if end is None:
        end = _run(tensor.power_map, frame, left, tol, shift, single=False)
    return replace(end, n_iter=used + end.n_iter)


def _run_compiled(tensor: SymmetricTensor, frame: Floats, n_iter: int, tol: float, shift: float) -> _End | None:
    """`_run` in one call, where calls cost more than flops; None for other tensors, or where it takes an SVD."""
    if not isinstance(tensor, ExplicitTensor) or tensor.dimension > _COMPILED_DIMENSION:
        return None
    from odeco.kernels.frames import iterate_frame

    moved, values, mapped = np.array(frame, dtype=float, order="C"), np.empty(frame.shape[1]), np.empty(frame.shape)
    flat = np.ascontiguousarray(tensor.array, dtype=float).ravel()
    used, change = iterate_frame(flat, tensor.order, n_iter, tol, shift, moved, values, mapped)
    return _End(moved, used, change, values, mapped) if used else None


def _run(
    power_map: Callable[[NDArray[Any]], NDArray[Any]],
    frame: Floats,
    n_iter: int,
    tol: float,
    shift: float,
    *,
    single: bool,
) -> _End:
    change = np.inf
    negligible = 1e-5 if single else 1e-12
    for iteration in range(1, n_iter + 1):
        mapped = power_map(frame).astype(float, copy=False)
        values = np.einsum("ij,ij->j", frame, mapped)
        step, strength = mapped, values
        if shift:  # away from zero: on the side of the value's sign
            towards = np.where(values < 0, -shift, shift)
            step, strength = mapped + towards * frame, values + towards
        moved = retract(frame, step * (strength / (np.abs(step).max() * np.abs(strength).max() or 1.0)))
        # Columns whose value is rounding (the rank is lower than asked for) have no direction to settle in.
        settled = np.abs(strength) <= negligible * np.abs(strength).max()
        before, change = change, float(np.where(settled, 0.0, np.linalg.norm(moved - frame, axis=0)).max())
        frame = moved
        # Single precision that no longer gains has reached its rounding: double goes on from there.
        if change <= tol or (single and _START_TOLERANCE > change > before / 2):
            break
    return _End(frame, iteration, change, values, mapped)


def retract(frame: Floats, matrix: Floats) -> Floats:
    """The polar factor of `matrix`, or where that is near to the orthonormal `frame` a step to it of second order.

    With A = V'X = D + small, the polar factor of X is V (I + K) + (X - V A) / D up to squares, K_ij = (A_ij - A_ji) /
    (d_i + d_j); Newton-Schulz steps make it orthonormal to rounding. Both stand still at the same frames, and this one
    is all matrix products.
    """
    inner = frame.T @ matrix
    strengths = np.diag(inner)
    if frame.shape[0] < _SINGLE_DIMENSION or not strengths.min() > 1e-8 * strengths.max():
        return polar(matrix)
    turn = (inner - inner.T) / (strengths[:, None] + strengths)
    outside = (matrix - frame @ inner) / strengths if frame.shape[0] > frame.shape[1] else np.zeros(1)
    if np.linalg.norm(turn) > _NEARBY or np.linalg.norm(outside) > _NEARBY:
        return polar(matrix)
    moved = frame + frame @ turn + outside
    for _ in range(4):  # squares the defect each time, from below _NEARBY^2
        defect = moved.T @ moved
        defect[np.diag_indices_from(defect)] -= 1.0
        moved = moved - 0.5 * (moved @ defect)
        if np.abs(defect).max() < 1e-8:
            break
    return moved


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
