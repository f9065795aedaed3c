"""Densities and weighted sums of Gaussian observations: one pass over a slice each."""

from odeco.kernels._native import diagonal_rows, diagonal_sums, full_rows, full_sums

__all__ = ["diagonal_rows", "diagonal_sums", "full_rows", "full_sums"]
