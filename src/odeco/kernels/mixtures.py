"""Responsibilities from log joint densities, and sums by them, in one pass over memory."""

from odeco.kernels._native import normalize, posterior_sums

__all__ = ["normalize", "posterior_sums"]
