"""The one check at the boundary: what is a symmetric tensor, and what is not."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from odeco.tensors.algebra import asymmetry
from odeco.tensors.base import SymmetricTensor
from odeco.tensors.explicit import ExplicitTensor

# Squares of entries, summed, stay within the range of normal double precision numbers.
_SMALLEST, _LARGEST = 2.0**-500, 2.0**500


def as_symmetric_tensor(tensor: ArrayLike | SymmetricTensor, name: str = "tensor") -> SymmetricTensor:
    """Return a validated symmetric tensor of order 3 or 4; errors call it by the caller's `name` for it.

    Implicit tensors pass as they are. Arrays must be real, finite, cubic and symmetric to the square root of the
    machine epsilon of their own precision (relative to the largest entry): sums of moments are symmetric to rounding
    only, and half the digits is what a result can still be trusted to.
    """
    if isinstance(tensor, SymmetricTensor):
        if tensor.order not in (3, 4):
            raise ValueError(f"{name} must be of order 3 or 4, got an implicit tensor of order {tensor.order}.")
        return tensor
    if isinstance(tensor, np.ma.MaskedArray) and np.ma.is_masked(tensor):
        raise ValueError(f"{name} must not be masked: fill the masked entries, or estimate the moments without them.")
    given = np.asarray(tensor)
    if given.dtype.kind not in "biuf":
        raise ValueError(f"{name} must be real, got dtype {given.dtype}.")
    if given.ndim not in (3, 4):
        raise ValueError(f"{name} must be of order 3 or 4, got an array of shape {given.shape}.")
    if len(set(given.shape)) != 1 or given.shape[0] == 0:
        raise ValueError(f"{name} must be cubic (all sides equal, at least 1), got shape {given.shape}.")
    precision = given.dtype if given.dtype.kind == "f" else np.dtype(np.float64)
    if given.flags.f_contiguous:
        given = given.T  # the same tensor, without a copy
    array = np.ascontiguousarray(given, dtype=np.float64)
    explicit = ExplicitTensor(array)
    if not np.isfinite(explicit.scale):
        raise ValueError(f"{name} must be finite, got {np.count_nonzero(~np.isfinite(array))} NaN or infinite entries.")
    if not _SMALLEST <= explicit.scale <= _LARGEST:
        raise ValueError(
            f"the largest entry of {name} is {explicit.scale:.3g}: multiply it by a constant, so that squares stay "
            f"within double precision (between {_SMALLEST:.1g} and {_LARGEST:.1g})."
        )
    _check_symmetry(array, explicit.scale, precision, name)
    return explicit


def _check_symmetry(array: NDArray[np.float64], scale: float, precision: np.dtype[Any], name: str) -> None:
    tolerance = float(np.sqrt(np.finfo(precision).eps)) * scale
    found = asymmetry(array)
    if found > tolerance:
        raise ValueError(
            f"{name} must be symmetric, but entries with permuted indices differ by up to {found:.3g} "
            f"(tolerance {tolerance:.3g}). If that is noise, pass odeco.tensors.symmetrize({name})."
        )
