"""Refinement: from the recovered parameters to better ones, each family in its own file."""
