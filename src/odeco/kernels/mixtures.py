"""Responsibilities from log joint densities, and sums by them, in one pass over memory; EM of tables, in one call."""

from odeco.kernels._native import (
    climb_tables,
    normalize,
    posterior_sums,
    posterior_sums_of_rows,
    quadratic_densities,
    quadratic_sums,
)

__all__ = [
    "climb_tables",
    "normalize",
    "posterior_sums",
    "posterior_sums_of_rows",
    "quadratic_densities",
    "quadratic_sums",
]
