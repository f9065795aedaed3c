"""Hidden Markov models on short data: exact recursions from one step to the next, and whole climbs of Baum-Welch."""

from odeco.kernels._native import climb_counts, climb_symbols, expect_short

__all__ = ["climb_counts", "climb_symbols", "expect_short"]
