"""Orthogonal decomposition of symmetric tensors: one algorithm per file, one door in front (sections 4-6)."""

from __future__ import annotations

from odeco.decomposition.door import METHODS, Method, decompose, run_method
from odeco.decomposition.result import Certificate, Decomposition, Status, StatusCode

__all__ = ["METHODS", "Certificate", "Decomposition", "Method", "Status", "StatusCode", "decompose", "run_method"]
