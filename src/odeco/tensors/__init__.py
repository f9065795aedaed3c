"""Symmetric tensors: algebra on arrays, and objects that can only contract with vectors (section 2 of the paper)."""

from __future__ import annotations

from .algebra import asymmetry, frobenius_norm, multilinear, rank_one_sum, symmetrize
from .base import SymmetricTensor
from .explicit import ExplicitTensor
from .implicit import Deflated, RankOneSum
from .norms import OperatorNormBound, operator_norm_lower_bound
from .packed import PackedTensor
from .validation import as_symmetric_tensor

__all__ = [
    "Deflated",
    "ExplicitTensor",
    "OperatorNormBound",
    "PackedTensor",
    "RankOneSum",
    "SymmetricTensor",
    "as_symmetric_tensor",
    "asymmetry",
    "frobenius_norm",
    "multilinear",
    "operator_norm_lower_bound",
    "rank_one_sum",
    "symmetrize",
]
