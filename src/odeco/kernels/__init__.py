"""Compiled loops that BLAS cannot do. Import them inside functions: numba is slow to load."""
