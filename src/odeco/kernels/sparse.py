"""Products of a CSR matrix with tall dense blocks, the loops of section 6.1.2 that scipy has not fused.

A row of the block is read or written per nonzero, so the products are bound by memory and float32 halves their time.
Blocks that are read from or added to here and there may be wider than the rows they give or take (`kernels.lines`).
"""

from odeco.kernels._native import gram_rows, project_rows, scatter_rows, weighted_column_sums

__all__ = ["gram_rows", "project_rows", "scatter_rows", "weighted_column_sums"]
