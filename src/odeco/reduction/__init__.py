"""From moments to components, whatever the model: reduce, decompose, recover.

A *reduction* makes of moments a whitener and a small orthogonally decomposable tensor; any method of `odeco.decompose`
finds its eigenpairs; *recovery* reads weights and vectors from them. There are four ways:

- plain (section 4.3, Theorem 4.3): `reduce_moments`, `recover`; all at once `decompose_moments`;
- affine, means about their mean in one dimension fewer: `reduce_affine`, `recover_affine`; `decompose_affine`;
- of fourth order, M4 alone and weights of both signs (sections 3.2.3 and 4.3): `reduce_fourth`, `recover_fourth`;
  `decompose_fourth`; and `contract_fourth`, the paper's M4(I, I, u, v) and M4(I, I, I, v), for the plain way;
- three-way, moments of views that differ (Theorem 3.6): `decompose_views`.
"""

from __future__ import annotations

from odeco.reduction.affine import decompose_affine, recover_affine, reduce_affine
from odeco.reduction.fourth import contract_fourth, decompose_fourth, recover_fourth, reduce_fourth
from odeco.reduction.plain import decompose_moments, recover, reduce_moments
from odeco.reduction.result import (
    AffineDecomposition,
    Components,
    FourthDecomposition,
    MomentDecomposition,
    Recovered,
    Reduction,
)
from odeco.reduction.views import ViewComponents, decompose_views

__all__ = [
    "AffineDecomposition",
    "Components",
    "FourthDecomposition",
    "MomentDecomposition",
    "Recovered",
    "Reduction",
    "ViewComponents",
    "contract_fourth",
    "decompose_affine",
    "decompose_fourth",
    "decompose_moments",
    "decompose_views",
    "recover",
    "recover_affine",
    "recover_fourth",
    "reduce_affine",
    "reduce_fourth",
    "reduce_moments",
]
