"""Draws with the truth included: tensors now, every model as it arrives."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ._random import RandomState, as_generator
from .tensors import operator_norm_lower_bound, rank_one_sum, symmetrize
from .tensors.algebra import Floats


@dataclass(frozen=True)
class OdecoSample:
    """An orthogonally decomposable tensor plus symmetric noise, and what it was made of.

    `noise_norm` is the operator norm of `noise` as estimated from many starts (a lower bound of the true one).
    """

    tensor: Floats
    eigenvalues: Floats
    eigenvectors: Floats
    noise: Floats | None
    noise_norm: float


def odeco_tensor(
    n: int,
    rank: int | None = None,
    *,
    order: int = 3,
    eigenvalues: ArrayLike | None = None,
    noise: float = 0.0,
    random_state: RandomState = None,
) -> OdecoSample:
    """Draw T = sum_i lambda_i v_i^(x order) + E with a random orthonormal set v_i.

    Parameters
    ----------
    n : int
        Dimension.
    rank : int, optional
        Number of components, n by default (or as many as `eigenvalues`).
    order : {3, 4}
    eigenvalues : array (rank,), optional
        Ones by default. Order 4 takes both signs; at order 3 a negative one comes back positive with its vector turned.
    noise : float
        Operator norm of the symmetrised Gaussian E, scaled by a lower bound from many starts.
    """
    if order not in (3, 4):
        raise ValueError(f"order must be 3 or 4, got {order}.")
    values = np.ones(n if rank is None else rank) if eigenvalues is None else np.asarray(eigenvalues, dtype=float)
    if values.ndim != 1 or (rank is not None and values.size != rank):
        raise ValueError(f"eigenvalues must have length rank = {rank}, got shape {values.shape}.")
    if not 1 <= values.size <= n:
        raise ValueError(f"rank must be between 1 and n = {n}, got {values.size}.")
    rng = as_generator(random_state)
    vectors, triangular = np.linalg.qr(rng.standard_normal((n, values.size)))
    vectors = vectors * np.sign(np.diag(triangular))  # uniformly distributed frames
    if order == 3:
        vectors, values = vectors * np.where(values < 0, -1.0, 1.0), np.abs(values)
    tensor = rank_one_sum(values, vectors, order)
    if noise == 0.0:
        return OdecoSample(symmetrize(tensor), values, vectors, None, 0.0)
    error = symmetric_noise(n, order=order, operator_norm=noise, random_state=rng)
    return OdecoSample(symmetrize(tensor) + error, values, vectors, error, noise)


def symmetric_noise(n: int, *, order: int = 3, operator_norm: float = 1.0, random_state: RandomState = None) -> Floats:
    """A symmetrised Gaussian tensor scaled to the given operator norm, estimated from below by 50 starts."""
    rng = as_generator(random_state)
    error = symmetrize(rng.standard_normal((n,) * order))
    error *= operator_norm / operator_norm_lower_bound(error, random_state=rng).value
    return error
