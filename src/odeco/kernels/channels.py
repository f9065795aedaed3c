"""Narrow rows of numbers, each read once: products of their columns, and their coordinates on a basis."""

from odeco.kernels._native import add_row_products, whiten_rows

# Columns up to which these are quicker than BLAS, which wants its numbers centred and larger products.
NARROW = 64

__all__ = ["NARROW", "add_row_products", "whiten_rows"]
