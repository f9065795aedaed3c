"""Annotators of unknown skill."""
