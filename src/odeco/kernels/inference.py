"""Documents whose topics are known: proportions and likelihoods."""

from odeco.kernels._native import infer_rows, log_likelihood_rows

__all__ = ["infer_rows", "log_likelihood_rows"]
