"""Responsibilities from log joint densities, and sums by them, in one pass over memory; EM of tables, in one call."""

from odeco.kernels._native import climb_tables, normalize, posterior_sums

__all__ = ["climb_tables", "normalize", "posterior_sums"]
