"""Orthogonal decomposition of symmetric tensors: one algorithm per file, one door in front (sections 4-6)."""

from __future__ import annotations

from odeco.decomposition.methods import AUTO, METHODS, Decomposer, Method, decompose, run_decomposer, run_method
from odeco.decomposition.result import Certificate, Decomposition, Status, StatusCode

__all__ = [
    "AUTO",
    "METHODS",
    "Certificate",
    "Decomposer",
    "Decomposition",
    "Method",
    "Status",
    "StatusCode",
    "decompose",
    "run_decomposer",
    "run_method",
]
