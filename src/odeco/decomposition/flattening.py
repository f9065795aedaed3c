"""``"svd"``: the singular vectors of the flattening (section 6.2)."""

from __future__ import annotations

import numpy as np

from odeco.decomposition.finish import CONVERGED, Found
from odeco.decomposition.result import Status, StatusCode
from odeco.tensors import ExplicitTensor, SymmetricTensor

# Singular values closer than this share of the largest are told apart by rounding alone after squaring.
_EQUAL = 1e-6


def flattening_svd(tensor: SymmetricTensor, rank: int, rng: np.random.Generator) -> Found:
    """Left singular vectors of the n x n^(p-1) flattening, through the eigenvectors of T1 T1'.

    Right only where all |eigenvalues| differ, and unstable where they nearly agree: then the status says so.
    """
    assert isinstance(tensor, ExplicitTensor)  # the door lets no other in
    values, vectors = np.linalg.eigh(tensor.gram)
    singular = np.sqrt(np.maximum(values[::-1], 0.0))[: rank + 1]
    gaps = singular[:-1] - singular[1:]
    gaps = gaps[singular[:-1] > _EQUAL * singular[0]]  # below that there is no component to tell apart
    status = CONVERGED
    if gaps.size and gaps.min() <= _EQUAL * singular[0]:
        at = int(np.argmin(gaps))
        status = Status(
            StatusCode.EQUAL_SINGULAR_VALUES,
            f"singular values {at} and {at + 1} agree to {gaps[at] / singular[0]:.1g} of the largest, so their vectors "
            "are arbitrary within the plane they span.",
            "Use method='auto' or 'power': repeated eigenvalues do not trouble them.",
        )
    return Found(np.ascontiguousarray(vectors[:, ::-1][:, :rank]), 1, status)
