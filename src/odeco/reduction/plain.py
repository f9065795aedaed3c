"""The plain reduction: M2 whitens M3 (section 4.3), and its eigenpairs are read back (Theorem 4.3)."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from odeco._random import RandomState
from odeco.decomposition import decompose
from odeco.reduction.checks import check_eigenpairs, check_lengths, check_third
from odeco.reduction.result import FloatArray, MomentDecomposition, Recovered, Reduction
from odeco.tensors import ExplicitTensor
from odeco.whitening import Whitener, whiten

Scale = Literal["weights", "unit-sum", "unit-norm"]


def reduce_moments(M2: ArrayLike, M3: ArrayLike, n_components: int) -> Reduction:
    """Whiten ``M3 = sum_i b_i mu_i^(x3)`` by ``M2 = sum_i a_i mu_i mu_i^T`` (section 4.3).

    ``M3(W, W, W)`` is orthogonally decomposable where the ``mu_i`` are linearly independent and all ``a_i`` positive
    (Condition 4.1). :func:`recover` reads its eigenpairs; :func:`decompose_moments` does all three steps.

    Parameters
    ----------
    M2 : (d, d) array
        Symmetric, with at least k positive eigenvalues.
    M3 : (d, d, d) array
        Symmetric.
    n_components : int
        k.

    Returns
    -------
    Reduction
        The whitener of M2, (d, k), and the tensor, (k, k, k).

    Raises
    ------
    MomentError
        Where M2 has a rank below k, or is indefinite.

    Examples
    --------
    >>> import numpy as np, odeco
    >>> means, weights = np.array([[2.0, 1.0, 0.0], [0.0, 1.0, 1.0]]), np.array([0.6, 0.4])
    >>> M2 = np.einsum("i,ia,ib->ab", weights, means, means)
    >>> M3 = np.einsum("i,ia,ib,ic->abc", weights, means, means, means)
    >>> reduced = odeco.reduction.reduce_moments(M2, M3, 2)
    >>> found = odeco.decompose(reduced.tensor, 2, method="power", random_state=0)
    >>> parts = odeco.reduction.recover(reduced.whitener, found.eigenvalues, found.eigenvectors)
    >>> np.round(np.sort(parts.weights), 6)
    array([0.4, 0.6])
    """
    return whitened(M2, check_third(M3, "M3", M2, "M2"), n_components)


def whitened(M2: ArrayLike, M3: FloatArray, n_components: int) -> Reduction:
    """`reduce_moments` for an M3 that is known to be symmetric and finite."""
    whitener = whiten(M2, n_components)
    return Reduction(whitener, ExplicitTensor(np.asarray(whitener.whiten_tensor(M3), dtype=np.float64)))


def recover(
    whitener: Whitener,
    eigenvalues: ArrayLike,
    eigenvectors: ArrayLike,
    *,
    ratio: float = 1.0,
    scale: Scale = "weights",
) -> Recovered:
    """Recover weights and vectors from eigenpairs of the whitened third moment (Theorem 4.3).

    ``M3(W, W, W)`` has the eigenvectors ``v_i = sqrt(a_i) W^T mu_i`` with the eigenvalues
    ``lambda_i = b_i a_i^(-3/2)``; so ``B v_i = sqrt(a_i) mu_i``, and one more relation separates ``a_i`` from
    the length of ``mu_i``.

    Parameters
    ----------
    whitener : Whitener
    eigenvalues : (r,) array
    eigenvectors : (k, r) array
        Columns of unit norm.
    ratio : float
        ``b_i / a_i``, the same for all i; used by ``scale="weights"`` alone. 1 for the single topic model
        (Theorem 3.1), ``2 / (alpha0 + 2)`` for latent Dirichlet allocation (Theorem 3.5).
    scale : {"weights", "unit-sum", "unit-norm"}
        "weights": ``b_i = ratio * a_i``, so ``a_i = (ratio / lambda_i)^2`` and the length of ``mu_i`` is
        identified. "unit-sum", "unit-norm": ``a_i`` and ``b_i`` are unrelated; ``a_i`` follows from ``mu_i``
        summing to one or having unit norm, and ``b_i = lambda_i a_i^(3/2)``. The sign of ``v_i`` is the one
        that makes ``mu_i`` sum to a positive number.

    Examples
    --------
    >>> import numpy as np, odeco
    >>> whitener = odeco.whiten(np.diag([0.5, 0.25]), 2)  # a = (1/2, 1/4), mu the unit vectors
    >>> odeco.reduction.recover(whitener, [2**0.5, 2.0], np.eye(2)).weights
    array([0.5 , 0.25])
    """
    values, vectors = check_eigenpairs(whitener, eigenvalues, eigenvectors)
    if scale == "weights":
        return _recover_by_ratio(whitener, values, vectors, ratio)
    if scale not in ("unit-sum", "unit-norm"):
        raise ValueError(f"scale must be 'weights', 'unit-sum' or 'unit-norm', got {scale!r}.")
    lifted = whitener.unwhiten(vectors).T
    sums = lifted.sum(axis=1)
    signs = np.where(sums < 0, -1.0, 1.0)
    lengths = np.abs(sums) if scale == "unit-sum" else np.linalg.norm(lifted, axis=1)
    weights = check_lengths(lengths, scale) ** 2
    return Recovered(weights, lifted * (signs / lengths)[:, None], signs * values * lengths**3)


def _recover_by_ratio(whitener: Whitener, values: FloatArray, vectors: FloatArray, ratio: float) -> Recovered:
    """``a_i = (c / lambda_i)^2`` and ``mu_i = (lambda_i / c) B v_i``, c the ratio."""
    if not np.isfinite(ratio) or ratio == 0:
        raise ValueError(f"ratio must be finite and not 0, got {ratio}.")
    if (values == 0).any():
        index = int(np.argmin(np.abs(values)))
        raise ValueError(
            f"eigenvalue {index} is 0: the third moment says nothing of this component. Lower the rank, "
            "or use scale='unit-sum' or 'unit-norm'."
        )
    # (lambda, v) and (-lambda, -v) are the same term at order 3, and neither lambda^2 nor lambda v differs.
    weights = (ratio / values) ** 2
    return Recovered(weights, (whitener.unwhiten(vectors) * (values / ratio)).T, ratio * weights)


def decompose_moments(
    M2: ArrayLike,
    M3: ArrayLike,
    n_components: int,
    *,
    method: str = "auto",
    random_state: RandomState = None,
    ratio: float = 1.0,
    scale: Scale = "weights",
    **options: Any,
) -> MomentDecomposition:
    """Components of explicit ``M2 = sum a_i mu_i mu_i^T`` and ``M3 = sum b_i mu_i^(x3)`` (section 4.3).

    Parameters
    ----------
    M2 : (d, d) array
        Symmetric, with at least k positive eigenvalues.
    M3 : (d, d, d) array
        Symmetric.
    n_components : int
        k.
    method, random_state, **options
        Passed to :func:`odeco.decompose`.
    ratio, scale
        Passed to :func:`recover`.

    Returns
    -------
    MomentDecomposition
        ``weights`` (k,), ``vectors`` (k, d) and ``third_weights`` (k,), with the decomposition and the whitener.

    Examples
    --------
    >>> import numpy as np, odeco
    >>> means, weights = np.array([[2.0, 1.0, 0.0], [0.0, 1.0, 1.0]]), np.array([0.6, 0.4])
    >>> M2 = np.einsum("i,ia,ib->ab", weights, means, means)
    >>> M3 = np.einsum("i,ia,ib,ic->abc", weights, means, means, means)
    >>> found = odeco.decompose_moments(M2, M3, 2, random_state=0)
    >>> bool(np.allclose(found.vectors[np.argsort(-found.weights)], means))
    True
    """
    reduced = reduce_moments(M2, M3, n_components)
    found = decompose(reduced.tensor, n_components, method=method, random_state=random_state, **options)
    parts = recover(reduced.whitener, found.eigenvalues, found.eigenvectors, ratio=ratio, scale=scale)
    return MomentDecomposition(parts.weights, parts.vectors, parts.third_weights, found, reduced.whitener)
