"""Loops over the nonzeros of documents for the refinement of topics."""

from odeco.kernels._native import (
    CVB0_FLOOR,
    CVB0_LEAST_REST,
    cvb0_rows,
    em_rows,
    gibbs_rows,
    infer_steps,
    mix_rows,
    smooth_rows,
    smoothed_log_likelihood,
)

__all__ = [
    "CVB0_FLOOR",
    "CVB0_LEAST_REST",
    "cvb0_rows",
    "em_rows",
    "gibbs_rows",
    "infer_steps",
    "mix_rows",
    "smooth_rows",
    "smoothed_log_likelihood",
]
