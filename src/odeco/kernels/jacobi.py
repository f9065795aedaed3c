"""Plane rotations for orthogonal joint diagonalization."""

from odeco.kernels._native import jacobi_sweep

__all__ = ["jacobi_sweep"]
