"""Cross moments of dense views, which are read once, a block of samples after the other."""

from odeco.kernels._native import add_views

__all__ = ["add_views"]
