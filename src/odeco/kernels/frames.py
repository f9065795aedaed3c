"""Orthogonal iteration on small tensors."""

from odeco.kernels._native import iterate_frame

__all__ = ["iterate_frame"]
