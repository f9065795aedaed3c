"""Products of three coordinates summed over samples: every multiset once, which BLAS cannot do."""

from odeco.kernels._native import add_cubes

__all__ = ["add_cubes"]
