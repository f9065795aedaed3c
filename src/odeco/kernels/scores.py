"""Loops over samples and grids for score functions: what BLAS cannot do."""

from odeco.kernels._native import add_counts, add_score_products, smoothing_splines

__all__ = ["add_counts", "add_score_products", "smoothing_splines"]
