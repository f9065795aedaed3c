"""odeco: latent variable models by the method of moments and orthogonal tensor decomposition."""

from __future__ import annotations

from odeco import metrics, simulate, tensors, theory
from odeco.decomposition import Decomposition, decompose
from odeco.exceptions import MomentWarning
from odeco.recovery import decompose_moments
from odeco.whitening import Whitener, whiten

__version__ = "0.1.0.dev0"

# In the order of the flow.
__all__ = [
    "tensors",
    "simulate",
    "metrics",
    "theory",
    "whiten",
    "Whitener",
    "decompose",
    "Decomposition",
    "decompose_moments",
    "MomentWarning",
]
