"""Mixtures of independent columns."""
