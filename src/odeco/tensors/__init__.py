"""Symmetric tensors: algebra on arrays, and objects that can only contract with vectors (section 2 of the paper)."""

from __future__ import annotations

from odeco.tensors.algebra import asymmetry, frobenius_norm, multilinear, rank_one_sum, symmetrize
from odeco.tensors.base import Mapped, SymmetricTensor
from odeco.tensors.explicit import ExplicitTensor
from odeco.tensors.implicit import Deflated, RankOneSum
from odeco.tensors.norms import OperatorNormBound, operator_norm_lower_bound
from odeco.tensors.packed import PackedTensor
from odeco.tensors.validation import as_symmetric_tensor

__all__ = [
    "Deflated",
    "ExplicitTensor",
    "Mapped",
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
