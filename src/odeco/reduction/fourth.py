"""Reductions of fourth order: M4 whitens itself, or is contracted to an M2 and an M3 (sections 3.2.3 and 4.3)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from odeco._random import RandomState, as_generator
from odeco.decomposition import decompose, run_method
from odeco.reduction.checks import check_eigenpairs, check_finite, check_lengths
from odeco.reduction.result import Components, FloatArray, FourthDecomposition, Reduction
from odeco.tensors import ExplicitTensor, SymmetricTensor, as_symmetric_tensor
from odeco.whitening import Whitener, whiten_fourth
from odeco.whitening.whitener import check_n_components


def contract_fourth(M4: ArrayLike, u: ArrayLike, v: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """The paper's M2 and M3 of a fourth-order tensor: ``M4(I, I, u, v)`` and ``M4(I, I, I, v)`` (section 3.2.3).

    They are ``sum_i kappa_i (mu_i'u)(mu_i'v) mu_i mu_i'`` and ``sum_i kappa_i (mu_i'v) mu_i^(x3)``. Where all
    ``kappa_i (mu_i'u)(mu_i'v)`` are positive, as for kappa_i > 0 and u = v, :func:`decompose_moments` with
    ``scale="unit-norm"`` takes them. Where some are negative M2 is indefinite: use :func:`decompose_fourth`.

    Parameters
    ----------
    M4 : (d, d, d, d) array
    u, v : (d,) arrays

    Returns
    -------
    (d, d) and (d, d, d) arrays

    Examples
    --------
    >>> import numpy as np, odeco
    >>> M4 = odeco.tensors.rank_one_sum([3.0, 1.0], np.array([[1.0, 0.6], [0.0, 0.8]]), 4)
    >>> M2, M3 = odeco.reduction.contract_fourth(M4, [1.0, 1.0], [1.0, 1.0])
    >>> np.linalg.eigvalsh(M2) > 0
    array([ True,  True])
    >>> found = odeco.decompose_moments(M2, M3, 2, scale="unit-norm", random_state=0)
    >>> np.round(found.vectors[np.argsort(found.vectors[:, 1])], 6)
    array([[1. , 0. ],
           [0.6, 0.8]])
    """
    tensor = _check_fourth(M4)
    if not isinstance(tensor, ExplicitTensor):
        raise ValueError("M4 must be an explicit array to be contracted; decompose_fourth takes implicit tensors.")
    first, second = (check_finite(vector, name, (tensor.dimension,)) for vector, name in ((u, "u"), (v, "v")))
    third = tensor.array @ second
    return third @ first, third


def reduce_fourth(M4: ArrayLike | SymmetricTensor, n_components: int, directions: ArrayLike) -> Reduction:
    """Whiten ``M4 = sum_i kappa_i mu_i^(x4)`` by a combination of its own slices (sections 3.2.3 and 4.3).

    The kappa_i may have both signs: of the slices ``M4(I, I, v, v)`` a combination is taken that is positive definite
    (:func:`odeco.whitening.whiten_fourth`). :func:`recover_fourth` reads the eigenpairs of the tensor;
    :func:`decompose_fourth` finds directions and does all three steps.

    Parameters
    ----------
    M4 : (d, d, d, d) array or SymmetricTensor
    n_components : int
        k, at most d.
    directions : (d, m) array, m >= k
        Columns v. Almost any serve; the best are near to the mu_i.

    Returns
    -------
    Reduction
        A whitener, (d, k), and the tensor, (k, k, k, k), whose eigenvalues have the signs of the kappa_i.

    Raises
    ------
    MomentError
        Where no combination of the slices is positive definite: fewer than k components stand above the noise.

    Examples
    --------
    >>> import numpy as np, odeco
    >>> M4 = odeco.tensors.rank_one_sum([3.0, -2.0], np.array([[1.0, 0.6], [0.0, 0.8]]), 4)
    >>> reduced = odeco.reduction.reduce_fourth(M4, 2, np.eye(2))
    >>> found = odeco.decompose(reduced.tensor, 2, method="joint", random_state=0)
    >>> parts = odeco.reduction.recover_fourth(reduced.whitener, found.eigenvalues, found.eigenvectors)
    >>> np.round(np.sort(parts.weights), 6)
    array([-2.,  3.])
    """
    tensor = _check_fourth(M4)
    whitener = whiten_fourth(tensor, n_components, directions)
    return Reduction(whitener, tensor.through(np.asarray(whitener.matrix, dtype=np.float64)))


def recover_fourth(whitener: Whitener, eigenvalues: ArrayLike, eigenvectors: ArrayLike) -> Components:
    """The ``kappa_i`` and ``mu_i`` of unit norm from eigenpairs of the whitened M4 (Theorem 4.3 at order 4).

    Parameters
    ----------
    whitener : Whitener
        From d to k dimensions.
    eigenvalues : (r,) array
    eigenvectors : (k, r) array
        Columns of unit norm.

    Returns
    -------
    Components
        ``weights`` (r,), of any sign, and ``vectors`` (r, d).

    Examples
    --------
    >>> import numpy as np, odeco
    >>> whitener = odeco.whiten(np.diag([4.0, 1.0]), 2)
    >>> odeco.reduction.recover_fourth(whitener, [0.5, -2.0], np.eye(2)).weights
    array([ 8., -2.])
    """
    values, vectors = check_eigenpairs(whitener, eigenvalues, eigenvectors)
    lifted = whitener.unwhiten(vectors).T
    lengths = check_lengths(np.linalg.norm(lifted, axis=1), "unit-norm")
    return Components(values * lengths**4, lifted / lengths[:, None])


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
        k, at most d.
    method, random_state, **options
        Passed to :func:`odeco.decompose`.

    Returns
    -------
    FourthDecomposition
        ``weights`` (k,) and ``vectors`` (k, d) of unit norm, with the decomposition and the whitener.

    Examples
    --------
    >>> import numpy as np, odeco
    >>> M4 = odeco.tensors.rank_one_sum([3.0, -2.0], np.array([[1.0, 0.6], [0.0, 0.8]]), 4)
    >>> found = odeco.decompose_fourth(M4, 2, random_state=0)
    >>> np.round(np.abs(found.vectors[np.argsort(-found.weights)]), 6)
    array([[1. , 0. ],
           [0.6, 0.8]])
    """
    tensor, rng = _check_fourth(M4), as_generator(random_state)
    check_n_components(n_components, tensor.dimension)
    # Almost any directions serve: what an orthogonal fit finds needs not to be right.
    rough = run_method(tensor, n_components, "auto", rng, {"tol": 1e-3})
    reduced = reduce_fourth(tensor, n_components, rough.eigenvectors)
    found = decompose(reduced.tensor, n_components, method=method, random_state=rng, **options)
    parts = recover_fourth(reduced.whitener, found.eigenvalues, found.eigenvectors)
    return FourthDecomposition(parts.weights, parts.vectors, found, reduced.whitener)


def _check_fourth(M4: ArrayLike | SymmetricTensor) -> SymmetricTensor:
    tensor = as_symmetric_tensor(M4, "M4")
    if tensor.order != 4:
        raise ValueError(f"M4 must be of order 4, got order {tensor.order}.")
    return tensor
