"""``"joint"``: orthogonal joint diagonalization of several slices (appendix D)."""

from __future__ import annotations

import numpy as np

from odeco.decomposition.finish import CONVERGED, Found
from odeco.decomposition.options import check_count, check_positive
from odeco.decomposition.orthogonal import leading_subspace
from odeco.decomposition.result import Status, StatusCode
from odeco.tensors import ExplicitTensor, SymmetricTensor
from odeco.tensors.algebra import Floats


def joint_diagonalization(
    tensor: SymmetricTensor,
    rank: int,
    rng: np.random.Generator,
    *,
    n_slices: int | None = None,
    n_iter: int = 100,
    tol: float = 1e-8,
) -> Found:
    """The orthonormal frame that makes m slices T(I, I, eta_l) as diagonal as possible, by Jacobi rotations.

    Parameters
    ----------
    n_slices : int, optional
        m, default as many slices as there are directions to tell apart, so that every component has one of its own.
    n_iter : int
        Cap on sweeps over all pairs of columns.
    tol : float
        Largest |sin| of a rotation angle at which the sweeps stop.
    """
    check_count("n_iter", n_iter)
    check_positive("tol", tol)
    if n_slices is not None:
        check_count("n_slices", n_slices)
    assert isinstance(tensor, ExplicitTensor)  # the door lets no other in
    basis = _component_space(tensor, rank)
    core = tensor.through(basis) if basis.shape[1] < tensor.dimension else tensor
    frame, sweeps, largest = _jacobi(_slices(core, n_slices or core.dimension, rng), n_iter, tol)
    frame = frame[:, np.argsort(-np.abs(core.values(frame)), kind="stable")[:rank]]
    status = CONVERGED
    if largest > tol:
        status = Status(
            StatusCode.NOT_CONVERGED,
            f"rotations of {largest:.2g} remain after {sweeps} sweeps.",
            "Raise n_iter, or use method='auto'.",
        )
    return Found(basis @ frame, sweeps, status)


def _component_space(tensor: ExplicitTensor, rank: int) -> Floats:
    """Where at least `rank` components live: leading singular vectors of the flattening, up to a gap of a factor 2.

    A tensor with more components than asked for has no gap at `rank`, and a part of their space holds none of them.
    """
    n, width = tensor.dimension, rank
    squares = np.linalg.eigvalsh(tensor.gram)[::-1]
    while width < n and squares[width] > squares[width - 1] / 4:
        width += 1
    return leading_subspace(tensor, width) if width < n else np.eye(n)


def _slices(tensor: ExplicitTensor, count: int, rng: np.random.Generator) -> Floats:
    """`count` slices along orthonormal random directions where there are enough of them, stacked (m, r, r)."""
    n = tensor.dimension
    if tensor.order == 4:
        return np.stack([tensor.random_slice(rng) for _ in range(count)])
    directions = rng.standard_normal((n, count))
    if count <= n:
        directions = np.linalg.qr(directions)[0]
    return tensor.matrices(directions)


def _jacobi(matrices: Floats, n_iter: int, tol: float) -> tuple[Floats, int, float]:
    """Sweeps of plane rotations over all pairs (Cardoso and Souloumiac's angles, real case)."""
    from odeco.kernels.jacobi import jacobi_sweep

    # (r, r, m): the m entries of one position side by side, which is what a rotation reads.
    stack = np.ascontiguousarray(np.moveaxis(matrices, 0, -1))
    frame = np.eye(stack.shape[0])
    largest = np.inf
    for sweep in range(1, n_iter + 1):
        largest = float(jacobi_sweep(stack, frame))
        if largest <= tol:
            break
    return frame, sweep, largest
