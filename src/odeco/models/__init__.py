"""Estimators: one file each, on top of everything else."""
