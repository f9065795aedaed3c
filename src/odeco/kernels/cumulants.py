"""Products of four coordinates summed over samples: every multiset once, which BLAS cannot do."""

from odeco.kernels._native import add_fourth

__all__ = ["add_fourth"]
