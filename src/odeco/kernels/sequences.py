"""Loops over consecutive symbols."""

from odeco.kernels._native import add_triples, products_at, walk

__all__ = ["add_triples", "products_at", "walk"]
