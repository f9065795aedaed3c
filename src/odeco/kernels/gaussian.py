"""Densities and weighted sums of Gaussian observations with diagonal covariances: one pass over a slice each."""

from odeco.kernels._native import diagonal_rows, diagonal_sums

__all__ = ["diagonal_rows", "diagonal_sums"]
