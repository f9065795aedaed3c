"""Recovery: the whitening reduction read backwards (section 4.3, Theorem 4.3 of the paper)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from odeco._random import RandomState, as_generator
from odeco.tensors import as_symmetric_tensor
from odeco.whitening import Whitener, whiten, whiten_fourth
from odeco.whitening.whitener import check_n_components

if TYPE_CHECKING:
    from odeco.decomposition import Decomposition

Scale = Literal["weights", "unit-sum", "unit-norm"]
FloatArray = NDArray[np.floating]


@dataclass(frozen=True, eq=False)
class Recovered:
    """Components of ``M2 = sum_i a_i mu_i mu_i^T`` and ``M3 = sum_i b_i mu_i (x) mu_i (x) mu_i``.

    Attributes
    ----------
    weights : (r,) array
        ``a_i``.
    vectors : (r, d) array
        ``mu_i`` as rows.
    third_weights : (r,) array
        ``b_i``.
    """

    weights: FloatArray
    vectors: FloatArray = field(repr=False)
    third_weights: FloatArray


@dataclass(frozen=True, eq=False)
class MomentDecomposition(Recovered):
    """:class:`Recovered` components together with the decomposition and the whitener they came from.

    Component i belongs to eigenpair i of ``decomposition``.
    """

    decomposition: Decomposition
    whitener: Whitener


@dataclass(frozen=True, eq=False)
class FourthDecomposition:
    """Components of ``M4 = sum_i kappa_i mu_i^(x4)``, and the decomposition and the whitener they came from.

    Attributes
    ----------
    weights : (k,) array
        ``kappa_i``, of any sign.
    vectors : (k, d) array
        ``mu_i`` as rows of unit norm: M4 does not tell their length from ``kappa_i``.
    """

    weights: FloatArray
    vectors: FloatArray = field(repr=False)
    decomposition: Decomposition
    whitener: Whitener


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
    """
    values, vectors = _check_eigenpairs(whitener, eigenvalues, eigenvectors)
    if scale == "weights":
        return _recover_by_ratio(whitener, values, vectors, ratio)
    if scale not in ("unit-sum", "unit-norm"):
        raise ValueError(f"scale must be 'weights', 'unit-sum' or 'unit-norm', got {scale!r}.")
    lifted = whitener.unwhiten(vectors).T
    sums = lifted.sum(axis=1)
    signs = np.where(sums < 0, -1.0, 1.0)
    lengths = np.abs(sums) if scale == "unit-sum" else np.linalg.norm(lifted, axis=1)
    if not (lengths > 0).all():
        index = int(np.argmin(lengths))
        raise ValueError(f"component {index} lifts to a vector of length 0, it cannot be scaled to {scale}.")
    weights = lengths**2
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
    M3 : (d, d, d) array
    n_components : int
    method, random_state, **options
        Passed to :func:`odeco.decompose`.
    ratio, scale
        Passed to :func:`recover`.
    """
    from odeco.decomposition import decompose

    if np.ndim(M3) != 3:
        raise ValueError(f"M3 must be of order 3, got shape {np.shape(M3)}.")
    whitener = whiten(M2, n_components)
    tensor = whitener.whiten_tensor(M3)
    decomposition = decompose(tensor, n_components, method=method, random_state=random_state, **options)
    parts = recover(whitener, decomposition.eigenvalues, decomposition.eigenvectors, ratio=ratio, scale=scale)
    return MomentDecomposition(parts.weights, parts.vectors, parts.third_weights, decomposition, whitener)


def decompose_fourth(
    M4: ArrayLike, n_components: int, *, method: str = "auto", random_state: RandomState = None, **options: Any
) -> FourthDecomposition:
    """Components of ``M4 = sum_i kappa_i mu_i^(x4)``, linearly independent, from M4 alone (sections 3.2.3 and 4.3).

    The ``mu_i`` need not be orthogonal, the ``kappa_i`` may have both signs. Where M4 is the fourth cumulant of
    x = A h + z (Theorem 3.4), Gaussian noise z of any covariance has no part in the result.

    Parameters
    ----------
    M4 : (d, d, d, d) array
    n_components : int
    method, random_state, **options
        Passed to :func:`odeco.decompose`.
    """
    from odeco.decomposition import decompose, run_method

    tensor, rng = as_symmetric_tensor(M4), as_generator(random_state)
    if tensor.order != 4:
        raise ValueError(f"M4 must be of order 4, got order {tensor.order}.")
    check_n_components(n_components, tensor.dimension)
    # Almost any directions serve: what an orthogonal fit finds needs not to be right.
    rough = run_method(tensor, n_components, "auto", rng, {"tol": 1e-3})
    whitener = whiten_fourth(tensor, n_components, rough.eigenvectors)
    small = tensor.through(np.asarray(whitener.matrix))
    decomposition = decompose(small, n_components, method=method, random_state=rng, **options)
    lifted = whitener.unwhiten(decomposition.eigenvectors).T
    lengths = np.linalg.norm(lifted, axis=1)
    weights = decomposition.eigenvalues * lengths**4
    return FourthDecomposition(weights, lifted / lengths[:, None], decomposition, whitener)


def _check_eigenpairs(
    whitener: Whitener, eigenvalues: ArrayLike, eigenvectors: ArrayLike
) -> tuple[FloatArray, FloatArray]:
    """Return eigenpairs as float arrays of matching shapes (r,) and (k, r)."""
    values, vectors = np.asarray(eigenvalues, dtype=np.float64), np.asarray(eigenvectors, dtype=np.float64)
    if values.ndim != 1 or vectors.shape != (whitener.n_components, values.shape[0]):
        raise ValueError(
            f"eigenvalues and eigenvectors must have shapes (r,) and ({whitener.n_components}, r), "
            f"got {values.shape} and {vectors.shape}."
        )
    if not (np.isfinite(values).all() and np.isfinite(vectors).all()):
        raise ValueError("eigenvalues and eigenvectors must be finite.")
    return values, vectors
