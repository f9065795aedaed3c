"""``"power"``: the robust tensor power method with deflation, Algorithm 1 of the paper."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from odeco.decomposition.finish import CONVERGED, Found
from odeco.decomposition.options import check_count, check_shift, check_starts
from odeco.decomposition.result import Status, StatusCode
from odeco.tensors import Deflated, SymmetricTensor
from odeco.tensors.algebra import Floats

# Far above what quadratic convergence leaves, far below what Theorem 5.1 allows at any noise it covers.
_SETTLED = 1e-3


def power_method(
    tensor: SymmetricTensor,
    rank: int,
    rng: np.random.Generator,
    *,
    n_restarts: int | None = None,
    n_iter: int = 30,
    starts: ArrayLike | None = None,
    shift: float = 0.0,
) -> Found:
    """Algorithm 1, called `rank` times, all L starts of a call in one matrix product.

    Parameters
    ----------
    n_restarts : int, optional
        L of the paper: random starts per component. Default max(10, n): linear in the dimension, which is where the
        theorem's bound tends for large k (`odeco.theory.restarts_needed` gives the bound itself).
    n_iter : int
        N of the paper: power updates of every start, and again of the best one.
    starts : (n, m), optional
        Used in every call instead of random starts (the end of section 5.2 suggests whitened samples).
    shift : float
        Adds shift * theta to every update (S-HOPM); 0 is the paper's.
    """
    check_count("n_iter", n_iter)
    check_shift(shift)
    if n_restarts is not None and starts is not None:
        raise ValueError("n_restarts and starts exclude each other: the starts given are the restarts.")
    count = max(10, tensor.dimension) if n_restarts is None else n_restarts
    check_count("n_restarts", count)
    given = None if starts is None else check_starts(starts, tensor.dimension)
    deflated = Deflated(tensor)
    moved = []
    for _ in range(rank):
        theta = random_unit(rng, tensor.dimension, count) if given is None else given
        theta = power_updates(deflated, theta, n_iter, shift)
        best = int(np.argmax(_merit(deflated, theta)))
        vector = power_updates(deflated, theta[:, best : best + 1], n_iter, shift)
        moved.append(extract(deflated, vector))
    return Found(deflated.removed.vectors, 2 * n_iter, convergence(moved, n_iter), deflated.removed.weights)


def extract(deflated: Deflated, vector: Floats) -> float:
    """Deflate by the eigenpair of a unit column (n, 1); returns how far one more update would move it."""
    mapped = deflated.power_map(vector)
    value = float(np.vdot(vector, mapped))
    deflated.remove(value, vector[:, 0])
    return float(np.linalg.norm(mapped - value * vector) / abs(value)) if value else 0.0


def convergence(moved: list[float], n_iter: int) -> Status:
    """Whether every component had settled when its updates ended."""
    worst = int(np.argmax(moved))
    if moved[worst] <= _SETTLED:
        return CONVERGED
    return Status(
        StatusCode.NOT_CONVERGED,
        f"component {worst} would still move by {moved[worst]:.2g} after its {n_iter} last updates.",
        "Raise n_iter, lower the rank, or set shift where the iteration oscillates.",
    )


def random_unit(rng: np.random.Generator, n: int, count: int) -> Floats:
    """Columns drawn uniformly from the unit sphere."""
    draws = rng.standard_normal((n, count))
    return np.asarray(draws / np.linalg.norm(draws, axis=0))


def power_updates(tensor: SymmetricTensor, theta: Floats, n_iter: int, shift: float = 0.0) -> Floats:
    """`n_iter` updates theta <- T(I, theta, ..) / ||.|| of every column (equation 5 of the paper).

    With a shift the update is T(I, theta, ..) + shift * theta, in the direction of the sign of T(theta, ..).
    """
    for _ in range(n_iter):
        step = tensor.power_map(theta)
        if shift:
            value = np.einsum("ij,ij->j", theta, step)
            step = step * np.where(value < 0, -1.0, 1.0) + shift * theta
        norms = np.linalg.norm(step, axis=0)
        theta = np.where(norms > 0, step / np.where(norms > 0, norms, 1.0), theta)
    return theta


def _merit(tensor: SymmetricTensor, theta: Floats) -> Floats:
    """T(theta, theta, theta), which ranks the starts; its magnitude at order 4, where eigenvalues have both signs."""
    values = tensor.values(theta)
    return values if tensor.order == 3 else np.abs(values)
