"""What a reduction gives: a whitener and a small tensor; and what is read from the tensor's eigenpairs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from odeco.tensors import SymmetricTensor
from odeco.whitening import Whitener

if TYPE_CHECKING:
    from odeco.decomposition import Decomposition

FloatArray = NDArray[np.floating]


@dataclass(frozen=True, eq=False)
class Reduction:
    """Moments as an orthogonally decomposable tensor, which any method of :func:`odeco.decompose` takes.

    Attributes
    ----------
    whitener : Whitener
        From d dimensions to those of the tensor (to one fewer in the affine form), and back.
    tensor : SymmetricTensor
        Of side k and order 3 or 4; ``tensor.array`` is the array where it was formed.
    """

    whitener: Whitener
    tensor: SymmetricTensor = field(repr=False)


@dataclass(frozen=True, eq=False)
class Components:
    """Weights (r,), and vectors (r, d) as rows."""

    weights: FloatArray
    vectors: FloatArray = field(repr=False)


@dataclass(frozen=True, eq=False)
class Recovered(Components):
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

    third_weights: FloatArray


@dataclass(frozen=True, eq=False)
class MomentDecomposition(Recovered):
    """:class:`Recovered` components together with the decomposition and the whitener they came from.

    Component i belongs to eigenpair i of ``decomposition``.
    """

    decomposition: Decomposition
    whitener: Whitener


@dataclass(frozen=True, eq=False)
class AffineDecomposition(Components):
    """Weights and means of a mixture, and the decomposition and the whitener they came from.

    Attributes
    ----------
    weights : (k,) array
        They sum to 1 up to the noise of the moments.
    vectors : (k, d) array
        The means as rows, not centred.
    """

    decomposition: Decomposition
    whitener: Whitener


@dataclass(frozen=True, eq=False)
class FourthDecomposition(Components):
    """Components of ``M4 = sum_i kappa_i mu_i^(x4)``, and the decomposition and the whitener they came from.

    Attributes
    ----------
    weights : (k,) array
        ``kappa_i``, of any sign.
    vectors : (k, d) array
        ``mu_i`` as rows of unit norm: M4 does not tell their length from ``kappa_i``.
    """

    decomposition: Decomposition
    whitener: Whitener
