"""The affine reduction: a mixture's means about their mean, in one dimension fewer.

About the mean, the second moment of k means has rank k - 1. Whiten those k - 1 dimensions and append a constant 1: with
a_i the whitened means, the vectors sqrt(w_i) (a_i, 1) are orthonormal, and the third moment of (a_h, 1) is a tensor
whose eigenvectors they are: the reduction of section 4.3, applied to the vectors (mu_i, 1). The means need not be
linearly independent, only span k - 1 dimensions about their mean; weights are read from second moments, as squares of
last coordinates, instead of third ones.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from odeco._random import RandomState
from odeco.decomposition import decompose
from odeco.exceptions import MomentError
from odeco.reduction.checks import check_finite, check_third
from odeco.reduction.result import AffineDecomposition, Components, FloatArray, Reduction
from odeco.tensors import ExplicitTensor
from odeco.whitening import Whitener, whiten

Floats = NDArray[np.float64]


def reduce_affine(covariance: ArrayLike, third: ArrayLike, n_components: int) -> Reduction:
    """Whiten the moments of k means about their mean, and append the constant (section 4.3 for (mu_i, 1)).

    :func:`recover_affine` reads the eigenvectors of the tensor; :func:`decompose_affine` does all three steps.

    Parameters
    ----------
    covariance : (d, d) array
        ``sum_i w_i (mu_i - m) (x) (mu_i - m)`` with m the mean: what noise adds is taken out already.
    third : (d, d, d) array
        ``sum_i w_i (mu_i - m)^(x3)``, likewise.
    n_components : int
        k, at least 2 and at most d + 1.

    Returns
    -------
    Reduction
        A whitener of the covariance, (d, k - 1), and the tensor ``sum_i w_i (a_i, 1)^(x3)``, (k, k, k).

    Raises
    ------
    MomentError
        Where the covariance has a rank below k - 1, or is indefinite.

    Examples
    --------
    >>> import numpy as np, odeco
    >>> offsets, weights = np.array([[-1.0], [4.0]]), np.array([0.8, 0.2])  # two means on a line
    >>> covariance = np.einsum("i,ia,ib->ab", weights, offsets, offsets)
    >>> third = np.einsum("i,ia,ib,ic->abc", weights, offsets, offsets, offsets)
    >>> reduced = odeco.reduction.reduce_affine(covariance, third, 2)
    >>> found = odeco.decompose(reduced.tensor, 2, random_state=0)
    >>> parts = odeco.reduction.recover_affine(reduced.whitener, found.eigenvectors, mean=[3.0])
    >>> np.round(np.sort(parts.vectors, axis=0).T, 6)
    array([[2., 7.]])
    """
    cubes = check_third(third, "third", covariance, "covariance")
    rank = _check_count(n_components, cubes.shape[0]) - 1
    try:
        whitener = whiten(covariance, rank)
    except MomentError as error:
        raise MomentError(
            f"{n_components} components have means that span {rank} dimensions about their mean. Of these, with the "
            f"covariance as M2: {error}"
        ) from error
    return Reduction(whitener, ExplicitTensor(affine_tensor(whitener.whiten_tensor(cubes))))


def recover_affine(whitener: Whitener, eigenvectors: ArrayLike, mean: ArrayLike) -> Components:
    """Weights and means from the eigenvectors of the tensor of :func:`reduce_affine` (Theorem 4.3 for (mu_i, 1)).

    An eigenvector is ``sqrt(w_i) (a_i, 1)``, up to its sign: its last coordinate tells the weight.

    Parameters
    ----------
    whitener : Whitener
        From d to k - 1 dimensions.
    eigenvectors : (k, r) array
        Columns of unit norm.
    mean : (d,) array
        m.

    Returns
    -------
    Components
        ``weights`` (r,), and ``vectors`` (r, d), the means.

    Raises
    ------
    MomentError
        Where a component has no weight.

    Examples
    --------
    >>> import numpy as np, odeco
    >>> whitener = odeco.whiten([[4.0]], 1)  # means -1 and 4 about 3 with weights 0.8 and 0.2
    >>> vectors = np.array([[-(0.2**0.5), 0.8**0.5], [0.8**0.5, 0.2**0.5]])
    >>> odeco.reduction.recover_affine(whitener, vectors, mean=[3.0]).weights
    array([0.8, 0.2])
    """
    columns = np.asarray(eigenvectors, dtype=np.float64)
    count = columns.shape[1] if columns.ndim == 2 else 0
    upright = upright_vectors(check_finite(columns, "eigenvectors", (whitener.n_components + 1, count)))
    weights, centred = read_affine(upright)
    center = check_finite(mean, "mean", (whitener.n_features,))
    return Components(weights, center + whitener.unwhiten(centred.T).T)


def decompose_affine(
    mean: ArrayLike,
    covariance: ArrayLike,
    third: ArrayLike,
    n_components: int,
    *,
    method: str = "auto",
    random_state: RandomState = None,
    **options: Any,
) -> AffineDecomposition:
    """Weights and means of a mixture from the moments of its means about their mean (section 4.3 for (mu_i, 1)).

    Parameters
    ----------
    mean : (d,) array
        ``m = sum_i w_i mu_i``.
    covariance, third : (d, d) and (d, d, d) arrays
        As :func:`reduce_affine` takes them.
    n_components : int
        k, at least 2 and at most d + 1.
    method, random_state, **options
        Passed to :func:`odeco.decompose`.

    Returns
    -------
    AffineDecomposition
        ``weights`` (k,) and ``vectors`` (k, d), with the decomposition and the whitener.

    Examples
    --------
    >>> import numpy as np, odeco
    >>> means, weights = np.array([[1.0, 0.0], [2.0, 2.0], [0.0, 5.0]]), np.array([0.5, 0.3, 0.2])
    >>> mean = weights @ means
    >>> covariance = np.einsum("i,ia,ib->ab", weights, means - mean, means - mean)
    >>> third = np.einsum("i,ia,ib,ic->abc", weights, means - mean, means - mean, means - mean)
    >>> found = odeco.reduction.decompose_affine(mean, covariance, third, 3, random_state=0)  # three means in a plane
    >>> bool(np.allclose(found.vectors[np.argsort(-found.weights)], means))
    True
    """
    reduced = reduce_affine(covariance, third, n_components)
    found = decompose(reduced.tensor, n_components, method=method, random_state=random_state, **options)
    parts = recover_affine(reduced.whitener, found.eigenvectors, mean)
    return AffineDecomposition(parts.weights, parts.vectors, found, reduced.whitener)


def affine_tensor(third: FloatArray) -> Floats:
    """``sum_i w_i (a_i, 1)^(x3)``, (k, k, k), from ``sum_i w_i a_i^(x3)``: the mean of a_h is 0, its covariance I."""
    r = len(third)
    tensor = np.zeros((r + 1,) * 3)
    # The same entry in every order of its indices, to the last bit.
    tensor[:r, :r, :r] = sum(third.transpose(axes) for axes in _ORDERS) / 6
    identity = np.eye(r)
    tensor[r, :r, :r] = tensor[:r, r, :r] = tensor[:r, :r, r] = identity
    tensor[r, r, r] = 1.0
    return tensor


_ORDERS = ((0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0))


def upright_vectors(eigenvectors: FloatArray) -> Floats:
    """Of v and -v, which are the same component, the one whose constant is positive."""
    return np.asarray(eigenvectors * np.where(eigenvectors[-1] < 0, -1.0, 1.0))


def read_affine(upright: Floats) -> tuple[Floats, Floats]:
    """Weights (r,) and whitened means (r, k - 1) as the eigenvectors have them."""
    last = upright[-1]
    if not (last > 0).all():
        raise MomentError(
            f"component {int(np.argmin(last))} of the moments has no weight. Use more samples, or fewer components."
        )
    return last**2, (upright[:-1] / last).T


def _check_count(n_components: int, n_features: int) -> int:
    if isinstance(n_components, bool) or not isinstance(n_components, (int, np.integer)) or n_components < 2:
        raise ValueError(f"n_components must be an integer of at least 2 in the affine form, got {n_components!r}.")
    if n_components > n_features + 1:
        raise ValueError(
            f"n_components={n_components} means span at most {n_features} dimensions about their mean here, and need "
            f"{n_components - 1}. Lower n_components to {n_features + 1} or less."
        )
    return int(n_components)
