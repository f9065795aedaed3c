"""Features of steps and sums over consecutive ones, without a table of features as large as the data."""

from odeco.kernels._native import add_step_pairs, add_step_triples, project_steps

__all__ = ["add_step_pairs", "add_step_triples", "project_steps"]
