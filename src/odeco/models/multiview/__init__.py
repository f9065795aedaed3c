"""Mixtures seen in several views."""
