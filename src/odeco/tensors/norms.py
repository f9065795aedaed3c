"""The operator norm of a symmetric tensor, from below."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from odeco._random import RandomState, as_generator
from odeco.tensors.algebra import Floats
from odeco.tensors.base import SymmetricTensor
from odeco.tensors.validation import as_symmetric_tensor


@dataclass(frozen=True)
class OperatorNormBound:
    """A lower bound on ||T|| = sup |T(u, ..., u)| over unit u (section 5.2) and the u that attains it.

    The supremum itself is NP-hard in general. The best of many local maxima is a lower bound, and for random
    tensors a close one.
    """

    value: float
    vector: Floats
    n_starts: int


def operator_norm_lower_bound(
    tensor: ArrayLike | SymmetricTensor,
    *,
    n_starts: int = 50,
    n_iter: int = 100,
    random_state: RandomState = None,
) -> OperatorNormBound:
    """The largest |T(u, ..., u)| found by shifted power iterations from many random starts.

    All starts run at once. Each u moves to T(I, u, ..) + |T(u, .., u)| u, in the direction of the value's sign: the
    shift (S-HOPM) damps the oscillations that the plain map shows on tensors without structure.
    """
    for name, count in (("n_starts", n_starts), ("n_iter", n_iter)):
        if not isinstance(count, (int, np.integer)) or count < 1:
            raise ValueError(f"{name} must be a positive integer, got {count!r}.")
    symmetric = as_symmetric_tensor(tensor)
    rng = as_generator(random_state)
    vectors = _unit(rng.standard_normal((symmetric.dimension, n_starts)))
    best, where = 0.0, vectors[:, 0]
    for _ in range(n_iter):
        mapped = symmetric.power_map(vectors)
        values = np.einsum("ij,ij->j", vectors, mapped)
        top = int(np.argmax(np.abs(values)))
        if abs(values[top]) > best:
            best, where = float(abs(values[top])), vectors[:, top].copy()
        if best == 0.0 and not mapped.any():
            break
        vectors = _unit(mapped * np.where(values < 0, -1.0, 1.0) + np.abs(values) * vectors)
    return OperatorNormBound(best, where, n_starts)


def _unit(vectors: Floats) -> Floats:
    norms = np.linalg.norm(vectors, axis=0)
    return np.asarray(vectors / np.where(norms == 0, 1.0, norms))
