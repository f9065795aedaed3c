"""Loops that BLAS cannot do, compiled when the package is built (`native/`), and threads over them."""
