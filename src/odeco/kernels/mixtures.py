"""Responsibilities from log joint densities, in one pass over memory."""

from odeco.kernels._native import normalize

__all__ = ["normalize"]
