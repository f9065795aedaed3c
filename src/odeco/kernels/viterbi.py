"""Viterbi in the stretches of `odeco.kernels.hmm`, and step by step where stretches do not agree."""

from odeco.kernels._native import best_paths, best_scores, trace_back, trace_lanes

__all__ = ["best_paths", "best_scores", "trace_back", "trace_lanes"]
