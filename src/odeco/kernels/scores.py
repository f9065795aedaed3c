"""Loops over samples and grids for score functions: what BLAS cannot do."""

from odeco.kernels._native import add_counts, look_up, smoothing_splines

__all__ = ["add_counts", "look_up", "smoothing_splines"]
